// out (=, +=, -=) A B, two rows of `out` at a time: collect the columns of A where either row is not zero, then run down those rows
// of B with four vectors of each row of `out` in registers. Eight independent sums hide the latency of a multiply-add.
#include "coulomb/linalg/dense_kernels.hpp"

#include <bit>
#include <cstdint>

#include "coulomb/base/lanes.hpp"

namespace coulomb {
namespace {

/// Columns of A where one of the rows i, i + 1 is not zero: their coefficients side by side, and where the row of B starts.
COULOMB_INLINE int collect(const double* a, const double* b, int depth, long stride, int ldb,
                           double* __restrict coefficients, int* __restrict offsets) {
  int n = 0;
  for (int k = 0; k < depth; ++k) {
    const double x = a[k * stride];
    const double y = b[k * stride];
    coefficients[2 * n] = x;
    coefficients[2 * n + 1] = y;
    offsets[n] = k * ldb;

    // A column of zeros is overwritten by the next one; the sign of a zero is left out.
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(x) | std::bit_cast<std::uint64_t>(y);
    n += (bits << 1) != 0;
  }
  return n;
}

/// `count` vectors of two rows of out. With a single row left, second == first and both get the same sums.
template <int width, int count>
COULOMB_INLINE void columns(Product how, int n, const double* __restrict coefficients, const int* __restrict offsets,
                            const double* B, double* first, double* second) {
  Vector<width> x[count];
  Vector<width> y[count];
#pragma GCC unroll 4
  for (int i = 0; i < count; ++i)
    x[i] = y[i] = Vector<width>{};

  // One row of B at a time, sums in registers.
  for (int t = 0; t < n; ++t) {
    const double* row = B + offsets[t];
    const double cx = coefficients[2 * t];
    const double cy = coefficients[2 * t + 1];

    // What they do to `out`.
#pragma GCC unroll 4
    for (int i = 0; i < count; ++i) {
      const Vector<width> b = load_vector<width>(row + i * width);
      x[i] += cx * b;
      y[i] += cy * b;
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < count; ++i) {
    double* to_x = first + i * width;
    double* to_y = second + i * width;
    if (how != Product::set) {
      const double sign = how == Product::add ? 1.0 : -1.0;
      x[i] = load_vector<width>(to_x) + sign * x[i];
      y[i] = load_vector<width>(to_y) + sign * y[i];
    }
    store_vector<width>(to_x, x[i]);
    store_vector<width>(to_y, y[i]);
  }
}

template <int width>
COULOMB_INLINE void multiply_rows_lanes(Product how, const StridedMatrix& A, const double* B, double* out, int cols,
                                        int ld, double* coefficients, int* offsets) {
  for (int i = 0; i < A.rows; i += 2) {
    const int next = i + 1 < A.rows ? i + 1 : i;
    const int n = collect(A.data + i * A.row_stride, A.data + next * A.row_stride, A.depth, A.column_stride, ld,
                          coefficients, offsets);
    double *first = out + static_cast<long>(i) * ld, *second = out + static_cast<long>(next) * ld;
    int j = 0;
    for (; j + 4 * width <= cols; j += 4 * width)
      columns<width, 4>(how, n, coefficients, offsets, B + j, first + j, second + j);
    const int left = (cols - j) / width;
    if (width == 8 && left == 3) {
      columns<width, 3>(how, n, coefficients, offsets, B + j, first + j, second + j);
    }
    if (width > 2 && left == 2) {
      columns<width, 2>(how, n, coefficients, offsets, B + j, first + j, second + j);
    }
    if (width == 8 && left == 1) {
      columns<width, 1>(how, n, coefficients, offsets, B + j, first + j, second + j);
    }
  }
}

COULOMB_SIMD_BY_WIDTH(void, multiply_rows,
                      (Product how, const StridedMatrix& A, const double* B, double* out, int cols, int ld,
                       double* coefficients, int* offsets),
                      (how, A, B, out, cols, ld, coefficients, offsets))

}  // namespace

void multiply(Product how, const StridedMatrix& A, const double* B, double* out, int cols, int ld,
              ProductScratch& scratch) {
  const std::size_t depth = A.depth + 1;  // one past the last is written before it is known to be zero
  if (scratch.offsets.size() < depth) {
    scratch.coefficients.resize(2 * depth);
    scratch.offsets.resize(depth);
  }
  multiply_rows(how, A, B, out, cols, ld, scratch.coefficients.data(), scratch.offsets.data());
}

}  // namespace coulomb
