// The course of a step that is split at impacts: ImpactSplitter::run, and the records that its phases leave.
#include "coulomb/stepping/impacts/impact_step.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "coulomb/configuration.hpp"
#include "coulomb/stepping/impacts/impact_path.hpp"
#include "coulomb/stepping/impacts/impact_splitter.hpp"
#include "coulomb/stepping/inner_edges.hpp"
#include "coulomb/stepping/semi_implicit/semi_implicit.hpp"
#include "coulomb/stepping/step_workspace.hpp"

namespace coulomb {
namespace {

constexpr double least_separating_speed = 1e-6;  // m/s: rounding does not separate
constexpr double lift_rate = 100;                // 1/s, of the tolerance: parts what has sunk for the first time
constexpr double hurried_share = 0.5;  // of the impacts of a step: what comes back without end after these is stopped
constexpr int max_pauses = 4;
constexpr const char* waited =
    "impact_limit: more impacts than twice max_impacts in one step; bodies wait where they are for the rest of it";
constexpr const char* inelastic = "inelastic: more impacts than max_impacts in one step; the later ones did not bounce";
constexpr const char* paused =
    "search_limit: searches for impacts ran out of their budget; bodies wait where they are for the rest of the step";

/// The phases that the record has from the step before; made where it has none of this model.
ImpactPhases& phases_in(const Model& model, StepRecord& record) {
  auto* phases = dynamic_cast<ImpactPhases*>(record.extra.value.get());
  if (phases != nullptr && phases->model == &model) return *phases;

  auto fresh = std::make_unique<ImpactPhases>(model);
  phases = fresh.get();
  record.extra.value = std::move(fresh);
  return *phases;
}

}  // namespace

/// Options of the two kinds of problems: smooth phases and impacts (I1).
void ImpactSplitter::set_options() {
  const double tolerance = options_.impacts.penetration_tolerance;

  // A smooth phase holds what is within the tolerance and slow, along the normals that the search for impacts measures.
  StepOptions& smooth = phases_.smooth;
  smooth = options_;
  smooth.solver.centred = false;  // impulses of the phase before are no constant of this one
  smooth.collision.least_margin = tolerance;
  smooth.collision.kept_face_error = tolerance;
  smooth.constraints.gaps = GapRule::held;
  smooth.constraints.touching = tolerance;
  smooth.constraints.held_speed = tolerance / h_;
  smooth.constraints.separating_speed = std::max(smooth.constraints.restitution_threshold, least_separating_speed);

  // An impact takes no time: forces and position corrections do nothing, nor does it begin as the last one ended.
  StepOptions& impact = phases_.impact;
  impact = smooth;
  impact.constraints.gaps = GapRule::impact;
  impact.constraints.timestep = impact_duration;
  impact.constraints.baumgarte = 0;
  impact.constraints.rebound_depth = 0.5 * kept_share * tolerance;
  impact.warm_start = false;
  impact.torque_free_spin = false;
}

/// Kinematics and contacts where the step is, all that are within the margin.
void ImpactSplitter::place(StepRecord& r) {
  r.q = phases_.q;
  r.v = phases_.v;
  r.q_evaluated.clear();
  r.flies.clear();
  kinematics(model_, r.q.data(), r.dynamics);
  detect_contacts(model_, r.dynamics.body_position.data(), r.dynamics.body_rotation.data(), phases_.smooth.collision,
                  memory_.collision, r.collision);

  // The side of the next tile stops nobody whom this one holds.
  link_twists(model_, r.dynamics, r.v.data(), r.twist.data());
  leave_out_inner_edges(model_, options_.impacts.penetration_tolerance, r, workspace_.to_come);
  unite_faces(model_, phases_.smooth.collision.frozen_cache ? nullptr : &memory_.collision, r.collision,
              workspace_.united);
}

/// Keys that are not known yet.
static void add_new(const std::vector<std::uint64_t>& keys, std::vector<std::uint64_t>& known) {
  for (const std::uint64_t key : keys)
    if (std::find(known.begin(), known.end(), key) == known.end()) known.push_back(key);
}

/// Velocities and acceleration of one phase's problem.
bool ImpactSplitter::solve(StepRecord& r, const StepOptions& options, StruckIslands* struck) {
  // An impact is too short for servos to notice.
  r.joint_forces.clamps.known = false;
  solve_velocities(model_, options, workspace_, memory_, r, struck);
  if (!struck) settle_clamps(r, options);
  return finish_problem(r, options);
}

/// Again, until every servo's force is at the bound that the end of the problem says.
void ImpactSplitter::settle_clamps(StepRecord& r, const StepOptions& options) {
  for (int round = 0; r.joint_forces.clamps.any; ++round) {
    advance(model_, options.constraints.timestep, r);
    if (!clamps_change(model_, options, round, r)) {
      if (r.joint_forces.clamps.unsettled) reason_ = clamp_limit_reason(r.joint_forces.clamps);
      return;
    }
    solve_velocities(model_, options, workspace_, memory_, r);
  }
}

/// Of a smooth phase, whose free velocity is known where bodies spin in flight.
bool ImpactSplitter::solve_smooth(const ImpactPhase& phase, StepRecord& r) {
  if (!phase.midpoint_velocity) return solve(r, phase.problem);
  solve_constraints(model_, phase.problem, workspace_, memory_, r);
  settle_clamps(r, phase.problem);
  return finish_problem(r, phase.problem);
}

/// False: overflow.
bool ImpactSplitter::finish_problem(StepRecord& r, const StepOptions& options) {
  advance(model_, options.constraints.timestep, r);
  r.valid = true;

  // The step reports the worst of its problems.
  iterations_ += r.solution.iterations;
  worst_ = std::max(worst_, r.solution.status);
  residual_ = std::max(residual_, r.solution.residual);
  exact_residual_ = std::max(exact_residual_, r.solution.exact_residual);
  relaxation_ = std::max(relaxation_, r.solution.relaxation);
  scale_ratio_ = std::max(scale_ratio_, r.solution.scale_ratio);
  add_new(r.contradictory, phases_.contradictory);
  add_new(r.jammed, phases_.jammed);
  add_new(r.unsolved, phases_.unsolved);
  add_new(r.badly_scaled, phases_.badly_scaled);
  add_new(r.out_of_reach, phases_.out_of_reach);
  return all_finite(r.v_next) && all_finite(r.acceleration);
}

/// The stages of the first phase are the step's own as long as there is no other.
void ImpactSplitter::own_record() {
  ImpactPhase& phase = phases_.last();
  if (phase.owns_record) return;

  // The phase takes the stages, the step keeps its phases and its inputs.
  if (!phase.storage) {
    phase.storage = std::make_unique<StepRecord>(model_);
  }
  StepRecord& r = *phase.storage;
  std::swap(r, step_);
  std::swap(r.extra, step_.extra);
  step_.u = r.u;
  step_.tau = r.tau;
  step_.fext = r.fext;
  phase.owns_record = true;
}

/// Begins a phase, whose record has the step's inputs.
StepRecord& ImpactSplitter::next_record() {
  ImpactPhase& phase = phases_.add();
  if (!phase.storage) {
    phase.storage = std::make_unique<StepRecord>(model_);
  }
  phase.owns_record = true;

  StepRecord& r = *phase.storage;
  r.u = step_.u;
  r.tau = step_.tau;
  r.fext = step_.fext;
  return r;
}

/// (I1): v := v+ of the impact of all that touches what is hit; the next phase starts at the same place. False: overflow.
bool ImpactSplitter::impact() {
  // An instant, at the state where the last phase ended.
  own_record();
  ImpactPhase& phase = phases_.last();
  phase.q = phases_.q;
  phase.v = phases_.v;
  phase.start = time_;
  phase.duration = 0;
  phase.end = PhaseEnd::instant;
  phase.midpoint = false;

  // Islands in which nothing is hit take no part.
  StepRecord& r = at();
  find_struck(r);
  if (!solve(r, phases_.impact, &phases_.struck)) return false;
  if (event()) {
    separate_events(*phases_.pool[phases_.count - 2], r);
  }
  phases_.v = r.v_next;

  // Nothing has moved: kinematics and contacts stay.
  StepRecord& next = next_record();
  next.q = phases_.q;
  next.v = phases_.v;
  next.q_evaluated.clear();
  next.dynamics = r.dynamics;
  next.collision = r.collision;
  return true;
}

/// One smooth phase, to the next event or to the end of the step. lets_in: up to the impact of what hits where it starts, which it leaves
/// out. False: overflow.
bool ImpactSplitter::smooth(bool lets_in) {
  // What its problem holds, and how far it is meant to go.
  keep_touching(GapRule::held);
  if (lets_in) leave_out_hits(at());
  const bool came_down = lets_in && any_has_touched();
  ImpactPhase& phase = phases_.last();
  plan(phase, lets_in);

  // The acceleration of its path.
  evaluate_midpoint(phase);
  if (!solve_smooth(phase, at())) return false;
  if (!lets_in && !follow_hops(phase, at())) return false;
  set_path(model_, at(), phase);

  // The event that ends it. What one step leaves to the next is that of a whole, usual problem.
  if (came_down)
    find_touch(phase);
  else if (!find_event(phase))
    return false;
  if (!options_.collision.frozen_cache && phase.length == 1 && !lets_in) {
    remember(at(), memory_);
  }
  if (!came_down && !follow_sinking(phase)) return false;

  // To there.
  move(at(), phase, phase.duration);
  done_ = phase.end == PhaseEnd::whole;

  // The next phase begins with contacts of its own; those may correct the time of this one.
  if (!done_) {
    events_ += is_event(phase.end);
    if (events_ > hurried_share * options_.impacts.max_impacts) phases_.sinking.hurry();
    pauses_ += phase.end == PhaseEnd::pause;
    own_record();
    StepRecord& next = next_record();
    place(next);
    if (phase.end == PhaseEnd::pair) {
      arrive(phase, next);
    }
  }
  time_ += phase.duration;
  rest_ -= phase.duration;
  return true;
}

/// The step's record: the end of the step, with the stages of the last smooth phase.
void ImpactSplitter::finish() {
  int last = phases_.count - 1;
  while (phases_[last].end == PhaseEnd::instant)
    --last;

  // Impulses are those of a whole step, the acceleration is that of the step from end to end.
  if (phases_[last].owns_record) {
    StepExtraHolder extra = std::move(step_.extra);
    step_ = phases_.record(last, step_);
    step_.extra = std::move(extra);
    for (double& impulse : step_.solution.lambda)
      impulse /= phases_[last].length;
    step_.q = phases_[0].q;
    step_.v = phases_[0].v;
    for (int d = 0; d < model_.nv; ++d)
      step_.acceleration[d] = (phases_.v[d] - step_.v[d]) / h_;
  }
  step_.q_next = phases_.q;
  step_.v_next = phases_.v;

  // How the problems went, all together.
  step_.solution.status = worst_;
  step_.solution.iterations = iterations_;
  step_.solution.residual = residual_;
  step_.solution.exact_residual = exact_residual_;
  step_.solution.relaxation = relaxation_;
  step_.solution.scale_ratio = scale_ratio_;
  step_.contradictory = phases_.contradictory;
  step_.jammed = phases_.jammed;
  step_.unsolved = phases_.unsolved;
  step_.badly_scaled = phases_.badly_scaled;
  step_.out_of_reach = phases_.out_of_reach;
  step_.reason = reason_;
  step_.valid = true;
}

/// Too many events, or searches that gave up: bodies stay where they are for the rest of the step.
bool ImpactSplitter::waits() const { return events_ > 2 * options_.impacts.max_impacts || pauses_ > max_pauses; }

/// What there is to do before the bodies move on: nothing, an impact, or a phase that lets in what has touched already, which may be the
/// last of the step. False: overflow.
bool ImpactSplitter::bounce_or_let_in(bool waiting) {
  keep_touching(GapRule::impact);

  // What has sunk while it was held is parted; with few impacts left, the pair is stopped where else it comes down.
  const double slowest = lift_rate * options_.impacts.penetration_tolerance;
  const auto* held = phases_.count > 1 ? &before().collision.contacts : nullptr;
  const bool lifts = phases_.sinking.lift(phases_.impact.constraints, slowest, held, at().collision.contacts);
  if (lifts && phases_.sinking.hurries()) stop_rattling();

  // What touches without an event has hit at a time T <= 0; in a deep overlap it bounces on the spot.
  phases_.hits.clear();
  const bool deep = !event() && find_hits();
  const bool touches = !phases_.hits.empty();
  if (touches && !deep && !waiting) return smooth(true);

  // An impact, and the motion from there.
  if ((event() || lifts || deep || touches) && !impact()) return false;
  return waiting || smooth(false);
}

bool ImpactSplitter::run() {
  // The first phase starts where the step does.
  set_options();
  phases_.q = step_.q;
  phases_.v = step_.v;
  phases_.count = 0;
  for (auto* keys :
       {&phases_.contradictory, &phases_.jammed, &phases_.unsolved, &phases_.badly_scaled, &phases_.out_of_reach})
    keys->clear();
  phases_.sinking.clear();
  phases_.add();
  place(step_);

  // Phase by phase, until the step is used up.
  while (!done_) {
    const bool waiting = waits();
    if (events_ > options_.impacts.max_impacts && !reason_) {
      reason_ = inelastic;
      phases_.impact.constraints.restitution_threshold = std::numeric_limits<double>::infinity();
    }
    if (!bounce_or_let_in(waiting)) return false;

    // The phase that would have followed is dropped.
    if (waiting) {
      --phases_.count;
      reason_ = pauses_ > max_pauses ? paused : waited;
      worst_ = std::max(worst_, SolveStatus::max_iterations);
      break;
    }
  }
  finish();
  return true;
}

bool impact_step(const Model& model, const StepOptions& options, StepWorkspace& workspace, StepMemory& memory,
                 StepRecord& record) {
  ImpactPhases& phases = phases_in(model, record);
  record.valid = false;
  record.reason = nullptr;
  if (ImpactSplitter(model, options, workspace, memory, record, phases).run()) return true;

  // Numbers overflowed: the state stays, and nothing is left to the next step.
  record.q = phases[0].q;
  record.v = phases[0].v;
  record.q_evaluated.clear();
  record.flies.clear();
  stand_still(record);
  record.valid = true;
  phases.count = 0;
  if (!options.collision.frozen_cache) memory.reset();
  return false;
}

}  // namespace coulomb
