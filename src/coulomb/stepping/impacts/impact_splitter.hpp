// ImpactSplitter: the state of one step while it is split at its impacts. Start reading at `run` (impact_step.cpp). The
// files are
//
//   impact_step.cpp      the sequence of impacts and smooth phases, and the records of each
//   impact_motion.cpp    smooth phases: the problem of each, (I2), with bodies that spin and contacts that hop
//   impact_events.cpp    the event that ends a smooth phase, and its time
//   impact_touching.cpp  contacts that touch, close or are hit at the start of a phase
#pragma once

#include <cstdint>
#include <vector>

#include "coulomb/step_memory.hpp"
#include "coulomb/stepping/impacts/impact_phases.hpp"

namespace coulomb {

struct StepWorkspace;

/// Of the penetration tolerance, for the first time that a contact sinks; the rest is for later ones.
inline constexpr double kept_share = 0.9;

class ImpactSplitter {
 public:
  ImpactSplitter(const Model& model, const StepOptions& options, StepWorkspace& workspace, StepMemory& memory,
                 StepRecord& step, ImpactPhases& phases)
      : model_(model), options_(options), workspace_(workspace), memory_(memory), step_(step), phases_(phases),
        h_(options.constraints.timestep), rest_(h_) {}

  /// False: overflow.
  bool run();

 private:
  // The course of the step.
  void set_options();
  bool waits() const;
  bool bounce_or_let_in(bool waiting);
  bool impact();
  bool smooth(bool lets_in);
  void finish();

  // Records of phases.
  StepRecord& at() { return phases_.record(phases_.count - 1, step_); }
  StepRecord& before() { return phases_.record(phases_.count - 2, step_); }
  /// The phase whose impact brought us here; null: no impact did.
  const ImpactPhase* event() const {
    const ImpactPhase* ended = phases_.count > 1 ? &phases_[phases_.count - 2] : nullptr;
    return ended && is_event(ended->end) ? ended : nullptr;
  }
  /// Its pair of shapes; -1: of a joint, or no event.
  int hit_pair() const { return event() && event()->end == PhaseEnd::pair ? event()->gap.contact.pair : -1; }
  void place(StepRecord& r);
  bool solve(StepRecord& r, const StepOptions& options, StruckIslands* struck = nullptr);
  bool solve_smooth(const ImpactPhase& phase, StepRecord& r);
  void settle_clamps(StepRecord& r, const StepOptions& options);
  bool finish_problem(StepRecord& r, const StepOptions& options);
  void own_record();
  StepRecord& next_record();

  // Smooth phases.
  void plan(ImpactPhase& phase, bool lets_in);
  void find_rules(ImpactPhase& phase, const StepRecord& r);
  void evaluate_midpoint(ImpactPhase& phase);
  void place_midpoint(const ImpactPhase& phase, StepRecord& r);
  double share_of_spin() const;
  bool spins(int tree) const;
  void solve_spinning(ImpactPhase& phase);
  void correct_spin(const ImpactPhase& phase, SpinIteration& spin);
  bool follow_hops(ImpactPhase& phase, StepRecord& r);
  bool follow_sinking(ImpactPhase& phase);
  void find_hops(const StepRecord& r);
  double hold_invisible_hops(StepRecord& r);
  bool shorten(ImpactPhase& phase, double longest);
  void let_go(ImpactPhase& phase, const StepRecord& r) const;
  void move(const StepRecord& r, const ImpactPhase& phase, double t);

  // Events.
  bool find_event(ImpactPhase& phase);
  void find_touch(ImpactPhase& phase);
  void take_contact(const Impact& impact, Contact& c) const;
  void threshold_from_start(ImpactPhase& phase);
  void arrive(ImpactPhase& phase, StepRecord& next);
  void go_back(ImpactPhase& phase, StepRecord& next);

  // What touches.
  void keep_touching(GapRule gaps);
  void leave_out_hits(StepRecord& r) const;
  bool comes_down(const StepRecord& r, const Contact& contact) const;
  bool is_hit(const StepRecord& r, const Contact& contact) const;
  bool find_hits();
  void stop_rattling();
  bool has_touched(const ClosingGap& hit) const;
  bool any_has_touched() const;
  void find_struck(const StepRecord& r);
  void separate_events(ImpactPhase& ended, const StepRecord& r);
  void add_event(ImpactPhase& ended, const StepRecord& r, int block, double speed, const ClosingGap& gap);
  int tree_of(const ClosingGap& gap) const;

  const Model& model_;
  const StepOptions& options_;
  StepWorkspace& workspace_;
  StepMemory& memory_;
  StepRecord& step_;
  ImpactPhases& phases_;

  double h_;
  double time_ = 0;  ///< s: since the start of the step
  double rest_;      ///< s: left of it
  bool done_ = false;

  // The last event.
  bool sank_ = false;         ///< it is one of a pair that was held
  double closing_speed_ = 0;  ///< m/s, rad/s

  // What is limited in number.
  int events_ = 0;
  int pauses_ = 0;
  int short_ones_ = 0;

  // Of all problems together, what the step reports.
  const char* reason_ = nullptr;
  SolveStatus worst_ = SolveStatus::solved;
  int iterations_ = 0;
  double residual_ = 0;
  double exact_residual_ = 0;
  double relaxation_ = 0;
  double scale_ratio_ = 0;
};

}  // namespace coulomb
