#include "coulomb/rollout/rollout_outputs.hpp"

#include <algorithm>

#include "coulomb/rollout/replay.hpp"
#include "coulomb/stepping/force_outputs.hpp"
#include "coulomb/stepping/step_outputs.hpp"
#include "coulomb/stepping/steppers.hpp"

namespace coulomb {
namespace {

bool any_force(const OutputSet& outputs) {
  return std::any_of(outputs.items().begin(), outputs.items().end(),
                     [](const OutputSet::Item& i) { return is_force(i.sensor.type); });
}

void read_forces(const Rollout& rollout, const OutputSet& outputs, double* out) {
  if (rollout.steps == 0) return;
  Replay replay(rollout, 1);
  ForceOutputs forces(*rollout.model, rollout.step_options);
  replay.seek(0);
  for (int t = 0; t < rollout.steps; ++t) {
    replay.step(0);
    if (is_implicit(rollout.step_options)) replay.linearize(0).restore_contacts();
    forces.move_to(replay.record(0));
    for (const OutputSet::Item& item : outputs.items())
      if (is_force(item.sensor.type)) forces.read(item.sensor, out + std::size_t(t + 1) * outputs.size() + item.first);
  }
}

/// w: states x tangent_size.
class ForceCotangents final : public StepCotangents {
 public:
  ForceCotangents(const Rollout& rollout, const OutputSet& outputs, const double* w, const ParameterSet& set)
      : model_(*rollout.model), outputs_(outputs), w_(w), set_(set), forces_(model_, rollout.step_options) {}

  void before(int t, StepGradient& gradient, const StepRecord& record, RolloutCotangent& out) override {
    gradient.restore_contacts();
    forces_.move_to(record);
    g_.clear(model_, record, &set_);
    const double* w = w_ + std::size_t(t + 1) * outputs_.tangent_size();
    for (const OutputSet::Item& item : outputs_.items())
      if (is_force(item.sensor.type)) forces_.add_gradient(item.sensor, w + item.first_tangent, &set_, g_);
    add(g_.q_next, out.q0), add(g_.v_next, out.v0), add(g_.parameters, out.parameters);
    of_impulses_ =
        std::any_of(g_.lambda.begin(), g_.lambda.end(), [](double x) { return x != 0; }) &&
        !gradient.impulse_cotangent(g_.lambda.data(), set_, out.q0.data(), out.v0.data(), out.parameters.data());
  }

  void after(int, StepGradient& gradient, StepCotangent& inputs) override {
    add(g_.q, inputs.q), add(g_.v, inputs.v), add(g_.u, inputs.u);
    if (inputs.wants_fext) add(g_.fext, inputs.fext);
    if (of_impulses_) add_impulse_cotangent(gradient, g_.lambda, &set_, inputs);
  }

 private:
  static void add(const std::vector<double>& x, std::vector<double>& to) {
    for (std::size_t i = 0; i < x.size(); ++i) to[i] += x[i];
  }

  const Model& model_;
  const OutputSet& outputs_;
  const double* w_;
  const ParameterSet& set_;
  ForceOutputs forces_;
  ForceGradient g_;
  bool of_impulses_ = false;
};

}  // namespace

std::vector<double> read_outputs(const Rollout& rollout, const OutputSet& outputs) {
  const Model& model = *rollout.model;
  const auto states = std::size_t(rollout.steps) + 1;
  std::vector<double> out(states * outputs.size());
  StateOutputs at(model);
  for (std::size_t t = 0; t < states; ++t) {
    at.move_to(rollout.q.data() + t * model.nq, rollout.v.data() + t * model.nv);
    at.read(outputs, out.data() + t * outputs.size());
  }
  if (any_force(outputs)) read_forces(rollout, outputs, out.data());
  return out;
}

namespace {

void add_state_cotangents(const Model& model, int states, const double* q, const double* v, const OutputSet& outputs,
                          const double* w, const ParameterSet& set, double* dq, double* dv, double* dparameters) {
  if (outputs.size() == 0) return;
  StateOutputs at(model);
  for (std::size_t t = 0; t < static_cast<std::size_t>(states); ++t) {
    at.move_to(q + t * model.nq, v + t * model.nv);
    at.vjp(outputs, w + t * outputs.tangent_size(), dq + t * model.nv, dv + t * model.nv, &set, dparameters);
  }
}

}  // namespace

RolloutCotangent vjp(const Rollout& rollout, const double* dq, const double* dv, const OutputSet& outputs,
                     const double* doutputs, const std::vector<std::string>& parameters, const Progress& progress,
                     bool wants_fext) {
  const Model& model = *rollout.model;
  const auto states = std::size_t(rollout.steps) + 1, nv = std::size_t(model.nv);
  check_finite_rows("dQ", dq, rollout.steps + 1, model.nv);
  check_finite_rows("dV", dv, rollout.steps + 1, model.nv);
  std::vector<double> q(states * nv), v(states * nv);
  if (dq) q.assign(dq, dq + states * nv);
  if (dv) v.assign(dv, dv + states * nv);
  const ParameterSet set(model, parameters);
  std::vector<double> direct(set.size());
  add_state_cotangents(model, rollout.steps + 1, rollout.q.data(), rollout.v.data(), outputs, doutputs, set, q.data(),
                       v.data(), direct.data());
  ForceCotangents forces(rollout, outputs, doutputs, set);
  RolloutCotangent out =
      vjp(rollout, q.data(), v.data(), parameters, progress, any_force(outputs) ? &forces : nullptr, wants_fext);
  for (std::size_t k = 0; k < direct.size(); ++k) out.parameters[k] += direct[k];
  return out;
}

}  // namespace coulomb
