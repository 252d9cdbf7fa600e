// SparseStepDerivatives: the Jacobian of a step by islands, and its blocks as sparse matrices.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "coulomb/parameters/parameters.hpp"

namespace coulomb {

/// A matrix by rows: row i has the entries [row_start[i], row_start[i + 1]), columns ascending.
struct SparseMatrix {
  int rows = 0, columns = 0;
  std::vector<std::int64_t> row_start;
  std::vector<std::int32_t> column;
  std::vector<double> value;
};

enum class StepResult : std::uint8_t { x, q, v };            ///< (q1, v1), q1, v1
enum class StepArgument : std::uint8_t { x, q, v, u, tau };  ///< (q, v), q, v, u, tau

/// What couples two islands (bodies that touch, directly or through others) is zero and left out: memory and time are the sum of the
/// islands'. Within an island every entry is there, zero or not.
struct SparseStepDerivatives {
  struct Island {
    std::vector<int> dofs, actuators;       ///< ascending
    std::vector<double> A_T, B_T, B_tau_T;  ///< as those of StepDerivatives, of these dofs and actuators alone
    std::vector<double> A_previous_T;       ///< likewise
  };
  int nv = 0, nu = 0;
  std::vector<Island> islands;
  std::shared_ptr<const ParameterSet> parameters;  ///< that were asked for, or null
  std::vector<double> parameters_T;                ///< parameters->size() rows of 2 nv
  bool ambiguous = false;                          ///< as StepDerivatives::ambiguous

  SparseMatrix block(StepResult of, StepArgument by) const;  ///< A: (x, x); B: (x, u); B_tau: (x, tau)
};

}  // namespace coulomb
