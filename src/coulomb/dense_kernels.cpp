#include "coulomb/dense_kernels.hpp"

#include "coulomb/simd.hpp"

namespace coulomb {

// Row by row: collect the non-zero coefficients, then add four rows of B at a time, so that `out` is loaded once per four.
COULOMB_SIMD void multiply_add(double* out, int ldo, int rows, int cols, const double* A, int row_stride, int col_stride,
                               int depth, const double* B, int ldb, double scale, double* coefficients, int* indices) {
  for (int i = 0; i < rows; ++i) {
    int n = 0;
    for (int k = 0; k < depth; ++k) {
      const double a = A[i * row_stride + k * col_stride];
      coefficients[n] = scale * a;
      indices[n] = k;
      n += a != 0.0;
    }
    double* __restrict__ o = out + i * ldo;
    int t = 0;
    for (; t + 4 <= n; t += 4) {
      const double c0 = coefficients[t], c1 = coefficients[t + 1], c2 = coefficients[t + 2], c3 = coefficients[t + 3];
      const double* __restrict__ b0 = B + indices[t] * ldb;
      const double* __restrict__ b1 = B + indices[t + 1] * ldb;
      const double* __restrict__ b2 = B + indices[t + 2] * ldb;
      const double* __restrict__ b3 = B + indices[t + 3] * ldb;
      for (int j = 0; j < cols; ++j) o[j] += c0 * b0[j] + c1 * b1[j] + c2 * b2[j] + c3 * b3[j];
    }
    for (; t < n; ++t) {
      const double c = coefficients[t];
      const double* __restrict__ b = B + indices[t] * ldb;
      for (int j = 0; j < cols; ++j) o[j] += c * b[j];
    }
  }
}

}  // namespace coulomb
