#include "coulomb/rollout/rollout.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace coulomb {

Rollout rollout(Simulator& simulator, const double* q0, const double* v0, const double* u, int steps) {
  if (steps < 0) throw std::invalid_argument("steps: got " + std::to_string(steps) + ", expected at least 0");
  const Model& model = simulator.model();
  const auto nq = static_cast<std::size_t>(model.nq), nv = static_cast<std::size_t>(model.nv), nu = static_cast<std::size_t>(model.nu);
  Rollout out;
  out.steps = steps;
  out.q.resize((steps + 1) * nq);
  out.v.resize((steps + 1) * nv);
  out.status.reserve(static_cast<std::size_t>(steps));
  std::copy_n(q0, nq, out.q.begin());
  std::copy_n(v0, nv, out.v.begin());
  simulator.reset();
  for (std::size_t t = 0; t < static_cast<std::size_t>(steps); ++t) {
    simulator.step(&out.q[t * nq], &out.v[t * nv], u ? u + t * nu : nullptr, nullptr, nullptr, &out.q[(t + 1) * nq], &out.v[(t + 1) * nv]);
    out.status.push_back(simulator.status());
    out.converged = out.converged && out.status.back().converged;
  }
  return out;
}

}  // namespace coulomb
