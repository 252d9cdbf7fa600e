#include "coulomb/stepping/implicit/implicit_newton.hpp"

#include <algorithm>
#include <cmath>

namespace coulomb {
namespace {

constexpr double fast = 0.05;    // contraction below which the old matrix is good enough
constexpr double stalled = 100;  // times what is allowed: solved, if no correction makes it less
// Correction that leads no further, to the velocity that the forces make in the stage.
constexpr double negligible = 1e-8;
constexpr double small_residual = 1e-6;  // of its terms, and of that correction
constexpr double smallest = 1e-280;      // no meaning below
constexpr double rounding_units = 2e-15;
constexpr int max_halvings = 12;
constexpr int most_jumps = 2;

}  // namespace

ImplicitNewton::ImplicitNewton(const Model& model)
    : equation(model), factor_(model.nv), allowed_(model.nv), step_(model.nv), next_step_(model.nv), from_(model.nv),
      best_(model.nv), work_(model.nv) {}

/// Matrix at the last evaluation, and what is allowed of the residual there.
bool ImplicitNewton::linearize(const Model& model, const StepOptions& options, const ImplicitStage& stage) {
  const int nv = model.nv;
  const int ld = equation.dynamics.ld;
  equation.prepare(model, stage);
  equation.differentiate(model, stage);
  equation.newton_matrix(model, stage, factor_.matrix());

  // What rounding of the forces makes of the residual, and of v+ and q+: extent and speed are what that is relative to.
  equation.find_rounding(model);
  const double* H_T = factor_.matrix();
  double extent = 1;
  for (double x : stage.q_next)
    extent = std::max(extent, std::abs(x));
  double speed_of_all = 0;
  for (int d = 0; d < nv; ++d)
    speed_of_all = std::max({speed_of_all, std::abs(stage.v_next[d]), std::abs(stage.v_bar[d])});

  // |M_dd| / c, |H| and |R_q| times those.
  const DynamicsWorkspace& inertia = equation.inertial();
  for (int d = 0; d < nv; ++d)
    allowed_[d] = equation.rounding[d] + inertia.mass[model.dof_row[d] + model.dof_depth[d]] / stage.c * speed_of_all;
  for (int k = 0; k < nv; ++k) {
    const double speed = std::abs(stage.v_next[k]) + std::abs(stage.v_bar[k]);
    const double* H = H_T + std::size_t(k) * ld;
    const double* R_q = equation.R_q_T.data() + std::size_t(k) * ld;
    for (int d = 0; d < nv; ++d)
      allowed_[d] += std::abs(H[d]) * speed + std::abs(R_q[d]) * extent;
  }

  // The tolerance is of the sizes of the terms; with the inertia they are a velocity, too.
  for (int d = 0; d < nv; ++d)
    work_[d] = std::abs(stage.acceleration[d]);
  equation.times_mass(model, work_.data(), step_.data());
  double reach = 0;
  for (int d = 0; d < nv; ++d) {
    const double size = equation.scale[d] + std::abs(step_[d]);
    reach += size * size / inertia.mass[model.dof_row[d] + model.dof_depth[d]];
    allowed_[d] = options.implicit.tolerance * size + rounding_units * allowed_[d] + smallest;
  }
  reach_ = stage.c * std::sqrt(reach);
  return factor_.factor();
}

/// Infinite where a residual is not a number.
double ImplicitNewton::ratio() const {
  double largest = 0;
  for (std::size_t d = 0; d < allowed_.size(); ++d) {
    const double r = std::abs(equation.residual[d]);
    if (!std::isfinite(r)) return INFINITY;
    if (r > 0) {
      largest = std::max(largest, r / allowed_[d]);
    }
  }
  return largest;
}

/// In the norm of the kinetic energy; infinite where that is not a number.
double ImplicitNewton::length(const Model& model, const std::vector<double>& x) {
  equation.times_mass(model, x.data(), work_.data());
  double sum = 0;
  for (std::size_t d = 0; d < x.size(); ++d)
    sum += x[d] * work_[d];
  return std::isfinite(sum) ? std::sqrt(std::max(0.0, sum)) : INFINITY;
}

/// x = -H^-1 R with the matrix there is.
void ImplicitNewton::correction(std::vector<double>& x) const {
  for (std::size_t d = 0; d < x.size(); ++d)
    x[d] = -equation.residual[d];
  factor_.solve(x.data());
}

/// Is nothing left to be won: a small residual, and a correction below the noise of the stage?
bool ImplicitNewton::is_rounding(const Model& model, const StepOptions& options, double at) {
  return at * options.implicit.tolerance <= small_residual && length(model, step_) <= negligible * reach_;
}

/// Along step_, of the length `before`, from stage.v_next. next_step_: the correction at the end with the same matrix. False: no shorter one was found.
bool ImplicitNewton::search(const Model& model, const StepOptions& options, ImplicitStage& stage, double before,
                            double& contraction) {
  from_ = stage.v_next;

  // A correction is good if the next one, with the same matrix, is shorter.
  double fraction = 1;
  for (int k = 0; k < max_halvings; ++k, fraction *= 0.5) {
    for (int d = 0; d < model.nv; ++d)
      stage.v_next[d] = from_[d] + fraction * step_[d];
    equation.evaluate(model, options, stage);
    ++evaluations_;

    const double at = ratio();
    if (std::isfinite(at)) {
      correction(next_step_);
      const double after = length(model, next_step_);
      contraction = before > 0 ? after / before : 0;
      if (at <= 1 || after <= (1 - 0.25 * fraction) * before) return true;
    }
  }
  return false;
}

/// One more correction where the solution is known already; kept if it is one.
void ImplicitNewton::polish(const Model& model, const StepOptions& options, ImplicitStage& stage) {
  const double before = ratio();
  from_ = stage.v_next;
  for (int d = 0; d < model.nv; ++d)
    stage.v_next[d] += step_[d];
  equation.evaluate(model, options, stage);

  // Back, if it is none.
  if (ratio() <= before) return;
  stage.v_next = from_;
  equation.evaluate(model, options, stage);
}

NewtonOutcome ImplicitNewton::solve(const Model& model, const StepOptions& options, const StageInputs& inputs,
                                    ImplicitStage& stage, int patience) {
  NewtonOutcome out;
  equation.begin(model, options, inputs, stage);
  equation.evaluate(model, options, stage);
  double least = INFINITY;
  double at = INFINITY;
  int jumps = 0;

  // What residual and correction were when one of them fell to half last, and when that was.
  double halved = INFINITY;
  double shortened = INFINITY;
  int progress = 0;
  evaluations_ = 0;

  // known: step_ is the correction here, by the matrix of a point before.
  for (bool known = false;; ++out.iterations) {
    if (!known) {
      if (!linearize(model, options, stage)) break;
      correction(step_);
    }

    // Solved, or hopeless, or at the end.
    at = ratio();
    if (!std::isfinite(at)) break;
    if (at < least) {
      least = at;
      best_ = stage.v_next;
    }
    if (at <= 1) {
      if (at > 1e-3) polish(model, options, stage);
      out.converged = true;
      least = ratio();
      break;
    }

    // Still on the way?
    const double left = length(model, step_);
    if (at <= 0.5 * halved || left <= 0.5 * shortened) {
      halved = std::min(halved, at);
      shortened = std::min(shortened, left);
      progress = evaluations_;
    }

    if (out.iterations == options.implicit.max_iterations || evaluations_ - progress > patience) {
      out.converged = is_rounding(model, options, at);
      break;
    }

    // A shorter correction at the end of the step: go on, with the same matrix if that was fast.
    double contraction = 1;
    if (search(model, options, stage, left, contraction)) {
      known = contraction < fast;
      if (known) std::swap(step_, next_step_);
      continue;
    }

    // No step helps, with a fresh matrix: rounding, or a kink.
    if (!known && at <= stalled) {
      out.converged = true;
      break;
    }
    if (!known && jumps++ == most_jumps) {
      out.converged = is_rounding(model, options, at);
      break;
    }

    // Again from there with a fresh matrix; or, at a kink that no short step crosses, by a whole step.
    stage.v_next = from_;
    for (int d = 0; d < model.nv && !known; ++d)
      stage.v_next[d] += step_[d];
    known = false;
    equation.evaluate(model, options, stage);
    ++evaluations_;
  }

  // The best iterate is the result where there is no solution.
  if ((!out.converged || least > 1) && std::isfinite(least)) {
    stage.v_next = best_;
    equation.evaluate(model, options, stage);
  }
  out.evaluations = evaluations_;
  out.residual = std::isfinite(least) ? std::min(1.0, least * options.implicit.tolerance) : 1.0;
  return out;
}

StageViews ImplicitNewton::linearized(const Model& model, const ImplicitStage& stage) {
  equation.prepare(model, stage);
  equation.prepare_base(model, stage);
  linearize_stage(model, stage, equation, factor_);
  return {equation.reverse_terms(), factor_.factors()};
}

}  // namespace coulomb
