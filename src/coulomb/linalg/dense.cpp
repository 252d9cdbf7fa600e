// Dense kernels. Elimination copies the pivot row into a vector that is zero left of the diagonal, so that every row update runs
// over whole aligned chunks of eight and has no remainder loop.
#include "coulomb/linalg/dense.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/lanes.hpp"
#include "coulomb/linalg/dense_blocked.hpp"
#include "coulomb/linalg/triangles.hpp"

namespace coulomb::dense {
namespace {

COULOMB_INLINE double dot(const double* __restrict a, const double* __restrict b, int n) {
  // Eight chains: the sum may be vectorised without reassociation.
  double s[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  int i = 0;
  for (; i + 8 <= n; i += 8)
    for (int j = 0; j < 8; ++j)
      s[j] += a[i + j] * b[i + j];

  if (i + 4 <= n) {
    for (int j = 0; j < 4; ++j)
      s[j] += a[i + j] * b[i + j];
    i += 4;
  }

  double tail = 0;
  for (; i < n; ++i)
    tail += a[i] * b[i];
  return tail + (((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])));
}

/// y -= a x over whole chunks of eight.
COULOMB_INLINE void subtract(double* __restrict y, double a, const double* __restrict x, int begin, int end) {
  for (int j = begin; j < end; j += 8)
    for (int l = 0; l < 8; ++l)
      y[j + l] -= a * x[j + l];
}

void swap_rows(double* X, int ldx, int cols, int i, int k) {
  if (i == k) return;
  double* row_i = X + static_cast<long>(i) * ldx;
  double* row_k = X + static_cast<long>(k) * ldx;
  std::swap_ranges(row_i, row_i + cols, row_k);
}

}  // namespace

COULOMB_SIMD void add_weighted_rows(const double* A, int n, int ld, const double* x, double* __restrict y) {
  for (int i = 0; i < n; ++i) {
    const double xi = x[i];
    if (xi != 0.0) {
      subtract(y, -xi, A + static_cast<long>(i) * ld, 0, ld);
    }
  }
}

/// C = A B, row by row, for few columns of A.
COULOMB_SIMD static void multiply_small(const double* A, int lda, const double* B, int ldb, double* C, int ldc, int m,
                                        int k, int cols) {
  for (int i = 0; i < m; ++i) {
    double* __restrict Ci = C + static_cast<long>(i) * ldc;
    for (int j = 0; j < cols; ++j)
      Ci[j] = 0;
    for (int l = 0; l < k; ++l) {
      const double a = A[static_cast<long>(i) * lda + l];
      const double* Bl = B + static_cast<long>(l) * ldb;
      for (int j = 0; j < cols; ++j)
        Ci[j] += a * Bl[j];
    }
  }
}

/// C = A^T B, likewise.
COULOMB_SIMD static void multiply_transposed_small(const double* A, int lda, const double* B, int ldb, double* C,
                                                   int ldc, int m, int k, int cols) {
  for (int i = 0; i < m; ++i) {
    double* __restrict Ci = C + static_cast<long>(i) * ldc;
    for (int j = 0; j < cols; ++j)
      Ci[j] = 0;
    for (int l = 0; l < k; ++l) {
      const double a = A[static_cast<long>(l) * lda + i];
      const double* Bl = B + static_cast<long>(l) * ldb;
      for (int j = 0; j < cols; ++j)
        Ci[j] += a * Bl[j];
    }
  }
}

void multiply(const double* A, int lda, const double* B, int ldb, double* C, int ldc, int m, int k, int cols) {
  if (k < blocked_from || cols < 8) return multiply_small(A, lda, B, ldb, C, ldc, m, k, cols);
  for (int i = 0; i < m; ++i)
    std::fill_n(C + static_cast<long>(i) * ldc, cols, 0.0);
  add_product(1, A, lda, 1, B, ldb, C, ldc, m, k, cols);
}

void multiply_transposed(const double* A, int lda, const double* B, int ldb, double* C, int ldc, int m, int k,
                         int cols) {
  if (m < blocked_from || cols < 8) return multiply_transposed_small(A, lda, B, ldb, C, ldc, m, k, cols);
  for (int i = 0; i < m; ++i)
    std::fill_n(C + static_cast<long>(i) * ldc, cols, 0.0);
  add_product(1, A, 1, lda, B, ldb, C, ldc, m, k, cols);
}

/// A = U^T U in place, row by row. Returns the least pivot relative to its diagonal entry, or what is not positive.
COULOMB_SIMD static double small_cholesky(double* A, int n, int ld, double* work) {
  double ratio = 1;

  // Entries before elimination tell how much a pivot has lost.
  double* diagonal = work;
  for (int i = 0; i < n; ++i)
    diagonal[i] = A[static_cast<long>(i) * ld + i];

  for (int k = 0; k < n; ++k) {
    double* row = A + static_cast<long>(k) * ld;
    const double pivot = row[k];
    if (!(pivot > 0)) return pivot == pivot ? 0.0 : pivot;
    ratio = std::min(ratio, pivot / diagonal[k]);

    // The row of U ...
    const double inverse = 1.0 / std::sqrt(pivot);
    for (int j = k & ~7; j < ld; j += 8)
      for (int l = 0; l < 8; ++l)
        row[j + l] *= inverse;

    // ... and what the rows below lose by it.
    for (int i = k + 1; i < n; ++i) {
      const double u = row[i];
      if (u != 0.0) {
        subtract(A + static_cast<long>(i) * ld, u, row, i & ~7, ld);
      }
    }
  }
  return ratio;
}

double cholesky(double* A, int n, int ld, double* work) {
  return n < blocked_from ? small_cholesky(A, n, ld, work) : blocked_cholesky(A, n, ld, work);
}

void cholesky_solve(const double* U, int n, int ld, double* x) { solve_vector(triangles_of_cholesky(U, ld), n, x); }

void cholesky_solve(const double* U, int n, int ld, double* X, int ldx, int cols) {
  if (cols == 1 && ldx == 1) return cholesky_solve(U, n, ld, X);

  solve_columns(triangles_of_cholesky(U, ld), n, X, ldx, cols);
}

namespace {

/// Rows below a pivot: l = entry / pivot, row -= l * pivot_row over `chunks` chunks of eight, which stay in registers.
template <int width, int chunks>
COULOMB_INLINE void update_rows(double* entry, double* row, int rows, int ld, double inverse, const double* pivot_row) {
  constexpr int parts = chunks * 8 / width;
  Vector<width> pivot[parts];
#pragma GCC unroll 32
  for (int p = 0; p < parts; ++p)
    pivot[p] = load_vector<width>(pivot_row + p * width);

  for (int i = 0; i < rows; ++i) {
    const double l = *entry * inverse;
#pragma GCC unroll 32
    for (int p = 0; p < parts; ++p)
      store_vector<width>(row + p * width, load_vector<width>(row + p * width) - l * pivot[p]);
    *entry = l;  // last: it lies in a chunk, whose load would wait for it
    entry += ld;
    row += ld;
  }
}

template <int width>
COULOMB_INLINE void update_below_lanes(double* entry, double* row, int rows, int ld, double inverse,
                                       const double* pivot_row, int chunks) {
  switch (chunks) {
    case 1: return update_rows<width, 1>(entry, row, rows, ld, inverse, pivot_row);
    case 2: return update_rows<width, 2>(entry, row, rows, ld, inverse, pivot_row);
    case 3: return update_rows<width, 3>(entry, row, rows, ld, inverse, pivot_row);
    case 4: return update_rows<width, 4>(entry, row, rows, ld, inverse, pivot_row);
    case 5: return update_rows<width, 5>(entry, row, rows, ld, inverse, pivot_row);
    case 6: return update_rows<width, 6>(entry, row, rows, ld, inverse, pivot_row);
    case 7: return update_rows<width, 7>(entry, row, rows, ld, inverse, pivot_row);
    default: return update_rows<width, 8>(entry, row, rows, ld, inverse, pivot_row);
  }
}

COULOMB_SIMD_BY_WIDTH(void, update_below,
                      (double* entry, double* row, int rows, int ld, double inverse, const double* pivot_row,
                       int chunks),
                      (entry, row, rows, ld, inverse, pivot_row, chunks))

/// The largest entry of a column from row k on; the diagonal's own row where it is that.
int find_pivot(const double* A, int n, int ld, int k, double& value) {
  int best = k;
  value = std::abs(A[static_cast<long>(k) * ld + k]);
  for (int i = k + 1; i < n; ++i) {
    const double candidate = std::abs(A[static_cast<long>(i) * ld + k]);
    if (candidate > value) {
      value = candidate;
      best = i;
    }
  }
  return best;
}

/// In eight chains.
COULOMB_SIMD double largest_entry(const double* A, int n, int ld) {
  double largest[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  for (int i = 0; i < n; ++i) {
    const double* row = A + static_cast<long>(i) * ld;
    int j = 0;
    for (; j + 8 <= n; j += 8)
      for (int l = 0; l < 8; ++l)
        largest[l] = std::max(largest[l], std::abs(row[j + l]));

    for (; j < n; ++j)
      largest[0] = std::max(largest[0], std::abs(row[j]));
  }
  return *std::max_element(largest, largest + 8);
}

/// With row interchanges, n <= 64. Returns the least pivot relative to the largest entry.
double small_lu(double* A, int n, int ld, int* pivot, double* work) {
  const double largest = largest_entry(A, n, ld);
  double smallest = INFINITY;
  for (int k = 0; k < n; ++k) {
    // The largest entry of the column moves to the diagonal.
    double value = 0;
    const int best = find_pivot(A, n, ld, k, value);
    pivot[k] = best;
    if (!(value > 0)) return value == value ? 0.0 : value;
    smallest = std::min(smallest, value);
    double* row = A + static_cast<long>(k) * ld;
    if (best != k) {
      std::swap_ranges(row, row + ld, A + static_cast<long>(best) * ld);
    }

    // Whole chunks of the pivot row, zero left of the diagonal.
    const int begin = (k + 1) & ~7;
    if (k + 1 == n) break;
    std::copy(row + begin, row + ld, work + begin);
    std::fill(work + begin, work + k + 1, 0.0);
    double* below = A + static_cast<long>(k + 1) * ld;
    update_below(below + k, below + begin, n - k - 1, ld, 1.0 / row[k], work + begin, (ld - begin) / 8);
  }
  return n == 0 ? 1.0 : smallest / largest;
}

}  // namespace

double lu(double* A, int n, int ld, int* pivot, double* work) {
  return n < blocked_from ? small_lu(A, n, ld, pivot, work) : blocked_lu(A, n, ld, pivot);
}

/// One vector: the interchanges, L, U.
void lu_solve(const double* LU, int n, int ld, const int* pivot, double* x) {
  for (int k = 0; k < n; ++k)
    std::swap(x[k], x[pivot[k]]);
  solve_vector(triangles_of_lu(LU, ld), n, x);
}

void lu_solve(const double* LU, int n, int ld, const int* pivot, double* X, int ldx, int cols) {
  if (cols == 1 && ldx == 1) return lu_solve(LU, n, ld, pivot, X);

  for (int k = 0; k < n; ++k)
    swap_rows(X, ldx, cols, k, pivot[k]);
  solve_columns(triangles_of_lu(LU, ld), n, X, ldx, cols);
}

/// One vector: U^T, L^T, the interchanges in reverse.
void lu_solve_transposed(const double* LU, int n, int ld, const int* pivot, double* x) {
  solve_vector(triangles_of_transposed_lu(LU, ld), n, x);
  for (int k = n - 1; k >= 0; --k)
    std::swap(x[k], x[pivot[k]]);
}

void lu_solve_transposed(const double* LU, int n, int ld, const int* pivot, double* X, int ldx, int cols) {
  if (cols == 1 && ldx == 1) return lu_solve_transposed(LU, n, ld, pivot, X);

  solve_columns(triangles_of_transposed_lu(LU, ld), n, X, ldx, cols);
  for (int k = n - 1; k >= 0; --k)
    swap_rows(X, ldx, cols, k, pivot[k]);
}

}  // namespace coulomb::dense
