#include "coulomb/rollout/rollout_derivatives.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "coulomb/rollout/replay.hpp"

namespace coulomb {
namespace {

void check_overflow(const char* what, const double* x, std::size_t count, int step) {
  for (std::size_t i = 0; i < count; ++i)
    if (!std::isfinite(x[i]))
      throw std::overflow_error(std::string(what) + ": the derivative grows beyond the range of double at step " +
                                std::to_string(step) + "; use a shorter trajectory");
}

void report(const Rollout& rollout, RolloutCotangent& out) {
  out.converged = rollout.converged;
  if (rollout.status.empty()) return;
  const auto first =
      std::find_if(rollout.status.begin(), rollout.status.end(), [](const StepStatus& s) { return !s.converged; });
  out.status = first == rollout.status.end() ? rollout.status.back() : *first;
}

void add(const double* x, std::size_t offset, std::vector<double>& to) {
  if (!x) return;
  for (std::size_t d = 0; d < to.size(); ++d) to[d] += x[offset + d];
}

}  // namespace

RolloutCotangent vjp(const Rollout& rollout, const double* dq, const double* dv,
                     const std::vector<std::string>& parameters, const Progress& progress, StepCotangents* of_steps,
                     bool wants_fext) {
  const Model& model = *rollout.model;
  const int steps = rollout.steps, every = std::min(rollout.checkpoints.every(), std::max(steps, 1));
  const auto nv = std::size_t(model.nv), nu = std::size_t(model.nu);
  check_finite_rows("dQ", dq, steps + 1, model.nv);
  check_finite_rows("dV", dv, steps + 1, model.nv);
  RolloutCotangent out;
  out.parameter_set = std::make_shared<ParameterSet>(model, parameters);
  out.parameters.assign(out.parameter_set->size(), 0.0);
  out.steps = steps, out.nu = model.nu, out.nv = model.nv, out.num_bodies = model.num_bodies;
  out.q0.assign(nv, 0.0), out.v0.assign(nv, 0.0);  // a_(t+1), then a_t
  out.u.resize(steps * nu), out.tau.resize(steps * nv);
  const std::size_t wrenches = wants_fext ? std::size_t(6) * model.num_bodies : 0;
  out.wants_fext = wants_fext;
  out.fext.resize(steps * wrenches);
  report(rollout, out);
  add(dq, steps * nv, out.q0), add(dv, steps * nv, out.v0);

  Replay replay(rollout, every);
  StepCotangent g;
  g.wants_fext = wants_fext;
  std::vector<double> earlier_q(nv, 0.0), earlier_v(nv, 0.0);  // what later steps gave the state before x_t
  for (int begin = steps > 0 ? (steps - 1) / every * every : -1; begin >= 0; begin -= every) {
    const int end = std::min(begin + every, steps);
    replay.seek(begin);
    for (int t = begin; t < end; ++t) {
      replay.step(t - begin);
      if (progress) progress(steps - end, steps);
    }
    for (int t = end - 1; t >= begin; --t) {
      StepGradient& gradient = replay.linearize(t - begin);
      if (of_steps) of_steps->before(t, gradient, replay.record(t - begin), out);
      gradient.vjp(out.q0.data(), out.v0.data(), g, out.parameter_set.get());
      if (of_steps) of_steps->after(t, gradient, g);
      out.ambiguous += replay.ambiguous();
      out.q0 = g.q, out.v0 = g.v;
      add(earlier_q.data(), 0, out.q0), add(earlier_v.data(), 0, out.v0);
      std::fill(earlier_q.begin(), earlier_q.end(), 0.0), std::fill(earlier_v.begin(), earlier_v.end(), 0.0);
      std::copy(g.previous_q.begin(), g.previous_q.end(), earlier_q.begin());
      std::copy(g.previous_v.begin(), g.previous_v.end(), earlier_v.begin());
      add(dq, t * nv, out.q0), add(dv, t * nv, out.v0);
      std::copy(g.u.begin(), g.u.end(), out.u.begin() + t * nu);
      std::copy(g.tau.begin(), g.tau.end(), out.tau.begin() + t * nv);
      std::copy(g.fext.begin(), g.fext.end(), out.fext.begin() + std::ptrdiff_t(t * wrenches));
      for (std::size_t k = 0; k < g.parameters.size(); ++k) out.parameters[k] += g.parameters[k];
      check_overflow("vjp", out.q0.data(), nv, t), check_overflow("vjp", out.v0.data(), nv, t);
      check_overflow("vjp", out.parameters.data(), out.parameters.size(), t);
      if (progress) progress(steps - t, steps);
    }
  }
  return out;
}

void jvp(const Rollout& rollout, const RolloutTangent& tangent, double* dq, double* dv, const Progress& progress) {
  const Model& model = *rollout.model;
  const int steps = rollout.steps;
  const auto nv = std::size_t(model.nv), nu = std::size_t(model.nu);
  check_finite_rows("dU", tangent.du, steps, model.nu);
  check_finite_rows("dtau", tangent.dtau, steps, model.nv);
  const ParameterSet set(model, tangent.parameters);
  if (tangent.dparameters.size() != std::size_t(set.size()))
    throw std::invalid_argument("dparameters has " + std::to_string(tangent.dparameters.size()) +
                                " numbers, the parameters have " + std::to_string(set.size()));
  const auto first = [&](const char* name, const double* from, double* to) {
    for (int d = 0; d < model.nv; ++d) {
      to[d] = from ? from[d] : 0;
      if (!std::isfinite(to[d]))
        throw std::invalid_argument(std::string(name) + "[" + std::to_string(d) + "] is " +
                                    (std::isnan(to[d]) ? "nan" : "infinite") + ", expected a finite number");
    }
  };
  first("dq0", tangent.dq0, dq), first("dv0", tangent.dv0, dv);

  Replay replay(rollout, 1);
  std::vector<double> columns_T;
  if (steps > 0) replay.seek(0);
  for (int step = 0; step < steps; ++step) {
    const auto t = std::size_t(step);
    replay.step(0);
    StepGradient& gradient = replay.linearize(0);
    double *dq1 = dq + (t + 1) * nv, *dv1 = dv + (t + 1) * nv;
    StepTangent direction{dq + t * nv, dv + t * nv, tangent.du ? tangent.du + t * nu : nullptr,
                          tangent.dtau ? tangent.dtau + t * nv : nullptr};
    if (t > 0) direction.previous_q = dq + (t - 1) * nv, direction.previous_v = dv + (t - 1) * nv;
    gradient.jvp(direction, dq1, dv1);
    if (set.size() > 0) {
      gradient.parameter_columns(set, columns_T);
      for (int k = 0; k < set.size(); ++k)
        for (std::size_t d = 0; d < nv; ++d) {
          dq1[d] += tangent.dparameters[k] * columns_T[2 * nv * k + d];
          dv1[d] += tangent.dparameters[k] * columns_T[2 * nv * k + nv + d];
        }
    }
    check_overflow("jvp", dq1, nv, step), check_overflow("jvp", dv1, nv, step);
    if (progress) progress(step + 1, steps);
  }
}

}  // namespace coulomb
