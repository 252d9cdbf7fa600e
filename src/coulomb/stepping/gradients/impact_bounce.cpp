#include "coulomb/stepping/gradients/impact_bounce.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/stepping/step_options.hpp"
#include "coulomb/stepping/step_record.hpp"

namespace coulomb {
namespace {

constexpr double dependent = 1e-9;  // of two rows: bounces in the same direction are one

/// Solves C m = r in place, C symmetric positive semi-definite (n x n): Cholesky with pivoting, zero where C is dependent.
void solve_semidefinite(std::vector<double>& C, int n, std::vector<double>& r) {
  std::vector<int> order(n);
  for (int i = 0; i < n; ++i)
    order[i] = i;
  const auto at = [&](int i, int j) -> double& { return C[std::size_t(order[i]) * n + order[j]]; };

  int rank = 0;
  for (; rank < n; ++rank) {
    // The largest pivot that is left, until all are dependent.
    int best = rank;
    for (int i = rank + 1; i < n; ++i)
      if (at(i, i) > at(best, best)) {
        best = i;
      }
    std::swap(order[rank], order[best]);
    if (!(at(rank, rank) > dependent)) break;

    // Forward elimination.
    for (int i = rank + 1; i < n; ++i) {
      const double factor = at(i, rank) / at(rank, rank);
      for (int j = rank + 1; j < n; ++j)
        at(i, j) -= factor * at(rank, j);
      r[order[i]] -= factor * r[order[rank]];
    }
  }

  // Back substitution; what depends on others is left to them.
  for (int i = n - 1; i >= rank; --i)
    r[order[i]] = 0;
  for (int i = rank - 1; i >= 0; --i) {
    double& x = r[order[i]];
    for (int j = i + 1; j < rank; ++j)
      x -= at(i, j) * r[order[j]];
    x /= at(i, i);
  }
}

}  // namespace

/// (I11): j_i of the contacts that bounce, and m_i.
void BounceGradient::find_bounces(const Model& model, const StepRecord& record) {
  rows_.clear();
  weight_.clear();
  count_ = 0;
  for (const BodyRows& b : record.rows.body_rows) {
    if (b.contact < 0 || b.restitution == 0 || record.solution.modes[b.block] == Mode::separating) continue;

    // The mass of a spring only looks like a rebound.
    const int pair = record.collision.contacts[b.contact].pair;
    if (model.pair_penalty[pair].curve.inertia > 0) continue;
    rows_.resize(rows_.size() + nv_, 0.0);
    double* row = rows_.data() + std::size_t(count_) * nv_;
    add_body_row(model, record.dynamics, b, 2, row);

    // Of unit length.
    double square = 0;
    for (int d = 0; d < nv_; ++d)
      square += row[d] * row[d];
    const double length = std::sqrt(square);
    for (int d = 0; d < nv_; ++d)
      row[d] /= length;
    weight_.push_back(-(1 + b.restitution));
    ++count_;
  }

  // sum_k (j_i . j_k)^2 m_k = -(1 + e_i); bounces in the same direction share one m.
  std::vector<double> C(std::size_t(count_) * count_);
  for (int i = 0; i < count_; ++i)
    for (int k = 0; k < count_; ++k) {
      double cosine = 0;
      for (int d = 0; d < nv_; ++d)
        cosine += rows_[std::size_t(i) * nv_ + d] * rows_[std::size_t(k) * nv_ + d];
      C[std::size_t(i) * count_ + k] = cosine * cosine;
    }
  solve_semidefinite(C, count_, weight_);
}

void BounceGradient::prepare(const Model& model, const StepOptions& options, StepRecord& record,
                             const StepMemory& memory) {
  exact_->prepare(model, options, record, memory);
  nv_ = model.nv;
  h_ = options.constraints.timestep;
  zero_.assign(nv_, 0.0);
  x_bar_.resize(nv_);
  have_jacobian_ = false;
  find_bounces(model, record);
}

void BounceGradient::times_x(const double* a, double* out) const {
  std::copy_n(a, nv_, out);
  for (int i = 0; i < count_; ++i) {
    const double* row = rows_.data() + std::size_t(i) * nv_;
    double along = 0;
    for (int d = 0; d < nv_; ++d)
      along += row[d] * a[d];
    for (int d = 0; d < nv_; ++d)
      out[d] += weight_[i] * along * row[d];
  }
}

const StepDerivatives& BounceGradient::jacobian() {
  if (have_jacobian_) return *derivatives_;
  have_jacobian_ = true;

  // Nothing bounces: the exact one.
  if (count_ == 0) {
    derivatives_ = exact_->shared_jacobian();
    return *derivatives_;
  }

  // Else dq+/dq = X and dq+/dv = h X take the place of its blocks.
  derivatives_ = std::make_shared<StepDerivatives>(exact_->jacobian());
  std::vector<double> unit(nv_, 0.0);
  for (int k = 0; k < nv_; ++k) {
    double* by_q = derivatives_->A_T.data() + std::size_t(2) * nv_ * k;
    double* by_v = by_q + std::size_t(2) * nv_ * nv_;
    unit[k] = 1;
    times_x(unit.data(), by_q);
    unit[k] = 0;
    for (int d = 0; d < nv_; ++d)
      by_v[d] = h_ * by_q[d];
  }
  return *derivatives_;
}

void BounceGradient::vjp(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set) {
  exact_->vjp(dq1, dv1, out, set);
  if (count_ == 0) return;

  // By the state, positions have X in the place of their own derivative.
  exact_->vjp(zero_.data(), dv1, part_, nullptr);
  times_x(dq1, x_bar_.data());
  for (int d = 0; d < nv_; ++d) {
    out.q[d] = part_.q[d] + x_bar_[d];
    out.v[d] = part_.v[d] + h_ * x_bar_[d];
  }
}

}  // namespace coulomb
