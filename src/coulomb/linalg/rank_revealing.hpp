// Least-norm least-squares solutions of a square matrix of any rank: a complete orthogonal decomposition A = Q L Z^T by two
// orthogonalisations, A^+ = Z^T Y, multiplied out where the rank is high (it serves many right-hand sides and their transposes).
#pragma once

#include <vector>

namespace coulomb {

class PseudoInverse {
 public:
  /// A: n x n row major with leading dimension ld, not changed. Directions below threshold times the largest are dropped.
  void compute(const double* A, int n, int ld, double threshold = 1e-9);
  void solve(double* X, int ldx, int cols);             ///< X := A^+ X
  void solve_transposed(double* X, int ldx, int cols);  ///< X := (A^+)^T X

  int rank = 0;

 private:
  void reserve(int n);
  void pivot_columns(const double* A, int ld, double threshold);
  void orthonormalise_rows();
  void apply(bool transposed, double* X, int ldx, int cols);

  int n_ = 0, ld_ = 0;
  bool low_rank_ = false;
  std::vector<double> columns_, q_, r_, z_, size_, inverse_, buffer_;  // q_ ends as Y
  std::vector<int> order_;
};

}  // namespace coulomb
