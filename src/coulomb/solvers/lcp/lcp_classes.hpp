// The linear system of a set of classes (docs/theory.md (Q3)): x = x_F + S x_C, x_C the clamped rows, x_F the ends where others are, S
// the identity on C and +-hi on friction rows at a bound of a clamped normal (Nimble's E):
//
//   Q x_C = -r,   Q = A_C S,   r = b_C + A_C x_F
//
// Full rank by LU; else the least-norm x_C of the pseudo-inverse ([Werling2021], "LCP stabilization").
#pragma once

#include <vector>

#include "coulomb/lcp.hpp"
#include "coulomb/linalg/rank_revealing.hpp"

namespace coulomb {

/// Units in which residuals and ties mean something: x_i sqrt(s_i) / ref_i, s_i = A_ii (or the row's size). ref_i is the largest
/// |b_j| / sqrt(s_j) of the rows j that row i depends on, itself included: what is asked elsewhere has no say in what is zero here.
struct LcpScale {
  std::vector<double> s, root, ref;
  std::vector<char> positive;  ///< A_ii > 0 and no smaller than a semi-definite A with these A_ij has it
  void assign(const BoxedLcp& problem);
};

/// Each row's value becomes the largest of the rows that it depends on: by A_ij != 0 or as friction on its normal, through others too.
void spread_largest(const BoxedLcp& problem, double* values);

/// Largest |x - clamp(x - w / s, bounds)| in these units; zero exactly at solutions, but for x so large that w is rounding. Rows without such
/// a diagonal entry, which no mechanical problem has, are measured by the terms of w: nothing bounds A_ij by their size.
double lcp_residual(const BoxedLcp& problem, const LcpScale& scale, const double* x, const double* w);
/// Classes of z = x - w / s. Within `tie` of a border: an end of a one-sided row before its inside, the inside of a two-sided one.
void lcp_classes(const BoxedLcp& problem, const LcpScale& scale, double tie, const double* x, const double* w,
                 LcpClass* classes);

class LcpClassSystem {
 public:
  /// x of these classes. False: not finite.
  bool solve(const BoxedLcp& problem, const LcpClass* classes, double* x);
  /// present: rows that take part, all where null; the others' x is 0 here.
  void build(const BoxedLcp& problem, const LcpClass* classes, const char* present = nullptr);

  /// Q X = B, in place: m x cols with leading dimension ldx; least-norm least-squares where deficient.
  void solve_columns(double* X, int ldx, int cols);
  /// x += S x_C
  void expand(const double* xc, double* x) const;
  /// out_C = S^T x
  void contract(const double* x, double* out) const;

  int m = 0, ld = 0;
  bool deficient = false;
  std::vector<int> rows;       ///< C
  std::vector<int> column;     ///< per row of the problem: the unknown it follows, or -1
  std::vector<double> factor;  ///< per row: its entry of S
  std::vector<double> fixed;   ///< x_F
  std::vector<double> Q, r;    ///< Q: m x ld (not overwritten)

 private:
  void list_columns(const BoxedLcp& problem, const LcpClass* classes, const char* present);
  int n_ = 0;
  std::vector<double> lu_, work_;
  std::vector<int> pivot_;
  PseudoInverse inverse_;
};

}  // namespace coulomb
