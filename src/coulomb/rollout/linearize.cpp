// The steps of a trajectory one by one: dx_(t+1) = A_t dx_t + B_t du_t + B_tau_t dtau_t + F_t dtheta, plus A_previous_t dx_(t-1) of a method
// that looks two states back.
#include <algorithm>

#include "coulomb/rollout.hpp"
#include "coulomb/rollout/replay/replay.hpp"

namespace coulomb {
namespace {

/// Step t of an array of (steps, rows, columns), from its transpose; null: not wanted. Nothing there: zero.
void store_step(const std::vector<double>& transposed, int t, int rows, int columns, double* steps) {
  if (steps == nullptr) return;
  double* to = steps + std::size_t(t) * rows * columns;
  if (transposed.empty()) {
    std::fill_n(to, std::size_t(rows) * columns, 0.0);
    return;
  }
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j)
      to[std::size_t(i) * columns + j] = transposed[std::size_t(j) * rows + i];
}

}  // namespace

void linearize(const Rollout& rollout, const std::vector<std::string>& parameters, const StepMatrices& out,
               const Progress& progress) {
  const Model& model = *rollout.model;
  const int nv = model.nv;
  const int rows = 2 * nv;
  const ParameterSet set(model, parameters);
  std::vector<double> parameters_T;

  Replay replay(rollout, 1);
  if (rollout.steps > 0) replay.seek(0);
  for (int t = 0; t < rollout.steps; ++t) {
    // The step once more, and its derivative.
    replay.step(0);
    StepGradient& gradient = replay.linearize(0);
    const StepDerivatives& d = gradient.jacobian();
    if (set.size() > 0) {
      gradient.parameter_columns(set, parameters_T);
    }

    // One matrix each.
    store_step(d.A_T, t, rows, rows, out.A);
    store_step(d.B_T, t, rows, model.nu, out.B);
    store_step(d.B_tau_T, t, rows, nv, out.B_tau);
    store_step(d.A_previous_T, t, rows, rows, out.A_previous);
    store_step(parameters_T, t, rows, set.size(), out.parameters);
    if (out.ambiguous) out.ambiguous[t] = d.ambiguous;
    if (progress) progress(t + 1, rollout.steps);
  }
}

}  // namespace coulomb
