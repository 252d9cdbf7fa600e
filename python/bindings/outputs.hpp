// What the bindings of models, steps and rollouts share about outputs.
#pragma once

#include <vector>

#include "arrays.hpp"
#include "batch.hpp"
#include "coulomb/model.hpp"

namespace coulomb::python {

/// A name or a list of names.
std::vector<std::string> output_names_of(nb::handle names);

/// Takes "fext" out of the names of a wrt: whether it was there. Gradients by wrenches on bodies are made on demand.
bool take_fext(std::vector<std::string>& wrt);
/// The same for "mocap", the poses of mocap bodies.
bool take_mocap(std::vector<std::string>& wrt);

/// Cotangents of outputs, a dict of names to arrays: (tangent_size) each; (rows, tangent_size) for rows > 0; (outer, rows,
/// tangent_size) for outer > 0. None: none.
struct OutputWeights {
  OutputWeights(const Model& model, nb::handle outputs, Py_ssize_t rows = 0, Py_ssize_t outer = 0);
  OutputSet set;
  std::vector<double> values;  ///< outer x rows x set.tangent_size()
};

void bind_batch_outputs(nb::class_<Batch>& batch);

}  // namespace coulomb::python
