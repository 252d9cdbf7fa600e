// Dense products on raw arrays for the step and its derivatives: small sizes, rows padded to 8, many exact zeros.
#pragma once

#include <vector>

namespace coulomb {

inline int padded(int n) { return (n + 7) & ~7; }

/// A rows x depth matrix: element (i, k) is data[i * row_stride + k * column_stride].
struct StridedMatrix {
  const double* data;
  int rows, depth;
  long row_stride, column_stride;
};
inline StridedMatrix rows_of(const double* data, int rows, int depth, int ld) { return {data, rows, depth, ld, 1}; }
inline StridedMatrix transposed(const double* data, int rows, int depth, int ld) { return {data, rows, depth, 1, ld}; }

/// Where multiply keeps the non-zero coefficients of two rows; grows only.
struct ProductScratch {
  std::vector<double> coefficients;
  std::vector<int> offsets;
};

enum class Product { set, add, subtract };

/// out = A B, out += A B or out -= A B; zeros of A are skipped. B is depth x cols and out rows x cols, both with leading dimension
/// `ld`; cols must be a multiple of 8.
void multiply(Product how, const StridedMatrix& A, const double* B, double* out, int cols, int ld,
              ProductScratch& scratch);

}  // namespace coulomb
