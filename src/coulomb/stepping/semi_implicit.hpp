// The semi-implicit Euler step (THEORY T2):
//   (M + h D)(v+ - v) = h (tau - b(q, v)) + J^T lambda,   q+ = q (+) h v+
// with the joints' damping D implicit (MuJoCo's choice: stiff dampers stay stable) and lambda the impulses of the constraint problem.
#pragma once

#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/stepping/gradient_options.hpp"
#include "coulomb/stepping/step_record.hpp"

namespace coulomb {

struct StepOptions {
  ConstraintOptions constraints;
  CollisionOptions collision;
  SolverSettings solver;
  bool warm_start = true;
  GradientOptions gradient;
};

/// What a step remembers for the next one: collision features and impulses by constraint identity. Part of the state: the same
/// state, memory and inputs give the same bits.
struct StepMemory {
  explicit StepMemory(const Model& model);
  void reset();
  std::uint64_t structure;  ///< of the model: models of another structure cannot use this memory
  CollisionCache collision;
  struct Impulse {
    std::uint64_t key = 0;
    Mode mode = Mode::separating;
    int size = 0;
    double value[6] = {0, 0, 0, 0, 0, 0};  ///< contacts: world axes; others: as in the rows
  };
  std::vector<Impulse> impulses;  ///< in block order, keys ascending within a kind
};

/// One step of record.(q, v, u, tau, fext), already checked; fills the rest of the record and updates the memory. False: numbers
/// overflowed. The state is then as it was (q_next = q, v_next = v), without constraints, and the memory is empty.
bool semi_implicit_step(const Model& model, const StepOptions& options, ConstraintSolver& solver, StepMemory& memory,
                        StepRecord& record);

/// The last stage by itself: v_next, acceleration and q_next of record.solution.
void advance(const Model& model, double timestep, StepRecord& record);

}  // namespace coulomb
