#include "coulomb/control/riccati.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/linalg/dense.hpp"
#include "coulomb/linalg/dense_blocked.hpp"

namespace coulomb {
namespace {

constexpr double least_scale = 1e-12;  // of the diagonal by u, where regularisation is relative to it

double dot(const double* a, const double* b, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += a[i] * b[i];
  return sum;
}

/// y += A x, A rows x columns; linalg/dense has it for what is symmetric or transposed.
void add_times(const double* A, int ld, int rows, int columns, const double* x, double* y) {
  for (int i = 0; i < rows; ++i)
    y[i] += dot(A + std::size_t(i) * ld, x, columns);
}

bool all_finite(const std::vector<double>& x) {
  return std::all_of(x.begin(), x.end(), [](double entry) { return std::isfinite(entry); });
}

/// Copies a block of rows x columns; both matrices have rows of ld numbers.
void copy_block(const double* from, int ld, int rows, int columns, double* to) {
  for (int i = 0; i < rows; ++i) {
    const std::size_t row = std::size_t(i) * ld;
    std::copy_n(from + row, columns, to + row);
  }
}

/// (A + A^T) / 2 in place: rounding must not make a value unsymmetric.
void symmetrise(double* A, int ld, int n) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < i; ++j) {
      double& below = A[std::size_t(i) * ld + j];
      double& above = A[std::size_t(j) * ld + i];
      const double both = 0.5 * (below + above);
      below = both;
      above = both;
    }
  }
}

}  // namespace

void KnotModels::resize(const KnotLayout& to, int knots) {
  layout = to;
  horizon = knots;

  // Dynamics between the knots, costs at them: one more.
  const std::size_t steps = knots;
  const std::size_t nx = to.nx();
  const std::size_t nz = to.nz();
  const std::size_t ld = to.ld();
  F.assign(steps * nx * ld, 0.0);
  gap.assign(steps * nx, 0.0);
  g.assign((steps + 1) * ld, 0.0);
  H.assign((steps + 1) * nz * ld, 0.0);
}

void Feedback::resize(const KnotLayout& layout, int horizon) {
  nu = layout.nu;
  ld = layout.ld();
  const std::size_t rows = std::size_t(horizon) * nu;
  k.assign(rows, 0.0);
  K.assign(rows * ld, 0.0);
}

void Riccati::resize(const KnotLayout& layout) {
  const std::size_t nx = layout.nx();
  const std::size_t nz = layout.nz();
  const std::size_t nu = layout.nu;
  const std::size_t ld = layout.ld();

  // The value, and what the sweep adds to it.
  V_.resize(nx * ld);
  v_.resize(ld);
  W_.resize(nx * ld);
  Q_.resize(nz * ld);
  q_.resize(ld);
  T_.resize(nu * ld);
  ahead_.resize(ld);

  // The controls' problem, and a step along the promise.
  Q_uu_.resize(nu * ld);
  lower_.resize(nu);
  upper_.resize(nu);
  dz_.resize(ld);
  dx_.resize(ld);
  held_.resize(nu);
  boxed_.resize(layout.nu);
}

/// The value of the last state is its cost.
void Riccati::begin(const KnotModels& models) {
  const int N = models.horizon;
  const int nx = models.layout.nx();
  copy_block(models.H_of(N), models.layout.ld(), nx, nx, V_.data());
  std::copy_n(models.g_of(N), nx, v_.begin());
}

/// The value of state and control at knot t, from that of the next state.
void Riccati::look_ahead(const KnotModels& models, int t, bool gaps) {
  const KnotLayout& at = models.layout;
  const int nx = at.nx();
  const int nz = at.nz();
  const int ld = at.ld();

  // Q = H + F^T V F,
  const double* F = models.F_of(t);
  std::fill(W_.begin(), W_.end(), 0.0);
  dense::add_product(1, V_.data(), ld, 1, F, ld, W_.data(), ld, nx, nx, nz);
  std::copy_n(models.H_of(t), std::size_t(nz) * ld, Q_.begin());
  dense::add_product(1, F, 1, ld, W_.data(), ld, Q_.data(), ld, nz, nx, nz);

  // q = g + F^T (v + V f).
  std::copy_n(v_.begin(), nx, ahead_.begin());
  if (gaps) {
    dense::add_weighted_rows(V_.data(), nx, ld, models.gap_of(t), ahead_.data());
  }
  std::copy_n(models.g_of(t), nz, q_.begin());
  dense::add_weighted_rows(F, nx, ld, ahead_.data(), q_.data());
}

/// The controls' own block.
void Riccati::regularize(const KnotLayout& at, double regularization) {
  const int nu = at.nu;
  const int ld = at.ld();
  const double* Q_uu = Q_.data() + std::size_t(at.nx()) * ld + at.nx();
  double mean = 0;
  for (int i = 0; i < nu; ++i)
    mean += Q_uu[std::size_t(i) * ld + i] / nu;
  copy_block(Q_uu, ld, nu, nu, Q_uu_.data());
  for (int i = 0; i < nu; ++i)
    Q_uu_[std::size_t(i) * ld + i] += regularization * std::max(mean, least_scale);
}

/// V = Q_xx + K^T (Q_uu K + Q_ux) + Q_ux^T K, without the regularisation.
void Riccati::value_by_state(const KnotLayout& at, const double* K) {
  const int nx = at.nx();
  const int nu = at.nu;
  const int ld = at.ld();
  const double* Q_u = Q_.data() + std::size_t(nx) * ld;  // rows (Q_ux, Q_uu)
  copy_block(Q_u, ld, nu, nx, T_.data());
  dense::add_product(1, Q_u + nx, ld, 1, K, ld, T_.data(), ld, nu, nu, nx);
  copy_block(Q_.data(), ld, nx, nx, V_.data());
  dense::add_product(1, K, 1, ld, T_.data(), ld, V_.data(), ld, nx, nu, nx);
  dense::add_product(1, Q_u, 1, ld, K, ld, V_.data(), ld, nx, nu, nx);
  symmetrise(V_.data(), ld, nx);
}

/// What overflowed promises nothing.
bool Riccati::is_finite(const Feedback& feedback, const std::vector<double>& value, int nx) {
  const bool value_is_finite =
      std::all_of(value.begin(), value.begin() + nx, [](double x) { return std::isfinite(x); });
  return value_is_finite && all_finite(feedback.K);
}

bool Riccati::backward(const KnotModels& models, double regularization, const double* u, const double* lower,
                       const double* upper, Feedback& feedback) {
  const KnotLayout& at = models.layout;
  const int nx = at.nx();
  const int nu = at.nu;
  const int ld = at.ld();

  begin(models);
  for (int t = models.horizon - 1; t >= 0; --t) {
    look_ahead(models, t, true);
    regularize(at, regularization);
    for (int i = 0; i < nu; ++i) {
      const double now = u[std::size_t(t) * nu + i];
      lower_[i] = lower[i] - now;
      upper_[i] = upper[i] - now;
    }

    // Best controls, and how those that are free follow the state.
    const double* q_u = q_.data() + nx;
    const double* Q_u = Q_.data() + std::size_t(nx) * ld;
    double* k = feedback.k_of(t);
    double* K = feedback.K_of(t);
    std::fill_n(k, nu, 0.0);
    const bool solved = boxed_.solve(Q_uu_.data(), ld, q_u, lower_.data(), upper_.data(), k);
    if (!solved) return false;
    copy_block(Q_u, ld, nu, nx, K);
    boxed_.solve_free(K, ld, nx);

    // The value by the state, and v = q_x + K^T (Q_uu k + q_u) + Q_ux^T k.
    value_by_state(at, K);
    std::copy_n(q_u, nu, ahead_.begin());
    add_times(Q_u + nx, ld, nu, nu, k, ahead_.data());
    std::copy_n(q_.begin(), nx, v_.begin());
    dense::add_weighted_rows(K, nu, ld, ahead_.data(), v_.data());
    dense::add_weighted_rows(Q_u, nu, ld, k, v_.data());
  }
  return is_finite(feedback, v_, nx);
}

bool Riccati::gains(const KnotModels& models, double regularization, const double* u, const double* lower,
                    const double* upper, Feedback& feedback) {
  const KnotLayout& at = models.layout;
  const int nx = at.nx();
  const int nu = at.nu;
  const int ld = at.ld();
  std::fill(feedback.k.begin(), feedback.k.end(), 0.0);

  begin(models);
  for (int t = models.horizon - 1; t >= 0; --t) {
    look_ahead(models, t, false);
    regularize(at, regularization);

    // Along the plan q is its costate: what that pushes through a limit is held.
    held_.assign(nu, 0);
    for (int i = 0; i < nu; ++i) {
      const double now = u[std::size_t(t) * nu + i];
      const double slope = q_[nx + i];
      held_[i] = (now <= lower[i] && slope > 0) || (now >= upper[i] && slope < 0);
    }

    // How the others follow the state.
    const double* Q_u = Q_.data() + std::size_t(nx) * ld;
    double* K = feedback.K_of(t);
    const bool solved = boxed_.factor_free(Q_uu_.data(), ld, held_.data());
    if (!solved) return false;
    copy_block(Q_u, ld, nu, nx, K);
    boxed_.solve_free(K, ld, nx);

    // The value by the state; its slope is the costate.
    value_by_state(at, K);
    std::copy_n(q_.begin(), nx, v_.begin());
  }
  return is_finite(feedback, v_, nx);
}

/// Costates: p_N = l_x,  p_t = l_x + A^T p_(t+1),  dJ/du_t = l_u + B^T p_(t+1).
void Riccati::gradient(const KnotModels& models, double* du) {
  const KnotLayout& at = models.layout;
  const int nx = at.nx();
  std::copy_n(models.g_of(models.horizon), nx, v_.begin());
  for (int t = models.horizon - 1; t >= 0; --t) {
    // l + F^T p: its first part is the next costate, the rest the gradient by the control.
    std::copy_n(models.g_of(t), at.nz(), q_.begin());
    dense::add_weighted_rows(models.F_of(t), nx, at.ld(), v_.data(), q_.data());
    std::copy_n(q_.begin() + nx, at.nu, du + std::size_t(t) * at.nu);
    std::copy_n(q_.begin(), nx, v_.begin());
  }
}

Riccati::Promise Riccati::promise(const KnotModels& models, const Feedback& feedback) {
  const KnotLayout& at = models.layout;
  const int nx = at.nx();
  const int nz = at.nz();
  const int ld = at.ld();
  Promise out;
  std::fill_n(dz_.begin(), nz, 0.0);

  for (int t = 0; t <= models.horizon; ++t) {
    const bool last = t == models.horizon;
    const int size = last ? nx : nz;

    // The controls follow the state.
    if (!last) {
      double* du = dz_.data() + nx;
      std::copy_n(feedback.k_of(t), at.nu, du);
      add_times(feedback.K_of(t), ld, at.nu, nx, dz_.data(), du);
      for (int i = nx; i < nz; ++i)
        out.longest = std::max(out.longest, std::abs(dz_[i]));
    }

    // The cost's model along it.
    out.slope += dot(models.g_of(t), dz_.data(), size);
    std::fill_n(dx_.begin(), size, 0.0);
    dense::add_weighted_rows(models.H_of(t), size, ld, dz_.data(), dx_.data());
    out.curvature += dot(dx_.data(), dz_.data(), size);
    if (last) break;

    // The linear dynamics.
    std::copy_n(models.gap_of(t), nx, dx_.begin());
    add_times(models.F_of(t), ld, nx, nz, dz_.data(), dx_.data());
    std::copy_n(dx_.begin(), nx, dz_.begin());
  }
  return out;
}

}  // namespace coulomb
