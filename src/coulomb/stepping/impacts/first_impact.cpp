// The search: filter and a look at the start of each pair (impact_search_start.cpp), then always the pair that is safe for the shortest
// time.
#include "coulomb/stepping/impacts/first_impact.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "coulomb/base/small_math.hpp"
#include "coulomb/stepping/impacts/impact_search.hpp"

namespace coulomb {
namespace {

constexpr double grazing_share = 1e-8;  // of the bound of the closing speed
constexpr int max_newton_steps = 50;

/// Below this closing speed rounding of the distance, or a change of the motion in the eighth digit, moves the time at will.
double grazing_speed(const MovingShape& a, const MovingShape& b, double rounding) {
  double acceleration = 0;
  for (const MovingShape* m : {&a, &b})
    acceleration +=
        m->acceleration + norm3(m->drift) + (m->angular_acceleration + m->angular_speed * m->angular_speed) * m->reach;
  return std::max(grazing_share * relative_speed_bound(a, b, 0), 2 * std::sqrt(2 * acceleration * rounding));
}

/// The rate at which the normal turned since the pair was last seen.
void seen_turn(const PairDistance& e, PairTrack& track, double* rate) {
  const double* n = e.now.normal;
  const bool known = track.seen && track.time > track.seen_at;
  for (int i = 0; i < 3; ++i)
    rate[i] = known ? (n[i] - track.seen_normal[i]) / (track.time - track.seen_at) : 0.0;
  track.seen = true;
  track.seen_at = track.time;
  copy3(n, track.seen_normal);
}

}  // namespace

/// The rest of an evaluation, whose distance is known.
void measure(const MovingShape& a, const MovingShape& b, PairDistance& e) {
  e.a = &a;
  e.b = &b;
  e.closing = closing_speed(a, b, e.now);

  // Rounding is relative to the places that the distance is the difference of.
  double size = 0;
  for (const MovingShape* m : {&a, &b}) {
    size += norm3(m->origin) + norm3(m->shape.position);
    if (m->shape.type == ShapeType::surface)
      size += norm3(m == &a ? e.now.point_a : e.now.point_b);
    else if (m->shape.type != ShapeType::half_space)
      size += m->reach + core_radius(m->shape);
  }
  e.guard = 4 * std::numeric_limits<double>::epsilon() * size;
}

/// A geometry on a body that moves so.
void ImpactSearch::Workspace::place(const Model& model, int g, const BodyMotion& m, const MotionBounds& b,
                                    MovingShape& out) const {
  // The shape, where it is.
  const LocalGeometry& l = local[g];
  set_shape(model, g, out.shape);
  multiply3(m.rotation, l.rotation, out.shape.rotation);
  rotate(m.rotation, l.position, out.shape.position);
  add3(m.position, out.shape.position, out.shape.position);

  // Its motion now, and bounds of it for the rest of the path.
  copy3(m.position, out.origin);
  copy3(m.velocity, out.velocity);
  copy3(m.angular, out.angular);
  out.speed = b.speed;
  out.angular_speed = b.angular_speed;
  out.acceleration = b.acceleration;
  out.angular_acceleration = b.angular_acceleration;
  copy3(b.drift, out.drift);
  out.reach = l.arm + l.core;
}

/// Distance of the track's pair and motion of its shapes at the track's time, relative to `top`.
void ImpactSearch::Workspace::evaluate(const Model& model, const MotionPath& path, const PairTrack& track, int top,
                                       PairDistance& out) {
  const int ga = model.pair_a[track.pair];
  const int gb = model.pair_b[track.pair];
  BodyMotion m;
  body_motion(model, path, model.geometry_body[ga], top, track.time, m);
  place(model, ga, m, track.a, shape_a);
  body_motion(model, path, model.geometry_body[gb], top, track.time, m);
  place(model, gb, m, track.b, shape_b);

  signed_distance(shape_a.shape, shape_b.shape, out.now);
  measure(shape_a, shape_b, out);
  ++evaluations;
  ++followed;
}

/// Moves the track's time on; false: it is at its threshold.
bool ImpactSearch::Workspace::advance(const MotionPath& path, const PairDistance& e, PairTrack& track) {
  const double distance = e.now.distance;
  if (track.held && distance > track.lift) {
    track.held = false;
    track.threshold = 0;
  }
  const double room = distance - track.threshold - 0.5 * e.guard;
  const double rest = path.duration - track.time;
  if (!(room > 0.5 * e.guard)) return false;

  // By the bound (I10), or by that of the speed where this leads further.
  const bool of_surface = has_surface(*e.a, *e.b);
  const double least = track.threshold + 0.5 * e.guard;
  double turn[3];
  seen_turn(e, track, turn);
  double step = of_surface ? surface.time(*e.a, *e.b, distance, least, rest, turn)
                           : longest_advance(*e.a, *e.b, e.now, least, rest, turn);
  const double fastest = relative_speed_bound(*e.a, *e.b, rest);
  step = std::max(step, fastest * rest > room ? room / fastest : rest);

  // What is held is seen when it lifts off, unless it stays up then.
  if (track.held && e.closing < 0) {
    const double high = 1.5 * (track.lift - distance) / -e.closing;
    if (high < rest && (of_surface || !(separation_bound(*e.a, *e.b, e.now, rest) >= 0))) {
      step = std::min(step, high);
    }
  }

  // It has arrived as well when time has no more digits.
  if (!(track.time + step > track.time)) return false;
  track.time += step;
  return true;
}

/// A pair at the start of the path, by the bounds of its bodies' motion.
PairTrack ImpactSearch::Workspace::track_from_start(const Model& model, int pair) const {
  PairTrack track;
  track.pair = pair;
  track.a = bounds[model.geometry_body[model.pair_a[pair]]];
  track.b = bounds[model.geometry_body[model.pair_b[pair]]];
  return track;
}

/// The impact of a track at its time, in the world.
void ImpactSearch::Workspace::report(const Model& model, const MotionPath& path, const PairTrack& track,
                                     Impact& impact) {
  PairDistance e;
  evaluate(model, path, track, track.top, e);
  impact.found = true;
  impact.time = track.time;
  impact.pair = track.pair;
  impact.threshold = track.threshold;
  impact.distance = e.now.distance;
  impact.closing_speed = e.closing;
  impact.grazing = !(e.closing > grazing_speed(*e.a, *e.b, e.guard));

  if (track.top > 0) {
    evaluate(model, path, track, 0, e);
  }
  copy3(e.now.normal, impact.normal);
  copy3(e.now.point_a, impact.point_a);
  copy3(e.now.point_b, impact.point_b);
  for (int i = 0; i < 3; ++i)
    impact.point[i] = 0.5 * (e.now.point_a[i] + e.now.point_b[i]);
}

ImpactSearch::ImpactSearch(const Model& model) : workspace_(std::make_unique<Workspace>(model)) {}
ImpactSearch::~ImpactSearch() = default;
ImpactSearch::ImpactSearch(ImpactSearch&&) noexcept = default;
ImpactSearch& ImpactSearch::operator=(ImpactSearch&&) noexcept = default;

Impact ImpactSearch::touch(const Model& model, const MotionPath& path, int pair, double earliest) {
  Workspace& w = *workspace_;
  Impact impact;
  if (!w.prepare(model, path, {})) {
    impact.status = ImpactStatus::not_finite;
    return impact;
  }

  // Relative to the world, from the start of the path backwards.
  PairTrack track = w.track_from_start(model, pair);
  PairDistance e;
  for (int k = 0; k < max_newton_steps; ++k) {
    w.evaluate(model, path, track, 0, e);
    if (!(e.closing > 0) || !std::isfinite(e.now.distance)) return impact;

    // Newton's step to the zero of the distance, until it moves by rounding only.
    const double next = std::min(track.time + e.now.distance / e.closing, 0.0);
    if (std::abs(e.now.distance) <= 0.5 * e.guard || next == track.time) {
      w.report(model, path, track, impact);
      return impact;
    }
    if (!(next >= earliest)) return impact;
    track.time = next;
  }
  return impact;
}

Impact ImpactSearch::at_start(const Model& model, const MotionPath& path, int pair) {
  Workspace& w = *workspace_;
  Impact impact;
  if (!w.prepare(model, path, {})) {
    impact.status = ImpactStatus::not_finite;
    return impact;
  }

  w.report(model, path, w.track_from_start(model, pair), impact);
  return impact;
}

// The pair that is safe for the shortest time is looked at next: nothing is advanced beyond the first impact.
Impact ImpactSearch::first(const Model& model, const ImpactOptions& options, const MotionPath& path,
                           const ImpactStart& start) {
  Workspace& w = *workspace_;
  Impact impact;
  if (!w.prepare(model, path, start)) {
    impact.status = ImpactStatus::not_finite;
    return impact;
  }
  w.look_at_all(model, options, path, start);

  constexpr auto later = std::greater<>{};
  PairDistance e;
  while (!w.queue.empty()) {
    // Nothing happens before the time of this pair.
    std::pop_heap(w.queue.begin(), w.queue.end(), later);
    PairTrack& track = w.tracks[w.queue.back().second];
    impact.time = track.time;
    if (w.followed >= options.max_evaluations) {
      impact.status = ImpactStatus::evaluation_limit;
      impact.pair = track.pair;
      impact.evaluations = w.evaluations;
      return impact;
    }

    w.evaluate(model, path, track, track.top, e);
    if (!std::isfinite(e.now.distance)) {
      impact.status = ImpactStatus::not_finite;
      impact.time = 0;
      return impact;
    }

    // A pair that cannot move on is the first to come down.
    if (!w.advance(path, e, track)) {
      w.report(model, path, track, impact);
      impact.evaluations = w.evaluations;
      return impact;
    }

    // Others come back when they have to be looked at again.
    if (track.time < path.duration) {
      w.queue.back().first = track.time;
      std::push_heap(w.queue.begin(), w.queue.end(), later);
    } else {
      w.queue.pop_back();
    }
  }
  impact.time = path.duration;
  impact.evaluations = w.evaluations;
  return impact;
}

}  // namespace coulomb
