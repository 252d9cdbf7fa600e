// The search: filter, a look at the start of each pair, then always the pair that is safe for the shortest time.
#include "coulomb/stepping/first_impact.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "coulomb/collision/separation_bound.hpp"
#include "coulomb/collision/swept_filter.hpp"
#include "coulomb/dynamics/body_motion.hpp"
#include "coulomb/small_math.hpp"

namespace coulomb {
namespace {

constexpr double least_lift = 1e-9;     // m: rounding lifts nothing off
constexpr double grazing_share = 1e-8;  // of the bound of the closing speed
constexpr double held_lift = 1.2;       // tolerances: what is held and lifts off by less stays held
constexpr int max_newton_steps = 50;

/// Below this closing speed rounding of the distance, or a change of the motion in the eighth digit, moves the time at will.
double grazing_speed(const MovingShape& a, const MovingShape& b, double rounding) {
  double acceleration = 0;
  for (const MovingShape* m : {&a, &b})
    acceleration +=
        m->acceleration + norm3(m->drift) + (m->angular_acceleration + m->angular_speed * m->angular_speed) * m->reach;
  return std::max(grazing_share * relative_speed_bound(a, b, 0), 2 * std::sqrt(2 * acceleration * rounding));
}

/// For a pair in contact at this distance. Deep ones, from the start of the simulation, may get deeper by half a tolerance.
double threshold_of(const ImpactOptions& options, double distance) {
  const double deeper = distance > -1.2 * options.tolerance ? options.deeper : 0.5;
  return std::min(-options.tolerance, distance - deeper * options.tolerance);
}

/// A pair on its way, and how far it is known to be safe.
struct Track {
  int pair = 0, top = 0;
  bool held = false;  ///< in contact since the start
  double time = 0, threshold = 0, lift = 0;
  MotionBounds a, b;  ///< relative to top
  bool seen = false;  ///< the normal was evaluated before, at
  double seen_at = 0, seen_normal[3] = {0, 0, 0};
};

struct Evaluation {
  const MovingShape *a, *b;
  SignedDistance now;
  double closing = 0, guard = 0;
};

void measure(const MovingShape& a, const MovingShape& b, Evaluation& e) {
  e.a = &a, e.b = &b;
  e.closing = closing_speed(a, b, e.now);
  double size = 0;
  for (const MovingShape* m : {&a, &b}) {
    size += norm3(m->origin) + norm3(m->shape.position);
    if (m->shape.type != ShapeType::half_space) size += m->reach + core_radius(m->shape);
  }
  e.guard = 4 * std::numeric_limits<double>::epsilon() * size;
}

/// A geometry in the frame of its body.
struct LocalGeometry {
  double rotation[9], position[3], centre[3];  ///< centre of the bounding sphere
  double arm;                                  ///< |centre|
  double core;                                 ///< from the centre to the core's farthest point
};

/// A geometry at the start of the path, in the world.
struct StartGeometry {
  bool placed = false;
  MovingShape moving;
  double velocity[3];  ///< of the centre
  double bend;         ///< bound of the centre's acceleration
};

/// Along the normal, and where edges or faces that turn cut that short along a normal that turns: as it did since it was last seen,
/// or with one of the shapes.
double longest_advance(const Evaluation& e, double threshold, double rest, Track& track) {
  const MovingShape &a = *e.a, &b = *e.b;
  const double* n = e.now.normal;
  SafeAdvance best = safe_advance(a, b, e.now, threshold, rest);
  const bool half_space = a.shape.type == ShapeType::half_space || b.shape.type == ShapeType::half_space;
  if (half_space) return best.time;
  const auto try_turn = [&](double* m) {
    axpy3(-dot3(n, m), n, m);
    const SafeAdvance other = safe_advance(a, b, e.now, threshold, rest, m);
    if (other.time > best.time) best = other;
  };
  if (best.cut && track.seen && track.time > track.seen_at) {
    double m[3];
    for (int i = 0; i < 3; ++i) m[i] = (n[i] - track.seen_normal[i]) / (track.time - track.seen_at);
    try_turn(m);
  }
  for (const MovingShape* shape : {&a, &b}) {
    if (!best.cut || shape->angular_speed == 0) continue;
    double m[3];
    cross3(shape->angular, n, m);
    try_turn(m);
  }
  track.seen = true, track.seen_at = track.time;
  copy3(n, track.seen_normal);
  return best.time;
}

bool finite(const MotionBounds& b) {
  return std::isfinite(b.speed + b.angular_speed + b.acceleration + b.angular_acceleration + dot3(b.drift, b.drift));
}

}  // namespace

struct ImpactSearch::Workspace {
  explicit Workspace(const Model& model);

  SweptFilter filter;
  std::vector<LocalGeometry> local;
  std::vector<BodyMotion> motion;    ///< of all bodies at the start, relative to the world
  std::vector<MotionBounds> bounds;  ///< the same
  std::vector<StartGeometry> starts;
  std::vector<double> axes;  ///< num_pairs x 3: what separated each pair last; saves time and changes no answer
  std::vector<double> up;    ///< num_geometries x 3: outward normals of half-spaces
  std::vector<Track> tracks;
  std::vector<std::pair<double, int>> queue;  ///< heap: safe until, index into tracks (in the order of pairs)
  MovingShape shape_a, shape_b;               ///< of the evaluation
  int evaluations = 0, followed = 0;          ///< followed: without those of the start, which depend on `axes`

  bool prepare(const Model& model, const MotionPath& path, const ImpactStart& start);
  bool take_motion(const Model& model, const MotionPath& path, const DynamicsWorkspace* dynamics);
  StartGeometry& start_of(const Model& model, int g);
  bool straight_paths_meet(const StartGeometry& a, const StartGeometry& b, int ga, int gb, double duration) const;
  bool apart_at_start(const Model& model, int pair, double duration, const StartGeometry& a, const StartGeometry& b);
  void look(const Model& model, const ImpactOptions& options, const MotionPath& path, int pair, const Contact* contact,
            bool all_held);
  void look_at_all(const Model& model, const ImpactOptions& options, const MotionPath& path, const ImpactStart& start);
  void place(const Model& model, int g, const BodyMotion& motion, const MotionBounds& bounds, MovingShape& out) const;
  void evaluate(const Model& model, const MotionPath& path, const Track& track, int top, Evaluation& out);
  bool advance(const MotionPath& path, const Evaluation& e, Track& track) const;
  void report(const Model& model, const MotionPath& path, const Track& track, Impact& impact);
};

ImpactSearch::Workspace::Workspace(const Model& model)
    : filter(model), local(model.num_geometries), motion(model.num_bodies), bounds(model.num_bodies),
      starts(model.num_geometries), axes(3 * model.pair_a.size()), up(3 * model.num_geometries) {
  tracks.reserve(model.pair_a.size()), queue.reserve(model.pair_a.size());
  const FilterTables& t = filter.tables;
  for (int g = 0; g < model.num_geometries; ++g) {
    LocalGeometry& l = local[g];
    for (int i = 0; i < 9; ++i) l.rotation[i] = t.local[i * t.padded + g];
    for (int i = 0; i < 3; ++i)
      l.position[i] = t.local[(9 + i) * t.padded + g], l.centre[i] = t.local[(12 + i) * t.padded + g];
    l.arm = norm3(l.centre);
    switch (model.geometry_type[g]) {  // turning about the centre moves the core only
      case ShapeType::half_space:
      case ShapeType::sphere: l.core = 0; break;
      case ShapeType::capsule: l.core = model.geometry_size[3 * g + 1]; break;
      default: l.core = t.radius[g];
    }
  }
}

/// Motion of all bodies at the start, from the caller's dynamics where these are for this velocity.
bool ImpactSearch::Workspace::take_motion(const Model& model, const MotionPath& path, const DynamicsWorkspace* d) {
  if (d && std::memcmp(d->velocity.data(), path.v, sizeof(double) * model.nv) != 0) d = nullptr;
  bool fine = std::isfinite(path.duration);
  for (int b = 1; b < model.num_bodies; ++b) {
    BodyMotion& m = motion[b];
    bounds[b] = bounds[model.body_parent[b]];
    follow_joints(model, path, b, bounds[b]);
    if (d) {
      copy3(&d->body_position[3 * b], m.position);
      for (int i = 0; i < 9; ++i) m.rotation[i] = d->body_rotation[9 * b + i];
      if (model.body_tree[b] >= 0) {
        const double* twist = &d->body_twist[8 * b];
        double arm[3];
        sub3(m.position, &d->reference[3 * model.body_tree[b]], arm);
        copy3(twist, m.velocity), copy3(twist + 3, m.angular);
        add_cross3(m.angular, arm, m.velocity);
      }
    } else {
      m = motion[model.body_parent[b]];
      follow_joints(model, path, b, 0, m);
    }
    fine = fine && finite(bounds[b]) && std::isfinite(dot3(m.position, m.position));
  }
  return fine;
}

bool ImpactSearch::Workspace::prepare(const Model& model, const MotionPath& path, const ImpactStart& start) {
  tracks.clear(), queue.clear(), evaluations = followed = 0;
  if (!take_motion(model, path, start.dynamics)) return false;
  for (int g = 0; g < model.num_geometries; ++g) {
    const BodyMotion& m = motion[model.geometry_body[g]];
    const MotionBounds& b = bounds[model.geometry_body[g]];
    double* centre = &filter.centre[3 * g];
    rotate(m.rotation, local[g].centre, centre);
    add3(m.position, centre, centre);
    filter.reach[g] = path.duration * (b.speed + b.angular_speed * local[g].arm);
    starts[g].placed = false;
    if (model.geometry_type[g] != ShapeType::half_space) continue;
    if (model.body_tree[model.geometry_body[g]] >= 0 && b.angular_speed > 0) filter.reach[g] = INFINITY;
    const double* R = local[g].rotation;
    const double z[3] = {R[2], R[5], R[8]};
    rotate(m.rotation, z, &up[3 * g]);
  }
  return true;
}

void ImpactSearch::Workspace::place(const Model& model, int g, const BodyMotion& m, const MotionBounds& b,
                                    MovingShape& out) const {
  const LocalGeometry& l = local[g];
  out.shape.type = model.geometry_type[g];
  out.shape.size = &model.geometry_size[3 * g];
  out.shape.mesh = out.shape.type == ShapeType::mesh ? model.meshes[model.geometry_mesh[g]].get() : nullptr;
  multiply3(m.rotation, l.rotation, out.shape.rotation);
  rotate(m.rotation, l.position, out.shape.position);
  add3(m.position, out.shape.position, out.shape.position);
  copy3(m.position, out.origin), copy3(m.velocity, out.velocity), copy3(m.angular, out.angular);
  out.speed = b.speed, out.angular_speed = b.angular_speed;
  out.acceleration = b.acceleration, out.angular_acceleration = b.angular_acceleration;
  copy3(b.drift, out.drift);
  out.reach = l.arm + l.core;
}

StartGeometry& ImpactSearch::Workspace::start_of(const Model& model, int g) {
  StartGeometry& s = starts[g];
  if (s.placed) return s;
  const int body = model.geometry_body[g];
  const MotionBounds& b = bounds[body];
  double arm[3];
  place(model, g, motion[body], b, s.moving);
  sub3(&filter.centre[3 * g], motion[body].position, arm);
  copy3(motion[body].velocity, s.velocity);
  add_cross3(motion[body].angular, arm, s.velocity);
  s.bend =
      b.acceleration + norm3(b.drift) + (b.angular_acceleration + b.angular_speed * b.angular_speed) * local[g].arm;
  s.placed = true;
  return s;
}

/// The bounding spheres on straight paths, widened by how far the centres leave them.
bool ImpactSearch::Workspace::straight_paths_meet(const StartGeometry& a, const StartGeometry& b, int ga, int gb,
                                                  double duration) const {
  double p[3], w[3];
  sub3(&filter.centre[3 * gb], &filter.centre[3 * ga], p);
  sub3(b.velocity, a.velocity, w);
  const double closing = -dot3(p, w), size = norm3(p);
  if (closing > 0) axpy3(std::min(duration, closing / dot3(w, w)), w, p);
  const double reach =
      filter.tables.radius[ga] + filter.tables.radius[gb] + 0.5 * duration * duration * (a.bend + b.bend);
  return !(norm3(p) > reach + 1e-12 * (reach + size));
}

/// The shapes start farther apart than they can travel. Not for half-spaces.
bool ImpactSearch::Workspace::apart_at_start(const Model& model, int pair, double duration, const StartGeometry& a,
                                             const StartGeometry& b) {
  if (!straight_paths_meet(a, b, model.pair_a[pair], model.pair_b[pair], duration)) return true;
  const double travel = duration * relative_speed_bound(a.moving, b.moving, duration);
  return is_farther(a.moving.shape, b.moving.shape, travel * (1 + 1e-12), &axes[3 * pair]);
}

/// The start of one pair: most are safe to the end of the path, the others are tracked.
void ImpactSearch::Workspace::look(const Model& model, const ImpactOptions& options, const MotionPath& path, int pair,
                                   const Contact* contact, bool all_held) {
  const int ga = model.pair_a[pair], gb = model.pair_b[pair];
  const int body_a = model.geometry_body[ga], body_b = model.geometry_body[gb];
  if (model.body_tree[body_a] < 0 && model.body_tree[body_b] < 0) return;
  const StartGeometry &a = start_of(model, ga), &b = start_of(model, gb);
  Evaluation e;
  const bool half_space = a.moving.shape.type == ShapeType::half_space || b.moving.shape.type == ShapeType::half_space;
  bool known = contact && !half_space;
  if (known) {  // a manifold's normal may separate less than the best one
    e.now.distance = separation_along(a.moving.shape, b.moving.shape, contact->normal);
    known = e.now.distance >= contact->distance - 1e-3 * options.tolerance;
  }
  if (known) {
    copy3(contact->normal, e.now.normal);
    copy3(contact->point_a, e.now.point_a), copy3(contact->point_b, e.now.point_b);
  } else {
    if (!half_space && !contact && apart_at_start(model, pair, path.duration, a, b)) return;
    signed_distance(a.moving.shape, b.moving.shape, e.now);
  }
  ++evaluations;
  measure(a.moving, b.moving, e);
  Track track;
  track.pair = pair;
  track.lift = std::max(model.pair_margin[pair], least_lift);
  if (contact) track.lift = std::max(track.lift, held_lift * options.tolerance);
  track.held = e.now.distance <= track.lift;
  if (all_held && !contact && e.now.distance > 0 && e.closing > 0) track.held = false;
  track.threshold = track.held ? threshold_of(options, e.now.distance) : 0.0;
  advance(path, e, track);
  if (track.time >= path.duration) return;
  track.top = common_ancestor(model, body_a, body_b);
  track.a = bounds[body_a], track.b = bounds[body_b];
  if (track.top > 0) {
    track.seen = false;  // the normal was that in the world
    motion_bounds(model, path, body_a, track.top, track.a);
    motion_bounds(model, path, body_b, track.top, track.b);
  }
  queue.emplace_back(track.time, static_cast<int>(tracks.size()));
  tracks.push_back(track);
}

void ImpactSearch::Workspace::look_at_all(const Model& model, const ImpactOptions& options, const MotionPath& path,
                                          const ImpactStart& start) {
  filter.run(model, up.data());
  const Contact *contact = start.contacts, *end = contact + start.num_contacts;
  for (const int pair : filter.pairs) {
    const Contact* deepest = nullptr;
    for (; contact != end && contact->pair <= pair; ++contact)
      if (contact->pair == pair && (!deepest || contact->distance < deepest->distance)) deepest = contact;
    look(model, options, path, pair, deepest, start.all_held);
  }
  std::make_heap(queue.begin(), queue.end(), std::greater<>{});
}

/// Distance of the track's pair and motion of its shapes at the track's time, relative to `top`.
void ImpactSearch::Workspace::evaluate(const Model& model, const MotionPath& path, const Track& track, int top,
                                       Evaluation& out) {
  const int ga = model.pair_a[track.pair], gb = model.pair_b[track.pair];
  BodyMotion m;
  body_motion(model, path, model.geometry_body[ga], top, track.time, m);
  place(model, ga, m, track.a, shape_a);
  body_motion(model, path, model.geometry_body[gb], top, track.time, m);
  place(model, gb, m, track.b, shape_b);
  signed_distance(shape_a.shape, shape_b.shape, out.now);
  measure(shape_a, shape_b, out);
  ++evaluations, ++followed;
}

/// Moves the track's time on; false: it is at its threshold.
bool ImpactSearch::Workspace::advance(const MotionPath& path, const Evaluation& e, Track& track) const {
  const double distance = e.now.distance;
  if (track.held && distance > track.lift) track.held = false, track.threshold = 0;
  const double room = distance - track.threshold - 0.5 * e.guard, rest = path.duration - track.time;
  if (!(room > 0.5 * e.guard)) return false;
  double step = longest_advance(e, track.threshold + 0.5 * e.guard, rest, track);
  const double fastest = relative_speed_bound(*e.a, *e.b, rest);
  step = std::max(step, fastest * rest > room ? room / fastest : rest);
  if (track.held && e.closing < 0) {  // see it lift off, unless it stays up then
    const double high = 1.5 * (track.lift - distance) / -e.closing;
    if (high < rest && !(separation_bound(*e.a, *e.b, e.now, rest) >= 0)) step = std::min(step, high);
  }
  if (!(track.time + step > track.time)) return false;  // time has no more digits
  track.time += step;
  return true;
}

void ImpactSearch::Workspace::report(const Model& model, const MotionPath& path, const Track& track, Impact& impact) {
  Evaluation e;
  evaluate(model, path, track, track.top, e);
  impact.found = true;
  impact.time = track.time, impact.pair = track.pair, impact.threshold = track.threshold;
  impact.distance = e.now.distance, impact.closing_speed = e.closing;
  impact.grazing = !(e.closing > grazing_speed(*e.a, *e.b, e.guard));
  if (track.top > 0) evaluate(model, path, track, 0, e);
  copy3(e.now.normal, impact.normal);
  for (int i = 0; i < 3; ++i) impact.point[i] = 0.5 * (e.now.point_a[i] + e.now.point_b[i]);
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
  Track track;
  track.pair = pair;
  track.a = w.bounds[model.geometry_body[model.pair_a[pair]]];
  track.b = w.bounds[model.geometry_body[model.pair_b[pair]]];
  Evaluation e;
  for (int k = 0; k < max_newton_steps; ++k) {
    w.evaluate(model, path, track, 0, e);
    if (!(e.closing > 0) || !std::isfinite(e.now.distance)) return impact;
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
  Evaluation e;
  while (!w.queue.empty()) {
    std::pop_heap(w.queue.begin(), w.queue.end(), later);
    Track& track = w.tracks[w.queue.back().second];
    impact.time = track.time;
    if (w.followed >= options.max_evaluations) {
      impact.status = ImpactStatus::evaluation_limit, impact.pair = track.pair, impact.evaluations = w.evaluations;
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
