#include "coulomb/collision/united_faces.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/detect.hpp"
#include "coulomb/collision/narrow_phase/face_plane.hpp"
#include "coulomb/collision/narrow_phase/primitives_common.hpp"
#include "coulomb/model.hpp"

namespace coulomb {
namespace {

constexpr double one_plane = 1e-8;     // m: tiles that rise by less are flush, as gaps this small are closed
constexpr double near_normal = 0.99;   // cosine: a contact at the border of a tile leans, as the body does
constexpr double same_normal = 1e-10;  // 1 - cosine: what faces lean besides shows in their heights
constexpr double same_material =
    1e-2;  // share: to ask what a little more friction of one tile does must not part the floor

bool is_alike(double x, double y) { return std::abs(x - y) <= same_material * std::max(std::abs(x), std::abs(y)); }

/// Do their springs depend on the depth alike?
bool have_one_curve(const PairPenalty& x, const PairPenalty& y) {
  return x.margin == y.margin && is_alike(x.scale * x.curve.inertia, y.scale * y.curve.inertia) &&
         is_alike(x.curve.start, y.curve.start) && is_alike(x.curve.end, y.curve.end) &&
         is_alike(x.curve.full_depth, y.curve.full_depth) && is_alike(x.curve.midpoint, y.curve.midpoint) &&
         is_alike(x.curve.power, y.curve.power);
}

/// Do two pairs have one law of contact?
bool have_one_law(const Model& model, int p, int q) {
  const PairPenalty& x = model.pair_penalty[p];
  const PairPenalty& y = model.pair_penalty[q];
  return is_alike(model.pair_friction[p], model.pair_friction[q]) &&
         is_alike(model.pair_restitution[p], model.pair_restitution[q]) &&
         is_alike(model.pair_compliance[p], model.pair_compliance[q]) &&
         is_alike(model.pair_torsional_friction[p], model.pair_torsional_friction[q]) &&
         is_alike(model.pair_rolling_friction[p], model.pair_rolling_friction[q]) &&
         x.stiffness.has_value() == y.stiffness.has_value() &&
         is_alike(x.scale * x.stiffness.value_or(0), y.scale * y.stiffness.value_or(0)) &&
         is_alike(x.scale * x.dashpot, y.scale * y.dashpot) && have_one_curve(x, y);
}

/// Looks for floors in the contacts of one detection.
class FloorSearch {
 public:
  FloorSearch(const Model& model, CollisionCache* cache, CollisionWorkspace& workspace, UnitedFaces& buffers)
      : model_(model), cache_(cache), w_(workspace), b_(buffers), contacts_(workspace.contacts) {}

  bool unite_all();

 private:
  using Group = UnitedFaces::Group;
  using Tile = UnitedFaces::Tile;

  void find_groups();
  bool stands_on_one_link_twice(int body);
  int next_of(int group, int geometry) const {
    const Group& g = b_.groups[group];
    return g.next[model_.pair_a[g.pair] == geometry ? 0 : 1];
  }
  int other_of(int group, int geometry) const {
    const int pair = b_.groups[group].pair;
    return model_.pair_a[pair] == geometry ? model_.pair_b[pair] : model_.pair_a[pair];
  }
  int link_of(int geometry) const { return model_.body_last_dof[model_.geometry_body[geometry]]; }

  bool unite_what_lies_under(int body);
  bool find_tile(int group, int body, const double* up, double least_cosine, Tile& tile) const;
  bool is_upright(const Tile& tile, int body) const;
  bool is_at_seams(const Tile& tile, int body, int num_upright) const;
  bool find_floor(int leader, int body);
  double margin() const;
  bool is_over(const Tile& tile, const double* point) const;
  void hand_over(int pair, int body, Contact& c) const;
  bool find_own(int body);
  bool lies_flush(const Tile& tile, int body) const;
  void replace();

  const Model& model_;
  CollisionCache* cache_;
  CollisionWorkspace& w_;
  UnitedFaces& b_;
  std::vector<Contact>& contacts_;
};

/// Pair by pair, and the pairs of each geometry.
void FloorSearch::find_groups() {
  b_.groups.clear();
  for (int i = 0; i < int(contacts_.size()); ++i) {
    if (i == 0 || contacts_[i].pair != contacts_[i - 1].pair)
      b_.groups.push_back({contacts_[i].pair, i, i, {-1, -1}, false});
    b_.groups.back().end = i + 1;
  }

  // Backwards: the first of them comes first.
  for (int k = int(b_.groups.size()) - 1; k >= 0; --k) {
    Group& g = b_.groups[k];
    const int geometry[2] = {model_.pair_a[g.pair], model_.pair_b[g.pair]};
    for (int side = 0; side < 2; ++side) {
      g.next[side] = b_.first[geometry[side]];
      b_.first[geometry[side]] = k;
    }
  }
}

/// Does the geometry touch two of one link? Few do.
bool FloorSearch::stands_on_one_link_twice(int body) {
  if (model_.geometry_type[body] == ShapeType::half_space) return false;
  const int first = b_.first[body];
  if (next_of(first, body) < 0) return false;

  bool twice = false;
  for (int k = first; k >= 0 && !twice; k = next_of(k, body)) {
    int& seen = b_.last_seen[link_of(other_of(k, body)) + 1];
    twice = seen == body;
    seen = body;
  }
  for (int k = first; k >= 0; k = next_of(k, body))
    b_.last_seen[link_of(other_of(k, body)) + 1] = -1;
  return twice;
}

/// The flat side of a group's other shape most along `up`.
bool FloorSearch::find_tile(int group, int body, const double* up, double least_cosine, Tile& tile) const {
  Shape shape;
  double cosine;
  tile.group = group;
  tile.geometry = other_of(group, body);
  pose_shape(model_, w_, tile.geometry, shape);
  if (!face_towards(shape, up, tile.face, cosine) || cosine < least_cosine) return false;
  face_plane(shape, tile.face, tile.normal, tile.point);
  return true;
}

/// Do all its contacts push the body about that way?
bool FloorSearch::is_upright(const Tile& tile, int body) const {
  const Group& g = b_.groups[tile.group];
  const double sign = model_.pair_a[g.pair] == body ? 1 : -1;
  const auto is_along = [&](const Contact& c) { return sign * dot3(c.normal, tile.normal) >= near_normal; };
  return std::all_of(contacts_.begin() + g.begin, contacts_.begin() + g.end, is_along);
}

/// Are its contacts at borders that it shares with upright ones? Those sides are no sides of the floor.
bool FloorSearch::is_at_seams(const Tile& tile, int body, int num_upright) const {
  const Group& g = b_.groups[tile.group];
  const auto is_inner = [&](const Contact& c) {
    const double* on_tile = c.geometry_a == body ? c.point_b : c.point_a;
    const auto holds = [&](const Tile& other) { return is_over(other, on_tile); };
    return std::any_of(b_.tiles.begin(), b_.tiles.begin() + num_upright, holds);
  };
  return std::all_of(contacts_.begin() + g.begin, contacts_.begin() + g.end, is_inner);
}

/// The tiles of one link that lie in one plane, with that of this group. True: there are several.
bool FloorSearch::find_floor(int leader, int body) {
  const Group& g = b_.groups[leader];
  const double sign = model_.pair_a[g.pair] == body ? 1 : -1;
  double pushed[3];
  for (int i = 0; i < 3; ++i)
    pushed[i] = sign * contacts_[g.begin].normal[i];
  Tile tile;
  if (!find_tile(leader, body, pushed, near_normal, tile) || !is_upright(tile, body)) return false;
  b_.tiles.assign(1, tile);
  const int link = link_of(tile.geometry);

  // What is touched from above, then what is touched at a seam with it.
  int num_upright = 1;
  for (const bool upright : {true, false}) {
    for (int k = b_.first[body]; k >= 0; k = next_of(k, body)) {
      if (k == leader || b_.groups[k].united || link_of(other_of(k, body)) != link) continue;
      if (!have_one_law(model_, g.pair, b_.groups[k].pair)) continue;
      if (!find_tile(k, body, b_.tiles[0].normal, 1 - same_normal, tile) || is_upright(tile, body) != upright) continue;
      if (upright || is_at_seams(tile, body, num_upright)) b_.tiles.push_back(tile);
    }
    if (upright) num_upright = int(b_.tiles.size());
  }
  return b_.tiles.size() > 1;
}

/// As far as their contacts go, to rounding: those beyond the margins may close within the step.
double FloorSearch::margin() const {
  double most = 0;
  for (const Tile& tile : b_.tiles) {
    const Group& g = b_.groups[tile.group];
    most = std::max(most, std::max(model_.pair_margin[g.pair], w_.least_margin));
    for (int i = g.begin; i < g.end; ++i)
      most = std::max(most, contacts_[i].distance + one_plane);
  }
  return most;
}

/// Seen along its normal.
bool FloorSearch::is_over(const Tile& tile, const double* point) const {
  double r[3];
  double x[3];
  sub3(point, tile.point, r);
  copy3(point, x);
  axpy3(-dot3(r, tile.normal), tile.normal, x);

  // What is farther away than the shape is large is not.
  Shape shape;
  double centre[3];
  pose_shape(model_, w_, tile.geometry, shape);
  bounding_center(shape, centre);
  sub3(x, centre, r);
  const double radius = 1.001 * bounding_radius(shape);
  return dot3(r, r) <= radius * radius && is_on_face(shape, x);
}

/// Have the planes of this tile and of the first one the same height below all own points?
bool FloorSearch::lies_flush(const Tile& tile, int body) const {
  const auto is_level = [&](const Contact& c) {
    double r[3];
    sub3(c.geometry_a == body ? c.point_a : c.point_b, tile.point, r);
    return std::abs(dot3(r, tile.normal) - c.distance) <= one_plane;
  };
  return std::all_of(b_.own.begin(), b_.own.end(), is_level);
}

/// The contact becomes one of another pair of the same body.
void FloorSearch::hand_over(int pair, int body, Contact& c) const {
  if ((c.geometry_a == body) != (model_.pair_a[pair] == body)) flip_contact(c);
  c.pair = pair;
  c.geometry_a = model_.pair_a[pair];
  c.geometry_b = model_.pair_b[pair];
  c.body_a = model_.geometry_body[c.geometry_a];
  c.body_b = model_.geometry_body[c.geometry_b];
  c.size = std::min(w_.filter.size[c.geometry_a], w_.filter.size[c.geometry_b]);
}

/// In `own`: the body's contacts with the floor, each that of the tile which it is over. False: some are over none, or it is no plane.
bool FloorSearch::find_own(int body) {
  // One plane, so that heights which differ by rounding do not tell which points bear.
  const int pair = b_.groups[b_.tiles[0].group].pair;
  const FaceOfPair face{model_.pair_a[pair] != body, b_.tiles[0].face};
  collide_face(model_, pair, face, margin(), w_, b_.own);
  if (b_.own.empty()) return false;
  const auto is_flush = [&](const Tile& tile) { return lies_flush(tile, body); };
  if (!std::all_of(b_.tiles.begin(), b_.tiles.end(), is_flush)) return false;

  for (Contact& c : b_.own) {
    const double* point = c.geometry_a == body ? c.point_b : c.point_a;
    const auto holds = [&](const Tile& tile) { return is_over(tile, point); };
    const auto tile = std::find_if(b_.tiles.begin(), b_.tiles.end(), holds);
    if (tile == b_.tiles.end()) return false;
    hand_over(b_.groups[tile->group].pair, body, c);
  }
  return true;
}

/// The floor's contacts by the body's own. Which of two parallel faces carries a normal is a question of each tile's border: the pairs
/// forget it.
void FloorSearch::replace() {
  for (const Tile& tile : b_.tiles) {
    Group& g = b_.groups[tile.group];
    g.united = true;
    CollisionCache::Pair* known = cache_ != nullptr ? cache_->find(g.pair) : nullptr;
    if (known != nullptr) known->reference = -1;
  }
  b_.kept.insert(b_.kept.end(), b_.own.begin(), b_.own.end());
}

bool FloorSearch::unite_what_lies_under(int body) {
  bool any = false;
  for (int k = b_.first[body]; k >= 0; k = next_of(k, body)) {
    if (b_.groups[k].united || !find_floor(k, body) || !find_own(body)) continue;
    replace();
    any = true;
  }
  return any;
}

bool FloorSearch::unite_all() {
  find_groups();

  // Geometry by geometry.
  b_.kept.clear();
  bool any = false;
  for (const Group& g : b_.groups)
    for (const int body : {model_.pair_a[g.pair], model_.pair_b[g.pair]}) {
      const int first = b_.first[body];
      const bool is_first = first >= 0 && b_.groups[first].pair == g.pair;
      if (is_first && stands_on_one_link_twice(body) && unite_what_lies_under(body)) any = true;
    }
  for (const Group& g : b_.groups)
    b_.first[model_.pair_a[g.pair]] = b_.first[model_.pair_b[g.pair]] = -1;
  if (!any) return false;

  // In the order of their pairs and features.
  for (const Group& g : b_.groups)
    if (!g.united) b_.kept.insert(b_.kept.end(), contacts_.begin() + g.begin, contacts_.begin() + g.end);
  const auto comes_before = [](const Contact& x, const Contact& y) {
    return x.pair != y.pair ? x.pair < y.pair : x.feature < y.feature;
  };
  std::sort(b_.kept.begin(), b_.kept.end(), comes_before);
  contacts_ = b_.kept;
  return true;
}

}  // namespace

UnitedFaces::UnitedFaces(const Model& model) : first(model.num_geometries, -1), last_seen(model.nv + 1, -1) {
  const std::size_t usual = usual_contacts(model);
  groups.reserve(usual);
  tiles.reserve(usual);
  own.reserve(max_contacts_per_pair);
  kept.reserve(usual);
}

bool unite_faces(const Model& model, CollisionCache* cache, CollisionWorkspace& workspace, UnitedFaces& buffers) {
  // One pair is no floor.
  const std::vector<Contact>& contacts = workspace.contacts;
  if (contacts.empty() || contacts.front().pair == contacts.back().pair) return false;
  return FloorSearch(model, cache, workspace, buffers).unite_all();
}

}  // namespace coulomb
