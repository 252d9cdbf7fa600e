// Small dense kernels of the contact solvers (5 to 150 rows): Cholesky, LU with partial pivoting, their solves with one or many
// right-hand sides, and products. Row major; leading dimensions of factored matrices are multiples of 8, because the inner
// loops run over whole vectors of the padding (whose content is never read as a result).
#pragma once

namespace coulomb::dense {

inline int padded(int n) { return (n + 7) & ~7; }

/// y = x_1 A_1 + ... + y: adds the rows of A weighted by x (zeros are skipped); with A symmetric this is y += A x.
void add_weighted_rows(const double* A, int n, int ld, const double* x, double* y);

/// C (m x cols) = A (m x k) B (k x cols).
void multiply(const double* A, int lda, const double* B, int ldb, double* C, int ldc, int m, int k, int cols);
/// C (m x cols) = A^T B with A (k x m).
void multiply_transposed(const double* A, int lda, const double* B, int ldb, double* C, int ldc, int m, int k,
                         int cols);

/// A = U^T U in the upper triangle (the lower is overwritten with rubbish). Returns the smallest ratio of a pivot to its diagonal
/// entry before elimination (<= 0 or NaN: not positive definite, the factor is unusable). work: ld doubles.
double cholesky(double* A, int n, int ld, double* work);
void cholesky_solve(const double* U, int n, int ld, double* x);
void cholesky_solve(const double* U, int n, int ld, double* X, int ldx, int cols);

/// P A = L U in place, unit L. Returns the smallest pivot over the largest entry of A (0 or NaN: singular). work: ld doubles.
double lu(double* A, int n, int ld, int* pivot, double* work);
void lu_solve(const double* LU, int n, int ld, const int* pivot, double* x);
void lu_solve(const double* LU, int n, int ld, const int* pivot, double* X, int ldx, int cols);
void lu_solve_transposed(const double* LU, int n, int ld, const int* pivot, double* x);
void lu_solve_transposed(const double* LU, int n, int ld, const int* pivot, double* X, int ldx, int cols);

}  // namespace coulomb::dense
