// Outputs at a state (q, v): readings, and their derivatives by q and v (tangent spaces) and by parameters. Forces of a step are no
// functions of a state: their readings and rows are zero here (stepping/outputs/step_outputs.hpp has them).
#pragma once

#include <vector>

#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/outputs.hpp"
#include "coulomb/parameters.hpp"

namespace coulomb {

class StateOutputs {
 public:
  explicit StateOutputs(const Model& model) : model_(&model), ws_(model) {}
  /// Another model of the same structure: other values of parameters.
  void set_model(const Model& model) { model_ = &model; }
  void move_to(const double* q, const double* v);

  /// outputs.size() readings.
  void read(const OutputSet& outputs, double* readings) const;
  /// outputs.tangent_size() x nv each.
  void columns(const OutputSet& outputs, double* by_q, double* by_v);
  /// outputs.tangent_size() x set.size(): at fixed q and v.
  void parameter_columns(const OutputSet& outputs, const ParameterSet& set, double* by_parameters);
  /// dq, dv (nv), dparameters (set.size()) += those of the readings' cotangent w (tangent_size). set may be null.
  void vjp(const OutputSet& outputs, const double* w, double* dq, double* dv, const ParameterSet* set,
           double* dparameters);

 private:
  /// rows_ of a sensor that is no force.
  void linearize(const Sensor& sensor);

  const Model* model_;
  DynamicsWorkspace ws_;
  const double* q_ = nullptr;
  const double* v_ = nullptr;
  std::vector<OutputRow> rows_;
  std::vector<double> scratch_;
};

/// Throws std::invalid_argument naming the first output that is a force of a step.
void refuse_forces(const OutputSet& outputs, const char* where);

}  // namespace coulomb
