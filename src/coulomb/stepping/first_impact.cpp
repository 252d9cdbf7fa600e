#include "coulomb/stepping/first_impact.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "coulomb/collision/separation_bound.hpp"
#include "coulomb/collision/swept_filter.hpp"
#include "coulomb/dynamics/body_motion.hpp"
#include "coulomb/small_math.hpp"

namespace coulomb {
namespace {

constexpr double least_lift = 1e-9;     // m: rounding lifts nothing off
constexpr double grazing_share = 1e-8;  // of the bound of the closing speed

/// Below this closing speed rounding of the distance, or a change of the motion in the eighth digit, moves the time at will.
double grazing_speed(const MovingShape& a, const MovingShape& b, double rounding) {
  double acceleration = 0;
  for (const MovingShape* m : {&a, &b})
    acceleration += m->acceleration + norm3(m->drift) +
                    (m->angular_acceleration + m->angular_speed * m->angular_speed) * m->reach;
  return std::max(grazing_share * relative_speed_bound(a, b, 0), 2 * std::sqrt(2 * acceleration * rounding));
}

/// A pair that the filter let pass, and how far it is known to be safe.
struct Track {
  int pair = 0, top = 0;
  bool held = false;  ///< in contact since the start
  double time = 0, threshold = 0, lift = 0;
  MotionBounds a, b;  ///< relative to top
};

struct Evaluation {
  MovingShape a, b;
  SignedDistance now;
  double closing = 0, guard = 0;
};

bool finite(const MotionBounds& b) {
  return std::isfinite(b.speed + b.angular_speed + b.acceleration + b.angular_acceleration + dot3(b.drift, b.drift));
}

/// From the core's centre to its farthest point: turning moves nothing else.
double core_reach(const Model& model, const FilterTables& tables, int g) {
  if (model.geometry_type[g] == ShapeType::sphere || model.geometry_type[g] == ShapeType::half_space) return 0;
  return model.geometry_type[g] == ShapeType::capsule ? model.geometry_size[3 * g + 1] : tables.radius[g];
}

}  // namespace

struct ImpactSearch::Workspace {
  explicit Workspace(const Model& model)
      : tables(model), motion(model.num_bodies), bounds(model.num_bodies), swept(model.num_geometries) {
    tracks.reserve(model.pair_a.size()), queue.reserve(model.pair_a.size());
  }

  FilterTables tables;
  std::vector<BodyMotion> motion;    ///< of all bodies at the start, relative to the world
  std::vector<MotionBounds> bounds;  ///< the same
  std::vector<SweptGeometry> swept;
  std::vector<Track> tracks;
  std::vector<std::pair<double, int>> queue;  ///< heap: safe until, index into tracks (in the order of pairs)
  int evaluations = 0;

  bool prepare(const Model& model, const MotionPath& path);
  void sweep_geometry(const Model& model, double duration, int g);
  bool may_meet(const Model& model, int pair) const;
  void add_track(const Model& model, const MotionPath& path, int pair);
  void place(const Model& model, int g, const BodyMotion& motion, const MotionBounds& bounds, MovingShape& out) const;
  void evaluate(const Model& model, const MotionPath& path, const Track& track, int top, Evaluation& out);
  bool advance(const MotionPath& path, const Evaluation& e, Track& track) const;
  void report(const Model& model, const MotionPath& path, const Track& track, Impact& impact);
};

bool ImpactSearch::Workspace::prepare(const Model& model, const MotionPath& path) {
  bool fine = std::isfinite(path.duration);
  for (int b = 1; b < model.num_bodies; ++b) {
    motion[b] = motion[model.body_parent[b]], bounds[b] = bounds[model.body_parent[b]];
    follow_joints(model, path, b, 0, motion[b]);
    follow_joints(model, path, b, bounds[b]);
    fine = fine && finite(bounds[b]) && std::isfinite(dot3(motion[b].position, motion[b].position));
  }
  for (int g = 0; g < model.num_geometries && fine; ++g) sweep_geometry(model, path.duration, g);
  return fine;
}

void ImpactSearch::Workspace::sweep_geometry(const Model& model, double duration, int g) {
  const int body = model.geometry_body[g], stride = tables.padded;
  const BodyMotion& m = motion[body];
  const MotionBounds& b = bounds[body];
  SweptGeometry& s = swept[g];
  double local[9], centre[3], arm[3];
  for (int i = 0; i < 9; ++i) local[i] = tables.local[i * stride + g];
  for (int i = 0; i < 3; ++i) centre[i] = tables.local[(12 + i) * stride + g], s.half[i] = tables.box_half[i * stride + g];
  multiply3(m.rotation, local, s.rotation);
  rotate(m.rotation, centre, arm);
  add3(m.position, arm, s.centre);
  copy3(m.velocity, s.travel);
  add_cross3(m.angular, arm, s.travel);
  for (double& x : s.travel) x *= duration;
  const double r = norm3(arm), w = b.angular_speed;
  const double bend = b.acceleration + norm3(b.drift) + (b.angular_acceleration + w * w) * r;
  s.radius = tables.radius[g];
  s.deviation = std::min(0.5 * duration * duration * bend, 2 * duration * (b.speed + w * r));
  s.sway = std::min(w * duration, 2.0) * core_reach(model, tables, g);
}

bool ImpactSearch::Workspace::may_meet(const Model& model, int pair) const {
  int a = model.pair_a[pair], b = model.pair_b[pair];
  if (model.body_tree[model.geometry_body[a]] < 0 && model.body_tree[model.geometry_body[b]] < 0) return false;
  if (model.geometry_type[b] == ShapeType::half_space) std::swap(a, b);
  if (model.geometry_type[a] != ShapeType::half_space)
    return swept_spheres_meet(swept[a], swept[b]) && swept_boxes_meet(swept[a], swept[b]);
  if (model.geometry_type[b] == ShapeType::half_space) return false;
  if (model.body_tree[model.geometry_body[a]] >= 0) return true;
  const double* R = swept[a].rotation;
  const double up[3] = {R[2], R[5], R[8]};
  return swept_box_meets_half_space(up, dot3(up, swept[a].centre), swept[b]);
}

void ImpactSearch::Workspace::add_track(const Model& model, const MotionPath& path, int pair) {
  const int a = model.geometry_body[model.pair_a[pair]], b = model.geometry_body[model.pair_b[pair]];
  Track track;
  track.pair = pair;
  track.top = common_ancestor(model, a, b);
  track.lift = std::max(model.pair_margin[pair], least_lift);
  track.a = bounds[a], track.b = bounds[b];
  if (track.top > 0) {
    motion_bounds(model, path, a, track.top, track.a);
    motion_bounds(model, path, b, track.top, track.b);
  }
  tracks.push_back(track);
}

void ImpactSearch::Workspace::place(const Model& model, int g, const BodyMotion& m, const MotionBounds& b,
                                    MovingShape& out) const {
  const int stride = tables.padded;
  double local[9], position[3], arm[3], centre[3];
  for (int i = 0; i < 9; ++i) local[i] = tables.local[i * stride + g];
  for (int i = 0; i < 3; ++i) {
    position[i] = tables.local[(9 + i) * stride + g];
    centre[i] = tables.local[(12 + i) * stride + g];
  }
  out.shape.type = model.geometry_type[g];
  out.shape.size = &model.geometry_size[3 * g];
  out.shape.mesh = out.shape.type == ShapeType::mesh ? model.meshes[model.geometry_mesh[g]].get() : nullptr;
  multiply3(m.rotation, local, out.shape.rotation);
  rotate(m.rotation, position, arm);
  add3(m.position, arm, out.shape.position);
  copy3(m.position, out.origin), copy3(m.velocity, out.velocity), copy3(m.angular, out.angular);
  out.speed = b.speed, out.angular_speed = b.angular_speed;
  out.acceleration = b.acceleration, out.angular_acceleration = b.angular_acceleration;
  copy3(b.drift, out.drift);
  out.reach = norm3(centre) + core_reach(model, tables, g);
}

/// Distance of the track's pair and motion of its shapes at the track's time, relative to `top`.
void ImpactSearch::Workspace::evaluate(const Model& model, const MotionPath& path, const Track& track, int top,
                                       Evaluation& out) {
  const int ga = model.pair_a[track.pair], gb = model.pair_b[track.pair];
  const int bodies[2] = {model.geometry_body[ga], model.geometry_body[gb]};
  BodyMotion m[2];
  for (int i = 0; i < 2; ++i) {
    if (track.time > 0) {
      body_motion(model, path, bodies[i], top, track.time, m[i]);
      continue;
    }
    m[i] = motion[bodies[i]];  // in the world's axes; the distance does not mind
    if (top == 0) continue;
    double arm[3], carried[3];
    sub3(m[i].position, motion[top].position, arm);
    cross3(motion[top].angular, arm, carried);
    add3(carried, motion[top].velocity, carried);
    sub3(m[i].velocity, carried, m[i].velocity);
    sub3(m[i].angular, motion[top].angular, m[i].angular);
  }
  place(model, ga, m[0], track.a, out.a);
  place(model, gb, m[1], track.b, out.b);
  signed_distance(out.a.shape, out.b.shape, out.now);
  out.closing = closing_speed(out.a, out.b, out.now);
  const auto size = [](const MovingShape& s) {
    const bool plane = s.shape.type == ShapeType::half_space;
    return norm3(s.origin) + norm3(s.shape.position) + (plane ? 0.0 : s.reach + core_radius(s.shape));
  };
  out.guard = 4 * std::numeric_limits<double>::epsilon() * (size(out.a) + size(out.b));
  ++evaluations;
}

/// Moves the track's time on; false: it is at its threshold.
bool ImpactSearch::Workspace::advance(const MotionPath& path, const Evaluation& e, Track& track) const {
  const double distance = e.now.distance;
  if (track.held && distance > track.lift) track.held = false, track.threshold = 0;
  const double room = distance - track.threshold - 0.5 * e.guard, rest = path.duration - track.time;
  if (!(room > 0.5 * e.guard)) return false;
  double step = safe_advance(e.a, e.b, e.now, track.threshold + 0.5 * e.guard, rest);
  const double fastest = relative_speed_bound(e.a, e.b, rest);
  step = std::max(step, fastest * rest > room ? room / fastest : rest);
  if (track.held && e.closing < 0) {  // see it lift off
    const double high = 1.5 * (track.lift - distance) / -e.closing;
    if (high < rest) step = std::min(step, high);
  }
  if (track.time + step == track.time) return false;  // time has no more digits
  track.time += step;
  return true;
}

void ImpactSearch::Workspace::report(const Model& model, const MotionPath& path, const Track& track, Impact& impact) {
  Evaluation e;
  evaluate(model, path, track, track.top, e);
  impact.found = true;
  impact.time = track.time, impact.pair = track.pair, impact.threshold = track.threshold;
  impact.distance = e.now.distance, impact.closing_speed = e.closing;
  impact.grazing = !(e.closing > grazing_speed(e.a, e.b, e.guard));
  if (track.top > 0) evaluate(model, path, track, 0, e);
  copy3(e.now.normal, impact.normal);
  for (int i = 0; i < 3; ++i) impact.point[i] = 0.5 * (e.now.point_a[i] + e.now.point_b[i]);
}

ImpactSearch::ImpactSearch(const Model& model) : workspace_(std::make_unique<Workspace>(model)) {}
ImpactSearch::~ImpactSearch() = default;
ImpactSearch::ImpactSearch(ImpactSearch&&) noexcept = default;
ImpactSearch& ImpactSearch::operator=(ImpactSearch&&) noexcept = default;

// The pair that is safe for the shortest time is looked at next: nothing is advanced beyond the first impact.
Impact ImpactSearch::first(const Model& model, const ImpactOptions& options, const MotionPath& path) {
  Workspace& w = *workspace_;
  Impact impact;
  w.tracks.clear(), w.queue.clear(), w.evaluations = 0;
  if (!w.prepare(model, path)) {
    impact.status = ImpactStatus::not_finite;
    return impact;
  }
  for (int pair = 0; pair < static_cast<int>(model.pair_a.size()); ++pair)
    if (w.may_meet(model, pair)) w.add_track(model, path, pair);
  Evaluation e;
  for (int i = 0; i < static_cast<int>(w.tracks.size()); ++i) {
    Track& track = w.tracks[i];
    w.evaluate(model, path, track, track.top, e);
    const double distance = e.now.distance;
    track.held = distance <= track.lift;
    track.threshold = track.held ? std::min(-options.tolerance, distance - 0.5 * options.tolerance) : 0.0;
    w.advance(path, e, track);
    if (track.time < path.duration) w.queue.emplace_back(track.time, i);
  }
  constexpr auto later = std::greater<>{};
  std::make_heap(w.queue.begin(), w.queue.end(), later);
  while (!w.queue.empty()) {
    std::pop_heap(w.queue.begin(), w.queue.end(), later);
    Track& track = w.tracks[w.queue.back().second];
    impact.time = track.time;
    if (w.evaluations >= options.max_evaluations) {
      impact.status = ImpactStatus::evaluation_limit, impact.evaluations = w.evaluations;
      return impact;
    }
    w.evaluate(model, path, track, track.top, e);
    if (!std::isfinite(e.now.distance)) {
      impact.status = ImpactStatus::not_finite, impact.time = 0;
      return impact;
    }
    if (!w.advance(path, e, track)) {
      w.report(model, path, track, impact);
      impact.evaluations = w.evaluations;
      return impact;
    }
    if (track.time < path.duration) {
      w.queue.back().first = track.time;
      std::push_heap(w.queue.begin(), w.queue.end(), later);
    } else {
      w.queue.pop_back();
    }
  }
  impact.time = path.duration, impact.evaluations = w.evaluations;
  return impact;
}

}  // namespace coulomb
