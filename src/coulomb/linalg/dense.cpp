// Dense kernels. Elimination copies the pivot row into a vector that is zero left of the diagonal, so that every row update runs
// over whole aligned chunks of eight and has no remainder loop.
#include "coulomb/linalg/dense.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/lanes.hpp"
#include "coulomb/linalg/dense_blocked.hpp"

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

// Triangular solves on W columns: row i of X minus sum_k T(i, k) X_k, the sum kept in registers. T(i, k) = T[i * si + k * sk].
template <int W>
COULOMB_INLINE void substitute_row(const double* T, int sk, int k0, int k1, double* X, int ldx, double* __restrict row,
                                   double inverse) {
  double acc[W];
  for (int w = 0; w < W; ++w)
    acc[w] = row[w];

  for (int k = k0; k < k1; ++k) {
    const double t = T[static_cast<long>(k) * sk];
    const double* xk = X + static_cast<long>(k) * ldx;
    for (int w = 0; w < W; ++w)
      acc[w] -= t * xk[w];
  }

  for (int w = 0; w < W; ++w)
    row[w] = acc[w] * inverse;
}

/// A lower triangle: the first row first.
template <int W>
COULOMB_INLINE void forward(const double* T, int n, int si, int sk, bool unit, double* X, int ldx) {
  for (int i = 0; i < n; ++i) {
    const double* Ti = T + static_cast<long>(i) * si;
    const double inverse = unit ? 1.0 : 1.0 / Ti[static_cast<long>(i) * sk];
    double* row = X + static_cast<long>(i) * ldx;
    substitute_row<W>(Ti, sk, 0, i, X, ldx, row, inverse);
  }
}

/// An upper triangle: the last row first.
template <int W>
COULOMB_INLINE void backward(const double* T, int n, int si, int sk, bool unit, double* X, int ldx) {
  for (int i = n - 1; i >= 0; --i) {
    const double* Ti = T + static_cast<long>(i) * si;
    const double inverse = unit ? 1.0 : 1.0 / Ti[static_cast<long>(i) * sk];
    double* row = X + static_cast<long>(i) * ldx;
    substitute_row<W>(Ti, sk, i + 1, n, X, ldx, row, inverse);
  }
}

/// One triangle on a strip of columns after the other.
COULOMB_SIMD void substitute(bool down, const double* T, int n, int si, int sk, bool unit, double* X, int ldx,
                             int cols) {
  int j = 0;
  for (; j + 16 <= cols; j += 16)
    down ? forward<16>(T, n, si, sk, unit, X + j, ldx) : backward<16>(T, n, si, sk, unit, X + j, ldx);
  for (; j + 4 <= cols; j += 4)
    down ? forward<4>(T, n, si, sk, unit, X + j, ldx) : backward<4>(T, n, si, sk, unit, X + j, ldx);
  for (; j < cols; ++j)
    down ? forward<1>(T, n, si, sk, unit, X + j, ldx) : backward<1>(T, n, si, sk, unit, X + j, ldx);
}

/// A triangle by blocks of rows: products with what is solved already, and a small triangle.
void sweep_blocks(bool down, const double* T, int n, long si, long sk, bool unit, double* X, int ldx, int cols) {
  constexpr int block = 32;
  const int blocks = (n + block - 1) / block;
  for (int b = 0; b < blocks; ++b) {
    const int at = down ? b : blocks - 1 - b;
    const int i = at * block;
    const int count = std::min(block, n - i);
    const int end = i + count;
    double* Xi = X + static_cast<long>(i) * ldx;

    // What the blocks before have solved ...
    if (down) {
      add_product(-1, T + i * si, si, sk, X, ldx, Xi, ldx, count, i, cols);
    } else {
      const double* T_right = T + i * si + end * sk;
      const double* X_below = X + static_cast<long>(end) * ldx;
      add_product(-1, T_right, si, sk, X_below, ldx, Xi, ldx, count, n - end, cols);
    }

    // ... and this one's own triangle.
    substitute(down, T + i * (si + sk), count, static_cast<int>(si), static_cast<int>(sk), unit, Xi, ldx, cols);
  }
}

/// kind 0: LU, 1: Cholesky factor U (forward with U^T, backward with U).
template <int W>
COULOMB_INLINE void two_sweeps(const double* A, int n, int ld, bool transposed, int kind, double* X, int ldx) {
  if (kind == 1) {
    forward<W>(A, n, 1, ld, false, X, ldx);
    backward<W>(A, n, ld, 1, false, X, ldx);
  } else if (!transposed) {
    forward<W>(A, n, ld, 1, true, X, ldx);
    backward<W>(A, n, ld, 1, false, X, ldx);
  } else {
    forward<W>(A, n, 1, ld, false, X, ldx);
    backward<W>(A, n, 1, ld, true, X, ldx);
  }
}

/// Both triangles on a strip of columns after the other.
COULOMB_SIMD void sweep_strips(const double* A, int n, int ld, bool transposed, int kind, double* X, int ldx,
                               int cols) {
  int j = 0;
  for (; j + 16 <= cols; j += 16)
    two_sweeps<16>(A, n, ld, transposed, kind, X + j, ldx);
  for (; j + 8 <= cols; j += 8)
    two_sweeps<8>(A, n, ld, transposed, kind, X + j, ldx);
  for (; j + 4 <= cols; j += 4)
    two_sweeps<4>(A, n, ld, transposed, kind, X + j, ldx);
  for (; j < cols; ++j)
    two_sweeps<1>(A, n, ld, transposed, kind, X + j, ldx);
}

/// Both triangles on all columns: large ones by blocks.
void sweep_columns(const double* A, int n, int ld, bool transposed, int kind, double* X, int ldx, int cols) {
  if (n == 0) return;  // X may be nowhere
  if (n < blocked_from || cols < 8) return sweep_strips(A, n, ld, transposed, kind, X, ldx, cols);

  // The lower triangle is the transposed upper one, or L itself.
  const bool by_columns = kind == 1 || transposed;
  const long lower_si = by_columns ? 1 : ld;
  const long lower_sk = by_columns ? ld : 1;
  const bool unit_lower = kind == 0 && !transposed;
  sweep_blocks(true, A, n, lower_si, lower_sk, unit_lower, X, ldx, cols);

  // The upper one is its own, or the transposed L.
  const bool unit_upper = kind == 0 && transposed;
  const long upper_si = unit_upper ? 1 : ld;
  const long upper_sk = unit_upper ? ld : 1;
  sweep_blocks(false, A, n, upper_si, upper_sk, unit_upper, X, ldx, cols);
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

/// One vector: U^T, then U.
COULOMB_SIMD void cholesky_solve(const double* U, int n, int ld, double* x) {
  for (int k = 0; k < n; ++k) {
    const double* row = U + static_cast<long>(k) * ld;
    const double xk = x[k] *= 1.0 / row[k];
    for (int j = k + 1; j < n; ++j)
      x[j] -= xk * row[j];
  }

  for (int k = n - 1; k >= 0; --k) {
    const double* row = U + static_cast<long>(k) * ld;
    x[k] = (x[k] - dot(row + k + 1, x + k + 1, n - k - 1)) * (1.0 / row[k]);
  }
}

void cholesky_solve(const double* U, int n, int ld, double* X, int ldx, int cols) {
  if (cols == 1 && ldx == 1) return cholesky_solve(U, n, ld, X);

  sweep_columns(U, n, ld, false, 1, X, ldx, cols);
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
COULOMB_SIMD void lu_solve(const double* LU, int n, int ld, const int* pivot, double* x) {
  for (int k = 0; k < n; ++k)
    std::swap(x[k], x[pivot[k]]);

  for (int k = 1; k < n; ++k)
    x[k] -= dot(LU + static_cast<long>(k) * ld, x, k);

  for (int k = n - 1; k >= 0; --k) {
    const double* row = LU + static_cast<long>(k) * ld;
    x[k] = (x[k] - dot(row + k + 1, x + k + 1, n - k - 1)) * (1.0 / row[k]);
  }
}

void lu_solve(const double* LU, int n, int ld, const int* pivot, double* X, int ldx, int cols) {
  if (cols == 1 && ldx == 1) return lu_solve(LU, n, ld, pivot, X);

  for (int k = 0; k < n; ++k)
    swap_rows(X, ldx, cols, k, pivot[k]);
  sweep_columns(LU, n, ld, false, 0, X, ldx, cols);
}

/// By rows of the factors, which are whole vectors: a value is divided, and at once taken from all that wait for it.
COULOMB_SIMD void lu_solve_transposed(const double* LU, int n, int ld, const int* pivot, double* x) {
  for (int k = 0; k < n; ++k) {
    const double* row = LU + static_cast<long>(k) * ld;
    const double xk = x[k] *= 1.0 / row[k];
    for (int j = k + 1; j < n; ++j)
      x[j] -= xk * row[j];
  }

  for (int k = n - 1; k > 0; --k) {
    const double* row = LU + static_cast<long>(k) * ld;
    const double xk = x[k];
    for (int j = 0; j < k; ++j)
      x[j] -= xk * row[j];
  }

  for (int k = n - 1; k >= 0; --k)
    std::swap(x[k], x[pivot[k]]);
}

void lu_solve_transposed(const double* LU, int n, int ld, const int* pivot, double* X, int ldx, int cols) {
  if (cols == 1 && ldx == 1) return lu_solve_transposed(LU, n, ld, pivot, X);

  sweep_columns(LU, n, ld, true, 0, X, ldx, cols);
  for (int k = n - 1; k >= 0; --k)
    swap_rows(X, ldx, cols, k, pivot[k]);
}

}  // namespace coulomb::dense
