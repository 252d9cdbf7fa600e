#include "coulomb/stepping/impact_step.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "coulomb/model/configuration.hpp"
#include "coulomb/small_math.hpp"
#include "coulomb/stepping/impact_contact.hpp"
#include "coulomb/stepping/impact_limits.hpp"
#include "coulomb/stepping/semi_implicit.hpp"

namespace coulomb {
namespace {

constexpr double least_separating_speed = 1e-6;  // m/s: rounding does not separate
constexpr double kept_share =
    0.9;  // of the penetration tolerance for the first time that a contact sinks; the rest for later ones
constexpr double deeper_share = 1e-5;
constexpr double lift_rate = 100;     // 1/s, of the tolerance: parts what has sunk for the first time
constexpr double longest_turn = 0.5;  // rad: of free and ball joints in one phase, as long as
constexpr int most_halvings = 7;      // these are enough
constexpr double least_spin =
    0.02;  // rad: from here on what turns in one phase feels its gyroscopic torque at the velocity half way
constexpr double least_rise = 0.02;  // of the penetration tolerance: held contacts that lift off rise by less,
constexpr double visible_hop = 0.1;  // or not higher than this; higher ones fly
constexpr int most_corrections = 20;
constexpr double reached = 1e-13;  // m
constexpr double level_share =
    1e-3;  // of the penetration tolerance: between the levels on which points land within an overlap
constexpr int most_short_ones = 8;  // problems that stop them, in one step
constexpr int most_repetitions = 150;
constexpr int search_budget = 4000;
constexpr int max_pauses = 4;
constexpr const char* waited =
    "impact_limit: more impacts than twice max_impacts in one step; bodies wait where they are for the rest of it";
constexpr const char* inelastic = "inelastic: more impacts than max_impacts in one step; the later ones did not bounce";
constexpr const char* paused =
    "search_limit: searches for impacts ran out of their budget; bodies wait where they are for the rest of the step";

class Splitter {
 public:
  Splitter(const Model& model, const StepOptions& options, ConstraintSolver& solver, StepMemory& memory,
           StepRecord& step, ImpactPhases& phases)
      : model_(model), options_(options), solver_(solver), memory_(memory), step_(step), x_(phases),
        h_(options.constraints.timestep), rest_(h_) {}

  /// False: overflow.
  bool run();

 private:
  void set_options();
  StepRecord& at() { return x_.record(x_.count - 1, step_); }
  void place(StepRecord& r);
  double fastest_spin() const;
  double share_of_spin(double fastest) const;
  bool spins(const ImpactPhase& phase, double fastest) const;
  bool solve_spinning(ImpactPhase& phase, StepRecord& r);
  void keep_touching(GapRule gaps);
  bool comes_down(const StepRecord& r, const Contact& contact) const;
  bool is_hit(const StepRecord& r, const Contact& contact) const;
  bool has_touched(const ClosingGap& hit) const;
  bool solve(StepRecord& r, const StepOptions& options, const std::vector<unsigned char>* struck = nullptr);
  void find_struck(const StepRecord& r);
  void own_record();
  StepRecord& next_record();
  bool impact();
  void separate_events(ImpactPhase& before, const StepRecord& r);
  bool smooth(bool lets_in);
  bool find_hits();
  void take_contact(const Impact& impact, Contact& c) const;
  void find_touch(ImpactPhase& phase);
  bool follow_hops(ImpactPhase& phase, StepRecord& r);
  bool find_event(ImpactPhase& phase);
  void threshold_from_start(ImpactPhase& phase);
  void move(const StepRecord& r, const ImpactPhase& phase, double t);
  void go_back(ImpactPhase& phase, StepRecord& next);
  void arrive(ImpactPhase& phase, StepRecord& next);
  void finish();

  const Model& model_;
  const StepOptions& options_;
  ConstraintSolver& solver_;
  StepMemory& memory_;
  StepRecord& step_;
  ImpactPhases& x_;
  double h_, time_ = 0, rest_;
  int hit_ = -1;           ///< pair whose impact brought us here
  bool at_event_ = false;  ///< an impact did
  bool sank_ = false;      ///< and it is one of a pair that was held
  bool done_ = false;
  int events_ = 0, pauses_ = 0, short_ones_ = 0, iterations_ = 0;
  const char* reason_ = nullptr;
  SolveStatus worst_ = SolveStatus::solved;
  double residual_ = 0, exact_residual_ = 0, relaxation_ = 0, closing_speed_ = 0;
  std::vector<std::uint64_t> contradictory_;
};

void Splitter::set_options() {
  const double tolerance = options_.impacts.penetration_tolerance;
  x_.smooth = options_;
  x_.smooth.torque_free_spin = false;  // the velocity half way takes its place
  x_.smooth.collision.least_margin = tolerance;
  ConstraintOptions& c = x_.smooth.constraints;
  c.gaps = GapRule::held;
  c.touching = tolerance;
  c.held_speed = tolerance / h_;
  c.separating_speed = std::max(c.restitution_threshold, least_separating_speed);
  x_.impact = x_.smooth;
  x_.impact.constraints.gaps = GapRule::impact;
  x_.impact.constraints.timestep = impact_duration;
  x_.impact.constraints.baumgarte = 0;
  x_.impact.constraints.rebound_depth = 0.5 * kept_share * tolerance;
  x_.impact.warm_start = false;
}

/// Kinematics and contacts at (x_.q, x_.v), all that are within the margin.
void Splitter::place(StepRecord& r) {
  r.q = x_.q, r.v = x_.v;
  r.q_evaluated.clear();
  kinematics(model_, r.q.data(), r.dynamics);
  detect_contacts(model_, r.dynamics.body_position.data(), r.dynamics.body_rotation.data(), x_.smooth.collision,
                  memory_.collision, r.collision);
}

/// rad/s, of free and ball joints.
double Splitter::fastest_spin() const {
  double fastest = 0;
  for (int j = 0; j < model_.num_joints; ++j) {
    const JointType type = model_.joint_type[j];
    if (type != JointType::free && type != JointType::ball) continue;
    const double* w = x_.v.data() + model_.joint_v[j] + (type == JointType::free ? 3 : 0);
    fastest = std::max(fastest, norm3(w));
  }
  return fastest;
}

/// 2^-k of the step, in which no body turns too far for a constant acceleration; 0: all of it.
double Splitter::share_of_spin(double fastest) const {
  if (!(fastest * h_ > longest_turn)) return 0;
  double share = 1;
  for (int k = 0; k < most_halvings && fastest * h_ * share > longest_turn; ++k) share *= 0.5;
  return share;
}

/// A torque of the velocity before would feed energy to what spins. Damping and dry friction, which are implicit, keep that velocity.
bool Splitter::spins(const ImpactPhase& phase, double fastest) const {
  if (!options_.torque_free_spin || !phase.midpoint || !(fastest * phase.planned > least_spin)) return false;
  const auto none = [](const std::vector<double>& values) {
    return std::all_of(values.begin(), values.end(), [](double x) { return x == 0; });
  };
  return none(model_.dof_damping) && none(model_.dof_dry_friction);
}

/// a of the velocity half way, v + planned/2 a: the implicit midpoint rule, by repetition, shorter where it does not settle. At last
/// (tens of thousands of rad/s) a of the velocity before.
bool Splitter::solve_spinning(ImpactPhase& phase, StepRecord& r) {
  double change = INFINITY, share = 1;
  for (int k = 0; k < most_repetitions && solve(r, phase.problem); ++k) {
    double moved = 0, size = 0;
    for (int d = 0; d < model_.nv; ++d) {
      x_.path[d] = phase.v[d] + 0.5 * phase.planned * r.acceleration[d] - r.v[d];
      moved = std::max(moved, std::abs(x_.path[d])), size = std::max(size, std::abs(r.v[d]));
    }
    phase.midpoint_velocity = moved <= 1e-13 * size;
    if (moved == 0 || (phase.midpoint_velocity && moved >= 0.5 * change)) return true;  // or rounding
    if (moved > 0.7 * change) share = std::max(0.25, 0.5 * share);
    change = moved;
    for (int d = 0; d < model_.nv; ++d) r.v[d] += share * x_.path[d];
  }
  phase.midpoint_velocity = false, r.v = phase.v;
  return solve(r, phase.problem);
}

/// Leaves the contacts that the next problem holds; link twists at v.
void Splitter::keep_touching(GapRule gaps) {
  StepRecord& r = at();
  auto& contacts = r.collision.contacts;
  if (contacts.empty()) return;
  link_twists(model_, r.dynamics, r.v.data(), r.twist.data());
  const ConstraintOptions& c = gaps == GapRule::held ? x_.smooth.constraints : x_.impact.constraints;
  const auto leaves = [&](const Contact& contact) {
    const bool was_hit = gaps == GapRule::impact && contact.pair == hit_ && contact.distance < event_gap;
    return !was_hit && !is_held(c, contact.distance, normal_velocity(model_, r, contact));
  };
  contacts.erase(std::remove_if(contacts.begin(), contacts.end(), leaves), contacts.end());
}

/// Does it come down fast enough to bounce, or to sink visibly before a smooth phase has stopped it? For link twists at v.
bool Splitter::comes_down(const StepRecord& r, const Contact& contact) const {
  const double bouncing = std::max(options_.constraints.restitution_threshold, 1e-9);
  const double speed = -normal_velocity(model_, r, contact);
  return speed > x_.impact.constraints.held_speed || (model_.pair_restitution[contact.pair] > 0 && speed > bouncing);
}

/// And not from an overlap in which it was a step ago already.
bool Splitter::is_hit(const StepRecord& r, const Contact& contact) const {
  return comes_down(r, contact) && contact.distance >= h_ * normal_velocity(model_, r, contact);
}

/// x_.hits: what touches and comes down, so that the time at which it touches moves with the state. True: something else comes down, in
/// a deep overlap. After keep_touching.
bool Splitter::find_hits() {
  const StepRecord& r = at();
  const ConstraintOptions& c = x_.impact.constraints;
  bool deep = false;
  for (const Contact& contact : r.collision.contacts) {
    if (is_hit(r, contact)) x_.hits.push_back({contact});
    else deep = deep || comes_down(r, contact);
  }
  any_limit(model_, r.q.data(), r.v.data(), [&](int joint, bool upper, double phi, double rate) {
    if (!is_held(c, phi, rate) || -rate <= c.held_speed) return false;
    if (phi >= h_ * rate) x_.hits.push_back({{}, joint, upper});
    else deep = true;
    return false;
  });
  return deep;
}

/// Has it touched at once? What lies above, and is not held at other points, is left to the search. After what hits was left out.
bool Splitter::has_touched(const ClosingGap& hit) const {
  if (hit.joint >= 0 || hit.contact.distance <= 0) return true;
  const auto& held = x_.record(x_.count - 1, step_).collision.contacts;
  return std::any_of(held.begin(), held.end(), [&](const Contact& c) { return c.pair == hit.contact.pair; });
}

/// x_.struck: the trees of what comes down, or has sunk and is parted. Islands without any do not know of the impact. For link twists at v.
void Splitter::find_struck(const StepRecord& r) {
  x_.struck.assign(model_.num_trees, 0);
  const auto strike = [&](int body) {
    const int tree = model_.body_tree[body];
    if (tree >= 0) x_.struck[tree] = 1;
  };
  for (const Contact& c : r.collision.contacts) {
    const bool parts = c.lift > 0 && x_.sinking.has_sunk(c.pair);
    if (c.pair != hit_ && !parts && !comes_down(r, c)) continue;
    strike(c.body_a);
    strike(c.body_b);
  }

  const int reached = at_event_ ? x_[x_.count - 2].gap.joint : -1;
  any_limit(model_, r.q.data(), r.v.data(), [&](int joint, bool, double phi, double rate) {
    const ConstraintOptions& c = x_.impact.constraints;
    if (joint == reached || (is_held(c, phi, rate) && -rate > c.held_speed)) strike(model_.joint_body[joint]);
    return false;
  });
}

/// Velocities and acceleration of one phase's problem.
bool Splitter::solve(StepRecord& r, const StepOptions& options, const std::vector<unsigned char>* struck) {
  solve_velocities(model_, options, solver_, memory_, r, struck);
  advance(model_, options.constraints.timestep, r);
  r.valid = true;
  iterations_ += r.solution.iterations;
  worst_ = std::max(worst_, r.solution.status);
  residual_ = std::max(residual_, r.solution.residual);
  exact_residual_ = std::max(exact_residual_, r.solution.exact_residual);
  relaxation_ = std::max(relaxation_, r.solution.relaxation);
  contradictory_.insert(contradictory_.end(), r.contradictory.begin(), r.contradictory.end());
  return all_finite(r.v_next) && all_finite(r.acceleration);
}

/// The stages of the first phase are the step's own as long as there is no other.
void Splitter::own_record() {
  ImpactPhase& phase = x_.last();
  if (phase.owns_record) return;
  if (!phase.storage) phase.storage = std::make_unique<StepRecord>(model_);
  StepRecord& r = *phase.storage;
  std::swap(r, step_);
  std::swap(r.extra, step_.extra);
  step_.u = r.u, step_.tau = r.tau, step_.fext = r.fext;
  phase.owns_record = true;
}

StepRecord& Splitter::next_record() {
  ImpactPhase& phase = x_.add();
  if (!phase.storage) phase.storage = std::make_unique<StepRecord>(model_);
  phase.owns_record = true;
  StepRecord& r = *phase.storage;
  r.u = step_.u, r.tau = step_.tau, r.fext = step_.fext;
  return r;
}

/// v := v+ of the impact of all that touches what is hit; the next phase starts at the same place.
bool Splitter::impact() {
  own_record();
  ImpactPhase& phase = x_.last();
  StepRecord& r = at();
  phase.q = x_.q, phase.v = x_.v;
  phase.start = time_, phase.duration = 0, phase.end = PhaseEnd::instant, phase.midpoint = false;
  find_struck(r);
  if (!solve(r, x_.impact, &x_.struck)) return false;
  if (at_event_) separate_events(*x_.pool[x_.count - 2], r);
  x_.v = r.v_next;
  StepRecord& next = next_record();
  next.q = x_.q, next.v = x_.v;
  next.q_evaluated.clear();
  next.dynamics = r.dynamics, next.collision = r.collision;
  return true;
}

/// Of what hits at the same time, islands that do not know each other have times of their own.
void Splitter::separate_events(ImpactPhase& before, const StepRecord& r) {
  const ClosingGap& first = before.gap;
  const auto tree_of = [&](const ClosingGap& gap) {
    if (gap.joint >= 0) return model_.body_tree[model_.joint_body[gap.joint]];
    return std::max(model_.body_tree[gap.contact.body_a], model_.body_tree[gap.contact.body_b]);
  };
  x_.events.assign(r.islands.pool.size(), -1);
  x_.events[r.islands.of_tree(tree_of(first))] = 0;

  // the fastest of every other island
  x_.approach.clear();
  const auto add = [&](int block, double speed, ClosingGap gap) {
    if (r.solution.modes[block] == Mode::separating) return;
    int& event = x_.events[r.islands.of_block(block)];
    if (event == 0) return;
    if (event < 0) {
      before.others.push_back(std::move(gap)), x_.approach.push_back(speed);
      event = static_cast<int>(before.others.size());
    } else if (speed > x_.approach[event - 1]) {
      before.others[event - 1] = std::move(gap), x_.approach[event - 1] = speed;
    }
  };
  for (const BodyRows& b : r.rows.body_rows) {
    if (b.contact < 0) continue;
    const Contact& contact = r.collision.contacts[b.contact];
    if (is_hit(r, contact) && std::abs(contact.distance) <= closed_gap)
      add(b.block, -normal_velocity(model_, r, contact), {contact});
  }
  for (const DofRow& d : r.rows.dof_rows) {
    if (r.rows.blocks[d.block].type != BlockType::limit) continue;
    double rate = 0;
    for (int i = 0; i < d.num; ++i) rate += d.coefficient[i] * r.v[d.dof[i]];
    const bool upper = d.num == 3 || d.coefficient[0] < 0;
    if (-rate > x_.impact.constraints.held_speed && std::abs(d.phi) <= closed_gap)
      add(d.block, -rate, {{}, model_.dof_joint[d.dof[0]], upper});
  }
  if (before.others.empty()) return;
  before.event_of_dof.assign(model_.nv, 0);
  for (int t = 0; t < model_.num_trees; ++t)
    for (int d = model_.tree_first_dof[t]; d < model_.tree_first_dof[t + 1]; ++d)
      before.event_of_dof[d] = std::max(x_.events[r.islands.of_tree(t)], 0);
}

/// What the search knows of the contact that is hit.
void Splitter::take_contact(const Impact& impact, Contact& c) const {
  c = Contact{};
  c.pair = impact.pair, c.distance = impact.distance, c.rule = MotionRule::frozen;
  c.geometry_a = model_.pair_a[c.pair], c.geometry_b = model_.pair_b[c.pair];
  c.body_a = model_.geometry_body[c.geometry_a], c.body_b = model_.geometry_body[c.geometry_b];
  copy3(impact.normal, c.normal);
  copy3(impact.point, c.point), copy3(impact.point, c.point_a), copy3(impact.point, c.point_b);
}

/// The event of a phase that lets in what has touched already: the time, at most zero, at which the first of x_.hits did.
void Splitter::find_touch(ImpactPhase& phase) {
  const StepRecord& r = at();
  const MotionPath path{phase.q.data(), phase.v.data(), r.acceleration.data(), 0};
  const double earliest = x_.count == 1 ? -h_ : 0.0;  // the step's own past
  bool any = false;
  double time = 0;
  phase.from_start = false;
  phase.grazing = false, phase.fixed_time = true;  // of what has not come from outside within the step
  for (const ClosingGap& hit : x_.hits) {
    ClosingGap gap = hit;
    double when = 0, speed = 0;
    bool found = false;
    if (hit.joint >= 0) {
      const LimitHit limit = limit_touch(model_, path, hit.joint, hit.upper, earliest);
      found = limit.found;
      when = limit.found ? limit.time : 0, speed = limit.closing_speed;
    } else {
      if (!has_touched(hit)) continue;
      const bool held = hit.contact.distance > 0;  // at other points
      const Impact impact = held ? Impact{} : x_.search.touch(model_, path, hit.contact.pair, earliest);
      found = impact.found;
      when = impact.found ? impact.time : 0;
      speed = impact.found ? impact.closing_speed : -normal_velocity(model_, r, hit.contact);
      if (impact.found) take_contact(impact, gap.contact);
    }
    if (any && !(when < time) && !(when == time && found && phase.fixed_time)) continue;
    phase.gap = std::move(gap), any = true, time = when, closing_speed_ = speed;
    phase.fixed_time = !found;
  }
  phase.end = phase.gap.joint >= 0 ? PhaseEnd::limit : PhaseEnd::pair;
  phase.duration = time;
  sank_ = false;
}

/// Held contacts that lift off slowly and come back: braked over the whole step they would rise visibly, and gain energy. After solve,
/// which is repeated where there are any: those whose hop is to be seen are left out, the search finds where they land; the others are
/// stopped by a problem about as long as their hop. False: overflow.
bool Splitter::follow_hops(ImpactPhase& phase, StepRecord& r) {
  const double tolerance = options_.impacts.penetration_tolerance;
  auto& contacts = r.collision.contacts;

  // what lifts off, without those that do by force
  x_.hops.clear();
  for (const BodyRows& b : r.rows.body_rows) {
    if (b.contact < 0 || !(r.solution.lambda[b.row + 2] > 0)) continue;
    const double wanted = std::max(-r.rows.bias[b.row + 2], 0.0);  // out of an overlap
    const double rate = normal_velocity(model_, r, contacts[b.contact]) - wanted;
    if (rate * h_ > 2 * least_rise * tolerance) x_.hops.push_back({contacts[b.contact], b.contact, rate});
  }
  if (x_.hops.empty()) return true;
  for (std::size_t k = x_.hops.size(); k-- > 0;) contacts.erase(contacts.begin() + x_.hops[k].index);
  if (!solve(r, phase.problem)) return false;

  // how high without them, and how long
  double longest = 0;
  link_twists(model_, r.dynamics, r.v_next.data(), r.twist.data());
  for (const ContactHop& hop : x_.hops) {
    const double lost = hop.rate - normal_velocity(model_, r, hop.contact);  // within the step
    const double time = h_ * hop.rate / lost;
    if (!(lost > 0) || 0.5 * hop.rate * time > visible_hop * tolerance) continue;
    longest = std::max(longest, time);
    const auto after = [&](const Contact& c) {
      return c.pair > hop.contact.pair || (c.pair == hop.contact.pair && c.feature > hop.contact.feature);
    };
    contacts.insert(std::find_if(contacts.begin(), contacts.end(), after), hop.contact);
  }
  link_twists(model_, r.dynamics, r.v.data(), r.twist.data());
  if (longest == 0) return true;

  // positions are corrected no faster than in a whole step
  double length = 1;
  for (int k = 0; k < most_halvings && 0.5 * length * h_ >= longest; ++k) length *= 0.5;
  if (length < 1 && length * h_ < rest_ && short_ones_ < most_short_ones) {
    phase.length = length;
    phase.share = phase.share > 0 ? std::min(phase.share, length) : length;
    phase.planned = phase.share * h_;
    phase.problem.constraints.timestep *= length, phase.problem.constraints.baumgarte *= length;
    ++short_ones_;
  }
  return solve(r, phase.problem);
}

/// The first event within what is left of the step; phase.end tells. False: overflow.
bool Splitter::find_event(ImpactPhase& phase) {
  const StepRecord& r = x_.record(x_.count - 1, step_);
  MotionPath path{phase.q.data(), phase.v.data(), r.acceleration.data(), phase.planned};
  const LimitHit limit = first_limit(model_, x_.smooth.constraints, path);
  if (limit.found) path.duration = limit.time;
  ImpactOptions search;
  search.max_evaluations = search_budget;
  search.tolerance = kept_share * options_.impacts.penetration_tolerance, search.deeper = deeper_share;
  const ImpactStart start{phase.midpoint ? nullptr : &r.dynamics, r.collision.contacts.data(),
                          static_cast<int>(r.collision.contacts.size()), true};
  const Impact impact = x_.search.first(model_, search, path, start);
  if (impact.status == ImpactStatus::not_finite) return false;
  phase.gap = ClosingGap{}, phase.grazing = phase.fixed_time = phase.from_start = false;
  if (impact.found) {
    phase.end = PhaseEnd::pair, phase.duration = impact.time, phase.grazing = impact.grazing;
    sank_ = impact.threshold < 0;
    closing_speed_ = impact.closing_speed;
    take_contact(impact, phase.gap.contact);
    if (impact.threshold < -search.tolerance) threshold_from_start(phase);
  } else if (impact.status == ImpactStatus::evaluation_limit) {
    phase.end = PhaseEnd::pause, phase.duration = impact.time;
    x_.sinking.creeps(impact.pair);
  } else if (limit.found) {
    phase.end = limit.complete ? PhaseEnd::limit : PhaseEnd::pause;
    phase.duration = limit.time, phase.grazing = limit.grazing;
    phase.gap.joint = limit.joint, phase.gap.upper = limit.upper;
  } else {
    phase.end = phase.share > 0 ? PhaseEnd::part : PhaseEnd::whole, phase.duration = phase.planned;
  }
  return true;
}

/// Of a pair that was at its tolerance already, whether it was held or had left: the threshold is a depth below where it was.
void Splitter::threshold_from_start(ImpactPhase& phase) {
  StepRecord& r = x_.record(x_.count - 1, step_);
  const int pair = phase.gap.contact.pair;
  const Contact* deepest = nullptr;
  const auto look = [&](const std::vector<Contact>& contacts) {
    for (const Contact& c : contacts)
      if (c.pair == pair && (!deepest || c.distance < deepest->distance)) deepest = &c;
  };
  look(r.collision.contacts);
  if (!deepest) {
    const double none[3] = {0, 0, 0};
    collide_moved_pair(model_, pair, none, none, phase.gap.contact.point, 0, r.collision, x_.found);
    look(x_.found);
  }
  phase.from_start = deepest != nullptr, phase.grazing = phase.grazing || deepest == nullptr;
  if (deepest) phase.sank_from = *deepest;
}

/// (x_.q, x_.v) after t of the path of a solved phase.
void Splitter::move(const StepRecord& r, const ImpactPhase& phase, double t) {
  for (int d = 0; d < model_.nv; ++d) x_.path[d] = t * (x_.v[d] + 0.5 * t * r.acceleration[d]);
  integrate(model_, x_.q.data(), x_.path.data(), x_.q.data());
  if (t == phase.length * h_ && !phase.midpoint_velocity) x_.v = r.v_next;
  else
    for (int d = 0; d < model_.nv; ++d) x_.v[d] += t * r.acceleration[d];
}

/// Where a pair came down on the threshold of what is held, with a point that is not held: the point touched a little before, when its
/// own gap closed. Goes back to there, by Newton's method along the path. A point that hops within an overlap lands where it left, on one
/// of many fixed levels: would it land on the threshold, the position correction of each hop would pay for the next.
void Splitter::go_back(ImpactPhase& phase, StepRecord& next) {
  const StepRecord& r = x_.record(x_.count - 2, step_);
  const int pair = phase.gap.contact.pair, feature = phase.gap.contact.feature;
  const auto find_at = [&](double t) -> const Contact* {
    x_.q = phase.q, x_.v = phase.v;
    move(r, phase, t);
    place(next);
    for (const Contact& c : next.collision.contacts)
      if (c.pair == pair && c.feature == feature) return &c;
    return nullptr;
  };

  const double end = phase.duration, rung = level_share * options_.impacts.penetration_tolerance;
  const Contact* at = find_at(0);
  const double level = at && at->distance < 0 ? rung * std::floor(at->distance / rung) : 0.0;
  double t = end;
  at = find_at(t);
  for (int k = 0; k < most_corrections && at; ++k) {
    link_twists(model_, next.dynamics, x_.v.data(), next.twist.data());
    const double rate = normal_velocity(model_, next, *at), gap = at->distance - level, earlier = t - gap / rate;
    if (!(rate < 0)) break;
    if (std::abs(gap) <= reached || earlier == t) {
      phase.duration = t, phase.gap.contact = *at;
      phase.from_start = phase.fixed_time = false;
      sank_ = false, closing_speed_ = -rate;
      return;
    }
    if (!(earlier > 0) || !(earlier <= end)) break;
    t = earlier;
    at = find_at(t);
  }
  find_at(end);
}

/// A pair is hit where the next phase starts.
void Splitter::arrive(ImpactPhase& phase, StepRecord& next) {
  Contact& contact = phase.gap.contact;
  const std::vector<Contact>& held = x_.record(x_.count - 2, step_).collision.contacts;
  find_contact(model_, next.collision, x_.found, contact);
  if (sank_ && !SinkingContacts::is_among(held, contact)) {
    go_back(phase, next);
    find_contact(model_, next.collision, x_.found, contact);
  }
  link_twists(model_, next.dynamics, x_.v.data(), next.twist.data());
  double velocity[3];
  contact_velocity(model_, next, contact, velocity);
  double speed = norm3(velocity);
  for (const int body : {contact.body_a, contact.body_b})
    speed += norm3(body_link_twist(model_, next.twist.data(), body) + 3);
  x_.sinking.hit(contact, sank_, std::abs(phase.duration) * speed, held, next.collision.contacts);
  link_twists(model_, next.dynamics, x_.record(x_.count - 2, step_).acceleration.data(), next.twist.data());
  const double turning = std::abs(normal_velocity(model_, next, contact));
  phase.grazing = phase.grazing || closing_speed_ * closing_speed_ < 2 * turning * grazing_depth;
}

/// One smooth phase, to the next event or to the end of the step. lets_in: up to the impact of x_.hits, which it leaves out. False:
/// overflow.
bool Splitter::smooth(bool lets_in) {
  keep_touching(GapRule::held);
  ImpactPhase& phase = x_.last();
  StepRecord& r = at();
  phase.problem = x_.smooth, phase.problem.constraints.lets_in = lets_in;
  if (lets_in) {
    auto& contacts = r.collision.contacts;
    const auto hits = [&](const Contact& c) { return is_hit(r, c); };
    contacts.erase(std::remove_if(contacts.begin(), contacts.end(), hits), contacts.end());
  }
  const bool came_down =
      lets_in && std::any_of(x_.hits.begin(), x_.hits.end(), [&](const ClosingGap& hit) { return has_touched(hit); });
  phase.q = x_.q, phase.v = x_.v, phase.start = time_;
  const double fastest = fastest_spin();
  phase.share = share_of_spin(fastest);
  if (phase.share * h_ >= rest_) phase.share = 0;
  phase.planned = phase.share > 0 ? phase.share * h_ : rest_;
  phase.midpoint = r.collision.contacts.empty() && model_.equalities.empty() &&
                   !any_limit(model_, x_.q.data(), x_.v.data(), [&](int, bool, double phi, double rate) {
                     return is_held(phase.problem.constraints, phi, rate);
                   });
  if (phase.midpoint) {
    // a limit that is exceeded half way has not been reached at the start
    phase.problem.constraints.lets_in = true;
    phase.problem.constraints.touching = -std::numeric_limits<double>::infinity();
    for (int d = 0; d < model_.nv; ++d) x_.path[d] = 0.5 * phase.planned * x_.v[d];
    r.q_evaluated.resize(model_.nq);
    integrate(model_, x_.q.data(), x_.path.data(), r.q_evaluated.data());
    kinematics(model_, r.q_evaluated.data(), r.dynamics);
  }
  const bool spinning = spins(phase, fastest);
  if (spinning) own_record();
  StepRecord& solved = at();
  if (!(spinning ? solve_spinning(phase, solved) : solve(solved, phase.problem))) return false;
  if (!lets_in && !spinning && !follow_hops(phase, solved)) return false;
  if (came_down) find_touch(phase);
  else if (!find_event(phase)) return false;
  if (!options_.collision.frozen_cache && phase.length == 1 && !lets_in) remember(solved, memory_);
  move(solved, phase, phase.duration);
  at_event_ = phase.end == PhaseEnd::pair || phase.end == PhaseEnd::limit;
  hit_ = phase.end == PhaseEnd::pair ? phase.gap.contact.pair : -1;
  done_ = phase.end == PhaseEnd::whole;
  if (done_) {
    time_ += phase.duration, rest_ -= phase.duration;
    return true;
  }
  events_ += at_event_;
  pauses_ += phase.end == PhaseEnd::pause;
  own_record();
  StepRecord& next = next_record();
  place(next);
  if (phase.end == PhaseEnd::pair) arrive(phase, next);
  time_ += phase.duration, rest_ -= phase.duration;
  return true;
}

/// The step's record: the end of the step, with the stages of the last smooth phase.
void Splitter::finish() {
  int last = x_.count - 1;
  while (x_[last].end == PhaseEnd::instant) --last;
  if (x_[last].owns_record) {
    StepExtraHolder extra = std::move(step_.extra);
    step_ = x_.record(last, step_);
    step_.extra = std::move(extra);
    for (double& impulse : step_.solution.lambda) impulse /= x_[last].length;
    step_.q = x_.q_start, step_.v = x_.v_start;
    for (int d = 0; d < model_.nv; ++d) step_.acceleration[d] = (x_.v[d] - x_.v_start[d]) / h_;
  }
  step_.q_next = x_.q, step_.v_next = x_.v;
  step_.solution.status = worst_, step_.solution.iterations = iterations_;
  step_.solution.residual = residual_, step_.solution.exact_residual = exact_residual_;
  step_.solution.relaxation = relaxation_;
  step_.contradictory = contradictory_;
  step_.reason = reason_;
  step_.valid = true;
}

bool Splitter::run() {
  set_options();
  x_.q = x_.q_start = step_.q, x_.v = x_.v_start = step_.v;
  x_.count = 0;
  x_.sinking.clear();
  x_.add();
  place(step_);
  while (true) {
    const bool waits = events_ > 2 * options_.impacts.max_impacts || pauses_ > max_pauses;
    if (events_ > options_.impacts.max_impacts && !reason_) {
      reason_ = inelastic;
      x_.impact.constraints.restitution_threshold = std::numeric_limits<double>::infinity();
    }
    keep_touching(GapRule::impact);
    const double slowest = lift_rate * options_.impacts.penetration_tolerance;
    const auto* held = x_.count > 1 ? &x_.record(x_.count - 2, step_).collision.contacts : nullptr;
    const bool lifts = x_.sinking.lift(x_.impact.constraints, slowest, held, at().collision.contacts);
    x_.hits.clear();
    const bool deep = !at_event_ && find_hits();
    if (!x_.hits.empty() && !deep && !waits) {
      if (!smooth(true)) return false;
      if (done_) break;
      continue;
    }
    if ((at_event_ || lifts || deep || !x_.hits.empty()) && !impact()) return false;
    if (waits) {
      --x_.count;  // the phase that would have followed
      reason_ = pauses_ > max_pauses ? paused : waited, worst_ = std::max(worst_, SolveStatus::max_iterations);
      break;
    }
    if (!smooth(false)) return false;
    if (done_) break;
  }
  finish();
  return true;
}

}  // namespace

bool impact_step(const Model& model, const StepOptions& options, ConstraintSolver& solver, StepMemory& memory,
                 StepRecord& record) {
  auto* phases = dynamic_cast<ImpactPhases*>(record.extra.value.get());
  if (phases == nullptr || phases->model != &model) {
    auto fresh = std::make_unique<ImpactPhases>(model);
    phases = fresh.get();
    record.extra.value = std::move(fresh);
  }
  record.valid = false, record.reason = nullptr;
  if (Splitter(model, options, solver, memory, record, *phases).run()) return true;
  record.q = phases->q_start, record.v = phases->v_start;
  record.q_evaluated.clear();
  stand_still(record);
  record.valid = true;
  phases->count = 0;
  if (!options.collision.frozen_cache) memory.reset();
  return false;
}

}  // namespace coulomb
