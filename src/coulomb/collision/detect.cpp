// The collision stage: filter, then each candidate pair by the routine registered for its two shapes. A new shape pair
// is one routine (primitives_common.hpp says its signature) and one line in the table below.
#include "coulomb/collision/detect.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/broad_phase/filter.hpp"
#include "coulomb/collision/narrow_phase/convex_convex.hpp"
#include "coulomb/collision/narrow_phase/face_plane.hpp"
#include "coulomb/collision/narrow_phase/primitives_half_space.hpp"
#include "coulomb/collision/narrow_phase/primitives_round.hpp"
#include "coulomb/collision/narrow_phase/surface_contacts.hpp"
#include "coulomb/configuration.hpp"

namespace coulomb {
namespace {

constexpr int num_shape_types = static_cast<int>(ShapeType::surface) + 1;
/// Of the margin: less is not worth a second look.
constexpr double least_width = 1e-3;

/// The routine of every pair of shapes.
struct PairTable {
  std::array<CollidePair, num_shape_types * num_shape_types> routine{};

  constexpr void add(ShapeType a, ShapeType b, CollidePair collide) {
    routine[static_cast<int>(a) * num_shape_types + static_cast<int>(b)] = collide;
  }
  constexpr CollidePair find(ShapeType a, ShapeType b) const {
    return routine[static_cast<int>(a) * num_shape_types + static_cast<int>(b)];
  }
};

/// Rows with a smaller type first; a pair met the other way round is flipped afterwards.
constexpr PairTable make_table() {
  PairTable t;

  // Every pair of convex shapes has one; closed forms replace it.
  constexpr int first_convex = static_cast<int>(ShapeType::sphere);
  constexpr int last_convex = static_cast<int>(ShapeType::mesh);
  for (int a = first_convex; a <= last_convex; ++a) {
    for (int b = a; b <= last_convex; ++b)
      t.add(ShapeType(a), ShapeType(b), collide_convex);
    t.add(ShapeType(a), ShapeType::surface, collide_convex_surface);
  }

  t.add(ShapeType::half_space, ShapeType::sphere, collide_half_space_sphere);
  t.add(ShapeType::half_space, ShapeType::capsule, collide_half_space_capsule);
  t.add(ShapeType::half_space, ShapeType::cylinder, collide_half_space_cylinder);
  t.add(ShapeType::half_space, ShapeType::box, collide_half_space_box);
  t.add(ShapeType::half_space, ShapeType::ellipsoid, collide_half_space_ellipsoid);
  t.add(ShapeType::half_space, ShapeType::mesh, collide_half_space_mesh);

  t.add(ShapeType::sphere, ShapeType::sphere, collide_sphere_sphere);
  t.add(ShapeType::sphere, ShapeType::capsule, collide_sphere_capsule);
  t.add(ShapeType::sphere, ShapeType::cylinder, collide_sphere_cylinder);
  t.add(ShapeType::sphere, ShapeType::box, collide_sphere_box);
  t.add(ShapeType::capsule, ShapeType::capsule, collide_capsule_capsule);
  return t;
}
constexpr PairTable table = make_table();

/// Hands on the staged contacts in the order of their features.
void append_contacts(const Model& model, int pair, int count, bool flipped, CollisionWorkspace& w,
                     std::vector<Contact>& out) {
  // Insertion: few contacts, nearly sorted.
  int order[max_contacts_per_pair];
  for (int k = 0; k < count; ++k) {
    int at = k;
    while (at > 0 && w.staging[order[at - 1]].feature > w.staging[k].feature) {
      order[at] = order[at - 1];
      --at;
    }
    order[at] = k;
  }

  const int a = model.pair_a[pair];
  const int b = model.pair_b[pair];
  for (int k = 0; k < count; ++k) {
    Contact& c = w.staging[order[k]];
    if (flipped) flip_contact(c);
    c.pair = pair;
    c.geometry_a = a;
    c.geometry_b = b;
    c.body_a = model.geometry_body[a];
    c.body_b = model.geometry_body[b];
    c.size = std::min(w.filter.size[a], w.filter.size[b]);
    out.push_back(c);
  }
}

/// Contacts up to `margin`, staged; how many.
int stage_pair(const Model& model, int pair, double margin, const CollisionOptions& options,
               CollisionCache::Pair& cache, CollisionWorkspace& workspace, bool& flipped) {
  // The routine of the ordered pair; two half-spaces have none.
  int a = model.pair_a[pair];
  int b = model.pair_b[pair];
  flipped = model.geometry_type[a] > model.geometry_type[b];
  if (flipped) std::swap(a, b);
  const CollidePair collide = table.find(model.geometry_type[a], model.geometry_type[b]);
  if (collide == nullptr) return 0;

  // Both shapes in the world.
  Shape shape_a;
  Shape shape_b;
  pose_shape(model, workspace, a, shape_a);
  pose_shape(model, workspace, b, shape_b);
  return collide(shape_a, shape_b, margin, options, cache, workspace.staging.data());
}

/// The pair's contacts up to `margin`.
void collide_pair(const Model& model, int pair, double margin, const CollisionOptions& options,
                  CollisionCache::Pair& cache, CollisionWorkspace& workspace, std::vector<Contact>& out) {
  bool flipped = false;
  const int count = stage_pair(model, pair, margin, options, cache, workspace, flipped);
  if (count > 0) {
    append_contacts(model, pair, count, flipped, workspace, out);
  }
}

/// How far apart the points of a contact may be.
struct ContactReach {
  double margin;
  double wider;  ///< of those ahead, that may close within the step
};

/// The pair's contacts up to the margin, and beyond it those up to the wider one. A manifold of more points may leave out one that touches, so
/// shapes of which some points touch and others do not are looked at twice: contacts within the margin are the same whatever the width.
void collide_travelling_pair(const Model& model, int pair, ContactReach reach, const CollisionOptions& options,
                             CollisionCache::Pair& cache, CollisionWorkspace& w, std::vector<Contact>& out) {
  bool flipped = false;
  CollisionCache::Pair tried = cache;
  int count = stage_pair(model, pair, reach.wider, options, tried, w, flipped);
  const auto is_ahead = [&reach](const Contact& c) { return c.distance > reach.margin; };

  // All ahead: the shapes are apart, and what was kept of their contact means nothing.
  if (std::all_of(w.staging.begin(), w.staging.begin() + count, is_ahead)) {
    tried.num_kept = 0;
    tried.reference = -1;
    if (!options.stateless) cache = tried;

    // None ahead: it lies, and the wider margin found no more.
  } else if (std::none_of(w.staging.begin(), w.staging.begin() + count, is_ahead)) {
    if (!options.stateless) cache = tried;
  } else {
    // Some of both: contacts within the margin first, then those ahead that are not among them.
    Contact ahead[max_contacts_per_pair];
    const Contact* end = std::copy_if(w.staging.begin(), w.staging.begin() + count, ahead, is_ahead);

    count = stage_pair(model, pair, reach.margin, options, cache, w, flipped);
    const int near = count;

    for (const Contact* c = ahead; c != end; ++c) {
      const auto is_known = [c](const Contact& other) { return other.feature == c->feature; };
      const bool known = std::any_of(w.staging.begin(), w.staging.begin() + near, is_known);
      if (!known && count < max_contacts_per_pair) {
        w.staging[count++] = *c;
      }
    }
  }

  if (count > 0) {
    append_contacts(model, pair, count, flipped, w, out);
  }
}

/// The cache gets one entry per candidate: the one it had, or a fresh one.
void follow_candidates(CollisionWorkspace& w, CollisionCache& cache) {
  w.next_cache.clear();
  std::size_t old = 0;
  for (const int pair : w.candidates) {
    while (old < cache.pair_indices.size() && cache.pair_indices[old] < pair)
      ++old;
    const bool known = old < cache.pair_indices.size() && cache.pair_indices[old] == pair;
    w.next_cache.push_back(known ? cache.pairs[old] : CollisionCache::Pair{});
  }

  // Copied, with room for growth: storage only grows.
  cache.pairs.reserve(w.next_cache.capacity());
  cache.pair_indices.reserve(w.candidates.capacity());
  cache.pairs = w.next_cache;
  cache.pair_indices = w.candidates;
}

}  // namespace

void pose_shape(const Model& model, const CollisionWorkspace& w, int g, Shape& shape) {
  set_shape(model, g, shape);

  // Poses are kept by rows.
  const double* pose = &w.pose[g];
  for (int i = 0; i < 9; ++i)
    shape.rotation[i] = pose[i * w.filter.padded];
  for (int i = 0; i < 3; ++i)
    shape.position[i] = pose[(9 + i) * w.filter.padded];
}

void flip_contact(Contact& c) {
  for (double& x : c.normal)
    x = -x;
  std::swap(c.point_a, c.point_b);
  std::swap(c.a, c.b);
  c.reference_on_a = !c.reference_on_a;
  c.point_on_a = !c.point_on_a;
}

void CollisionCache::reset() {
  pair_indices.clear();
  pairs.clear();
}

const CollisionCache::Pair* CollisionCache::find(int pair_index) const {
  const auto at = std::lower_bound(pair_indices.begin(), pair_indices.end(), pair_index);
  return at == pair_indices.end() || *at != pair_index ? nullptr : &pairs[at - pair_indices.begin()];
}

CollisionCache::Pair* CollisionCache::find(int pair_index) {
  return const_cast<Pair*>(std::as_const(*this).find(pair_index));
}

std::size_t usual_contacts(const Model& model) { return 8 * std::min<std::size_t>(model.pair_a.size(), 64); }

CollisionWorkspace::CollisionWorkspace(const Model& model, int swept_from)
    : filter(model, swept_from), sweep(filter.make_sweep(model, true)) {
  // Rows of poses and spheres, then what one pair or one half-space needs.
  pose.resize(15 * filter.padded);
  filter_center.resize(3 * filter.padded);
  filter_radius.resize(filter.padded);
  hits.resize(filter.padded);
  staging.resize(max_contacts_per_pair);
  shift.resize(3 * model.num_geometries);
  turn.resize(model.num_geometries);
  reach.resize(model.num_geometries);
  fixed.poses.resize(12 * filter.fixed.bodies.size());

  // Of many geometries few pairs are near at a time.
  const std::size_t num_pairs = model.pair_a.size();
  const std::size_t usual = filter.swept ? 8 * filter.padded : num_pairs;
  reserve_boxes(std::min(num_pairs, usual));
  candidates.reserve(std::min(num_pairs, usual));
  for (const FilterTables::Plane& plane : filter.planes) {
    touch.resize(std::max(touch.size(), plane.pair.size()));
    plane_margin.resize(std::max(plane_margin.size(), plane.pair.size()));
  }
  contacts.reserve(usual_contacts(model));
}

void CollisionWorkspace::reserve_boxes(std::size_t count) {
  if (count <= box_margin.size()) return;
  count = std::max(count, 2 * box_margin.size());
  for (auto* list : {&box_first, &box_second, &box_pair})
    list->resize(count);
  touch.resize(std::max(touch.size(), count));
  box_margin.resize(count);
}

void detect_contacts(const Model& model, const double* body_position, const double* body_rotation,
                     const CollisionOptions& options, CollisionCache& cache, CollisionWorkspace& workspace,
                     const double* travel) {
  // Which pairs are near.
  workspace.contacts.clear();
  workspace.least_margin = options.least_margin;
  filter_pairs(model, body_position, body_rotation, travel, workspace);
  const std::vector<int>& candidates = workspace.candidates;
  if (!options.frozen_cache && candidates != cache.pair_indices) {
    follow_candidates(workspace, cache);
  }
  CollisionCache::Pair copy;

  // The narrow phase, each pair with its own memory or, where nothing may change, with a copy.
  for (std::size_t k = 0; k < candidates.size(); ++k) {
    const int pair = candidates[k];
    if (options.frozen_cache) {
      const CollisionCache::Pair* known = cache.find(pair);
      copy = known ? *known : CollisionCache::Pair{};
    }
    CollisionCache::Pair& memory = options.frozen_cache ? copy : cache.pairs[k];

    // A pair that travels is looked at beyond its margin.
    const double margin = std::max(model.pair_margin[pair], options.least_margin);
    const double width = margin_width(model, workspace, pair);
    const ContactReach reach = {margin, margin + width};
    if (width > least_width * margin)
      collide_travelling_pair(model, pair, reach, options, memory, workspace, workspace.contacts);
    else
      collide_pair(model, pair, margin, options, memory, workspace, workspace.contacts);
  }
}

void collide_pair_stateless(const Model& model, int pair, double margin, CollisionWorkspace& w,
                            std::vector<Contact>& out) {
  CollisionOptions stateless;
  stateless.stateless = true;
  stateless.frozen_cache = true;
  CollisionCache::Pair cold;
  collide_pair(model, pair, margin, stateless, cold, w, out);
}

MovedShape::MovedShape(const Model& model, int pair, const RigidShift& move, CollisionWorkspace& w)
    : pose_(&w.pose[model.pair_a[pair]]), stride_(w.filter.padded) {
  constexpr double none[3] = {0, 0, 0};
  const double* centre = move.centre;
  const double* shift = move.shift ? move.shift : none;
  const double* turn = move.turn ? move.turn : none;

  // The pose of A, to be restored.
  for (int i = 0; i < 12; ++i)
    saved_[i] = pose_[i * stride_];

  // Turned about the centre and shifted.
  double quaternion[4];
  double R[9];
  double turned[9];
  rotation_exp(turn, quaternion);
  quaternion_to_matrix(quaternion, R);
  multiply3(R, saved_, turned);
  double position[3];
  double arm[3];
  sub3(saved_ + 9, centre, arm);
  rotate(R, arm, position);

  for (int i = 0; i < 9; ++i)
    pose_[i * stride_] = turned[i];
  for (int i = 0; i < 3; ++i)
    pose_[(9 + i) * stride_] = centre[i] + position[i] + shift[i];
}

MovedShape::~MovedShape() {
  for (int i = 0; i < 12; ++i)
    pose_[i * stride_] = saved_[i];
}

void collide_moved_pair(const Model& model, int pair, const RigidShift& move, double reach, CollisionWorkspace& w,
                        std::vector<Contact>& out) {
  const MovedShape moved(model, pair, move, w);
  out.clear();
  collide_pair_stateless(model, pair, model.pair_margin[pair] + reach, w, out);
}

void collide_face(const Model& model, int pair, const FaceOfPair& face, double margin, CollisionWorkspace& w,
                  std::vector<Contact>& out) {
  // The plane, as a half-space whose third axis is the face's normal.
  const int owner = face.on_a ? model.pair_a[pair] : model.pair_b[pair];
  const int other = face.on_a ? model.pair_b[pair] : model.pair_a[pair];
  Shape shape;
  pose_shape(model, w, owner, shape);
  Shape plane;
  double axes[3][3];
  face_plane(shape, face.face, axes[2], plane.position);
  contact_frame(axes[2], axes[0], axes[1]);
  plane.type = ShapeType::half_space;
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 3; ++k)
      plane.rotation[3 * i + k] = axes[k][i];

  // What of the other shape is near it.
  Shape against;
  pose_shape(model, w, other, against);
  constexpr CollisionOptions options{.stateless = true, .frozen_cache = true};
  CollisionCache::Pair cache;
  const CollidePair collide = table.find(plane.type, against.type);
  const int count = collide(plane, against, margin, options, cache, w.staging.data());
  out.clear();
  append_contacts(model, pair, count, !face.on_a, w, out);
}

}  // namespace coulomb
