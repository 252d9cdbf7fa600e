// The steps of a trajectory as matrices, of one rollout or of a batch.
#pragma once

#include "batch.hpp"
#include "coulomb/rollout.hpp"

namespace coulomb::python {

/// What Rollout.linearize and BatchRollout.linearize return: arrays with the axes (T,) or (n, T) before those of a step.
struct LinearizationOut {
  LinearizationOut(const ParameterSet& set, const Model& model, bool two_states, Py_ssize_t steps, Py_ssize_t n = 0);

  /// Throws if steps of this stepper cannot be chained.
  void refuse_substeps(int substeps) const;
  /// Of steps: becomes that of rows of inputs which are held for so many of them.
  void compose(int substeps);

  Array A, B, B_tau, columns, ambiguous;
  nb::object valid = nb::none(), A_previous = nb::none();
  ParameterSet set;
  StepMatrices matrices;  ///< their elements
  bool* valid_data = nullptr;
};

void bind_linearization(nb::module_& module);

}  // namespace coulomb::python
