// Right-looking blocked factorisations: a panel by rank-one updates, the rest of the matrix by one product a panel.
#include "coulomb/linalg/dense_blocked.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/lanes.hpp"

namespace coulomb::dense {
namespace {

constexpr int panel = 32;
constexpr int depth_chunk = 128;    // rows of B whose strip of columns stays in the first cache
constexpr int row_chunk = 96;       // rows of A whose chunk stays in the second
constexpr int triangle_chunk = 48;  // rows of a triangle that are updated as a rectangle

/// `rows` x `parts` vectors of C += sign A B.
template <int width, int rows, int parts>
COULOMB_INLINE void tile(double sign, const double* A, long si, long sl, const double* B, long ldb, double* C, long ldc,
                         int k) {
  Vector<width> sum[rows][parts];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int p = 0; p < parts; ++p)
      sum[r][p] = Vector<width>{};

  // One column of A and a row of B at a time, sums in registers.
  for (int l = 0; l < k; ++l) {
    Vector<width> b[parts];
#pragma GCC unroll 2
    for (int p = 0; p < parts; ++p)
      b[p] = load_vector<width>(B + l * ldb + p * width);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const double a = A[r * si + l * sl];
#pragma GCC unroll 2
      for (int p = 0; p < parts; ++p)
        sum[r][p] += a * b[p];
    }
  }

#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int p = 0; p < parts; ++p) {
      double* c = C + r * ldc + p * width;
      store_vector<width>(c, load_vector<width>(c) + sign * sum[r][p]);
    }
}

/// All rows of a strip of `parts` vectors of columns. For many rows the strip of B is copied together: its rows lie on a page each.
template <int width, int parts>
COULOMB_INLINE void strip(double sign, const double* A, long si, long sl, const double* B, long ldb, double* C,
                          long ldc, int m, int k) {
  int i = 0;
  double packed[depth_chunk * width * parts];
  if (m >= 24) {
    for (int l = 0; l < k; ++l)
#pragma GCC unroll 2
      for (int p = 0; p < parts; ++p)
        store_vector<width>(packed + (l * parts + p) * width, load_vector<width>(B + l * ldb + p * width));
    B = packed;
    ldb = width * parts;
  }

  // Six rows of A keep the registers busy.
  for (; i + 6 <= m; i += 6)
    tile<width, 6, parts>(sign, A + i * si, si, sl, B, ldb, C + i * ldc, ldc, k);
  for (; i + 2 <= m; i += 2)
    tile<width, 2, parts>(sign, A + i * si, si, sl, B, ldb, C + i * ldc, ldc, k);
  for (; i < m; ++i)
    tile<width, 1, parts>(sign, A + i * si, si, sl, B, ldb, C + i * ldc, ldc, k);
}

template <int width>
COULOMB_INLINE void add_product_wide_lanes(double sign, const double* A, long si, long sl, const double* B, long ldb,
                                           double* C, long ldc, int m, int k, int cols) {
  // Chunks that stay in the caches, in strips as wide as registers allow.
  for (int l = 0; l < k; l += depth_chunk)
    for (int i = 0; i < m; i += row_chunk) {
      const int depth = std::min(depth_chunk, k - l);
      const int rows = std::min(row_chunk, m - i);
      const double* a = A + i * si + l * sl;
      const double* b = B + l * ldb;
      double* c = C + i * ldc;
      int j = 0;
      for (; j + 2 * width <= cols; j += 2 * width)
        strip<width, 2>(sign, a, si, sl, b + j, ldb, c + j, ldc, rows, depth);
      for (; j + width <= cols; j += width)
        strip<width, 1>(sign, a, si, sl, b + j, ldb, c + j, ldc, rows, depth);

      // Columns that fill no register.
      for (; j < cols; ++j)
        for (int r = 0; r < rows; ++r) {
          double sum = 0;
          for (int d = 0; d < depth; ++d)
            sum += a[r * si + d * sl] * b[d * ldb + j];
          c[r * ldc + j] += sign * sum;
        }
    }
}

COULOMB_SIMD_BY_WIDTH(void, add_product_wide,
                      (double sign, const double* A, long si, long sl, const double* B, long ldb, double* C, long ldc,
                       int m, int k, int cols),
                      (sign, A, si, sl, B, ldb, C, ldc, m, k, cols))

COULOMB_INLINE void subtract(double* __restrict y, double a, const double* __restrict x, int n) {
  for (int j = 0; j < n; ++j)
    y[j] -= a * x[j];
}

/// Rows first .. first + count of U, right of the diagonal over whole chunks of eight. Returns a pivot that is not positive, or 1.
COULOMB_SIMD double cholesky_panel(double* A, int ld, int first, int count, const double* diagonal, double& ratio) {
  for (int k = first; k < first + count; ++k) {
    double* row = A + static_cast<long>(k) * ld;
    const double pivot = row[k];
    if (!(pivot > 0)) return pivot == pivot ? 0.0 : pivot;
    ratio = std::min(ratio, pivot / diagonal[k]);

    const double inverse = 1.0 / std::sqrt(pivot);
    for (int j = k; j < ld; ++j)
      row[j] *= inverse;

    // The rows of the panel below lose their part along it.
    for (int i = k + 1; i < first + count; ++i) {
      const int begin = i & ~7;
      if (row[i] != 0.0) {
        subtract(A + static_cast<long>(i) * ld + begin, row[i], row + begin, ld - begin);
      }
    }
  }
  return 1;
}

/// Columns first .. first + count of L and U. Rows are swapped over their whole length. Returns the smallest pivot.
COULOMB_SIMD double lu_panel(double* A, int n, int ld, int first, int count, int* pivot) {
  double smallest = INFINITY;
  for (int k = first; k < first + count; ++k) {
    // The largest entry of the column moves to the diagonal.
    int best = k;
    double value = std::abs(A[static_cast<long>(k) * ld + k]);
    for (int i = k + 1; i < n; ++i) {
      const double candidate = std::abs(A[static_cast<long>(i) * ld + k]);
      if (candidate > value) {
        value = candidate;
        best = i;
      }
    }
    pivot[k] = best;
    if (!(value > 0)) return value == value ? 0.0 : value;
    smallest = std::min(smallest, value);

    double* row = A + static_cast<long>(k) * ld;
    if (best != k) {
      std::swap_ranges(row, row + ld, A + static_cast<long>(best) * ld);
    }

    // What is below it goes, within the panel.
    const double inverse = 1.0 / row[k];
    const int right = first + count - k - 1;
    for (int i = k + 1; i < n; ++i) {
      double* target = A + static_cast<long>(i) * ld + k;
      const double l = *target *= inverse;
      if (l != 0.0) {
        subtract(target + 1, l, row + k + 1, right);
      }
    }
  }
  return smallest;
}

/// U right of a panel: L^-1 from the left.
COULOMB_SIMD void lu_rows(double* A, int n, int ld, int first, int count) {
  const int begin = first + count;
  for (int i = first + 1; i < begin; ++i) {
    double* row = A + static_cast<long>(i) * ld;
    for (int k = first; k < i; ++k) {
      const double* above = A + static_cast<long>(k) * ld;
      subtract(row + begin, row[k], above + begin, n - begin);
    }
  }
}

}  // namespace

void add_product(double sign, const double* A, long row_stride, long column_stride, const double* B, int ldb, double* C,
                 int ldc, int m, int k, int cols) {
  add_product_wide(sign, A, row_stride, column_stride, B, ldb, C, ldc, m, k, cols);
}

double blocked_cholesky(double* A, int n, int ld, double* work) {
  double ratio = 1;

  // Entries before elimination tell how much a pivot has lost.
  for (int i = 0; i < n; ++i)
    work[i] = A[static_cast<long>(i) * ld + i];

  for (int k = 0; k < n; k += panel) {
    const int count = std::min(panel, n - k);
    const double pivot = cholesky_panel(A, ld, k, count, work, ratio);
    if (!(pivot > 0)) return pivot;

    // The rest of the triangle, in rectangles.
    const double* U = A + static_cast<long>(k) * ld;
    for (int i = k + count; i < n; i += triangle_chunk) {
      double* corner = A + static_cast<long>(i) * ld + i;
      const int rows = std::min(triangle_chunk, n - i);
      add_product(-1, U + i, 1, ld, U + i, ld, corner, ld, rows, count, n - i);
    }
  }
  return ratio;
}

double blocked_lu(double* A, int n, int ld, int* pivot) {
  double largest = 0;
  double smallest = INFINITY;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      largest = std::max(largest, std::abs(A[static_cast<long>(i) * ld + j]));

  for (int k = 0; k < n; k += panel) {
    const int count = std::min(panel, n - k);
    const int next = k + count;
    const double value = lu_panel(A, n, ld, k, count, pivot);
    if (!(value > 0)) return value;
    smallest = std::min(smallest, value);
    if (next == n) break;

    // The rest of the matrix: U beside the panel, then one product.
    lu_rows(A, n, ld, k, count);
    const double* L = A + static_cast<long>(next) * ld + k;
    add_product(-1, L, ld, 1, A + static_cast<long>(k) * ld + next, ld, A + static_cast<long>(next) * ld + next, ld,
                n - next, count, n - next);
  }
  return n == 0 ? 1.0 : smallest / largest;
}

}  // namespace coulomb::dense
