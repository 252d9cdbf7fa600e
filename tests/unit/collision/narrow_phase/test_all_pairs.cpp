// Every pair of shapes, from apart to deep, random, aligned, all but aligned and in line, of sizes from millimetres to
// a hundred metres: witnesses lie on both shapes, a single witness is exact by duality, the deepest point is as deep as
// a search finds, the cache does not change depths, and every point moves as contact_motion says.
#include <string>

#include "check.hpp"
#include "collision/all_pairs.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

void check_point(const PairState& state, const Contact& c) {
  double gap[3];
  sub3(c.point_a, c.point_b, gap);
  axpy3(-c.distance, c.normal, gap);
  CHECK_NEAR(norm3(c.normal), 1, 1e-13);
  CHECK_NEAR(norm3(gap), 0, 1e-13 * state.total);
  CHECK(outside(state.shape_a(), c.point_a) <= 1e-11 * state.total);
  CHECK(outside(state.shape_b(), c.point_b) <= 1e-11 * state.total);
}

/// Depths: by duality when apart, by search when overlapping; manifold points are measured along the reference face's
/// normal.
void check_depth(const PairState& state, const std::vector<Contact>& contacts, Random& random) {
  const Shape a = state.shape_a(), b = state.shape_b();
  const Contact& c = deepest(contacts);
  if (contacts.size() == 1) CHECK_NEAR(support_gap(a, b, c.normal), c.distance, 1e-11 * state.total);
  const double best = best_gap(a, b, c.normal, random);
  const double slack = contacts.size() == 1 ? 1e-4 * state.total : 4e-3 * state.total + 0.1 * std::abs(c.distance);
  CHECK(best <= c.distance + slack);
  if (contacts.size() > 1 && c.distance > 0) CHECK(c.distance <= best + slack);
}

/// A cache filled in a pose nearby, then in one turned far away, against no cache.
/// Several points: the reference face of before stays while the other is not better by 0.02, which is seen in the
/// depths.
void check_cache(PairState& state, const std::vector<Contact>& cold, CollisionWorkspace& workspace, Random& random) {
  for (const double turn : {0.0, 0.03, 2.0}) {
    Scene other = state.scene;
    double v[3], w[3];
    random.direction(v), random.direction(w);
    for (int i = 0; i < 3; ++i) v[i] *= 0.3 * turn * state.size, w[i] *= turn;
    move_body(other, 2, other.body_position(2), v, w);
    CollisionCache cache;
    contacts_of(other, CollisionOptions{}, cache, workspace);
    const std::vector<Contact> warm = contacts_of(state.scene, CollisionOptions{}, cache, workspace);
    CHECK(!warm.empty());
    if (warm.empty()) continue;
    const double allowed = cold.size() == 1 && warm.size() == 1 ? 1e-11 : 5e-3;
    CHECK_NEAR(deepest(warm).distance, deepest(cold).distance, allowed * state.total);
  }
}

struct Values {
  double x[7];  // distance over the length scale, point over it, normal
};

/// The motion of a contact against Richardson differences where these converge; true if compared.
bool check_motion(const PairState& state, const Contact& c, CollisionWorkspace& workspace, Random& random) {
  ContactMotion motion;
  contact_motion(c, motion);
  if (motion.frozen) return false;
  CollisionOptions stateless;
  stateless.stateless = true;
  CollisionCache none;
  double twist[12], analytic[7] = {0}, growth = 0;
  const double length = std::min(extent(state.a) > 0 ? extent(state.a) : state.total,
                                 extent(state.b) > 0 ? extent(state.b) : state.total);
  for (int k = 0; k < 12; ++k) twist[k] = random.uniform(-1, 1) * (k % 6 < 3 ? length : 1);
  for (int k = 0; k < 12; ++k) {
    analytic[0] += motion.ddistance[k] * twist[k] / state.total;
    for (int i = 0; i < 3; ++i)
      analytic[1 + i] += motion.dpoint[i][k] * twist[k] / state.total,
          analytic[4 + i] += motion.dnormal[i][k] * twist[k];
  }
  for (const double x : analytic) growth = std::max(growth, std::abs(x));
  const auto moved = [&](double h, Values& out) {
    Scene scene = state.scene;
    for (int body = 0; body < 2; ++body) {
      double v[3], w[3];
      for (int i = 0; i < 3; ++i) v[i] = h * twist[6 * body + i], w[i] = h * twist[6 * body + 3 + i];
      move_body(scene, 1 + body, c.point, v, w);
    }
    for (const Contact& x : contacts_of(scene, stateless, none, workspace)) {
      if (x.feature != c.feature || x.rule != c.rule || x.reference_on_a != c.reference_on_a) continue;
      if (x.a.num_flat != c.a.num_flat || x.b.num_flat != c.b.num_flat) continue;
      out.x[0] = x.distance / state.total;
      for (int i = 0; i < 3; ++i) out.x[1 + i] = x.point[i] / state.total, out.x[4 + i] = x.normal[i];
      return true;
    }
    return false;
  };
  double best = 1e300;
  for (const double h : {1e-3, 1e-4, 1e-5, 1e-6}) {
    Values v[4];
    if (!moved(h, v[0]) || !moved(-h, v[1]) || !moved(h / 2, v[2]) || !moved(-h / 2, v[3])) continue;
    double error = 0, kink = 0;
    for (int i = 0; i < 7; ++i) {
      const double whole = (v[0].x[i] - v[1].x[i]) / (2 * h), half = (v[2].x[i] - v[3].x[i]) / h;
      kink = std::max(kink, std::abs(whole - half));
      error = std::max(error, std::abs((4 * half - whole) / 3 - analytic[i]));
    }
    if (kink <= 0.02 * (1 + growth)) best = std::min(best, error);
  }
  if (best == 1e300) return false;
  CHECK_NEAR(best / (1 + growth), 0, 1e-5);
  return true;
}

int check_pose(ShapeType ta, ShapeType tb, bool any_size, Random& random) {
  static constexpr double tilts[] = {0, 1e-12, 1e-9, 1e-6, 1e-3, 0.03, -1, -1, -1};
  static constexpr double gaps[] = {0.3, 1e-2, 1e-4, 1e-7, -1e-7, -1e-4, -1e-2, -0.1, -0.3};
  const double scale = any_size ? std::pow(10, random.uniform(-3, 2)) : 1,
               ratio = any_size ? std::pow(10, random.uniform(-1, 1)) : 1;
  const double aspect = any_size ? 30 : 3, tilt = tilts[static_cast<int>(random.uniform(0, 9))];
  const Geometry a = random_geometry(ta, scale, aspect, random), b = random_geometry(tb, scale * ratio, aspect, random);
  PairState state(a, b, tilt, tilt >= 0 && random.uniform(0, 1) < 0.5, random);
  CollisionWorkspace workspace(state.scene.model);
  CollisionOptions stateless;
  stateless.stateless = true;
  CollisionCache none;
  std::vector<Contact> contacts = contacts_of(state.scene, stateless, none, workspace);
  CHECK(!contacts.empty());
  if (contacts.empty()) return 0;
  const Contact first = deepest(contacts);
  const double shift = first.distance - gaps[static_cast<int>(random.uniform(0, 9))] * state.size;
  axpy3(shift, first.normal, state.scene.body_position(2));
  contacts = contacts_of(state.scene, stateless, none, workspace);
  CHECK(!contacts.empty());
  if (contacts.empty()) return 0;
  int compared = 0;
  for (const Contact& c : contacts) {
    check_point(state, c);
    compared += !any_size && check_motion(state, c, workspace, random);
  }
  check_depth(state, contacts, random);
  check_cache(state, contacts, workspace, random);
  return compared;
}

}  // namespace

int main(int argc, char**) {
  static constexpr const char* names[] = {"half-space", "sphere", "capsule", "cylinder", "box", "ellipsoid", "mesh"};
  for (int a = 0; a < 7; ++a)
    for (int b = 0; b < 7; ++b) {
      if (a == 0 && b == 0) continue;
      int compared = 0;
      for (int k = 0; k < 60; ++k) {
        const int before = failures;
        Random random;
        random.engine.seed(10000 * a + 1000 * b + k);
        compared += check_pose(ShapeType(a), ShapeType(b), k % 3 == 2, random);
        if (failures > before) {
          std::printf("%s - %s, pose %d\n", names[a], names[b], k);
          if (argc < 2) break;
        }
      }
      CHECK(compared > 15);
    }
  return report();
}
