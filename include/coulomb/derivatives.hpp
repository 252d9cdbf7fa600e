// Derivatives of one step: its Jacobian, dense or by islands, and its reverse product.
//
// x = (q, v), all derivatives in tangent spaces. A multistep method also depends on the state before, x_previous.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "coulomb/parameters.hpp"

namespace coulomb {

class Simulator;

/// Where derivatives came from: null once that simulator is gone.
struct DerivativeOrigin {
  Simulator* simulator = nullptr;
};

/// Jacobian of a step. A_T: 2nv x 2nv, row k is the column of A for the k-th entry of (q, v), holding (dq1, dv1); B_T: nu rows for the
/// controls; B_tau_T: nv rows for the joint forces.
struct StepDerivatives {
  explicit StepDerivatives(const Model& model);
  int nv = 0, nu = 0;
  std::vector<double> A_T, B_T, B_tau_T;
  std::vector<double> A_previous_T;                ///< by the state before; empty where the step does not depend on it
  std::shared_ptr<const ParameterSet> parameters;  ///< that were asked for, or null
  std::vector<double> parameters_T;                ///< parameters->size() rows of 2 nv
  /// No Jacobian is right here: one-sided derivatives differ, or the step jumps (docs/conventions.md lists where).
  bool ambiguous = false;
  std::shared_ptr<DerivativeOrigin> origin;  ///< with `step`, Simulator::step_count() then: for impulses on demand
  std::uint64_t step = 0;
};

struct StepCotangent {
  std::vector<double> q, v, u, tau;                   ///< nv, nv, nu, nv
  std::vector<double> previous_q, previous_v;         ///< nv each; empty where the step does not depend on them
  bool wants_fext = false;                            ///< set by the caller: fext is wanted too
  std::vector<double> fext;                           ///< num_bodies x 6 if so, else empty
  std::shared_ptr<const ParameterSet> parameter_set;  ///< that was asked for, or null
  std::vector<double> parameters;                     ///< in its order
  bool ambiguous = false;                             ///< as StepDerivatives::ambiguous
};

/// A matrix by rows: row i has the entries [row_start[i], row_start[i + 1]), columns ascending.
struct SparseMatrix {
  int rows = 0, columns = 0;
  std::vector<std::int64_t> row_start;
  std::vector<std::int32_t> column;
  std::vector<double> value;
};

enum class StepResult : std::uint8_t { x, q, v };            ///< (q1, v1), q1, v1
enum class StepArgument : std::uint8_t { x, q, v, u, tau };  ///< (q, v), q, v, u, tau

/// Derivatives island by island (bodies that touch, directly or through others). Entries between islands are zero and left out, so memory
/// and time grow with the sum over islands. Within an island every entry is present, zero or not.
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
