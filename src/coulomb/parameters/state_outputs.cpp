#include "coulomb/parameters/state_outputs.hpp"

#include <algorithm>

#include "coulomb/configuration.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/parameters/frame_motion.hpp"
#include "coulomb/parameters/shape_outputs.hpp"

namespace coulomb {

void StateOutputs::move_to(const double* q, const double* v) {
  q_ = q;
  v_ = v;
  kinematics(*model_, q, ws_);
  velocities(*model_, v, ws_);
}

void StateOutputs::linearize(const Sensor& sensor) {
  if (is_of_shapes(sensor.type))
    linearize_shape_output(*model_, ws_, sensor, rows_);
  else
    linearize_output(*model_, ws_, q_, v_, sensor, rows_);
}

void StateOutputs::read(const OutputSet& outputs, double* readings) const {
  for (const OutputSet::Item& item : outputs.items()) {
    // Forces belong to a step: at a state alone they read zero.
    if (is_force(item.sensor.type))
      readings[item.first] = 0;
    else if (is_of_shapes(item.sensor.type))
      read_shape_output(*model_, ws_, item.sensor, readings + item.first);
    else
      read_output(*model_, ws_, q_, v_, item.sensor, readings + item.first);
  }
}

void StateOutputs::columns(const OutputSet& outputs, double* by_q, double* by_v) {
  const std::size_t nv = model_->nv;
  const std::size_t count = outputs.tangent_size() * nv;
  std::fill_n(by_q, count, 0.0);
  std::fill_n(by_v, count, 0.0);

  // Each row of a reading's tangent is one row of the matrix.
  for (const OutputSet::Item& item : outputs.items()) {
    if (is_force(item.sensor.type)) continue;
    linearize(item.sensor);
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const std::size_t offset = (item.first_tangent + r) * nv;
      add_output_row(*model_, ws_, rows_[r], 1, by_q + offset, by_v + offset);
    }
  }
}

void StateOutputs::parameter_columns(const OutputSet& outputs, const ParameterSet& set, double* by_parameters) {
  const std::size_t size = set.size();
  std::fill_n(by_parameters, outputs.tangent_size() * size, 0.0);
  for (const OutputSet::Item& item : outputs.items()) {
    if (is_force(item.sensor.type)) continue;
    linearize(item.sensor);
    add_output_parameters(*model_, ws_, rows_, set, by_parameters + item.first_tangent * size, set.size());
  }
}

void StateOutputs::vjp(const OutputSet& outputs, const double* w, double* dq, double* dv, const ParameterSet* set,
                       double* dparameters) {
  for (const OutputSet::Item& item : outputs.items()) {
    if (is_force(item.sensor.type)) continue;
    linearize(item.sensor);

    // Its rows by q and by v, weighted.
    const double* weights = w + item.first_tangent;
    for (std::size_t r = 0; r < rows_.size(); ++r)
      add_output_row(*model_, ws_, rows_[r], weights[r], dq, dv);

    // And by parameters.
    if (!set || set->size() == 0) continue;
    const std::size_t size = set->size();
    scratch_.assign(rows_.size() * size, 0.0);
    add_output_parameters(*model_, ws_, rows_, *set, scratch_.data(), set->size());
    for (std::size_t r = 0; r < rows_.size(); ++r)
      for (std::size_t k = 0; k < size; ++k)
        dparameters[k] += weights[r] * scratch_[r * size + k];
  }
}

void refuse_forces(const OutputSet& outputs, const char* where) {
  for (const OutputSet::Item& item : outputs.items())
    if (is_force(item.sensor.type))
      checks::fail("output '" + item.sensor.name + "'",
                   std::string("is a force of a step, ") + where + " has outputs of states only (Simulator.output)");
}

}  // namespace coulomb
