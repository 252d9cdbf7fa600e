#include "coulomb/rollout/rollout_outputs.hpp"

namespace coulomb {

std::vector<double> read_outputs(const Rollout& rollout, const OutputSet& outputs) {
  refuse_forces(outputs, "a rollout");
  const Model& model = *rollout.model;
  const auto states = std::size_t(rollout.steps) + 1;
  std::vector<double> out(states * outputs.size());
  StateOutputs at(model);
  for (std::size_t t = 0; t < states; ++t) {
    at.move_to(rollout.q.data() + t * model.nq, rollout.v.data() + t * model.nv);
    at.read(outputs, out.data() + t * outputs.size());
  }
  return out;
}

void add_output_cotangents(const Model& model, int states, const double* q, const double* v, const OutputSet& outputs,
                           const double* w, const ParameterSet& set, double* dq, double* dv, double* dparameters) {
  refuse_forces(outputs, "a batch or a rollout");
  StateOutputs at(model);
  for (std::size_t t = 0; t < static_cast<std::size_t>(states); ++t) {
    at.move_to(q + t * model.nq, v + t * model.nv);
    at.vjp(outputs, w + t * outputs.tangent_size(), dq + t * model.nv, dv + t * model.nv, &set, dparameters);
  }
}

RolloutCotangent vjp(const Rollout& rollout, const double* dq, const double* dv, const OutputSet& outputs,
                     const double* doutputs, const std::vector<std::string>& parameters, const Progress& progress) {
  const Model& model = *rollout.model;
  const auto states = std::size_t(rollout.steps) + 1, nv = std::size_t(model.nv);
  check_finite_rows("dQ", dq, rollout.steps + 1, model.nv);
  check_finite_rows("dV", dv, rollout.steps + 1, model.nv);
  std::vector<double> q(states * nv), v(states * nv);
  if (dq) q.assign(dq, dq + states * nv);
  if (dv) v.assign(dv, dv + states * nv);
  const ParameterSet set(model, parameters);
  std::vector<double> direct(set.size());
  add_output_cotangents(model, rollout.steps + 1, rollout.q.data(), rollout.v.data(), outputs, doutputs, set, q.data(),
                        v.data(), direct.data());
  RolloutCotangent out = vjp(rollout, q.data(), v.data(), parameters, progress);
  for (std::size_t k = 0; k < direct.size(); ++k) out.parameters[k] += direct[k];
  return out;
}

}  // namespace coulomb
