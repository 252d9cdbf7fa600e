// The start of a search: where everything is and how it moves, which pairs may meet, and a look at each of these.
#include <algorithm>
#include <cmath>
#include <functional>

#include "coulomb/base/small_math.hpp"
#include "coulomb/stepping/impacts/impact_search.hpp"
#include "coulomb/stepping/inner_edges.hpp"

namespace coulomb {
namespace {

constexpr double least_lift = 1e-9;  // m: rounding lifts nothing off
constexpr double held_lift = 1.2;    // tolerances: what is held and lifts off by less stays held

/// For a pair in contact at this distance. Deep ones, from the start of the simulation, may get deeper by half a tolerance.
double threshold_of(const ImpactOptions& options, double distance) {
  const double deeper = distance > -1.2 * options.tolerance ? options.deeper : 0.5;
  return std::min(-options.tolerance, distance - deeper * options.tolerance);
}

bool finite(const MotionBounds& b) {
  return std::isfinite(b.speed + b.angular_speed + b.acceleration + b.angular_acceleration + dot3(b.drift, b.drift));
}

/// Of the body's frame, as the caller's dynamics have it.
void motion_of_body(const Model& model, const DynamicsWorkspace& d, int body, BodyMotion& m) {
  copy3(&d.body_position[3 * body], m.position);
  for (int i = 0; i < 9; ++i)
    m.rotation[i] = d.body_rotation[9 * body + i];
  if (model.body_tree[body] < 0) return;

  // Twists are about the reference point of the tree.
  const double* twist = &d.body_twist[8 * body];
  double arm[3];
  sub3(m.position, &d.reference[3 * model.body_tree[body]], arm);
  copy3(twist, m.velocity);
  copy3(twist + 3, m.angular);
  add_cross3(m.angular, arm, m.velocity);
}

/// The pair's contact of least distance among those from `contact` on, which moves behind them; nullptr: none.
const Contact* take_deepest(int pair, const Contact*& contact, const Contact* end) {
  const Contact* deepest = nullptr;
  for (; contact != end && contact->pair <= pair; ++contact)
    if (contact->pair == pair && (!deepest || contact->distance < deepest->distance)) {
      deepest = contact;
    }
  return deepest;
}

/// Is a body of the pair held along a normal that parts this pair as well?
bool parted_as_held(const Model& model, int pair, const PairDistance& e, const ImpactStart& start) {
  if (!start.all_held || has_half_space(*e.a, *e.b) || has_surface(*e.a, *e.b)) return false;
  const int body_a = model.geometry_body[model.pair_a[pair]];
  const int body_b = model.geometry_body[model.pair_b[pair]];
  return std::any_of(start.contacts, start.contacts + start.num_contacts, [&](const Contact& held) {
    double n[3];
    return normal_beside(model, held, body_a, body_b, n) != Shared::neither &&
           separation_along(e.a->shape, e.b->shape, n) >= std::min(0.0, held.distance) - one_floor;
  });
}

}  // namespace

ImpactSearch::Workspace::Workspace(const Model& model)
    : filter(model), local(model.num_geometries), motion(model.num_bodies), bounds(model.num_bodies),
      starts(model.num_geometries), axes(3 * model.pair_a.size()), up(3 * model.num_geometries) {
  tracks.reserve(model.pair_a.size());
  queue.reserve(model.pair_a.size());

  // Placements in the frames of the bodies, which the filter has by columns.
  const FilterTables& t = filter.tables;
  for (int g = 0; g < model.num_geometries; ++g) {
    LocalGeometry& l = local[g];
    for (int i = 0; i < 9; ++i)
      l.rotation[i] = t.local[i * t.padded + g];
    for (int i = 0; i < 3; ++i) {
      l.position[i] = t.local[(9 + i) * t.padded + g];
      l.centre[i] = t.local[(12 + i) * t.padded + g];
    }
    l.arm = norm3(l.centre);

    // Turning about the centre moves the core only.
    switch (model.geometry_type[g]) {
      case ShapeType::half_space:
      case ShapeType::sphere: l.core = 0; break;
      case ShapeType::capsule: l.core = model.geometry_size[3 * g + 1]; break;
      default: l.core = t.radius[g];
    }
  }
}

/// Motion of all bodies at the start: of each tree from the caller's dynamics, where these are for its place and velocity. What other
/// trees do has no say in that: they change no bit of this one.
bool ImpactSearch::Workspace::take_motion(const Model& model, const MotionPath& path, const ImpactStart& start) {
  const auto is_known = [&](int tree) {
    if (!start.dynamics || (tree >= 0 && start.elsewhere && start.elsewhere[tree])) return false;
    const int first = tree >= 0 ? model.tree_first_dof[tree] : 0;
    const int end = tree >= 0 ? model.tree_first_dof[tree + 1] : 0;
    return std::equal(path.v + first, path.v + end, start.dynamics->velocity.data() + first);
  };
  bool fine = std::isfinite(path.duration);
  int tree = -2;  // of the body before; none has it
  bool known = false;
  for (int b = 1; b < model.num_bodies; ++b) {
    // Bounds for all of the path grow from parent to child.
    bounds[b] = bounds[model.body_parent[b]];
    follow_joints(model, path, b, bounds[b]);

    // So does the motion, where nobody knows it.
    if (model.body_tree[b] != tree) {
      tree = model.body_tree[b];
      known = is_known(tree);
    }
    BodyMotion& m = motion[b];
    if (known) {
      motion_of_body(model, *start.dynamics, b, m);
    } else {
      m = motion[model.body_parent[b]];
      follow_joints(model, path, b, 0, m);
    }
    fine = fine && finite(bounds[b]) && std::isfinite(dot3(m.position, m.position));
  }
  return fine;
}

/// What the filter needs: bounding spheres at the start, and how far they reach along the path. False: the motion overflows.
bool ImpactSearch::Workspace::prepare(const Model& model, const MotionPath& path, const ImpactStart& start) {
  tracks.clear();
  queue.clear();
  evaluations = 0;
  followed = 0;
  if (!take_motion(model, path, start)) return false;

  for (int g = 0; g < model.num_geometries; ++g) {
    const BodyMotion& m = motion[model.geometry_body[g]];
    const MotionBounds& b = bounds[model.geometry_body[g]];
    double* centre = &filter.centre[3 * g];
    rotate(m.rotation, local[g].centre, centre);
    add3(m.position, centre, centre);
    filter.reach[g] = path.duration * (b.speed + b.angular_speed * local[g].arm);
    starts[g].placed = false;
    if (model.geometry_type[g] != ShapeType::half_space) continue;

    // A half-space has no sphere: one that turns reaches everything, others are compared along their normals.
    if (model.body_tree[model.geometry_body[g]] >= 0 && b.angular_speed > 0) {
      filter.reach[g] = INFINITY;
    }
    const double* R = local[g].rotation;
    const double z[3] = {R[2], R[5], R[8]};
    rotate(m.rotation, z, &up[3 * g]);
  }
  return true;
}

/// Placed when it is first asked for: the filter drops most geometries.
StartGeometry& ImpactSearch::Workspace::start_of(const Model& model, int g) {
  StartGeometry& s = starts[g];
  if (s.placed) return s;
  const int body = model.geometry_body[g];
  const MotionBounds& b = bounds[body];
  place(model, g, motion[body], b, s.moving);

  // The centre of the bounding sphere: its velocity, and a bound of its acceleration.
  double arm[3];
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
  double offset[3];
  double velocity[3];
  sub3(&filter.centre[3 * gb], &filter.centre[3 * ga], offset);
  sub3(b.velocity, a.velocity, velocity);
  const double size = norm3(offset);

  // Where they are closest.
  const double closing = -dot3(offset, velocity);
  if (closing > 0) {
    axpy3(std::min(duration, closing / dot3(velocity, velocity)), velocity, offset);
  }

  const double reach =
      filter.tables.radius[ga] + filter.tables.radius[gb] + 0.5 * duration * duration * (a.bend + b.bend);
  return !(norm3(offset) > reach + 1e-12 * (reach + size));
}

/// The shapes start farther apart than they can travel. Not for half-spaces.
bool ImpactSearch::Workspace::apart_at_start(const Model& model, int pair, double duration, const StartGeometry& a,
                                             const StartGeometry& b) {
  if (!straight_paths_meet(a, b, model.pair_a[pair], model.pair_b[pair], duration)) return true;
  const double travel = duration * relative_speed_bound(a.moving, b.moving, duration);
  if (has_surface(a.moving, b.moving)) return !SurfaceAdvance::is_near(a.moving.shape, b.moving.shape, travel);
  return is_farther(a.moving.shape, b.moving.shape, travel * (1 + 1e-12), &axes[3 * pair]);
}

/// The distance of a pair at the start, from its contact where that will do; false: it is too large for the path.
bool ImpactSearch::Workspace::measure_start(const Model& model, const ImpactOptions& options, double duration, int pair,
                                            const Contact* contact, PairDistance& e) {
  const StartGeometry& a = start_of(model, model.pair_a[pair]);
  const StartGeometry& b = start_of(model, model.pair_b[pair]);

  // A manifold's normal may separate less than the best one.
  const bool half_space = has_half_space(a.moving, b.moving);
  bool known = contact && !half_space && !has_surface(a.moving, b.moving);
  if (known) {
    e.now.distance = separation_along(a.moving.shape, b.moving.shape, contact->normal);
    known = e.now.distance >= contact->distance - 1e-3 * options.tolerance;
  }

  if (known) {
    copy3(contact->normal, e.now.normal);
    copy3(contact->point_a, e.now.point_a);
    copy3(contact->point_b, e.now.point_b);
  } else {
    if (!half_space && !contact && apart_at_start(model, pair, duration, a, b)) return false;
    signed_distance(a.moving.shape, b.moving.shape, e.now);
  }
  ++evaluations;
  measure(a.moving, b.moving, e);
  return true;
}

/// The start of one pair: most are safe to the end of the path, the others are tracked.
void ImpactSearch::Workspace::look(const Model& model, const ImpactOptions& options, const MotionPath& path, int pair,
                                   const Contact* contact, const ImpactStart& start) {
  const int body_a = model.geometry_body[model.pair_a[pair]];
  const int body_b = model.geometry_body[model.pair_b[pair]];
  if (model.body_tree[body_a] < 0 && model.body_tree[body_b] < 0) return;
  PairDistance e;
  if (!measure_start(model, options, path.duration, pair, contact, e)) return;

  // Pairs in contact may sink to a threshold, others come down on 0.
  PairTrack track;
  track.pair = pair;
  track.lift = std::max(model.pair_margin[pair], least_lift);
  if (contact) {
    track.lift = std::max(track.lift, held_lift * options.tolerance);
  }
  track.held = e.now.distance <= track.lift;
  if (start.all_held && !contact && e.now.distance > 0 && e.closing > 0) {
    track.held = false;
  }
  track.threshold = track.held ? threshold_of(options, e.now.distance) : 0.0;
  advance(path, e, track);
  if (track.time >= path.duration) return;

  // The edge of the next tile: what holds the body keeps this pair apart as well, wherever it goes.
  if (!contact && parted_as_held(model, pair, e, start)) {
    track.held = true;
    track.lift = INFINITY;
    track.threshold = threshold_of(options, e.now.distance);
    track.time = 0;
    advance(path, e, track);
    if (track.time >= path.duration) return;
  }

  // It is followed relative to the nearest body that carries both; the normal seen so far was that in the world.
  track.top = common_ancestor(model, body_a, body_b);
  track.a = bounds[body_a];
  track.b = bounds[body_b];
  if (track.top > 0) {
    track.seen = false;
    motion_bounds(model, path, body_a, track.top, track.a);
    motion_bounds(model, path, body_b, track.top, track.b);
  }
  queue.emplace_back(track.time, static_cast<int>(tracks.size()));
  tracks.push_back(track);
}

/// The pairs that the filter leaves, each with its deepest contact at the start.
void ImpactSearch::Workspace::look_at_all(const Model& model, const ImpactOptions& options, const MotionPath& path,
                                          const ImpactStart& start) {
  filter.run(model, up.data());
  const Contact* contact = start.contacts;
  const Contact* end = contact + start.num_contacts;
  for (const int pair : filter.pairs)
    look(model, options, path, pair, take_deepest(pair, contact, end), start);
  std::make_heap(queue.begin(), queue.end(), std::greater<>{});
}

}  // namespace coulomb
