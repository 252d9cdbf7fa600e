#include "coulomb/dense_kernels.hpp"

#include "coulomb/simd.hpp"

namespace coulomb {
namespace {
// Four doubles: one AVX register, two SSE registers. Unaligned by declaration.
typedef double Lanes __attribute__((vector_size(32), aligned(8), may_alias));
}  // namespace

// Row by row: collect the non-zero coefficients, then run down the rows of B with 16 (8) columns of `out` held in registers.
COULOMB_SIMD void multiply_add(double* out, int ldo, int rows, int cols, const double* A, int row_stride, int col_stride,
                               int depth, const double* B, int ldb, double scale, double* coefficients, int* indices) {
  for (int i = 0; i < rows; ++i) {
    int n = 0;
    const double* a = A + static_cast<long>(i) * row_stride;
    for (int k = 0; k < depth; ++k) {
      const double value = a[static_cast<long>(k) * col_stride];
      coefficients[n] = scale * value;
      indices[n] = k * ldb;
      n += value != 0.0;
    }
    double* o = out + static_cast<long>(i) * ldo;
    int j = 0;
    for (; j + 16 <= cols; j += 16) {
      Lanes* target = reinterpret_cast<Lanes*>(o + j);
      Lanes s0 = target[0], s1 = target[1], s2 = target[2], s3 = target[3];
      for (int t = 0; t < n; ++t) {
        const Lanes* b = reinterpret_cast<const Lanes*>(B + indices[t] + j);
        const double c = coefficients[t];
        s0 += c * b[0], s1 += c * b[1], s2 += c * b[2], s3 += c * b[3];
      }
      target[0] = s0, target[1] = s1, target[2] = s2, target[3] = s3;
    }
    for (; j < cols; j += 8) {
      Lanes* target = reinterpret_cast<Lanes*>(o + j);
      Lanes s0 = target[0], s1 = target[1];
      for (int t = 0; t < n; ++t) {
        const Lanes* b = reinterpret_cast<const Lanes*>(B + indices[t] + j);
        const double c = coefficients[t];
        s0 += c * b[0], s1 += c * b[1];
      }
      target[0] = s0, target[1] = s1;
    }
  }
}

}  // namespace coulomb
