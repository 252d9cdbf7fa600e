#include "coulomb/solvers/lcp/lcp_classes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "coulomb/linalg/dense.hpp"

namespace coulomb {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
// Of x: w of x that are too large is rounding, beyond 1e10 times ref at the usual tolerance.
constexpr double magnified = 1e-20;
constexpr double deficient_pivot = 1e-9;
constexpr double rank_threshold = 1e-9;

template <class T>
void grow(std::vector<T>& v, int size) {
  if (static_cast<int>(v.size()) < size) {
    v.resize(static_cast<std::size_t>(size));
  }
}

}  // namespace

void spread_largest(const BoxedLcp& p, double* values) {
  // From the largest value down: a row that depends on this one and has none yet, directly or by other rows, takes it.
  std::vector<int> order(p.n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int i, int j) { return values[i] > values[j]; });

  std::vector<char> known(p.n, 0);
  std::vector<int> open;
  for (int first : order) {
    if (known[first]) continue;
    known[first] = 1;
    open.assign(1, first);
    while (!open.empty()) {
      const int j = open.back();
      open.pop_back();
      for (int i = 0; i < p.n; ++i) {
        const bool depends = p.A[static_cast<long>(i) * p.ld + j] != 0 || p.normal[i] == j;
        if (known[i] || !depends) continue;
        known[i] = 1;
        values[i] = values[first];
        open.push_back(i);
      }
    }
  }
}

/// Whether A_ii measures row i: it is positive, and A_ij A_ji <= A_ii A_jj up to rounding, as in every positive semi-definite A. Roots,
/// as products of large entries overflow.
static bool diagonal_measures(const BoxedLcp& p, int i) {
  constexpr double rounding = 1 + 1e-6;
  const auto root_of = [&](int row, int column) {
    return std::sqrt(std::abs(p.A[static_cast<long>(row) * p.ld + column]));
  };
  const auto diagonal = [&](int row) { return p.A[static_cast<long>(row) * p.ld + row]; };
  if (!(diagonal(i) > 0)) return false;

  for (int j = 0; j < p.n; ++j) {
    const double coupling = root_of(i, j) * root_of(j, i);
    if (j == i || coupling == 0) continue;
    if (!(diagonal(j) > 0) || coupling > rounding * root_of(i, i) * root_of(j, j)) return false;
  }
  return true;
}

void LcpScale::assign(const BoxedLcp& p) {
  s.assign(p.n, 1.0);
  root.assign(p.n, 1.0);
  ref.assign(p.n, 0.0);
  positive.assign(p.n, 0);
  for (int i = 0; i < p.n; ++i) {
    // A row's size: its diagonal entry, or where that measures nothing its largest.
    const double* a = p.A.data() + static_cast<long>(i) * p.ld;
    double size = a[i];
    positive[i] = diagonal_measures(p, i);
    if (!positive[i])
      for (int j = 0; j < p.n; ++j)
        size = std::max(size, std::abs(a[j]));
    if (size > 0) s[i] = size;

    root[i] = std::sqrt(s[i]);
    ref[i] = std::abs(p.b[i]) / root[i];
  }

  // Rows that nothing is asked of, directly or by others, have no size of their own.
  spread_largest(p, ref.data());
  for (double& r : ref)
    if (!(r > 0)) {
      r = 1;
    }
}

/// |b_i| + sum of |A_ij x_j|, what w_i is the difference of; 1 where there is nothing, or no number.
static double terms_of(const BoxedLcp& p, int i, const double* x) {
  const double* a = p.A.data() + static_cast<long>(i) * p.ld;
  double sum = std::abs(p.b[i]);
  for (int j = 0; j < p.n; ++j)
    sum += std::abs(a[j] * x[j]);
  return sum > 0 && std::isfinite(sum) ? sum : 1.0;
}

/// How far x is from the projection of x - w / s, scaled; and what rounding of large x hides.
double lcp_residual(const BoxedLcp& p, const LcpScale& scale, const double* x, const double* w) {
  double worst = 0;
  for (int i = 0; i < p.n; ++i) {
    if (!std::isfinite(w[i])) return infinity;
    const double nearest = std::clamp(x[i] - w[i] / scale.s[i], p.lower(i, x), p.upper(i, x));
    const double ref = scale.positive[i] ? scale.ref[i] : terms_of(p, i, x) / scale.root[i];
    const double r = std::abs(x[i] - nearest) * scale.root[i] / ref;
    const double unsure = magnified * std::abs(x[i]) * scale.root[i] / ref;

    if (!(r <= worst)) worst = r;
    if (!(unsure <= worst)) worst = unsure;
    if (worst != worst) break;
  }
  return worst;
}

void lcp_classes(const BoxedLcp& p, const LcpScale& scale, double tie_size, const double* x, const double* w,
                 LcpClass* classes) {
  for (int i = 0; i < p.n; ++i) {
    const double z = x[i] - w[i] / scale.s[i];
    const double t = tie_size * scale.ref[i] / scale.root[i];
    double lower = p.lo[i], upper = p.hi[i];
    bool two_sided = lower > -infinity && upper < infinity;

    // Friction's bounds follow the normal that its own z tells.
    if (p.is_friction(i)) {
      const int j = p.normal[i];
      upper = p.hi[i] * std::max(0.0, x[j] - w[j] / scale.s[j]);
      lower = -upper;
      two_sided = upper > t;

      // No normal force: the sign of w says where it would slide.
      if (!two_sided) {
        classes[i] = w[i] < 0 ? LcpClass::upper : LcpClass::lower;
        continue;
      }
    }

    // A tie clamps a row between two ends, and leaves one with a single end there.
    const double margin = two_sided ? t : -t;
    classes[i] = z <= lower - margin ? LcpClass::lower : z >= upper + margin ? LcpClass::upper : LcpClass::clamped;
    if (lower == upper) {
      classes[i] = w[i] < 0 ? LcpClass::upper : LcpClass::lower;
    }
  }
}

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
