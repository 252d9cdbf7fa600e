// What ends a smooth phase of a split step, and when: the first impact on its path, or, where something touches already, the time at
// which it did.
#include <algorithm>
#include <cmath>
#include <utility>

#include "coulomb/base/small_math.hpp"
#include "coulomb/stepping/impacts/impact_contact.hpp"
#include "coulomb/stepping/impacts/impact_limits.hpp"
#include "coulomb/stepping/impacts/impact_splitter.hpp"

namespace coulomb {
namespace {

constexpr double deeper_share = 1e-5;
constexpr int most_corrections = 20;
constexpr double reached = 1e-13;  // m
// Of the penetration tolerance: between the levels on which points land within an overlap.
constexpr double level_share = 1e-3;
constexpr int search_budget = 4000;

/// The deepest contact of a pair; nullptr: none is among these.
const Contact* deepest_of_pair(const std::vector<Contact>& contacts, int pair) {
  const Contact* deepest = nullptr;
  for (const Contact& c : contacts)
    if (c.pair == pair && (!deepest || c.distance < deepest->distance)) {
      deepest = &c;
    }
  return deepest;
}

/// Metres and radians per second that the bodies of a contact move by, for the link twists of the record.
double speed_at(const Model& model, const StepRecord& r, const Contact& contact) {
  double velocity[3];
  contact_velocity(model, r.dynamics, r.twist.data(), contact, velocity);
  double speed = norm3(velocity);
  for (const int body : {contact.body_a, contact.body_b})
    speed += norm3(body_link_twist(model, r.twist.data(), body) + 3);
  return speed;
}

}  // namespace

/// What the search knows of the contact that is hit.
void ImpactSplitter::take_contact(const Impact& impact, Contact& c) const {
  c = Contact{};
  c.pair = impact.pair;
  c.distance = impact.distance;
  c.rule = MotionRule::frozen;
  c.geometry_a = model_.pair_a[c.pair];
  c.geometry_b = model_.pair_b[c.pair];
  c.body_a = model_.geometry_body[c.geometry_a];
  c.body_b = model_.geometry_body[c.geometry_b];

  copy3(impact.normal, c.normal);
  copy3(impact.point, c.point);
  copy3(impact.point_a, c.point_a);
  copy3(impact.point_b, c.point_b);
}

/// The event of a phase that lets in what has touched already: the time, at most zero, at which the first of these did.
void ImpactSplitter::find_touch(ImpactPhase& phase) {
  const StepRecord& r = at();
  const MotionPath path{phase.q.data(), phase.v.data(), phase.path.data(), 0};

  // The step's own past is as long as the step; later phases have none. What has not come from outside within it has no such time.
  const double earliest = phases_.count == 1 ? -h_ : 0.0;
  bool any = false;
  phase.from_start = false;
  phase.grazing = false;
  phase.fixed_time = true;
  phase.duration = 0;
  for (const ClosingGap& hit : phases_.hits) {
    ClosingGap gap = hit;
    bool found = false;
    double time = 0;
    double speed = 0;
    if (hit.joint >= 0) {
      // A joint that is beyond its limit.
      const LimitHit limit = limit_touch(model_, path, hit.joint, hit.upper, earliest);
      found = limit.found;
      time = limit.found ? limit.time : 0;
      speed = limit.closing_speed;
    } else {
      // A pair that overlaps, or that is held at other points: then it is hit here and now.
      if (!has_touched(hit)) continue;
      const bool held = hit.contact.distance > 0;
      const Impact impact = held ? Impact{} : phases_.search.touch(model_, path, hit.contact.pair, earliest);
      found = impact.found;
      time = impact.found ? impact.time : 0;
      speed = impact.found ? impact.closing_speed : -normal_velocity(model_, r, hit.contact);
      if (impact.found) take_contact(impact, gap.contact);
    }

    // The earliest; of equal ones, one whose time has a derivative.
    const bool earlier = time < phase.duration;
    const bool better = time == phase.duration && found && phase.fixed_time;
    if (any && !earlier && !better) continue;
    any = true;
    phase.gap = std::move(gap);
    phase.duration = time;
    phase.fixed_time = !found;
    closing_speed_ = speed;
  }
  phase.end = phase.gap.joint >= 0 ? PhaseEnd::limit : PhaseEnd::pair;
  sank_ = false;
}

/// The first event within what is left of the step; phase.end tells. False: overflow.
bool ImpactSplitter::find_event(ImpactPhase& phase) {
  const StepRecord& r = at();
  MotionPath path{phase.q.data(), phase.v.data(), phase.path.data(), phase.planned};

  // Joints first: pairs need not be followed for longer than that.
  const LimitHit limit = first_limit(model_, phases_.smooth.constraints, path);
  if (limit.found) path.duration = limit.time;

  // Pairs that are held may sink by a share of the tolerance.
  ImpactOptions search;
  search.max_evaluations = search_budget;
  search.tolerance = kept_share * options_.impacts.penetration_tolerance;
  search.deeper = deeper_share;
  const ImpactStart start{&r.dynamics, r.collision.contacts.data(), static_cast<int>(r.collision.contacts.size()), true,
                          r.flying()};
  const Impact impact = phases_.search.first(model_, search, path, start);
  if (impact.status == ImpactStatus::not_finite) return false;

  phase.gap = ClosingGap{};
  phase.grazing = false;
  phase.fixed_time = false;
  phase.from_start = false;
  if (impact.found) {
    // A pair comes down on its threshold.
    phase.end = PhaseEnd::pair;
    phase.duration = impact.time;
    phase.grazing = impact.grazing;
    sank_ = impact.threshold < 0;
    closing_speed_ = impact.closing_speed;
    take_contact(impact, phase.gap.contact);
    if (impact.threshold < -search.tolerance) threshold_from_start(phase);
  } else if (impact.status == ImpactStatus::evaluation_limit) {
    // The search gave up at a pair that is next to its threshold: bodies move as far as is known to be safe.
    phases_.sinking.hurry();
    phase.end = PhaseEnd::pause;
    phase.duration = impact.time;
    phases_.sinking.creeps(impact.pair);
  } else if (limit.found) {
    // A joint comes to its limit before any pair does.
    phase.end = limit.complete ? PhaseEnd::limit : PhaseEnd::pause;
    phase.duration = limit.time;
    phase.grazing = limit.grazing;
    phase.gap.joint = limit.joint;
    phase.gap.upper = limit.upper;
  } else {
    // Nothing is in the way.
    phase.end = phase.share > 0 ? PhaseEnd::part : PhaseEnd::whole;
    phase.duration = phase.planned;
  }
  return true;
}

/// Of a pair that was at its tolerance already, whether it was held or had left: the threshold is a depth below where it was.
void ImpactSplitter::threshold_from_start(ImpactPhase& phase) {
  const StepRecord& r = at();
  const int pair = phase.gap.contact.pair;
  const MotionPath path{phase.q.data(), phase.v.data(), phase.path.data(), 0};
  const Impact start = phases_.search.at_start(model_, path, pair);

  // The collision stage's contact, if it is as deep: points that stand for a flat cap may lie above its deepest place, and move otherwise.
  phase.from_start = start.found;
  phase.grazing = phase.grazing || !start.found;
  take_contact(start, phase.sank_from);
  const Contact* deepest = deepest_of_pair(r.collision.contacts, pair);
  if (deepest && std::abs(deepest->distance - start.distance) < event_gap) phase.sank_from = *deepest;
}

/// Where a pair came down on the threshold of what is held, with a point that is not held: the point touched a little before, when its
/// own gap closed. Goes back to there, by Newton's method along the path. A point that hops within an overlap lands where it left, on one
/// of many fixed levels: would it land on the threshold, the position correction of each hop would pay for the next.
void ImpactSplitter::go_back(ImpactPhase& phase, StepRecord& next) {
  const StepRecord& r = before();
  const int pair = phase.gap.contact.pair;
  const int feature = phase.gap.contact.feature;
  const auto find_at = [&](double t) -> const Contact* {
    phases_.q = phase.q;
    phases_.v = phase.v;
    move(r, phase, t);
    place(next);
    for (const Contact& c : next.collision.contacts)
      if (c.pair == pair && c.feature == feature) return &c;
    return nullptr;
  };

  // The level at or below the one that the point left.
  const double rung = level_share * options_.impacts.penetration_tolerance;
  const Contact* point = find_at(0);
  const double level = point && point->distance < 0 ? rung * std::floor(point->distance / rung) : 0.0;

  // From the end of the phase towards the time at which it comes back.
  const double end = phase.duration;
  double t = end;
  point = find_at(t);
  for (int k = 0; k < most_corrections && point; ++k) {
    link_twists(model_, next.dynamics, phases_.v.data(), next.twist.data());
    const double rate = normal_velocity(model_, next, *point);
    const double gap = point->distance - level;
    const double earlier = t - gap / rate;
    if (!(rate < 0)) break;

    // There: the pair came down with this point, not as one that sank.
    if (std::abs(gap) <= reached || earlier == t) {
      phase.duration = t;
      phase.gap.contact = *point;
      phase.from_start = false;
      phase.fixed_time = false;
      sank_ = false;
      closing_speed_ = -rate;
      return;
    }
    if (!(earlier > 0) || !(earlier <= end)) break;
    t = earlier;
    point = find_at(t);
  }

  // No such time: the event stays where the search found it.
  find_at(end);
}

/// A pair is hit where the next phase starts.
void ImpactSplitter::arrive(ImpactPhase& phase, StepRecord& next) {
  Contact& contact = phase.gap.contact;
  const StepRecord& solved = before();
  const std::vector<Contact>& held = solved.collision.contacts;

  // The contact as the collision stage sees it; a point that was not held has touched before.
  find_contact(model_, next.collision, phases_.found, contact);
  if (sank_ && !SinkingContacts::is_among(held, contact)) {
    go_back(phase, next);
    find_contact(model_, next.collision, phases_.found, contact);
  }

  // Pairs that come back again and again are parted faster.
  link_twists(model_, next.dynamics, phases_.v.data(), next.twist.data());
  const double moved = std::abs(phase.duration) * speed_at(model_, next, contact);
  phases_.sinking.hit(contact, sank_, moved, held, next.collision.contacts);

  // A path a little farther away would have missed it: the acceleration turns it before that depth.
  link_twists(model_, next.dynamics, solved.acceleration.data(), next.twist.data());
  const double turning = std::abs(normal_velocity(model_, next, contact));
  phase.grazing = phase.grazing || closing_speed_ * closing_speed_ < 2 * turning * grazing_depth;
}

}  // namespace coulomb
