#include "coulomb/linalg/triangles.hpp"

#include <algorithm>

#include "coulomb/base/lanes.hpp"
#include "coulomb/linalg/dense_blocked.hpp"

namespace coulomb::dense {
namespace {

constexpr int block_rows = 32;  // of a triangle that is solved by blocks: it stays in the first cache

COULOMB_INLINE double at(const Triangle& t, int i, int k) { return t.T[i * t.row_stride + k * t.column_stride]; }

// --- columns ------------------------------------------------------------------------------------------------------------------

/// Rows i .. i + rows of X, of which k0 .. k1 are solved: they stay in registers until they are solved themselves.
template <int width, int parts, int rows, bool down>
COULOMB_INLINE void solve_tile(const Triangle& t, int i, int k0, int k1, double* X, long ldx) {
  Vector<width> sum[rows][parts];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int p = 0; p < parts; ++p)
      sum[r][p] = load_vector<width>(X + (i + r) * ldx + p * width);

  // What is solved already ...
  const double* entry = t.T + i * t.row_stride + k0 * t.column_stride;
  const double* row = X + k0 * ldx;
  for (int k = k0; k < k1; ++k, entry += t.column_stride, row += ldx) {
    Vector<width> x[parts];
#pragma GCC unroll 2
    for (int p = 0; p < parts; ++p)
      x[p] = load_vector<width>(row + p * width);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      const double a = entry[r * t.row_stride];
#pragma GCC unroll 2
      for (int p = 0; p < parts; ++p)
        sum[r][p] -= a * x[p];
    }
  }

  // ... and these rows among themselves.
#pragma GCC unroll 4
  for (int step = 0; step < rows; ++step) {
    const int r = down ? step : rows - 1 - step;
    const double inverse = t.unit ? 1.0 : 1.0 / at(t, i + r, i + r);
#pragma GCC unroll 2
    for (int p = 0; p < parts; ++p) {
      if (!t.unit) sum[r][p] *= inverse;
      store_vector<width>(X + (i + r) * ldx + p * width, sum[r][p]);
    }
#pragma GCC unroll 4
    for (int other = 0; other < rows; ++other) {
      if (down ? other <= r : other >= r) continue;
      const double a = at(t, i + other, i + r);
#pragma GCC unroll 2
      for (int p = 0; p < parts; ++p)
        sum[other][p] -= a * sum[r][p];
    }
  }
}

/// A whole triangle on parts x width columns.
template <int width, int parts>
COULOMB_INLINE void solve_strip(bool down, const Triangle& t, int n, double* X, long ldx) {
  if (down) {
    int i = 0;
    for (; i + 4 <= n; i += 4)
      solve_tile<width, parts, 4, true>(t, i, 0, i, X, ldx);
    for (; i < n; ++i)
      solve_tile<width, parts, 1, true>(t, i, 0, i, X, ldx);
    return;
  }
  int i = n;
  for (; i % 4 != 0; --i)
    solve_tile<width, parts, 1, false>(t, i - 1, i, n, X, ldx);
  for (; i > 0; i -= 4)
    solve_tile<width, parts, 4, false>(t, i - 4, i, n, X, ldx);
}

/// One column less than a vector of two holds.
COULOMB_INLINE void solve_column(bool down, const Triangle& t, int n, double* x, long ldx) {
  for (int step = 0; step < n; ++step) {
    const int i = down ? step : n - 1 - step;
    double sum = x[i * ldx];
    for (int k = down ? 0 : i + 1; k < (down ? i : n); ++k)
      sum -= at(t, i, k) * x[k * ldx];
    x[i * ldx] = t.unit ? sum : sum * (1.0 / at(t, i, i));
  }
}

template <int width>
COULOMB_INLINE void solve_triangle_lanes(bool down, const Triangle& t, int n, double* X, long ldx, int cols) {
  // Four rows of eight columns are as many sums as registers hold; of four columns with short vectors.
  constexpr int parts = width == 4 ? 2 : width == 8 ? 1 : 2;
  constexpr int narrow = width == 8 ? 4 : width;
  int j = 0;
  for (; j + parts * width <= cols; j += parts * width)
    solve_strip<width, parts>(down, t, n, X + j, ldx);
  for (; j + narrow <= cols; j += narrow)
    solve_strip<narrow, 1>(down, t, n, X + j, ldx);
  for (; j + 2 <= cols; j += 2)
    solve_strip<2, 1>(down, t, n, X + j, ldx);
  if (j < cols) solve_column(down, t, n, X + j, ldx);
}
COULOMB_SIMD_BY_WIDTH(void, solve_triangle, (bool down, const Triangle& t, int n, double* X, long ldx, int cols),
                      (down, t, n, X, ldx, cols))

/// By blocks of rows: products with what is solved already, and a small triangle.
void solve_by_blocks(bool down, const Triangle& t, int n, double* X, int ldx, int cols) {
  const int blocks = (n + block_rows - 1) / block_rows;
  for (int step = 0; step < blocks; ++step) {
    const int i = block_rows * (down ? step : blocks - 1 - step);
    const int count = std::min(block_rows, n - i);
    const int end = i + count;
    const int first = down ? 0 : end;
    const int solved = down ? i : n - end;
    double* Xi = X + static_cast<long>(i) * ldx;

    // What the blocks before have solved, and this one's own triangle.
    add_product(-1, t.T + i * t.row_stride + first * t.column_stride, t.row_stride, t.column_stride,
                X + static_cast<long>(first) * ldx, ldx, Xi, ldx, count, solved, cols);
    const Triangle own{t.T + i * (t.row_stride + t.column_stride), t.row_stride, t.column_stride, t.unit};
    solve_triangle(down, own, count, Xi, ldx, cols);
  }
}

// --- one vector ---------------------------------------------------------------------------------------------------------------

/// Sums of the products of four rows with x from `begin` to `end`, whose difference is a multiple of four.
template <int width>
COULOMB_INLINE void four_dots(const double* rows, long ld, const double* x, int begin, int end,
                              double* __restrict out) {
  constexpr int w = width > 4 ? 4 : width;
  Vector<w> sum[4] = {};
  for (int k = begin; k < end; k += w) {
    const Vector<w> xk = load_vector<w>(x + k);
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r)
      sum[r] += load_vector<w>(rows + r * ld + k) * xk;
  }
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    if constexpr (w == 4)
      out[r] = (sum[r][0] + sum[r][2]) + (sum[r][1] + sum[r][3]);
    else
      out[r] = sum[r][0] + sum[r][1];
  }
}

/// x from `begin` to `end` less the products of four rows with their values y.
template <int width>
COULOMB_INLINE void subtract_four(const double* rows, long ld, const double* y, int begin, int end, double* x) {
  constexpr int w = width > 4 ? 4 : width;
  int k = begin;
  for (; k + w <= end; k += w) {
    const Vector<w> sum = load_vector<w>(x + k);
    const Vector<w> a = y[0] * load_vector<w>(rows + k) + y[1] * load_vector<w>(rows + ld + k);
    const Vector<w> b = y[2] * load_vector<w>(rows + 2 * ld + k) + y[3] * load_vector<w>(rows + 3 * ld + k);
    store_vector<w>(x + k, sum - (a + b));
  }
  for (; k < end; ++k)
    x[k] -= (y[0] * rows[k] + y[1] * rows[ld + k]) + (y[2] * rows[2 * ld + k] + y[3] * rows[3 * ld + k]);
}

/// 1 / four entries of a diagonal, which wait for no value that is solved for.
COULOMB_INLINE void invert_four(const double* own, long ld, double* __restrict inverse) {
  for (int r = 0; r < 4; ++r)
    inverse[r] = own[r * (ld + 1)];
  for (int r = 0; r < 4; ++r)
    inverse[r] = 1.0 / inverse[r];
}

/// x = U^-1 x by rows of U.
template <int width>
COULOMB_INLINE void upper_by_rows(const double* U, int n, long ld, double* x) {
  const int whole = n & ~3;
  for (int i = n - 1; i >= whole; --i) {
    double sum = x[i];
    for (int k = i + 1; k < n; ++k)
      sum -= U[i * ld + k] * x[k];
    x[i] = sum * (1.0 / U[i * (ld + 1)]);
  }

  for (int i = whole - 4; i >= 0; i -= 4) {
    const double* rows = U + i * ld;
    const double* own = rows + i;
    double inverse[4];
    double t[4];
    invert_four(own, ld, inverse);
    four_dots<width>(rows, ld, x, i + 4, whole, t);
    for (int r = 0; r < 4; ++r) {
      for (int k = whole; k < n; ++k)
        t[r] += rows[r * ld + k] * x[k];
      t[r] = (x[i + r] - t[r]) * inverse[r];
    }

    // Among themselves: all but the products with what is just known is known before.
    const double a01 = own[1] * inverse[0];
    const double a02 = own[2] * inverse[0];
    const double a03 = own[3] * inverse[0];
    const double a12 = own[ld + 2] * inverse[1];
    const double a13 = own[ld + 3] * inverse[1];
    const double a23 = own[2 * ld + 3] * inverse[2];
    const double y3 = t[3];
    const double y2 = t[2] - a23 * y3;
    const double y1 = t[1] - a13 * y3 - a12 * y2;
    x[i] = t[0] - a03 * y3 - a02 * y2 - a01 * y1;
    x[i + 1] = y1;
    x[i + 2] = y2;
    x[i + 3] = y3;
  }
}

/// x = L^-1 x by rows of the unit triangle L.
template <int width>
COULOMB_INLINE void unit_lower_by_rows(const double* L, int n, long ld, double* x) {
  int i = 0;
  for (; i + 4 <= n; i += 4) {
    const double* rows = L + i * ld;
    const double* own = rows + i;
    double t[4];
    four_dots<width>(rows, ld, x, 0, i, t);
    const double y0 = x[i] - t[0];
    const double y1 = x[i + 1] - t[1] - own[ld] * y0;
    const double y2 = x[i + 2] - t[2] - own[2 * ld] * y0 - own[2 * ld + 1] * y1;
    x[i + 3] = x[i + 3] - t[3] - own[3 * ld] * y0 - own[3 * ld + 1] * y1 - own[3 * ld + 2] * y2;
    x[i] = y0;
    x[i + 1] = y1;
    x[i + 2] = y2;
  }
  for (; i < n; ++i) {
    double sum = x[i];
    for (int k = 0; k < i; ++k)
      sum -= L[i * ld + k] * x[k];
    x[i] = sum;
  }
}

/// x = U^-T x by rows of U.
template <int width>
COULOMB_INLINE void upper_transposed(const double* U, int n, long ld, double* x) {
  int k = 0;
  for (; k + 4 <= n; k += 4) {
    const double* rows = U + k * ld;
    const double* own = rows + k;
    double inverse[4];
    double y[4];
    invert_four(own, ld, inverse);
    y[0] = x[k] * inverse[0];
    y[1] = x[k + 1] * inverse[1] - (own[1] * inverse[1]) * y[0];
    y[2] = x[k + 2] * inverse[2] - (own[2] * inverse[2]) * y[0] - (own[ld + 2] * inverse[2]) * y[1];
    y[3] = x[k + 3] * inverse[3] - (own[3] * inverse[3]) * y[0] - (own[ld + 3] * inverse[3]) * y[1] -
           (own[2 * ld + 3] * inverse[3]) * y[2];
    for (int r = 0; r < 4; ++r)
      x[k + r] = y[r];
    subtract_four<width>(rows, ld, y, k + 4, n, x);
  }
  for (; k < n; ++k) {
    x[k] *= 1.0 / U[k * (ld + 1)];
    for (int j = k + 1; j < n; ++j)
      x[j] -= U[k * ld + j] * x[k];
  }
}

/// x = L^-T x by rows of the unit triangle L.
template <int width>
COULOMB_INLINE void unit_lower_transposed(const double* L, int n, long ld, double* x) {
  const int whole = n & ~3;
  for (int k = n - 1; k >= whole; --k)
    for (int j = 0; j < k; ++j)
      x[j] -= L[k * ld + j] * x[k];

  for (int k = whole - 4; k >= 0; k -= 4) {
    const double* rows = L + k * ld;
    const double* own = rows + k;
    double y[4];
    y[3] = x[k + 3];
    y[2] = x[k + 2] - own[3 * ld + 2] * y[3];
    y[1] = x[k + 1] - own[3 * ld + 1] * y[3] - own[2 * ld + 1] * y[2];
    y[0] = x[k] - own[3 * ld] * y[3] - own[2 * ld] * y[2] - own[ld] * y[1];
    for (int r = 0; r < 4; ++r)
      x[k + r] = y[r];
    subtract_four<width>(rows, ld, y, 0, k, x);
  }
}

template <int width>
COULOMB_INLINE void solve_one_lanes(const Triangles& factor, int n, double* x) {
  // By rows of what is stored, whichever triangle that is.
  const Triangle& lower = factor.lower;
  const Triangle& upper = factor.upper;
  lower.unit ? unit_lower_by_rows<width>(lower.T, n, lower.row_stride, x)
             : upper_transposed<width>(lower.T, n, lower.column_stride, x);
  upper.unit ? unit_lower_transposed<width>(upper.T, n, upper.column_stride, x)
             : upper_by_rows<width>(upper.T, n, upper.row_stride, x);
}
COULOMB_SIMD_BY_WIDTH(void, solve_one, (const Triangles& factor, int n, double* x), (factor, n, x))

}  // namespace

void solve_vector(const Triangles& factor, int n, double* x) { solve_one(factor, n, x); }

void solve_columns(const Triangles& factor, int n, double* X, int ldx, int cols) {
  if (n == 0) return;  // X may be nowhere
  const auto solve = n < blocked_from || cols < 8 ? [](bool down, const Triangle& t, int n, double* X, int ldx,
                                                       int cols) { solve_triangle(down, t, n, X, ldx, cols); }
                                                  : solve_by_blocks;
  solve(true, factor.lower, n, X, ldx, cols);
  solve(false, factor.upper, n, X, ldx, cols);
}

}  // namespace coulomb::dense
