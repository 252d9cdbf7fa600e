// Dense products on raw arrays for the step and its derivatives: small sizes, rows padded to 8, many exact zeros.
#pragma once

namespace coulomb {

/// out (rows x cols) += scale * A B. A's element (i, k) is A[i * row_stride + k * col_stride], k < depth; zeros of A are skipped.
/// B is depth x cols with leading dimension ldb. cols must be a multiple of 8. coefficients, indices: scratch of `depth`.
void multiply_add(double* out, int ldo, int rows, int cols, const double* A, int row_stride, int col_stride, int depth,
                  const double* B, int ldb, double scale, double* coefficients, int* indices);

inline int padded(int n) { return (n + 7) & ~7; }

}  // namespace coulomb
