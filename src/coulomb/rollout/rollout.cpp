#include "coulomb/rollout/rollout.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "coulomb/model/checks.hpp"
#include "coulomb/model/configuration.hpp"

namespace coulomb {
namespace {

void check_controls(const double* U, std::size_t steps, std::size_t nu) {
  for (std::size_t i = 0; i < steps * nu; ++i)
    if (!std::isfinite(U[i]))
      throw std::invalid_argument("U[" + std::to_string(i / nu) + ", " + std::to_string(i % nu) + "] is " + checks::text(U[i]) +
                                  ", expected a finite number");
}

}  // namespace

Rollout rollout(Simulator& simulator, const double* q0, const double* v0, const double* U, int steps) {
  if (steps < 0) throw std::invalid_argument("steps: got " + std::to_string(steps) + ", expected at least 0");
  const Model& model = simulator.model();
  const auto nq = static_cast<std::size_t>(model.nq), nv = static_cast<std::size_t>(model.nv), nu = static_cast<std::size_t>(model.nu);
  check_configuration(model, q0, "q0");
  for (std::size_t i = 0; i < nv; ++i)
    if (!std::isfinite(v0[i]))
      throw std::invalid_argument("v0[" + std::to_string(i) + "] is " + checks::text(v0[i]) + ", expected a finite number");
  if (U) check_controls(U, static_cast<std::size_t>(steps), nu);
  Rollout out;
  out.steps = steps;
  out.q.resize((steps + 1) * nq);
  out.v.resize((steps + 1) * nv);
  out.status.reserve(static_cast<std::size_t>(steps));
  std::copy_n(q0, nq, out.q.begin());
  std::copy_n(v0, nv, out.v.begin());
  simulator.reset();
  for (std::size_t t = 0; t < static_cast<std::size_t>(steps); ++t) {
    simulator.step(&out.q[t * nq], &out.v[t * nv], U ? U + t * nu : nullptr, nullptr, nullptr, &out.q[(t + 1) * nq], &out.v[(t + 1) * nv]);
    out.status.push_back(simulator.status());
    out.converged = out.converged && out.status.back().converged;
  }
  return out;
}

}  // namespace coulomb
