// Derivatives of a solved boxed LCP with its classes held (docs/theory.md (Q4): Nimble's pseudo-inverse derivative with all its terms).
//
//   x = x_F + S x_C,  x_C = -Q^+ r,  Q = A_C S,  r = b_C + A_C x_F
//   dx_C = -Q^+ (dr + dQ x_C) - Q^+ Q^+^T dQ^T (I - Q Q^+) r + (I - Q^+ Q) dQ^T Q^+^T x_C
//   dQ = dA_C S + A_C dS,  dr = db_C + dA_C x_F + A_C dx_F
// where Q is deficient this is the derivative along changes that keep its rank. At a tie: of the classes reported.
#pragma once

#include <vector>

#include "coulomb/solvers/lcp/lcp_classes.hpp"

namespace coulomb {

struct LcpCotangent {
  std::vector<double> A, b, lo, hi;  ///< A: n x n, row major
};

class LcpDerivatives {
 public:
  LcpDerivatives() = default;
  LcpDerivatives(BoxedLcp problem, const LcpSolution& solution);

  std::vector<double> dx_db() const;  ///< n x n, row major
  std::vector<double> dx_dlo() const;
  std::vector<double> dx_dhi() const;                    ///< of a friction row: by its coefficient
  std::vector<double> along_dA(const double* dA) const;  ///< dA: n x n
  LcpCotangent vjp(const double* x_bar) const;
  bool deficient() const { return system_.deficient; }
  int size() const { return problem_.n; }

 private:
  std::vector<double> columns(const std::vector<std::vector<double>>& directions) const;
  /// dx of (dQ, dr) on C and a direct change of x (m x m, m, n; null: zero).
  std::vector<double> change(const double* dQ, const double* dr, const double* dx) const;
  std::vector<double> by_end(bool upper) const;

  BoxedLcp problem_;
  std::vector<LcpClass> classes_;
  std::vector<double> x_, xc_, rest_;  // rest: (I - Q Q^+) r
  std::vector<double> inverse_;        // Q^+, m x m
  mutable LcpClassSystem system_;
};

}  // namespace coulomb
