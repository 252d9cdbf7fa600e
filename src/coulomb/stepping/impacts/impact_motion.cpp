// Smooth phases of a split step: the problem of each, (I2), what spins in it, (I7), and contacts that hop.
#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/stepping/impacts/impact_contact.hpp"
#include "coulomb/stepping/impacts/impact_limits.hpp"
#include "coulomb/stepping/impacts/impact_path.hpp"
#include "coulomb/stepping/impacts/impact_splitter.hpp"
#include "coulomb/stepping/semi_implicit/semi_implicit.hpp"

namespace coulomb {
namespace {

constexpr double longest_turn = 0.5;  // rad: of free and ball joints in one phase, as long as
constexpr int most_halvings = 7;      // these are enough
constexpr double least_rise = 0.02;   // of the penetration tolerance: held contacts that lift off rise by less,
constexpr double visible_hop = 0.1;   // or not higher than this; higher ones fly
constexpr int most_short_ones = 32;   // problems that are shorter than the step, in one step
constexpr int most_repetitions = 150;

/// First dof of a free or ball joint's rotation; -1: another joint.
int rotation_of(const Model& model, int joint) {
  if (model.joint_type[joint] == JointType::free) return model.joint_v[joint] + 3;
  return model.joint_type[joint] == JointType::ball ? model.joint_v[joint] : -1;
}

/// Calls visit(tree) with what contacts, equalities and limits hold where the phase starts.
template <class Visit>
void visit_held(const Model& model, const ImpactPhase& phase, const StepRecord& r, Visit visit) {
  const auto visit_body = [&](int body) {
    if (model.body_tree[body] >= 0) visit(model.body_tree[body]);
  };
  for (const Contact& c : r.collision.contacts) {
    visit_body(c.body_a);
    visit_body(c.body_b);
  }
  for (const Equality& e : model.equalities) {
    if (!e.active) continue;
    visit_body(e.joint_a >= 0 ? model.joint_body[e.joint_a] : e.body_a);
    visit_body(e.joint_b >= 0 ? model.joint_body[e.joint_b] : e.body_b);
  }
  any_limit(model, phase.q.data(), phase.v.data(), [&](int joint, bool, double phi, double rate) {
    if (is_held(phase.problem.constraints, phi, rate)) visit_body(model.joint_body[joint]);
    return false;
  });
}

/// The velocity of a tree where the phase starts.
void take_velocity(const Model& model, const ImpactPhase& phase, int tree, StepRecord& r) {
  for (int d = model.tree_first_dof[tree]; d < model.tree_first_dof[tree + 1]; ++d)
    r.v[d] = phase.v[d];
}

}  // namespace

/// Where a phase starts, how far it goes without an event, and where its problem is evaluated.
void ImpactSplitter::plan(ImpactPhase& phase, bool lets_in) {
  phase.problem = phases_.smooth;
  phase.problem.constraints.lets_in = lets_in;
  phase.q = phases_.q;
  phase.v = phases_.v;
  phase.start = time_;

  // All that is left of the step, unless bodies spin too fast for that.
  phase.share = share_of_spin();
  if (phase.share * h_ >= rest_) phase.share = 0;
  phase.planned = phase.share > 0 ? phase.share * h_ : rest_;

  // What flies has the forces of the middle of its path.
  find_rules(phase, at());
}

/// Each tree by itself: what nothing holds flies.
void ImpactSplitter::find_rules(ImpactPhase& phase, const StepRecord& r) {
  phase.rules.assign(model_.num_trees, TreeRule::flies);
  visit_held(model_, phase, r, [&](int tree) { phase.rules[tree] = TreeRule::held; });
  phase.midpoint = false;
  phase.midpoint_velocity = false;
  for (int tree = 0; tree < model_.num_trees; ++tree) {
    if (phase.rules[tree] == TreeRule::held) continue;
    phase.midpoint = true;
    if (!spins(tree)) continue;
    phase.rules[tree] = TreeRule::spins;
    phase.midpoint_velocity = true;
  }
}

/// What was held and is held no more, after its contacts were left out.
void ImpactSplitter::let_go(ImpactPhase& phase, const StepRecord& r) const {
  std::replace(phase.rules.begin(), phase.rules.end(), TreeRule::held, TreeRule::lifts);
  visit_held(model_, phase, r, [&](int tree) { phase.rules[tree] = TreeRule::held; });
}

/// Of what flies, kinematics half way of what is planned, and the velocity there where that has to be solved for. The phase may have a
/// record of its own after that.
void ImpactSplitter::evaluate_midpoint(ImpactPhase& phase) {
  at().flies.clear();
  at().q_evaluated.clear();
  if (!phase.midpoint) return;
  place_midpoint(phase, at());
  if (phase.midpoint_velocity) solve_spinning(phase);
}

/// Half way at the velocity of the start; what is held stays where it is.
void ImpactSplitter::place_midpoint(const ImpactPhase& phase, StepRecord& r) {
  r.flies.resize(model_.num_trees);
  for (int tree = 0; tree < model_.num_trees; ++tree) {
    r.flies[tree] = flies(phase.rules[tree]);
    const double half = r.flies[tree] ? 0.5 * phase.planned : 0.0;
    for (int d = model_.tree_first_dof[tree]; d < model_.tree_first_dof[tree + 1]; ++d)
      phases_.displacement[d] = half * phase.v[d];
  }
  r.q_evaluated.resize(model_.nq);
  integrate(model_, phase.q.data(), phases_.displacement.data(), r.q_evaluated.data());

  // To the last bit: no displacement may round a quaternion.
  for (int j = 0; j < model_.num_joints; ++j) {
    if (r.flies[model_.body_tree[model_.joint_body[j]]]) continue;
    const int first = model_.joint_q[j];
    const int end = j + 1 < model_.num_joints ? model_.joint_q[j + 1] : model_.nq;
    std::copy(phase.q.begin() + first, phase.q.begin() + end, r.q_evaluated.begin() + first);
  }
  kinematics(model_, r.q_evaluated.data(), r.dynamics);
}

/// 2^-k of the step, in which no body turns too far for a constant acceleration; 0: all of it.
double ImpactSplitter::share_of_spin() const {
  double fastest = 0;
  for (int j = 0; j < model_.num_joints; ++j)
    if (const int d = rotation_of(model_, j); d >= 0) fastest = std::max(fastest, norm3(phases_.v.data() + d));
  if (!(fastest * h_ > longest_turn)) return 0;

  double share = 1;
  for (int k = 0; k < most_halvings && fastest * h_ * share > longest_turn; ++k)
    share *= 0.5;
  return share;
}

/// A torque of the velocity before would feed energy to a tree that turns. Damping and dry friction, which are implicit, keep that velocity.
/// The rule depends on no velocity and no inertia: the step is smooth in both.
bool ImpactSplitter::spins(int tree) const {
  if (!options_.torque_free_spin) return false;
  if (options_.forces_at_end != ForcesAtEnd::none && has_speed_gains(model_, tree)) return false;
  bool turns = false;
  for (int d = model_.tree_first_dof[tree]; d < model_.tree_first_dof[tree + 1]; ++d) {
    if (model_.dof_damping[d] != 0 || model_.dof_dry_friction[d] != 0) return false;
    turns = turns || rotation_of(model_, model_.dof_joint[d]) >= 0;
  }
  return turns;
}

/// a of the velocity half way, v + planned/2 a: the implicit midpoint rule, tree by tree, by repetition. What does not settle (tens of
/// thousands of rad/s) has at last a of the velocity before. Nothing acts on these trees but forces: their free velocity is theirs.
void ImpactSplitter::solve_spinning(ImpactPhase& phase) {
  phases_.spinning.clear();
  for (int tree = 0; tree < model_.num_trees; ++tree)
    if (phase.rules[tree] == TreeRule::spins) {
      phases_.spinning.push_back({tree, INFINITY, 1, false});
      take_velocity(model_, phase, tree, at());
    }

  // Until every tree has its own; a settled one stays, to the bit.
  at().joint_forces.clamps.known = false;
  bool all = false;
  for (int k = 0; k < most_repetitions && !all; ++k) {
    free_velocity(model_, phase.problem, at());
    all = true;
    for (SpinIteration& spin : phases_.spinning) {
      if (!spin.settled) correct_spin(phase, spin);
      all = all && spin.settled;
    }
  }
  if (all) return;

  StepRecord& r = at();
  for (const SpinIteration& spin : phases_.spinning) {
    if (spin.settled) continue;
    phase.rules[spin.tree] = TreeRule::flies;
    take_velocity(model_, phase, spin.tree, r);
  }
  free_velocity(model_, phase.problem, r);
}

/// One repetition: the velocity half way from the acceleration at the last one.
void ImpactSplitter::correct_spin(const ImpactPhase& phase, SpinIteration& spin) {
  const StepRecord& last = at();
  const double h = phase.problem.constraints.timestep;
  const int end = model_.tree_first_dof[spin.tree + 1];
  int first = model_.tree_first_dof[spin.tree];

  // No force but an actuator's knows how fast a free joint moves along.
  bool driven = false;
  for (int k = 0; k < model_.nu; ++k)
    driven = driven || actuator_tree(model_, k) == spin.tree;
  if (model_.joint_type[model_.dof_joint[first]] == JointType::free && !driven) {
    first += 3;
  }
  std::vector<double>& correction = phases_.displacement;
  double change = 0;
  double size = 0;
  for (int d = first; d < end; ++d) {
    const double a = (last.v_free[d] - last.v[d]) / h;
    correction[d] = phase.v[d] + 0.5 * phase.planned * a - last.v[d];
    change = std::max(change, std::abs(correction[d]));
    size = std::max(size, std::abs(last.v[d]));
  }

  // Settled: nothing changes, or rounding alone does.
  spin.settled = change == 0 || (change <= 1e-13 * size && change >= 0.5 * spin.last_change);
  if (spin.settled) return;

  // Corrections that hardly shrink go too far.
  if (change > 0.7 * spin.last_change) {
    spin.share = std::max(0.25, 0.5 * spin.share);
  }
  spin.last_change = change;

  // The step's record keeps the velocity of the start.
  own_record();
  for (int d = first; d < end; ++d)
    at().v[d] += spin.share * correction[d];
}

/// Held contacts that lift off slowly and come back: braked over the whole step they would rise visibly, and gain energy. After solve,
/// which is repeated where there are any: those whose hop is to be seen are left out, the search finds where they land; the others are
/// stopped by a problem about as long as their hop. False: overflow.
bool ImpactSplitter::follow_hops(ImpactPhase& phase, StepRecord& r) {
  find_hops(r);
  if (phases_.hops.empty()) return true;

  // How high and how long they go is seen without them.
  std::vector<Contact>& contacts = r.collision.contacts;
  for (std::size_t k = phases_.hops.size(); k-- > 0;)
    contacts.erase(contacts.begin() + phases_.hops[k].index);
  let_go(phase, r);
  if (!solve(r, phase.problem)) return false;

  const double longest = hold_invisible_hops(r);
  if (longest == 0) return true;
  let_go(phase, r);
  if (shorten(phase, longest)) evaluate_midpoint(phase);
  return solve(at(), phase.problem);
}

/// Held contacts that lift off, without those that do by force.
void ImpactSplitter::find_hops(const StepRecord& r) {
  const double least_height = 2 * least_rise * options_.impacts.penetration_tolerance;
  phases_.hops.clear();
  for (const BodyRows& b : r.rows.body_rows) {
    if (b.contact < 0 || !(r.solution.lambda[b.row + 2] > 0)) continue;

    // The position correction asks for a speed out of an overlap.
    const Contact& contact = r.collision.contacts[b.contact];
    const double wanted = std::max(-r.rows.bias[b.row + 2], 0.0);
    const double rate = normal_velocity(model_, r, contact) - wanted;
    if (rate * h_ > least_height) {
      phases_.hops.push_back({contact, b.contact, rate});
    }
  }
}

/// Puts contacts that hop too low to be seen back among those that are held. Time of the longest of these hops, 0: none. After the
/// problem without them.
double ImpactSplitter::hold_invisible_hops(StepRecord& r) {
  const double visible = visible_hop * options_.impacts.penetration_tolerance;
  std::vector<Contact>& contacts = r.collision.contacts;
  double longest = 0;
  link_twists(model_, r.dynamics, r.v_next.data(), r.twist.data());
  for (const ContactHop& hop : phases_.hops) {
    // The speed that it loses within the step tells when it is back.
    const double lost = hop.rate - normal_velocity(model_, r, hop.contact);
    const double time = h_ * hop.rate / lost;
    if (!(lost > 0) || 0.5 * hop.rate * time > visible) continue;
    longest = std::max(longest, time);

    // Contacts are in the order of pairs and features.
    const auto after = [&](const Contact& c) {
      return c.pair > hop.contact.pair || (c.pair == hop.contact.pair && c.feature > hop.contact.feature);
    };
    contacts.insert(std::find_if(contacts.begin(), contacts.end(), after), hop.contact);
  }
  link_twists(model_, r.dynamics, r.v.data(), r.twist.data());
  return longest;
}

/// What sinks while it is held turns too far for a problem of this length: again with one about as long as the sinking took, which holds it
/// to its end. False: overflow.
bool ImpactSplitter::follow_sinking(ImpactPhase& phase) {
  if (phase.end != PhaseEnd::pair || !sank_ || !shorten(phase, phase.duration)) return true;
  evaluate_midpoint(phase);
  if (!solve_smooth(phase, at())) return false;
  set_path(model_, at(), phase);
  return find_event(phase);
}

/// A problem about as long as this time; positions are corrected no faster than in a whole step. False: it stays as it is.
bool ImpactSplitter::shorten(ImpactPhase& phase, double time) {
  double length = 1;
  for (int k = 0; k < most_halvings && 0.5 * length * h_ >= time; ++k)
    length *= 0.5;
  if (length >= phase.length || length * h_ >= rest_ || short_ones_ >= most_short_ones) return false;

  const double less = length / phase.length;
  phase.problem.constraints.timestep *= less;
  phase.problem.constraints.baumgarte *= less;
  phase.length = length;
  phase.share = phase.share > 0 ? std::min(phase.share, length) : length;
  phase.planned = phase.share * h_;
  ++short_ones_;
  return true;
}

/// (I2): the state after t of the path of a solved phase.
void ImpactSplitter::move(const StepRecord& r, const ImpactPhase& phase, double t) {
  for (int d = 0; d < model_.nv; ++d)
    phases_.displacement[d] = t * (phases_.v[d] + 0.5 * t * phase.path[d]);
  integrate(model_, phases_.q.data(), phases_.displacement.data(), phases_.q.data());

  // A whole step ends at the velocity that was solved for, without rounding.
  const bool whole = t == phase.length * h_;
  for (int tree = 0; tree < model_.num_trees; ++tree) {
    const bool solved = whole && phase.rules[tree] != TreeRule::spins;
    for (int d = model_.tree_first_dof[tree]; d < model_.tree_first_dof[tree + 1]; ++d)
      phases_.v[d] = solved ? r.v_next[d] : phases_.v[d] + t * r.acceleration[d];
  }
}

}  // namespace coulomb
