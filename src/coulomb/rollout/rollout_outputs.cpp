#include "coulomb/rollout.hpp"

#include <algorithm>

#include "coulomb/rollout/checks.hpp"
#include "coulomb/rollout/replay/replay.hpp"
#include "coulomb/rollout/rollout_parts.hpp"
#include "coulomb/rollout/rows.hpp"
#include "coulomb/rollout/step_cotangents.hpp"
#include "coulomb/stepping/outputs/force_outputs.hpp"
#include "coulomb/stepping/outputs/step_outputs.hpp"
#include "coulomb/stepping/stepper.hpp"

namespace coulomb {
namespace {

/// Must steps be looked at again?
bool any_force(const OutputSet& outputs) {
  return std::any_of(outputs.items().begin(), outputs.items().end(),
                     [](const OutputSet::Item& i) { return is_force(i.sensor.type); });
}

bool any_entry(const std::vector<double>& x) {
  return std::any_of(x.begin(), x.end(), [](double e) { return e != 0; });
}

void add(const std::vector<double>& x, std::vector<double>& to) {
  for (std::size_t i = 0; i < x.size(); ++i)
    to[i] += x[i];
}

/// Forces belong to steps, not to states: row t + 1 of `out` is read from the record of step t.
void read_forces(const Rollout& rollout, const OutputSet& outputs, double* out) {
  if (rollout.steps == 0) return;
  Replay replay(rollout, 1);
  MocapModel model;
  ForceOutputs forces(model.at(rollout.model, mocap_at_state(rollout, 0)), rollout.parts->step_options);
  replay.seek(0);

  for (int t = 0; t < rollout.steps; ++t) {
    // Contacts that are not kept are evaluated again with the derivative.
    replay.step(0);
    if (!rollout.parts->step_options.stepper->recalls_contacts()) {
      replay.linearize(0).restore_contacts();
    }
    model.at(rollout.model, mocap_in_step(rollout, std::size_t(t)));
    forces.move_to(replay.record(0));

    double* readings = out + std::size_t(t + 1) * outputs.size();
    for (const OutputSet::Item& item : outputs.items())
      if (is_force(item.sensor.type)) {
        forces.read(item.sensor, readings + item.first);
      }
  }
}

/// Cotangents w (states x tangent_size) of forces, handed to the reverse sweep step by step.
class ForceCotangents final : public StepCotangents {
 public:
  ForceCotangents(const Rollout& rollout, const OutputSet& outputs, const double* w, const ParameterSet& set)
      : rollout_(rollout), model_(mocap_model_.at(rollout.model, mocap_at_state(rollout, 0))), outputs_(outputs), w_(w),
        set_(set), forces_(model_, rollout.parts->step_options) {}

  void before(int t, StepGradient& gradient, const StepRecord& record, RolloutCotangent& out,
              std::vector<double>& parameters) override {
    gradient.restore_contacts();
    mocap_model_.at(rollout_.model, mocap_in_step(rollout_, std::size_t(t)));
    forces_.move_to(record);
    g_.clear(model_, record, &set_);

    // The forces of step t are row t + 1.
    const double* w = w_ + std::size_t(t + 1) * outputs_.tangent_size();
    for (const OutputSet::Item& item : outputs_.items())
      if (is_force(item.sensor.type)) {
        forces_.add_gradient(item.sensor, w + item.first_tangent, &set_, g_);
      }

    add(g_.q_next, out.q0);
    add(g_.v_next, out.v0);
    add(g_.parameters, parameters);

    // Cotangents of impulses go through the contact problem, unless the gradient knows impulses as a function of the next state.
    of_impulses_ = any_entry(g_.lambda) &&
                   !gradient.impulse_cotangent(g_.lambda.data(), set_, out.q0.data(), out.v0.data(), parameters.data());
  }

  void after(int, StepGradient& gradient, StepCotangent& inputs) override {
    add(g_.q, inputs.q);
    add(g_.v, inputs.v);
    add(g_.u, inputs.u);
    if (inputs.wants_fext) add(g_.fext, inputs.fext);
    if (of_impulses_) {
      add_impulse_cotangent(gradient, g_.lambda, &set_, inputs);
    }
  }

 private:
  const Rollout& rollout_;
  MocapModel mocap_model_;
  const Model& model_;  // as step t sees it
  const OutputSet& outputs_;
  const double* w_;
  const ParameterSet& set_;
  ForceOutputs forces_;
  ForceGradient g_;           // of the step that before() has seen last
  bool of_impulses_ = false;  // after() still has to go through the contact problem
};

/// Cotangents of all states, and of parameters that outputs feel at fixed states.
struct StateCotangents {
  std::vector<double> q;  // (steps + 1) x nv, as v
  std::vector<double> v;
  std::vector<double> direct;  // of parameters, summed over the states
  std::vector<double> poses;   // steps x mocap bodies x 6, if wanted
};

/// Adds the transposed derivatives of all readings, state by state.
void add_output_cotangents(const Rollout& rollout, const OutputSet& outputs, const double* w, const ParameterSet& set,
                           StateCotangents& to) {
  if (outputs.size() == 0) return;
  const auto states = std::size_t(rollout.steps) + 1;
  const std::size_t pose_size = to.poses.size() / std::max(states - 1, std::size_t(1));
  std::vector<double> of_set(set.size());

  MocapModel mocap_model;
  const Model& model = mocap_model.at(rollout.model, mocap_at_state(rollout, 0));
  StateOutputs at(model);
  for (std::size_t t = 0; t < states; ++t) {
    mocap_model.at(rollout.model, mocap_at_state(rollout, t));
    at.move_to(rollout.q.data() + t * model.nq, rollout.v.data() + t * model.nv);
    const double* w_t = w + t * outputs.tangent_size();
    double* q = to.q.data() + t * model.nv;
    double* v = to.v.data() + t * model.nv;
    at.vjp(outputs, w_t, q, v, &set, of_set.data());
    if (pose_size == 0) continue;

    // Poses are those of one step, here of the one that ends in this state.
    const double* poses = of_set.data() + to.direct.size();
    double* of_step = to.poses.data() + (t > 0 ? t - 1 : 0) * pose_size;
    for (std::size_t k = 0; k < pose_size; ++k)
      of_step[k] += poses[k];
    std::fill(of_set.begin() + std::ptrdiff_t(to.direct.size()), of_set.end(), 0.0);
  }
  std::copy_n(of_set.data(), to.direct.size(), to.direct.data());
}

}  // namespace

std::vector<double> read_outputs(const Rollout& rollout, const OutputSet& outputs) {
  const auto states = std::size_t(rollout.steps) + 1;
  std::vector<double> out(states * outputs.size());

  // What states alone tell, with zeros for forces.
  MocapModel mocap_model;
  const Model& model = mocap_model.at(rollout.model, mocap_at_state(rollout, 0));
  StateOutputs at(model);
  for (std::size_t t = 0; t < states; ++t) {
    mocap_model.at(rollout.model, mocap_at_state(rollout, t));
    at.move_to(rollout.q.data() + t * model.nq, rollout.v.data() + t * model.nv);
    at.read(outputs, out.data() + t * outputs.size());
  }

  if (any_force(outputs)) {
    read_forces(rollout, outputs, out.data());
  }
  return out;
}

RolloutCotangent vjp(const Rollout& rollout, const TrajectoryCotangent& from,
                     const std::vector<std::string>& parameters, const Progress& progress, WantedCotangents wanted) {
  const Model& model = *rollout.model;
  const OutputSet& outputs = *from.outputs;
  const auto count = (std::size_t(rollout.steps) + 1) * model.nv;
  check_finite_rows("dQ", from.dq, rollout.steps + 1, model.nv);
  check_finite_rows("dV", from.dv, rollout.steps + 1, model.nv);
  const ParameterSet set = sweep_parameters(model, parameters, wanted);
  const std::size_t pose_size = wanted.mocap ? mocap_tangent_size(model) : 0;

  // Cotangents of readings become cotangents of the states that they were read at.
  StateCotangents states;
  states.q.resize(count);
  states.v.resize(count);
  states.direct.resize(set.size() - pose_size);
  states.poses.resize(rollout.steps * pose_size);
  if (from.dq) {
    states.q.assign(from.dq, from.dq + count);
  }
  if (from.dv) {
    states.v.assign(from.dv, from.dv + count);
  }
  add_output_cotangents(rollout, outputs, from.doutputs, set, states);

  // The sweep through the steps takes those of forces on its way.
  ForceCotangents forces(rollout, outputs, from.doutputs, set);
  StepCotangents* of_steps = any_force(outputs) ? &forces : nullptr;
  RolloutCotangent out = vjp(rollout, states.q.data(), states.v.data(), parameters, progress, of_steps, wanted);
  add(states.direct, out.parameters);
  add(states.poses, out.mocap);
  return out;
}

}  // namespace coulomb
