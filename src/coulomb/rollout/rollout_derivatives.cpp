#include "coulomb/rollout.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "coulomb/rollout/checks.hpp"
#include "coulomb/rollout/replay/replay.hpp"
#include "coulomb/rollout/rollout_parts.hpp"
#include "coulomb/rollout/rows.hpp"
#include "coulomb/rollout/step_cotangents.hpp"

namespace coulomb {
namespace {

/// Whether the steps converged, and the status of the first one that did not.
void report(const Rollout& rollout, RolloutCotangent& out) {
  out.converged = rollout.converged;
  if (rollout.status.empty()) return;
  const auto first =
      std::find_if(rollout.status.begin(), rollout.status.end(), [](const StepStatus& s) { return !s.converged; });
  out.status = first == rollout.status.end() ? rollout.status.back() : *first;
}

/// x += row `t` of rows as long as x; null: zero.
void add_row(const double* rows, std::size_t t, std::vector<double>& x) {
  if (!rows) return;
  const double* row = rows + t * x.size();
  for (std::size_t d = 0; d < x.size(); ++d)
    x[d] += row[d];
}

/// to += from, which may be empty.
void add(const std::vector<double>& from, std::vector<double>& to) {
  for (std::size_t k = 0; k < from.size(); ++k)
    to[k] += from[k];
}

/// The lines of (L14) backward, one step at a time.
class ReverseSweep {
 public:
  struct States {
    const double* dq;  // (steps + 1) x nv; null: zero
    const double* dv;
  };

  ReverseSweep(const Rollout& rollout, const States& from, const std::vector<std::string>& parameters,
               WantedCotangents wanted)
      : s_(*rollout.model), from_(from), set_(sweep_parameters(*rollout.model, parameters, wanted)),
        earlier_q_(s_.nv, 0.0), earlier_v_(s_.nv, 0.0) {
    const Model& model = *rollout.model;
    const auto steps = std::size_t(rollout.steps);
    out_.steps = rollout.steps;
    out_.nu = model.nu;
    out_.nv = model.nv;
    out_.num_bodies = model.num_bodies;
    report(rollout, out_);

    // Room for all inputs.
    out_.parameter_set = std::make_shared<ParameterSet>(model, parameters);
    parameters_.assign(set_.size(), 0.0);
    out_.u.resize(steps * s_.nu);
    out_.tau.resize(steps * s_.nv);
    out_.wants_fext = wanted.fext;
    out_.fext.resize(wanted.fext ? steps * s_.fext : 0);
    of_step_.wants_fext = wanted.fext;
    out_.num_mocap = int(model.mocap_bodies.size());
    out_.wants_mocap = wanted.mocap;
    out_.mocap.resize(wanted.mocap ? steps * s_.mocap_tangent : 0);

    // a_T
    out_.q0.assign(s_.nv, 0.0);
    out_.v0.assign(s_.nv, 0.0);
    add_row(from.dq, steps, out_.q0);
    add_row(from.dv, steps, out_.v0);
  }

  /// Through step t, which the replay has in `slot`.
  void step_back(int t, Replay& replay, int slot, StepCotangents* of_steps) {
    // A_t^T, B_t^T and F_t^T times a_(t+1).
    StepGradient& gradient = replay.linearize(slot);
    if (of_steps) {
      of_steps->before(t, gradient, replay.record(slot), out_, parameters_);
    }
    gradient.vjp(out_.q0.data(), out_.v0.data(), of_step_, &set_);
    if (of_steps) of_steps->after(t, gradient, of_step_);
    out_.ambiguous += replay.ambiguous();

    // a_t: what the step gives the state before it, what the step after that gave it, and its own dX_t.
    out_.q0 = of_step_.q;
    out_.v0 = of_step_.v;
    add_row(earlier_q_.data(), 0, out_.q0);
    add_row(earlier_v_.data(), 0, out_.v0);
    keep_earlier();
    add_row(from_.dq, std::size_t(t), out_.q0);
    add_row(from_.dv, std::size_t(t), out_.v0);

    // The inputs of this step, and parameters, which are in all of them.
    const auto row = std::size_t(t);
    store_row(of_step_.u, row, out_.u.data());
    store_row(of_step_.tau, row, out_.tau.data());
    store_row(of_step_.fext, row, out_.fext.data());
    add(of_step_.parameters, parameters_);

    // Zeros would be taken for a derivative, nan tells nobody where.
    check_overflow("vjp", out_.q0.data(), s_.nv, t);
    check_overflow("vjp", out_.v0.data(), s_.nv, t);
    check_overflow("vjp", parameters_.data(), parameters_.size(), t);
    take_poses(row);
  }

  RolloutCotangent take() {
    parameters_.resize(out_.parameter_set->size());
    out_.parameters = std::move(parameters_);
    return std::move(out_);
  }

 private:
  /// Of the state before x_t; zero where the step does not depend on it.
  void keep_earlier() {
    std::fill(earlier_q_.begin(), earlier_q_.end(), 0.0);
    std::fill(earlier_v_.begin(), earlier_v_.end(), 0.0);
    std::copy(of_step_.previous_q.begin(), of_step_.previous_q.end(), earlier_q_.begin());
    std::copy(of_step_.previous_v.begin(), of_step_.previous_v.end(), earlier_v_.begin());
  }

  /// Poses are those of one step: their part of the parameters is not summed, it goes to the row of that step.
  void take_poses(std::size_t row) {
    if (!out_.wants_mocap) return;
    double* poses = parameters_.data() + out_.parameter_set->size();
    std::copy_n(poses, s_.mocap_tangent, out_.mocap.data() + row * s_.mocap_tangent);
    std::fill_n(poses, s_.mocap_tangent, 0.0);
  }

  StepSizes s_;
  States from_;
  ParameterSet set_;                // sweep_parameters
  std::vector<double> parameters_;  // of that set, summed over the steps so far; poses: zero between two steps
  RolloutCotangent out_;            // q0, v0: a_(t+1), then a_t
  StepCotangent of_step_;           // of the step that was gone back through last
  std::vector<double> earlier_q_;   // nv: what that step gave the state before the one that it starts from
  std::vector<double> earlier_v_;
};

/// Copies a tangent of the initial state; null: zero.
void start_tangent(const char* name, const double* from, int nv, double* to) {
  for (int d = 0; d < nv; ++d) {
    to[d] = from ? from[d] : 0;
    if (!std::isfinite(to[d])) {
      refuse_number(name, {std::size_t(d)}, to[d]);
    }
  }
}

/// (dq, dv) += sum over parameters of its column (2 nv) times its tangent.
void add_columns(const std::vector<double>& columns_T, const double* tangent, std::size_t count, std::size_t nv,
                 double* dq, double* dv) {
  for (std::size_t k = 0; k < count; ++k) {
    const double* column = columns_T.data() + 2 * nv * k;
    for (std::size_t d = 0; d < nv; ++d) {
      dq[d] += tangent[k] * column[d];
      dv[d] += tangent[k] * column[nv + d];
    }
  }
}

}  // namespace

ParameterSet sweep_parameters(const Model& model, const std::vector<std::string>& parameters, WantedCotangents wanted) {
  if (!wanted.mocap) return ParameterSet(model, parameters);
  const std::vector<std::string> poses = mocap_parameters(model);
  check_no_pose(parameters, poses);
  std::vector<std::string> names = parameters;
  names.insert(names.end(), poses.begin(), poses.end());
  return ParameterSet(model, names);
}

RolloutCotangent vjp(const Rollout& rollout, const double* dq, const double* dv,
                     const std::vector<std::string>& parameters, const Progress& progress, StepCotangents* of_steps,
                     WantedCotangents wanted) {
  const int steps = rollout.steps;
  const int every = std::min(rollout.parts->checkpoints.every(), std::max(steps, 1));
  check_finite_rows("dQ", dq, steps + 1, rollout.model->nv);
  check_finite_rows("dV", dv, steps + 1, rollout.model->nv);

  // The sweep begins with the cotangent of the last state.
  ReverseSweep sweep(rollout, {dq, dv}, parameters, wanted);

  // Stretch by stretch from the last checkpoint: forward to have its steps, then backward through them.
  Replay replay(rollout, every);
  for (int begin = steps > 0 ? (steps - 1) / every * every : -1; begin >= 0; begin -= every) {
    const int end = std::min(begin + every, steps);
    replay.seek(begin);
    for (int t = begin; t < end; ++t) {
      replay.step(t - begin);
      if (progress) progress(steps - end, steps);
    }
    for (int t = end - 1; t >= begin; --t) {
      sweep.step_back(t, replay, t - begin, of_steps);
      if (progress) progress(steps - t, steps);
    }
  }
  return sweep.take();
}

void jvp(const Rollout& rollout, const RolloutTangent& tangent, double* dq, double* dv, const Progress& progress) {
  const Model& model = *rollout.model;
  const int steps = rollout.steps;
  check_finite_rows("dU", tangent.du, steps, model.nu);
  check_finite_rows("dtau", tangent.dtau, steps, model.nv);
  check_finite_rows("dmocap", tangent.dmocap, steps, int(mocap_tangent_size(model)));
  const ParameterSet set(model, tangent.parameters);
  const ParameterSet poses(model, tangent.dmocap ? mocap_parameters(model) : std::vector<std::string>());
  if (tangent.dparameters.size() != std::size_t(set.size()))
    throw std::invalid_argument("dparameters has " + std::to_string(tangent.dparameters.size()) +
                                " numbers, the parameters have " + std::to_string(set.size()));
  start_tangent("dq0", tangent.dq0, model.nv, dq);
  start_tangent("dv0", tangent.dv0, model.nv, dv);

  const StepSizes s(model);
  Replay replay(rollout, 1);
  std::vector<double> columns_T;
  if (steps > 0) replay.seek(0);
  for (int step = 0; step < steps; ++step) {
    const auto t = std::size_t(step);
    double* dq1 = dq + (t + 1) * s.nv;
    double* dv1 = dv + (t + 1) * s.nv;
    replay.step(0);
    StepGradient& gradient = replay.linearize(0);

    // A_t X_t + B_t dU_t; a method of two steps takes X_(t-1), too.
    StepTangent direction;
    direction.q = dq + t * s.nv;
    direction.v = dv + t * s.nv;
    direction.u = row_of(tangent.du, t, s.nu);
    direction.tau = row_of(tangent.dtau, t, s.nv);
    if (t > 0) {
      direction.previous_q = dq + (t - 1) * s.nv;
      direction.previous_v = dv + (t - 1) * s.nv;
    }
    gradient.jvp(direction, dq1, dv1);

    // + F_t dtheta, and the poses of this step.
    if (set.size() > 0) {
      gradient.parameter_columns(set, columns_T);
      add_columns(columns_T, tangent.dparameters.data(), tangent.dparameters.size(), s.nv, dq1, dv1);
    }
    if (poses.size() > 0) {
      gradient.parameter_columns(poses, columns_T);
      add_columns(columns_T, tangent.dmocap + t * s.mocap_tangent, s.mocap_tangent, s.nv, dq1, dv1);
    }
    check_overflow("jvp", dq1, s.nv, step);
    check_overflow("jvp", dv1, s.nv, step);
    if (progress) progress(step + 1, steps);
  }
}

}  // namespace coulomb
