// Smooth phases of a split step: the problem of each, (I2), what spins in it, (I7), and contacts that hop.
#include <algorithm>
#include <cmath>
#include <limits>

#include "coulomb/base/small_math.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/stepping/impacts/impact_contact.hpp"
#include "coulomb/stepping/impacts/impact_limits.hpp"
#include "coulomb/stepping/impacts/impact_splitter.hpp"
#include "coulomb/stepping/semi_implicit/semi_implicit.hpp"

namespace coulomb {
namespace {

constexpr double longest_turn = 0.5;  // rad: of free and ball joints in one phase, as long as
constexpr int most_halvings = 7;      // these are enough
constexpr double least_spin = 0.02;   // rad: what turns by this feels its gyroscopic torque at the velocity half way
constexpr double least_rise = 0.02;   // of the penetration tolerance: held contacts that lift off rise by less,
constexpr double visible_hop = 0.1;   // or not higher than this; higher ones fly
constexpr int most_short_ones = 8;    // problems that stop them, in one step
constexpr int most_repetitions = 150;

bool all_zero(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double x) { return x == 0; });
}

}  // namespace

/// Where a phase starts, how far it goes without an event, and where its problem is evaluated.
void ImpactSplitter::plan(ImpactPhase& phase, bool lets_in, double fastest) {
  phase.problem = phases_.smooth;
  phase.problem.constraints.lets_in = lets_in;
  phase.q = phases_.q;
  phase.v = phases_.v;
  phase.start = time_;

  // All that is left of the step, unless bodies spin too fast for that.
  phase.share = share_of_spin(fastest);
  if (phase.share * h_ >= rest_) phase.share = 0;
  phase.planned = phase.share > 0 ? phase.share * h_ : rest_;

  // Where nothing touches, the forces are those of the middle of the path: position Verlet.
  StepRecord& r = at();
  const auto held = [&](int, bool, double phi, double rate) { return is_held(phase.problem.constraints, phi, rate); };
  phase.midpoint = r.collision.contacts.empty() && model_.equalities.empty() &&
                   !any_limit(model_, phases_.q.data(), phases_.v.data(), held);
  if (phase.midpoint) evaluate_midpoint(phase, r);
}

/// Kinematics half way of what is planned.
void ImpactSplitter::evaluate_midpoint(ImpactPhase& phase, StepRecord& r) {
  // A limit that is exceeded there has not been reached at the start.
  phase.problem.constraints.lets_in = true;
  phase.problem.constraints.touching = -std::numeric_limits<double>::infinity();

  // Half way at the velocity of the start.
  for (int d = 0; d < model_.nv; ++d)
    phases_.displacement[d] = 0.5 * phase.planned * phases_.v[d];
  r.q_evaluated.resize(model_.nq);
  integrate(model_, phases_.q.data(), phases_.displacement.data(), r.q_evaluated.data());
  kinematics(model_, r.q_evaluated.data(), r.dynamics);
}

/// rad/s, of free and ball joints.
double ImpactSplitter::fastest_spin() const {
  double fastest = 0;
  for (int j = 0; j < model_.num_joints; ++j) {
    const JointType type = model_.joint_type[j];
    if (type != JointType::free && type != JointType::ball) continue;
    const double* w = phases_.v.data() + model_.joint_v[j] + (type == JointType::free ? 3 : 0);
    fastest = std::max(fastest, norm3(w));
  }
  return fastest;
}

/// 2^-k of the step, in which no body turns too far for a constant acceleration; 0: all of it.
double ImpactSplitter::share_of_spin(double fastest) const {
  if (!(fastest * h_ > longest_turn)) return 0;
  double share = 1;
  for (int k = 0; k < most_halvings && fastest * h_ * share > longest_turn; ++k)
    share *= 0.5;
  return share;
}

/// A torque of the velocity before would feed energy to what spins. Damping and dry friction, which are implicit, keep that velocity.
bool ImpactSplitter::spins(const ImpactPhase& phase, double fastest) const {
  if (!options_.torque_free_spin || !phase.midpoint || !(fastest * phase.planned > least_spin)) return false;
  return all_zero(model_.dof_damping) && all_zero(model_.dof_dry_friction);
}

/// a of the velocity half way, v + planned/2 a: the implicit midpoint rule, by repetition, shorter where it does not settle. At last
/// (tens of thousands of rad/s) a of the velocity before.
bool ImpactSplitter::solve_spinning(ImpactPhase& phase, StepRecord& r) {
  std::vector<double>& correction = phases_.midpoint_correction;
  double last_change = INFINITY;
  double share = 1;
  for (int k = 0; k < most_repetitions && solve(r, phase.problem); ++k) {
    // How far the velocity half way is from the one that the problem was solved with.
    double change = 0;
    double size = 0;
    for (int d = 0; d < model_.nv; ++d) {
      correction[d] = phase.v[d] + 0.5 * phase.planned * r.acceleration[d] - r.v[d];
      change = std::max(change, std::abs(correction[d]));
      size = std::max(size, std::abs(r.v[d]));
    }

    // Settled: nothing changes, or rounding alone does.
    phase.midpoint_velocity = change <= 1e-13 * size;
    if (change == 0 || (phase.midpoint_velocity && change >= 0.5 * last_change)) return true;

    // Corrections that hardly shrink go too far.
    if (change > 0.7 * last_change) {
      share = std::max(0.25, 0.5 * share);
    }
    last_change = change;
    for (int d = 0; d < model_.nv; ++d)
      r.v[d] += share * correction[d];
  }

  phase.midpoint_velocity = false;
  r.v = phase.v;
  return solve(r, phase.problem);
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
  if (!solve(r, phase.problem)) return false;

  const double longest = hold_invisible_hops(r);
  if (longest == 0) return true;
  shorten(phase, longest);
  return solve(r, phase.problem);
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

/// A problem about as long as the longest hop; positions are corrected no faster than in a whole step.
void ImpactSplitter::shorten(ImpactPhase& phase, double longest) {
  double length = 1;
  for (int k = 0; k < most_halvings && 0.5 * length * h_ >= longest; ++k)
    length *= 0.5;
  if (length == 1 || length * h_ >= rest_ || short_ones_ >= most_short_ones) return;

  phase.length = length;
  phase.share = phase.share > 0 ? std::min(phase.share, length) : length;
  phase.planned = phase.share * h_;
  phase.problem.constraints.timestep *= length;
  phase.problem.constraints.baumgarte *= length;
  ++short_ones_;
}

/// (I2): the state after t of the path of a solved phase.
void ImpactSplitter::move(const StepRecord& r, const ImpactPhase& phase, double t) {
  for (int d = 0; d < model_.nv; ++d)
    phases_.displacement[d] = t * (phases_.v[d] + 0.5 * t * r.acceleration[d]);
  integrate(model_, phases_.q.data(), phases_.displacement.data(), phases_.q.data());

  // A whole step ends at the velocity that was solved for, without rounding.
  if (t == phase.length * h_ && !phase.midpoint_velocity) {
    phases_.v = r.v_next;
    return;
  }
  for (int d = 0; d < model_.nv; ++d)
    phases_.v[d] += t * r.acceleration[d];
}

}  // namespace coulomb
