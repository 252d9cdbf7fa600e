// What the bindings of models, steps and rollouts share about outputs.
#pragma once

#include <vector>

#include "arrays.hpp"
#include "batch.hpp"
#include "coulomb/model/model.hpp"

namespace coulomb::python {

/// A name or a list of names.
std::vector<std::string> output_names_of(nb::handle names);

/// Cotangents of outputs, a dict of names to arrays: (tangent_size) each; (rows, tangent_size) for rows > 0; (outer, rows,
/// tangent_size) for outer > 0. None: none.
struct OutputWeights {
  OutputWeights(const Model& model, nb::handle outputs, Py_ssize_t rows = 0, Py_ssize_t outer = 0);
  OutputSet set;
  std::vector<double> values;  ///< outer x rows x set.tangent_size()
};

/// Cotangents of a batch's states with those of outputs added, and what to add to the gradient of its parameters.
class BatchOutputCotangents {
 public:
  /// dq, dv: n x states x nv, or null (zero). weights: n x states rows.
  BatchOutputCotangents(const OutputWeights& weights, const ParameterSet& set, Py_ssize_t n, int states, int nv,
                        const double* dq, const double* dv);
  void add(Py_ssize_t environment, const Model& model, const double* q, const double* v);
  /// parameters: n x set.size(); only where valid.
  void finish(const bool* valid, double* parameters) const;
  const double* dq() const { return q_.data(); }
  const double* dv() const { return v_.data(); }

 private:
  const OutputWeights& weights_;
  const ParameterSet& set_;
  int states_;
  std::vector<double> q_, v_, direct_;
};

void bind_batch_outputs(nb::class_<Batch>& batch);

}  // namespace coulomb::python
