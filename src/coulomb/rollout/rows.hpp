// Arrays of many environments or steps in C order, and one environment's or step's part of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "coulomb/model.hpp"
#include "coulomb/rollout.hpp"
#include "coulomb/stepping/mocap.hpp"

namespace coulomb {

/// How many numbers one state and the inputs of one step have.
struct StepSizes {
  explicit StepSizes(const Model& model)
      : nq(std::size_t(model.nq)), nv(std::size_t(model.nv)), nu(std::size_t(model.nu)),
        fext(std::size_t(6) * std::size_t(model.num_bodies)), mocap(mocap_size(model)),
        mocap_tangent(mocap_tangent_size(model)) {}

  std::size_t nq;
  std::size_t nv;
  std::size_t nu;
  std::size_t fext;           ///< num_bodies x 6
  std::size_t mocap;          ///< mocap bodies x 7
  std::size_t mocap_tangent;  ///< mocap bodies x 6
};

/// Row i of rows with `width` numbers each; null stays null.
template <class T>
T* row_of(T* x, std::size_t i, std::size_t width) {
  return x ? x + i * width : nullptr;
}

/// Poses of the mocap bodies in step t; null: where the model has them.
inline const double* mocap_in_step(const Rollout& rollout, std::size_t t) {
  return rollout.mocap.empty() ? nullptr : rollout.mocap.data() + t * mocap_size(*rollout.model);
}
/// And at state t: those of the step that ends there, at the first state those of the first step.
inline const double* mocap_at_state(const Rollout& rollout, std::size_t t) {
  return mocap_in_step(rollout, t > 0 ? t - 1 : 0);
}

/// Row i of rows as long as `from`, which may be empty; null: not wanted.
inline void store_row(const std::vector<double>& from, std::size_t i, double* rows) {
  if (rows) std::copy(from.begin(), from.end(), rows + i * from.size());
}

/// Zeros in row i; null: not wanted.
inline void clear_row(double* rows, std::size_t i, std::size_t width) {
  if (rows) std::fill_n(rows + i * width, width, 0.0);
}

}  // namespace coulomb
