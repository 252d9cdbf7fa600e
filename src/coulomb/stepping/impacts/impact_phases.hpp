// ImpactPhases: the phases of a split step, in order: smooth phases, at constant generalised acceleration, and impacts,
// which change only the velocity. impact_step fills them, ImpactGradient differentiates them, both phase by phase.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "coulomb/stepping/impacts/first_impact.hpp"
#include "coulomb/stepping/impacts/impact_sinking.hpp"
#include "coulomb/stepping/semi_implicit/semi_implicit.hpp"
#include "coulomb/stepping/step_options.hpp"
#include "coulomb/stepping/step_record.hpp"

namespace coulomb {

enum class PhaseEnd : std::uint8_t {
  whole,   ///< the step's
  pair,    ///< a pair of shapes comes down on its threshold
  limit,   ///< a joint comes to its limit
  part,    ///< a share of the step's length: bodies spin too fast for one phase
  pause,   ///< a time without derivative: the search gave up there
  instant  ///< of an impact
};

inline bool is_event(PhaseEnd end) { return end == PhaseEnd::pair || end == PhaseEnd::limit; }

/// What moves a tree in a smooth phase.
enum class TreeRule : std::uint8_t {
  held,   ///< by a contact, a limit or an equality: forces of the start
  lifts,  ///< was, and leaves: forces of the start, on the path of what flies
  flies,  ///< forces half way of what was planned: position Verlet
  spins  ///< at the velocity there, too: implicit midpoint. The record's v is v + planned/2 a of its dofs then (of a free joint's
         ///< translation, on which nothing depends, v)
};

inline bool flies(TreeRule rule) { return rule == TreeRule::flies || rule == TreeRule::spins; }

/// A gap that closes, of a pair of shapes or of a joint's limit.
struct ClosingGap {
  Contact contact;  ///< pair: as it is then
  int joint = -1;   ///< limit
  bool upper = false;
};

/// The implicit midpoint of a tree, as it is solved.
struct SpinIteration {
  int tree;
  double last_change;
  double share;  ///< of its corrections
  bool settled;
};

/// A held contact that lifts off.
struct ContactHop {
  Contact contact;
  int index;    ///< among the contacts
  double rate;  ///< m/s, beyond what its position correction asks for
};

struct ImpactPhase {
  std::vector<double> q, v;  ///< at its start
  double start = 0;          ///< s, since the start of the step
  double duration = 0;       ///< s. Negative: what overlaps has hit before the step began
  double planned = 0;        ///< s: duration without an event, all that is left of the step or
  double share = 0;          ///< this share of it, if not 0
  double length = 1;  ///< of its problem, in steps: what lifts off slowly and comes back is stopped in a short one
  StepOptions problem;
  std::vector<TreeRule> rules;     ///< by tree
  std::vector<double> path;        ///< nv: acceleration of its positions (impact_path.hpp)
  bool midpoint = false;           ///< some tree flies or spins,
  bool midpoint_velocity = false;  ///< some tree spins
  PhaseEnd end = PhaseEnd::whole;
  bool owns_record = false;             ///< else its stages are in the step's own record
  std::unique_ptr<StepRecord> storage;  ///< kept for the next step

  // The event.
  bool grazing = false;  ///< the time has no derivative
  /// Nor has it where something is hit in an overlap that it has not come into within the step.
  bool fixed_time = false;
  ClosingGap gap;
  bool from_start = false;  ///< the threshold is a depth below where the pair was at the start of the phase:
  Contact sank_from;        ///< there

  // And those at the same time that have nothing to do with it: each has a time of its own in derivatives
  std::vector<ClosingGap> others;
  std::vector<int> event_of_dof;  ///< nv: 0, the event; k + 1, others[k]. Empty where there are no others
  std::vector<ClosingGap> ties;   ///< what else is hit at the same time, by the bodies of one of these events
};

struct ImpactPhases final : StepExtra {
  explicit ImpactPhases(const Model& model);
  ImpactPhases(const ImpactPhases& other);
  std::unique_ptr<StepExtra> clone() const override { return std::make_unique<ImpactPhases>(*this); }
  std::size_t bytes() const override;

  std::vector<std::unique_ptr<ImpactPhase>> pool;  ///< the first `count` are the step's
  int count = 0;
  StepOptions smooth, impact;  ///< of the phases' problems

  // Workspace of the step.
  const Model* model;
  ImpactSearch search;
  std::vector<double> q, v;          ///< where the step is
  std::vector<double> displacement;  ///< nv: along the path of a phase
  std::vector<SpinIteration> spinning;
  std::vector<Contact> found;
  std::vector<ClosingGap> hits;  ///< what comes down where a phase starts
  std::vector<int> events;       ///< by island: index of its event, -1: none
  std::vector<double> approach;  ///< of ImpactPhase::others
  std::vector<ContactHop> hops;
  StruckIslands struck;  ///< by an impact
  /// Keys of rows that gave way in some phase, by why.
  std::vector<std::uint64_t> contradictory, jammed, unsolved, badly_scaled, out_of_reach;
  SinkingContacts sinking;

  ImpactPhase& add();
  ImpactPhase& last() { return *pool[count - 1]; }
  const ImpactPhase& operator[](int phase) const { return *pool[phase]; }
  /// Where the phase's stages are, `step` being the record that these phases belong to.
  StepRecord& record(int phase, StepRecord& step) const {
    return pool[phase]->owns_record ? *pool[phase]->storage : step;
  }
  const StepOptions& options(int phase) const {
    return pool[phase]->end == PhaseEnd::instant ? impact : pool[phase]->problem;
  }
};

/// The phases of a record that impact_step filled.
const ImpactPhases& phases_of(const StepRecord& record);

/// Impacts are problems of a step this short: forces do nothing. A power of two, so that nothing is rounded on the way.
inline constexpr double impact_duration = 0x1p-60;

}  // namespace coulomb
