// Boxed quadratic programs by projected Newton steps [Tassa2014, algorithm 1]:  min 1/2 x^T Q x + q^T x,  lower <= x <= upper.
//
// Their conditions of optimality are a boxed LCP, which coulomb/lcp.hpp solves too. This one is apart from it because the backward pass needs
// what pivoting does not offer: a start from the controls that there are, which are nearly always within the limits, so that one
// factorisation is all; the factor of what is free, for the feedback; and a refusal where Q is not positive definite there.
#pragma once

#include <vector>

namespace coulomb {

class BoxedNewton {
 public:
  void resize(int n);

  /// Q: n x n, row stride ld; x: from where to start, and the solution. False: Q is not positive definite on the free entries, or numbers
  /// are not finite.
  bool solve(const double* Q, int ld, const double* q, const double* lower, const double* upper, double* x);

  /// Without a problem: factors Q of the entries that are not held (n). False: it is not positive definite.
  bool factor_free(const double* Q, int ld, const char* held);

  /// After either: rows of X (n x columns, row stride ldx) become those of -Q_ff^-1 X_f; zero where x is held.
  void solve_free(double* X, int ldx, int columns);
  int num_free() const { return int(free_.size()); }

 private:
  bool factor(const double* Q, int ld);
  double value(const double* Q, int ld, const double* q, const double* x) const;

  int n_ = 0;
  std::vector<int> free_;
  std::vector<int> factored_;  // the free entries that U_ belongs to
  std::vector<double> U_;
  std::vector<double> work_;
  std::vector<double> gradient_;
  std::vector<double> step_;
  std::vector<double> next_;
  std::vector<double> columns_;
};

}  // namespace coulomb
