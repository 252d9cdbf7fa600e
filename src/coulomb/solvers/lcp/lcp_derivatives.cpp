// Derivatives of a solved boxed LCP with its classes held (docs/theory.md (Q4): Nimble's pseudo-inverse derivative with all its terms).
//
//   x = x_F + S x_C,  x_C = -Q^+ r,  Q = A_C S,  r = b_C + A_C x_F
//   dx_C = -Q^+ (dr + dQ x_C) - Q^+ Q^+^T dQ^T (I - Q Q^+) r + (I - Q^+ Q) dQ^T Q^+^T x_C
//   dQ = dA_C S + A_C dS,  dr = db_C + dA_C x_F + A_C dx_F
// where Q is deficient this is the derivative along changes that keep its rank. At a tie: of the classes reported.
#include "coulomb/lcp.hpp"

#include <algorithm>
#include <utility>

#include "coulomb/solvers/lcp/lcp_classes.hpp"

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

struct LcpDerivatives::Parts {
  Parts() = default;
  Parts(BoxedLcp lcp, const LcpSolution& solution);
  /// dx of (dQ, dr) on C and a direct change of x (m x m, m, n; null: zero).
  Vector change(const double* dQ, const double* dr, const double* dx) const;
  Vector by_end(bool upper) const;

  BoxedLcp problem;
  std::vector<LcpClass> classes;
  Vector x;
  Vector xc;
  Vector rest;     // (I - Q Q^+) r
  Vector inverse;  // Q^+, m x m
  LcpClassSystem system;
};

LcpDerivatives::Parts::Parts(BoxedLcp lcp, const LcpSolution& solution)
    : problem(std::move(lcp)), classes(solution.classes), x(solution.x) {
  system.build(problem, classes.data());
  const int m = system.m;
  const int ld = system.ld;
  xc.resize(m);
  for (int k = 0; k < m; ++k)
    xc[k] = x[system.rows[k]];

  // Q^+, column by column.
  Vector columns(static_cast<std::size_t>(m) * ld, 0.0);
  for (int i = 0; i < m; ++i)
    columns[static_cast<std::size_t>(i) * ld + i] = 1;
  system.solve_columns(columns.data(), ld, m);
  inverse.resize(static_cast<std::size_t>(m) * m);
  for (int i = 0; i < m; ++i)
    std::copy_n(columns.begin() + static_cast<long>(i) * ld, m, inverse.begin() + static_cast<long>(i) * m);

  // r + Q x_C, what a least-squares solution leaves.
  rest.resize(m);
  for (int i = 0; i < m; ++i) {
    rest[i] = system.r[i];
    for (int j = 0; j < m; ++j)
      rest[i] += system.Q[static_cast<std::size_t>(i) * ld + j] * xc[j];
  }
}

/// dx = S dx_C + dx direct, dx_C = -Q^+ (dQ x_C + dr) and, where Q is deficient, what dQ makes of the pseudo-inverse.
Vector LcpDerivatives::Parts::change(const double* dQ, const double* dr, const double* dx) const {
  const int m = system.m;
  const int ld = system.ld;
  Vector s(m, 0.0);
  Vector out(static_cast<std::size_t>(problem.n), 0.0);
  for (int i = 0; i < m; ++i) {
    if (dr) s[i] = dr[i];
    for (int j = 0; dQ && j < m; ++j)
      s[i] += dQ[static_cast<std::size_t>(i) * m + j] * xc[j];
  }

  Vector dxc = times(inverse, m, s);
  for (double& value : dxc)
    value = -value;

  // The derivative of the pseudo-inverse: (I - Q^+ Q) dQ^T Q^+^T x_C - Q^+ Q^+^T dQ^T (r + Q x_C).
  if (dQ && system.deficient) {
    const Vector y = times(inverse, m, xc, true);
    Vector a(m, 0.0);  // dQ^T (I - QQ^+) r
    Vector b(m, 0.0);  // dQ^T Q^+^T x_C
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < m; ++j) {
        const double q = dQ[static_cast<std::size_t>(i) * m + j];
        a[j] += q * rest[i];
        b[j] += q * y[i];
      }

    a = times(inverse, m, times(inverse, m, a, true));

    Vector qb(m, 0.0);
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < m; ++j)
        qb[i] += system.Q[static_cast<std::size_t>(i) * ld + j] * b[j];
    qb = times(inverse, m, qb);

    for (int i = 0; i < m; ++i)
      dxc[i] += b[i] - qb[i] - a[i];
  }

  if (dx) {
    std::copy_n(dx, problem.n, out.begin());
  }
  system.expand(dxc.data(), out.data());
  return out;
}

/// Columns by lo or hi: of the rows at that end, with everything that follows them.
Vector LcpDerivatives::Parts::by_end(bool upper) const {
  const int n = problem.n;
  const int m = system.m;
  Vector out(static_cast<std::size_t>(n) * n, 0.0);
  for (int i = 0; i < n; ++i) {
    if (classes[i] == LcpClass::clamped) continue;
    const bool is_upper = classes[i] == LcpClass::upper;

    // What changes directly: the row's own x, and friction that follows it.
    Vector dx(static_cast<std::size_t>(n), 0.0);
    Vector dr(m, 0.0);
    Vector dQ;
    if (problem.is_friction(i)) {
      if (!upper) continue;
      const int j = problem.normal[i];
      const double sign = is_upper ? 1.0 : -1.0;
      dx[i] = sign * std::max(0.0, x[j]);  // direct; what the clamped rows answer follows by dr alone
    } else {
      if (is_upper != upper) continue;
      dx[i] = 1;
      for (int f = 0; f < n; ++f)  // friction that follows this fixed normal
        if (problem.normal[f] == i && classes[f] != LcpClass::clamped)
          dx[f] = classes[f] == LcpClass::upper ? problem.hi[f] : -problem.hi[f];
    }

    // The clamped rows answer.
    for (int k = 0; k < m; ++k) {
      const double* a = problem.A.data() + static_cast<long>(system.rows[k]) * problem.ld;
      for (int l = 0; l < n; ++l)
        dr[k] += a[l] * dx[l];
    }

    Vector column;

    if (problem.is_friction(i) && system.column[i] >= 0 && system.deficient) {
      // S changes, not only x: the least-norm solution of the changed Q
      dQ.assign(static_cast<std::size_t>(m) * m, 0.0);
      const double sign = is_upper ? 1.0 : -1.0;
      for (int k = 0; k < m; ++k)
        dQ[static_cast<std::size_t>(k) * m + system.column[i]] =
            sign * problem.A[static_cast<long>(system.rows[k]) * problem.ld + i];
      column = change(dQ.data(), nullptr, dx.data());
    } else {
      column = change(nullptr, dr.data(), dx.data());
    }

    for (int l = 0; l < n; ++l)
      out[static_cast<std::size_t>(l) * n + i] = column[l];
  }
  return out;
}

LcpDerivatives::LcpDerivatives() : parts_(std::make_unique<Parts>()) {}
LcpDerivatives::LcpDerivatives(BoxedLcp problem, const LcpSolution& solution)
    : parts_(std::make_unique<Parts>(std::move(problem), solution)) {}
LcpDerivatives::~LcpDerivatives() = default;
LcpDerivatives::LcpDerivatives(const LcpDerivatives& other) : parts_(std::make_unique<Parts>(*other.parts_)) {}
LcpDerivatives::LcpDerivatives(LcpDerivatives&& other) noexcept = default;
LcpDerivatives& LcpDerivatives::operator=(const LcpDerivatives& other) { return *this = LcpDerivatives(other); }
LcpDerivatives& LcpDerivatives::operator=(LcpDerivatives&& other) noexcept = default;

bool LcpDerivatives::deficient() const { return parts_->system.deficient; }
int LcpDerivatives::size() const { return parts_->problem.n; }

Vector LcpDerivatives::dx_db() const {
  const Parts& p = *parts_;
  const int n = p.problem.n;
  const int m = p.system.m;
  Vector out(static_cast<std::size_t>(n) * n, 0.0);
  Vector dr(m);
  for (int k = 0; k < m; ++k) {
    std::fill(dr.begin(), dr.end(), 0.0);
    dr[k] = 1;
    const Vector dx = p.change(nullptr, dr.data(), nullptr);
    for (int i = 0; i < n; ++i)
      out[static_cast<std::size_t>(i) * n + p.system.rows[k]] = dx[i];
  }
  return out;
}

Vector LcpDerivatives::dx_dlo() const { return parts_->by_end(false); }
Vector LcpDerivatives::dx_dhi() const { return parts_->by_end(true); }

Vector LcpDerivatives::along_dA(const double* dA) const {
  const Parts& p = *parts_;
  const int n = p.problem.n;
  const int m = p.system.m;
  Vector dQ(static_cast<std::size_t>(m) * m, 0.0);
  Vector dr(m, 0.0);
  for (int k = 0; k < m; ++k) {
    const double* a = dA + static_cast<long>(p.system.rows[k]) * n;
    for (int i = 0; i < n; ++i) {
      if (p.system.column[i] >= 0)
        dQ[static_cast<std::size_t>(k) * m + p.system.column[i]] += a[i] * p.system.factor[i];
      else
        dr[k] += a[i] * p.system.fixed[i];
    }
  }
  return p.change(dQ.data(), dr.data(), nullptr);
}

/// The transposed of all of these at once.
LcpCotangent LcpDerivatives::vjp(const double* x_bar) const {
  const Parts& p = *parts_;
  const int n = p.problem.n;
  const int m = p.system.m;
  const int ld = p.system.ld;
  LcpCotangent out;
  out.A.assign(static_cast<std::size_t>(n) * n, 0.0);
  out.b.assign(n, 0.0);
  out.lo.assign(n, 0.0);
  out.hi.assign(n, 0.0);

  // Of x_C, through the inverse; where Q is deficient, through that of the pseudo-inverse too.
  Vector g(m, 0.0);
  p.system.contract(x_bar, g.data());
  const Vector u = times(p.inverse, m, g, true);  // dr's multiplier is -u
  Vector y(m, 0.0);
  Vector q(m, 0.0);
  Vector t(m, 0.0);
  if (p.system.deficient) {
    y = times(p.inverse, m, p.xc, true);
    t = times(p.inverse, m, u);
    for (int i = 0; i < m; ++i) {  // q = (I - Q^+ Q) g: Q^+ Q is symmetric
      q[i] = g[i];
      for (int j = 0; j < m; ++j)
        q[i] -= u[j] * p.system.Q[static_cast<std::size_t>(j) * ld + i];
    }
  }

  // Of Q, and from there of A and b.
  Vector Q_bar(static_cast<std::size_t>(m) * m);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < m; ++j)
      Q_bar[static_cast<std::size_t>(i) * m + j] = -u[i] * p.xc[j] + y[i] * q[j] - p.rest[i] * t[j];

  for (int k = 0; k < m; ++k) {
    const int row = p.system.rows[k];
    out.b[row] = -u[k];
    for (int i = 0; i < n; ++i)
      out.A[static_cast<std::size_t>(row) * n + i] =
          p.system.column[i] >= 0 ? Q_bar[static_cast<std::size_t>(k) * m + p.system.column[i]] * p.system.factor[i]
                                  : -u[k] * p.system.fixed[i];
  }

  // Of the ends that rows are at.
  for (int i = 0; i < n; ++i) {
    if (p.classes[i] == LcpClass::clamped) continue;
    const bool upper = p.classes[i] == LcpClass::upper;
    const auto direct = [&](int row) {  // gradient by x_row itself
      double sum = x_bar[row];
      for (int k = 0; k < m; ++k)
        sum -= u[k] * p.problem.A[static_cast<long>(p.system.rows[k]) * p.problem.ld + row];
      return sum;
    };
    if (p.problem.is_friction(i)) {
      const int j = p.problem.normal[i];
      const double sign = upper ? 1.0 : -1.0;
      if (p.system.column[i] < 0) {
        out.hi[i] = sign * std::max(0.0, p.x[j]) * direct(i);
        continue;
      }
      double sum = x_bar[i] * p.xc[p.system.column[i]];
      for (int k = 0; k < m; ++k)
        sum += Q_bar[static_cast<std::size_t>(k) * m + p.system.column[i]] *
               p.problem.A[static_cast<long>(p.system.rows[k]) * p.problem.ld + i];
      out.hi[i] = sign * sum;
    } else {
      double sum = direct(i);
      for (int f = 0; f < n; ++f)
        if (p.problem.normal[f] == i && p.classes[f] != LcpClass::clamped)
          sum += (p.classes[f] == LcpClass::upper ? p.problem.hi[f] : -p.problem.hi[f]) * direct(f);
      (upper ? out.hi : out.lo)[i] = sum;
    }
  }
  return out;
}

}  // namespace coulomb
