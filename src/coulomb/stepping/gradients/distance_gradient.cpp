#include "coulomb/stepping/gradients/distance_gradient.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "coulomb/constraints/one_sided_spring.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/linalg/dense.hpp"
#include "coulomb/stepping/step_options.hpp"
#include "coulomb/stepping/step_record.hpp"

namespace coulomb {
namespace {

constexpr double farthest = 6;  // in lengths: beyond, the share is below 0.25 %
constexpr double least_share = 1e-3;
// Of what the direction of a gap gives way by where nothing is held: less, and what holds it would be moved a thousand times as far as the gap.
constexpr double least_response = 1e-6;
// Of the same, the least D_ii: gaps that are about to close together and move alike stay two equations.
constexpr double least_give = 1e-9;

double dot(const double* a, const double* b, int n) {
  double sum = 0;
  for (int d = 0; d < n; ++d)
    sum += a[d] * b[d];
  return sum;
}

/// Pairs that touch with an impulse have the exact derivative.
bool acts(const StepRecord& record, int pair) {
  for (const BodyRows& b : record.rows.body_rows) {
    if (b.contact < 0 || record.collision.contacts[b.contact].pair != pair) continue;
    if (record.solution.modes[b.block] != Mode::separating) return true;
  }
  return false;
}

}  // namespace

DistanceGradient::DistanceGradient(std::unique_ptr<StepGradient> exact, const Model& model)
    : GradientDecorator(std::move(exact)), collision_(model) {}

/// Gaps within reach, where bodies are at the start of the step.
void DistanceGradient::find_gaps(const Model& model, const StepOptions& options, const StepRecord& record) {
  CollisionOptions wide = options.collision;
  wide.stateless = true;
  wide.least_margin = std::max(wide.least_margin, farthest * options.gradient.scale);
  detect_contacts(model, record.dynamics.body_position.data(), record.dynamics.body_rotation.data(), wide, cache_,
                  collision_);

  count_ = 0;
  share_.clear();
  compliance_.clear();
  free_.clear();
  for (const Contact& contact : collision_.contacts) {
    if (contact.distance <= 0 || acts(record, contact.pair)) continue;
    if (count_ == static_cast<int>(gaps_.size())) {
      gaps_.emplace_back();
    }
    ImpactGap& gap = gaps_[count_];
    gap.build(model, ClosingGap{contact}, record, options.constraints);

    // The gap at the end of the step.
    const double after = contact.distance + h_ * dot(gap.row().data(), record.v_next.data(), nv_);
    const double share = std::exp(-std::max(after, 0.0) / options.gradient.scale);
    if (share < least_share) continue;
    share_.push_back(share);
    compliance_.push_back(contact_compliance(model, contact.pair, h_));

    // How its direction gives way by the masses alone.
    work_ = gap.row();
    solve_mass(model, record.dynamics, work_.data());
    free_.push_back(dot(gap.row().data(), work_.data(), nv_));
    ++count_;
  }
}

/// G, count x padded; a row G_i = (J_i dv+/dtau) J^T / h is a reverse product.
void DistanceGradient::responses() {
  const int ld = dense::padded(count_);
  factor_.assign(std::size_t(count_) * ld, 0.0);
  for (int i = 0; i < count_; ++i) {
    exact_->vjp(zero_.data(), gaps_[i].row().data(), part_, nullptr);
    double* row = factor_.data() + std::size_t(i) * ld;
    for (int j = 0; j < count_; ++j)
      row[j] = dot(part_.tau.data(), gaps_[j].row().data(), nv_) / h_;
  }
}

/// A gap that nothing can move, as one that contacts hold from behind, takes no impulse: it is left out.
void DistanceGradient::drop_held() {
  const int ld = dense::padded(count_);
  kept_.clear();
  for (int i = 0; i < count_; ++i)
    if (factor_[std::size_t(i) * ld + i] > least_response * free_[i]) kept_.push_back(i);
  const int kept = static_cast<int>(kept_.size());
  if (kept == count_) return;

  // The others move up, and their rows and columns of G with them: never past what is still to be read.
  const int kept_ld = dense::padded(kept);
  for (int i = 0; i < kept; ++i) {
    const int from = kept_[i];
    std::swap(gaps_[i], gaps_[from]);
    share_[i] = share_[from];
    compliance_[i] = compliance_[from];
    free_[i] = free_[from];
    for (int j = 0; j < kept_ld; ++j)
      factor_[std::size_t(i) * kept_ld + j] = j < kept ? factor_[std::size_t(from) * ld + kept_[j]] : 0.0;
  }
  count_ = kept;
}

/// LU of D + G + R.
void DistanceGradient::factor() {
  const int ld = dense::padded(count_);
  pivots_.resize(count_);
  work_.resize(ld);
  for (int i = 0; i < count_; ++i) {
    double& diagonal = factor_[std::size_t(i) * ld + i];
    const double contact = diagonal + compliance_[i];
    diagonal = std::max(contact / share_[i], contact + least_give * free_[i]);
  }
  dense::lu(factor_.data(), count_, ld, pivots_.data(), work_.data());
}

void DistanceGradient::prepare(const Model& model, const StepOptions& options, StepRecord& record,
                               const StepMemory& memory) {
  exact_->prepare(model, options, record, memory);
  nv_ = model.nv;
  h_ = options.constraints.timestep;
  zero_.assign(nv_, 0.0);
  have_jacobian_ = false;
  have_response_ = false;
  find_gaps(model, options, record);
  if (count_ == 0) return;
  responses();
  drop_held();
  if (count_ > 0) factor();
}

/// (dq1, dv1) that a unit of impulse at each gap makes, as a joint force J^T / h.
void DistanceGradient::response_columns() {
  if (have_response_) return;
  have_response_ = true;
  const std::vector<double>& B_tau_T = exact_->jacobian().B_tau_T;
  response_.assign(std::size_t(2) * count_ * nv_, 0.0);
  for (int i = 0; i < count_; ++i) {
    double* response = response_.data() + std::size_t(2) * nv_ * i;
    const std::vector<double>& J = gaps_[i].row();
    for (int d = 0; d < nv_; ++d)
      for (int k = 0; k < 2 * nv_; ++k)
        response[k] += J[d] / h_ * B_tau_T[std::size_t(2) * nv_ * d + k];
  }
}

void DistanceGradient::add_response(const double* gap_change, double* column) {
  impulse_.resize(count_);
  for (int i = 0; i < count_; ++i) {
    const double change = gap_change == nullptr ? 0.0 : gap_change[i] / h_;
    impulse_[i] = -(dot(gaps_[i].row().data(), column + nv_, nv_) + change);
  }
  dense::lu_solve(factor_.data(), count_, dense::padded(count_), pivots_.data(), impulse_.data());
  for (int i = 0; i < count_; ++i)
    for (int k = 0; k < 2 * nv_; ++k)
      column[k] += impulse_[i] * response_[std::size_t(2) * nv_ * i + k];
}

const StepDerivatives& DistanceGradient::jacobian() {
  if (have_jacobian_) return *derivatives_;
  have_jacobian_ = true;
  if (count_ == 0) {
    derivatives_ = exact_->shared_jacobian();
    return *derivatives_;
  }

  // By q the gaps themselves change, by all else the velocity alone.
  response_columns();
  derivatives_ = std::make_shared<StepDerivatives>(exact_->jacobian());
  change_.resize(count_);
  const auto correct = [this](std::vector<double>& columns_T, int first, int columns) {
    for (int k = first; k < first + columns; ++k)
      add_response(nullptr, columns_T.data() + std::size_t(2) * nv_ * k);
  };
  for (int k = 0; k < nv_; ++k) {
    for (int i = 0; i < count_; ++i)
      change_[i] = gaps_[i].row()[k];
    add_response(change_.data(), derivatives_->A_T.data() + std::size_t(2) * nv_ * k);
  }
  correct(derivatives_->A_T, nv_, nv_);
  correct(derivatives_->B_T, 0, derivatives_->nu);
  correct(derivatives_->B_tau_T, 0, nv_);
  return *derivatives_;
}

void DistanceGradient::parameter_columns(const ParameterSet& set, std::vector<double>& columns_T) {
  exact_->parameter_columns(set, columns_T);
  if (count_ == 0) return;
  response_columns();

  // How the gaps move, one row of set.size() each.
  std::vector<double> rows(std::size_t(count_) * set.size());
  std::vector<double> row;
  for (int i = 0; i < count_; ++i) {
    gaps_[i].parameters(set, row);
    std::copy(row.begin(), row.end(), rows.begin() + std::ptrdiff_t(i) * set.size());
  }
  change_.resize(count_);
  for (int k = 0; k < set.size(); ++k) {
    for (int i = 0; i < count_; ++i)
      change_[i] = rows[std::size_t(i) * set.size() + k];
    add_response(change_.data(), columns_T.data() + std::size_t(2) * nv_ * k);
  }
}

void DistanceGradient::vjp(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set) {
  exact_->vjp(dq1, dv1, out, set);
  if (count_ == 0) return;

  // r = -(D + G)^-T J tau_bar / h
  impulse_.resize(count_);
  for (int i = 0; i < count_; ++i)
    impulse_[i] = -dot(gaps_[i].row().data(), out.tau.data(), nv_) / h_;
  dense::lu_solve_transposed(factor_.data(), count_, dense::padded(count_), pivots_.data(), impulse_.data());

  // It asks for J^T r of the velocity, and for J^T r / h of the configuration.
  cotangent_.assign(nv_, 0.0);
  for (int i = 0; i < count_; ++i)
    for (int d = 0; d < nv_; ++d)
      cotangent_[d] += impulse_[i] * gaps_[i].row()[d];
  part_.wants_fext = out.wants_fext;
  exact_->vjp(zero_.data(), cotangent_.data(), part_, set);
  part_.wants_fext = false;

  // All of it together.
  const auto add = [](const std::vector<double>& from, std::vector<double>& to) {
    for (std::size_t k = 0; k < from.size(); ++k)
      to[k] += from[k];
  };
  add(part_.q, out.q);
  add(part_.v, out.v);
  add(part_.u, out.u);
  add(part_.tau, out.tau);
  add(part_.fext, out.fext);
  add(part_.parameters, out.parameters);
  for (int d = 0; d < nv_; ++d)
    out.q[d] += cotangent_[d] / h_;
  if (set == nullptr || set->size() == 0) return;
  for (int i = 0; i < count_; ++i) {
    gaps_[i].parameters(*set, change_);
    for (int k = 0; k < set->size(); ++k)
      out.parameters[k] += impulse_[i] * change_[k] / h_;
  }
}

}  // namespace coulomb
