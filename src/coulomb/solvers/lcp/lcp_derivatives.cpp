#include "coulomb/solvers/lcp/lcp_derivatives.hpp"

#include <algorithm>
#include <utility>

namespace coulomb {
namespace {

using Vector = std::vector<double>;

/// M x or M^T x, M m x m.
Vector times(const Vector& M, int m, const Vector& x, bool transposed = false) {
  Vector y(static_cast<std::size_t>(m), 0.0);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < m; ++j) {
      const double a = M[static_cast<std::size_t>(i) * m + j];
      if (transposed)
        y[j] += a * x[i];
      else
        y[i] += a * x[j];
    }
  return y;
}

}  // namespace

LcpDerivatives::LcpDerivatives(BoxedLcp problem, const LcpSolution& solution)
    : problem_(std::move(problem)), classes_(solution.classes), x_(solution.x) {
  system_.build(problem_, classes_.data());
  const int m = system_.m;
  const int ld = system_.ld;
  xc_.resize(m);
  for (int k = 0; k < m; ++k)
    xc_[k] = x_[system_.rows[k]];

  // Q^+, column by column.
  Vector columns(static_cast<std::size_t>(m) * ld, 0.0);
  for (int i = 0; i < m; ++i)
    columns[static_cast<std::size_t>(i) * ld + i] = 1;
  system_.solve_columns(columns.data(), ld, m);
  inverse_.resize(static_cast<std::size_t>(m) * m);
  for (int i = 0; i < m; ++i)
    std::copy_n(columns.begin() + static_cast<long>(i) * ld, m, inverse_.begin() + static_cast<long>(i) * m);

  // r + Q x_C, what a least-squares solution leaves.
  rest_.resize(m);
  for (int i = 0; i < m; ++i) {
    rest_[i] = system_.r[i];
    for (int j = 0; j < m; ++j)
      rest_[i] += system_.Q[static_cast<std::size_t>(i) * ld + j] * xc_[j];
  }
}

/// dx = S dx_C + dx direct, dx_C = -Q^+ (dQ x_C + dr) and, where Q is deficient, what dQ makes of the pseudo-inverse.
Vector LcpDerivatives::change(const double* dQ, const double* dr, const double* dx) const {
  const int m = system_.m;
  const int ld = system_.ld;
  Vector s(m, 0.0);
  Vector out(static_cast<std::size_t>(problem_.n), 0.0);
  for (int i = 0; i < m; ++i) {
    if (dr) s[i] = dr[i];
    for (int j = 0; dQ && j < m; ++j)
      s[i] += dQ[static_cast<std::size_t>(i) * m + j] * xc_[j];
  }

  Vector dxc = times(inverse_, m, s);
  for (double& value : dxc)
    value = -value;

  // The derivative of the pseudo-inverse: (I - Q^+ Q) dQ^T Q^+^T x_C - Q^+ Q^+^T dQ^T (r + Q x_C).
  if (dQ && system_.deficient) {
    const Vector y = times(inverse_, m, xc_, true);
    Vector a(m, 0.0);  // dQ^T (I - QQ^+) r
    Vector b(m, 0.0);  // dQ^T Q^+^T x_C
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < m; ++j) {
        const double q = dQ[static_cast<std::size_t>(i) * m + j];
        a[j] += q * rest_[i];
        b[j] += q * y[i];
      }

    a = times(inverse_, m, times(inverse_, m, a, true));

    Vector qb(m, 0.0);
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < m; ++j)
        qb[i] += system_.Q[static_cast<std::size_t>(i) * ld + j] * b[j];
    qb = times(inverse_, m, qb);

    for (int i = 0; i < m; ++i)
      dxc[i] += b[i] - qb[i] - a[i];
  }

  if (dx) std::copy_n(dx, problem_.n, out.begin());
  system_.expand(dxc.data(), out.data());
  return out;
}

Vector LcpDerivatives::dx_db() const {
  const int n = problem_.n;
  const int m = system_.m;
  Vector out(static_cast<std::size_t>(n) * n, 0.0);
  Vector dr(m);
  for (int k = 0; k < m; ++k) {
    std::fill(dr.begin(), dr.end(), 0.0);
    dr[k] = 1;
    const Vector dx = change(nullptr, dr.data(), nullptr);
    for (int i = 0; i < n; ++i)
      out[static_cast<std::size_t>(i) * n + system_.rows[k]] = dx[i];
  }
  return out;
}

/// Columns by lo or hi: of the rows at that end, with everything that follows them.
Vector LcpDerivatives::by_end(bool upper) const {
  const int n = problem_.n;
  const int m = system_.m;
  Vector out(static_cast<std::size_t>(n) * n, 0.0);
  for (int i = 0; i < n; ++i) {
    if (classes_[i] == LcpClass::clamped) continue;
    const bool is_upper = classes_[i] == LcpClass::upper;

    // What changes directly: the row's own x, and friction that follows it.
    Vector dx(static_cast<std::size_t>(n), 0.0);
    Vector dr(m, 0.0);
    Vector dQ;
    if (problem_.is_friction(i)) {
      if (!upper) continue;
      const int j = problem_.normal[i];
      const double sign = is_upper ? 1.0 : -1.0;
      dx[i] = sign * std::max(0.0, x_[j]);  // direct; what the clamped rows answer follows by dr alone
    } else {
      if (is_upper != upper) continue;
      dx[i] = 1;
      for (int f = 0; f < n; ++f)  // friction that follows this fixed normal
        if (problem_.normal[f] == i && classes_[f] != LcpClass::clamped)
          dx[f] = classes_[f] == LcpClass::upper ? problem_.hi[f] : -problem_.hi[f];
    }

    // The clamped rows answer.
    for (int k = 0; k < m; ++k) {
      const double* a = problem_.A.data() + static_cast<long>(system_.rows[k]) * problem_.ld;
      for (int l = 0; l < n; ++l)
        dr[k] += a[l] * dx[l];
    }

    Vector column;

    if (problem_.is_friction(i) && system_.column[i] >= 0 && system_.deficient) {
      // S changes, not only x: the least-norm solution of the changed Q
      dQ.assign(static_cast<std::size_t>(m) * m, 0.0);
      const double sign = is_upper ? 1.0 : -1.0;
      for (int k = 0; k < m; ++k)
        dQ[static_cast<std::size_t>(k) * m + system_.column[i]] =
            sign * problem_.A[static_cast<long>(system_.rows[k]) * problem_.ld + i];
      column = change(dQ.data(), nullptr, dx.data());
    } else {
      column = change(nullptr, dr.data(), dx.data());
    }

    for (int l = 0; l < n; ++l)
      out[static_cast<std::size_t>(l) * n + i] = column[l];
  }
  return out;
}

Vector LcpDerivatives::dx_dlo() const { return by_end(false); }
Vector LcpDerivatives::dx_dhi() const { return by_end(true); }

Vector LcpDerivatives::along_dA(const double* dA) const {
  const int n = problem_.n;
  const int m = system_.m;
  Vector dQ(static_cast<std::size_t>(m) * m, 0.0);
  Vector dr(m, 0.0);
  for (int k = 0; k < m; ++k) {
    const double* a = dA + static_cast<long>(system_.rows[k]) * n;
    for (int i = 0; i < n; ++i) {
      if (system_.column[i] >= 0)
        dQ[static_cast<std::size_t>(k) * m + system_.column[i]] += a[i] * system_.factor[i];
      else
        dr[k] += a[i] * system_.fixed[i];
    }
  }
  return change(dQ.data(), dr.data(), nullptr);
}

/// The transposed of all of these at once.
LcpCotangent LcpDerivatives::vjp(const double* x_bar) const {
  const int n = problem_.n;
  const int m = system_.m;
  const int ld = system_.ld;
  LcpCotangent out;
  out.A.assign(static_cast<std::size_t>(n) * n, 0.0);
  out.b.assign(n, 0.0);
  out.lo.assign(n, 0.0);
  out.hi.assign(n, 0.0);

  // Of x_C, through the inverse; where Q is deficient, through that of the pseudo-inverse too.
  Vector g(m, 0.0);
  system_.contract(x_bar, g.data());
  const Vector u = times(inverse_, m, g, true);  // dr's multiplier is -u
  Vector y(m, 0.0);
  Vector q(m, 0.0);
  Vector t(m, 0.0);
  if (system_.deficient) {
    y = times(inverse_, m, xc_, true);
    t = times(inverse_, m, u);
    for (int i = 0; i < m; ++i) {  // q = (I - Q^+ Q) g: Q^+ Q is symmetric
      q[i] = g[i];
      for (int j = 0; j < m; ++j)
        q[i] -= u[j] * system_.Q[static_cast<std::size_t>(j) * ld + i];
    }
  }

  // Of Q, and from there of A and b.
  Vector Q_bar(static_cast<std::size_t>(m) * m);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < m; ++j)
      Q_bar[static_cast<std::size_t>(i) * m + j] = -u[i] * xc_[j] + y[i] * q[j] - rest_[i] * t[j];

  for (int k = 0; k < m; ++k) {
    const int row = system_.rows[k];
    out.b[row] = -u[k];
    for (int i = 0; i < n; ++i)
      out.A[static_cast<std::size_t>(row) * n + i] =
          system_.column[i] >= 0 ? Q_bar[static_cast<std::size_t>(k) * m + system_.column[i]] * system_.factor[i]
                                 : -u[k] * system_.fixed[i];
  }

  // Of the ends that rows are at.
  for (int i = 0; i < n; ++i) {
    if (classes_[i] == LcpClass::clamped) continue;
    const bool upper = classes_[i] == LcpClass::upper;
    const auto direct = [&](int row) {  // gradient by x_row itself
      double sum = x_bar[row];
      for (int k = 0; k < m; ++k)
        sum -= u[k] * problem_.A[static_cast<long>(system_.rows[k]) * problem_.ld + row];
      return sum;
    };
    if (problem_.is_friction(i)) {
      const int j = problem_.normal[i];
      const double sign = upper ? 1.0 : -1.0;
      if (system_.column[i] < 0) {
        out.hi[i] = sign * std::max(0.0, x_[j]) * direct(i);
        continue;
      }
      double sum = x_bar[i] * xc_[system_.column[i]];
      for (int k = 0; k < m; ++k)
        sum += Q_bar[static_cast<std::size_t>(k) * m + system_.column[i]] *
               problem_.A[static_cast<long>(system_.rows[k]) * problem_.ld + i];
      out.hi[i] = sign * sum;
    } else {
      double sum = direct(i);
      for (int f = 0; f < n; ++f)
        if (problem_.normal[f] == i && classes_[f] != LcpClass::clamped)
          sum += (classes_[f] == LcpClass::upper ? problem_.hi[f] : -problem_.hi[f]) * direct(f);
      (upper ? out.hi : out.lo)[i] = sum;
    }
  }
  return out;
}

}  // namespace coulomb
