// The semi-implicit Euler step (docs/theory.md (S1), (S2)):
//
//   (M + h D)(v+ - v) = h (tau - b(q, v)) + M Delta + J^T lambda,   q+ = q (+) h v+
//
// D is implicit: the damping of joints and the velocity gains of actuators, so that stiff dampers and servos are
// stable. Springs and position gains are implicit on request ((S12), dynamics/implicit_gains.hpp). Delta is the
// torque-free rotation of free and ball joints beyond b(q, v) (dynamics/spin.hpp). lambda are the impulses of the
// constraint problem.
#pragma once

#include <cstddef>
#include <vector>

namespace coulomb {

struct Model;
struct StepMemory;
struct StepOptions;
struct StepRecord;
struct StepWorkspace;

/// One step of record.(q, v, u, tau, fext), already checked; fills the rest of the record and updates the memory. False: numbers
/// overflowed. The state is then as it was (q_next = q, v_next = v), without constraints, and the memory is empty.
bool semi_implicit_step(const Model& model, const StepOptions& options, StepWorkspace& workspace, StepMemory& memory,
                        StepRecord& record);

/// The step from record.(q, v, u, tau) to record.(q_next, v_next), which it is known to take: fills the record as semi_implicit_step
/// does, to the same bits, without looking for contacts and without solving. kept: by keep_step.
void recall_semi_implicit_step(const Model& model, const StepOptions& options, const std::byte* kept,
                               StepRecord& record);

// Its stages, for steppers of their own:

/// What an impact strikes: islands without one of these trees have no rows.
struct StruckIslands {
  std::vector<unsigned char> trees;            ///< by tree, set by the caller
  std::vector<unsigned char> islands, blocks;  ///< scratch: by island of the pool, by block
};

/// Free velocity, rows, impulses at the record's kinematics and contacts. Reads the memory. struck: null: all islands have rows.
void solve_velocities(const Model& model, const StepOptions& options, StepWorkspace& workspace,
                      const StepMemory& memory, StepRecord& record, StruckIslands* struck = nullptr);
/// Its two parts: the free velocity, and what constraints make of it.
void free_velocity(const Model& model, const StepOptions& options, StepRecord& record);
void solve_constraints(const Model& model, const StepOptions& options, StepWorkspace& workspace,
                       const StepMemory& memory, StepRecord& record, StruckIslands* struck = nullptr);
/// After advance: were bounds of servos judged otherwise than the end of the step says? Then all after the kinematics is to be done again, in
/// the next round. clamps.known is to be false before round 0.
bool clamps_change(const Model& model, const StepOptions& options, int round, StepRecord& record);
/// Impulses and modes, for the next step.
void remember(const StepRecord& record, StepMemory& memory);
/// What is left of a step whose numbers overflowed.
void stand_still(StepRecord& record);
bool all_finite(const std::vector<double>& x);
/// The last stage by itself: v_next, acceleration and q_next of record.solution.
void advance(const Model& model, double timestep, StepRecord& record);

}  // namespace coulomb
