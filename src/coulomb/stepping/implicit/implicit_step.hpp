// The implicit steppers (docs/theory.md (B1); [Xu2021, section I]). With h the time step, xi = q (-) q_before and alpha = 1 - sqrt(1/2),
// the stages of implicit_equation.hpp are
//
//   BDF1    c = h         v_bar = v + Delta(q, v, c)             w_bar = 0           (spinning_start.hpp)
//   BDF2    c = 2/3 h     v_bar = (4 v - E(xi) v_before) / 3     w_bar = xi / 3,  b = xi / 3
//   SDIRK2  c = alpha h   v_bar = v                              w_bar = 0                         first stage: v_a
//           c = alpha h   v_bar = v + (1 - alpha)/alpha (v_a - v)  w_bar = (1 - alpha) h v_a         second stage, from q as well
//
// v_a needs no turning, since it is the axis of its own displacement. On rotations the displacements are rotation vectors: those of one step differ from the integral of the angular velocity by
// O(h^3), so that the order is the method's. BDF2 goes on where the step starts bit for bit from where the last one ended (or the memory is
// frozen); it starts, and starts again after anything else, with SDIRK2. A step within which a joint limit begins or ceases to push it
// takes by BDF1, and starts again: across a kink of the force both methods of second order feed energy. Where Newton's method fails, the
// step is taken in 2, 4, 8... equal parts, by BDF1 or by SDIRK2.
//
// Each island chooses for itself (step_islands.hpp), so a step is made of runs: trees that go from its start to its end by one rule, while
// the others are left out. What the runs end in is one state, at which no contact joins what different runs have moved.
//
// Penalty contact with the semi-implicit stepper is one stage as well: c = h, v_bar = v, rigid-body dynamics explicit.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "coulomb/step_memory.hpp"
#include "coulomb/stepping/implicit/implicit_newton.hpp"
#include "coulomb/stepping/implicit/spinning_start.hpp"
#include "coulomb/stepping/implicit/step_islands.hpp"
#include "coulomb/stepping/step_options.hpp"
#include "coulomb/stepping/step_record.hpp"

namespace coulomb {

/// Trees that go through the step by one rule, those that its stages have.
struct ImplicitRun {
  ImplicitScheme scheme = ImplicitScheme::bdf1;
  int parts = 1;  ///< equal parts of the step
  int first = 0;  ///< of its stages
  int count = 0;
  const char* reason = nullptr;  ///< why its spin was limited, or null
};

/// The runs of a step and their stages, in order; its factors are the gradient's (implicit_linearization.hpp).
struct ImplicitExtra final : StepExtra {
  std::vector<ImplicitRun> runs;
  int count = 0;  ///< stages in use
  std::vector<ImplicitStage> stages;
  std::optional<ImplicitStage> end;            ///< of several runs: (q+, v+) of them all, and the mean acceleration
  std::vector<double> previous_q, previous_v;  ///< bdf2: the state before
  std::vector<double> turned_previous_v;       ///< bdf2: E(xi) previous_v
  std::vector<double> q, v;                    ///< scratch: the state between parts, in the end (q+, v+)
  std::vector<unsigned char> marks;            ///< scratch, by tree
  std::optional<DynamicsWorkspace> at;         ///< scratch, of tendons; not copied
  std::unique_ptr<ImplicitNewton> newton;      ///< workspace; not copied
  std::unique_ptr<StepIslands> islands;        ///< likewise
  std::unique_ptr<SpinningStart> start;        ///< bdf1, and bdf2 at limits; likewise
  std::optional<StageViews> linearized;        ///< where the options ask for it and the step has one stage; of newton
  std::optional<StageViews> recalled;          ///< of a step that was kept

  std::unique_ptr<StepExtra> clone() const override;
  std::size_t bytes() const override;
  ImplicitStage& stage(const Model& model, int i);  ///< makes it, of all trees
  bool has(ImplicitScheme scheme) const;            ///< some run is by it
  bool is_single() const { return runs.size() == 1 && count == 1; }
};

/// That of the record; made when it has none.
ImplicitExtra& implicit_extra(StepRecord& record);

/// alpha, and c of a stage per unit of the time step of a part.
double sdirk_alpha();
double stage_fraction(ImplicitScheme scheme);

/// Penalty contacts into the record, as hard ones would be: the impulse is the force at the end over the step, of length h.
void report_contacts(const PenaltyForces& contacts, double h, StepRecord& record);

/// As Stepper::step. scheme: of the whole step, bdf2 where it goes on from another.
bool implicit_step(const Model& model, ImplicitScheme scheme, const StepOptions& options, StepMemory& memory,
                   StepRecord& record);

/// As Stepper::kept_bytes, keep and recall: of steps of one stage.
std::size_t kept_stage_bytes(const StepRecord& record);
void keep_stage(const StepRecord& record, std::byte* to);
void recall_implicit_step(const Model& model, const StepOptions& options, const std::byte* kept, StepRecord& record);

/// The step to record.(q_next, v_next), which it is known to end in: fills the extra and the memory without solving anything. `kept`: of
/// that step, or null. False: it was not a step of one stage.
bool follow_implicit_step(const Model& model, ImplicitScheme scheme, const StepOptions& options, StepMemory& memory,
                          const std::byte* kept, StepRecord& record);

}  // namespace coulomb
