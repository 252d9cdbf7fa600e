// Products and factorisations by blocks, for the problems whose matrices leave the first cache (about 64 rows and more): everything
// but thin panels is a product of matrices, whose sums stay in registers. dense.hpp picks them by size.
#pragma once

namespace coulomb::dense {

constexpr int blocked_from = 64;  ///< rows

/// C (m x cols) += sign A (m x k) B (k x cols), with A(i, l) = A[i * row_stride + l * column_stride].
void add_product(double sign, const double* A, long row_stride, long column_stride, const double* B, int ldb, double* C,
                 int ldc, int m, int k, int cols);

/// As dense::cholesky and dense::lu.
double blocked_cholesky(double* A, int n, int ld, double* work);
double blocked_lu(double* A, int n, int ld, int* pivot);

}  // namespace coulomb::dense
