#include "coulomb/solvers/lcp/lcp_classes.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/linalg/dense.hpp"

namespace coulomb {
namespace {

constexpr double deficient_pivot = 1e-9;
constexpr double rank_threshold = 1e-9;

template <class T>
void grow(std::vector<T>& v, int size) {
  if (static_cast<int>(v.size()) < size) {
    v.resize(static_cast<std::size_t>(size));
  }
}

}  // namespace

/// Q x_C + r = 0 of the clamped rows, with friction at an end following its normal: x = S x_C + fixed.
void LcpClassSystem::build(const BoxedLcp& p, const LcpClass* classes, const char* present) {
  list_columns(p, classes, present);
  ld = dense::padded(m);
  grow(Q, ld * m);
  grow(r, ld);
  grow(lu_, ld * m);
  grow(work_, 2 * ld + 8);
  grow(pivot_, ld);

  // Q = A S, r = b + A fixed on the clamped rows.
  for (int k = 0; k < m; ++k) {
    const double* a = p.A.data() + static_cast<long>(rows[k]) * p.ld;
    double* q = Q.data() + static_cast<long>(k) * ld;
    std::fill(q, q + ld, 0.0);
    r[k] = p.b[rows[k]];
    for (int i = 0; i < p.n; ++i) {
      if (column[i] >= 0)
        q[column[i]] += a[i] * factor[i];
      else if (fixed[i] != 0)
        r[k] += a[i] * fixed[i];
    }
  }

  // LU where Q is regular, else its pseudo-inverse.
  deficient = false;
  if (m == 0) return;
  std::copy_n(Q.begin(), static_cast<long>(ld) * m, lu_.begin());
  if (dense::lu(lu_.data(), m, ld, pivot_.data(), work_.data()) > deficient_pivot) return;
  inverse_.compute(Q.data(), m, ld, rank_threshold);
  deficient = inverse_.rank < m;
}

/// S and fixed: which unknown a row moves with and by how much, or where it stays.
void LcpClassSystem::list_columns(const BoxedLcp& p, const LcpClass* classes, const char* present) {
  grow(rows, p.n);
  grow(column, p.n);
  grow(factor, p.n);
  grow(fixed, p.n);
  m = 0;
  n_ = p.n;
  for (int i = 0; i < p.n; ++i) {
    column[i] = -1;
    factor[i] = 0;
    fixed[i] = 0;
    if (present && !present[i]) continue;
    if (classes[i] == LcpClass::clamped) {
      column[i] = m;
      factor[i] = 1;
      rows[m++] = i;
    } else if (!p.is_friction(i)) {
      fixed[i] = classes[i] == LcpClass::lower ? p.lo[i] : p.hi[i];
    }
  }

  // Friction at an end is its normal times the coefficient.
  for (int i = 0; i < p.n; ++i) {
    if (!p.is_friction(i) || classes[i] == LcpClass::clamped || (present && !present[i])) continue;
    const int j = p.normal[i];
    const double slope = classes[i] == LcpClass::upper ? p.hi[i] : -p.hi[i];
    if (column[j] >= 0) {
      column[i] = column[j];
      factor[i] = slope;
    } else {
      fixed[i] = slope * std::max(0.0, fixed[j]);
    }
  }
}

void LcpClassSystem::solve_columns(double* X, int ldx, int cols) {
  if (m == 0) return;
  if (deficient)
    inverse_.solve(X, ldx, cols);
  else
    dense::lu_solve(lu_.data(), m, ld, pivot_.data(), X, ldx, cols);
}

void LcpClassSystem::expand(const double* xc, double* x) const {
  for (int i = 0; i < n_; ++i)
    if (column[i] >= 0) {
      x[i] += factor[i] * xc[column[i]];
    }
}

void LcpClassSystem::contract(const double* x, double* out) const {
  std::fill(out, out + m, 0.0);
  for (int i = 0; i < n_; ++i)
    if (column[i] >= 0) {
      out[column[i]] += factor[i] * x[i];
    }
}

bool LcpClassSystem::solve(const BoxedLcp& p, const LcpClass* classes, double* x) {
  build(p, classes);
  std::copy_n(fixed.begin(), p.n, x);

  // Once more for what rounding left.
  std::vector<double>& y = work_;
  for (int pass = 0; pass < (deficient ? 1 : 2); ++pass) {
    for (int k = 0; k < m; ++k) {
      const double* a = p.A.data() + static_cast<long>(rows[k]) * p.ld;
      y[k] = -p.b[rows[k]];
      for (int i = 0; i < p.n; ++i)
        y[k] -= a[i] * x[i];
    }
    solve_columns(y.data(), 1, 1);
    expand(y.data(), x);
  }

  for (int i = 0; i < p.n; ++i)
    if (!std::isfinite(x[i])) return false;
  return true;
}

}  // namespace coulomb
