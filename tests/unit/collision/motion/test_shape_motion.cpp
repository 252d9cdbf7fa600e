// size_motion and vertex_motion against Richardson differences of detect_contacts: every pair of shapes, every size and
// every mesh vertex that carries the contact (and one that does not), random, tilted and aligned poses, apart and
// overlapping. A sample is left out when no step has difference quotients that converge (a kink, another feature,
// corners that all but touch) or when the fall-back is declared; counts per pair and rule are checked.
#include <map>
#include <string>

#include "check.hpp"
#include "collision/all_pairs.hpp"
#include "coulomb/collision/motion/shape_motion.hpp"
#include "coulomb/parameters/kinds/moved_mesh.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

bool verbose = false;

struct Named {
  const char* name;
  Geometry geometry;
  double step;  // of vertices: faces of four and more corners may bend by a few 1e-6 of the size only
};

std::vector<Named> shapes() {
  return {{"half-space", {ShapeType::half_space, {0, 0, 0}, nullptr}, 0},
          {"sphere", {ShapeType::sphere, {0.11, 0, 0}, nullptr}, 0},
          {"capsule", {ShapeType::capsule, {0.07, 0.15, 0}, nullptr}, 0},
          {"cylinder", {ShapeType::cylinder, {0.09, 0.12, 0}, nullptr}, 0},
          {"box", {ShapeType::box, {0.1, 0.13, 0.08}, nullptr}, 0},
          {"ellipsoid", {ShapeType::ellipsoid, {0.08, 0.11, 0.14}, nullptr}, 0},
          {"triangles", {ShapeType::mesh, {0, 0, 0}, faceted_ellipsoid(0.1, 0.12, 0.09, 3, 6)}, 1e-5},
          {"prism", {ShapeType::mesh, {0, 0, 0}, prism_mesh(5, 0.12, 0.1)}, 3e-7},
          {"wedge", {ShapeType::mesh, {0, 0, 0}, prism_mesh(3, 0.15, 0.07)}, 3e-7}};
}

struct Tally {
  int compared = 0, kinks = 0, frozen = 0, lost = 0;
  double worst = 0;
};

struct Values {
  double x[7] = {0};  // point, normal, distance
};

/// One scalar of the shape of body 1 (A) or 2 (B).
struct Scalar {
  bool of_a, vertex;
  int index, axis;
};

bool detect(const Scene& scene, const Contact& like, Values& out) {
  CollisionWorkspace workspace(scene.model);
  CollisionOptions stateless;
  stateless.stateless = true;
  CollisionCache none;
  for (const Contact& c : contacts_of(scene, stateless, none, workspace)) {
    if (c.feature != like.feature || c.rule != like.rule || c.reference_on_a != like.reference_on_a) continue;
    if (c.a.num_flat != like.a.num_flat || c.b.num_flat != like.b.num_flat) continue;
    for (int i = 0; i < 3; ++i) out.x[i] = c.point[i], out.x[3 + i] = c.normal[i];
    out.x[6] = c.distance;
    return true;
  }
  return false;
}

bool changed(const Scene& scene, const Scalar& s, double h, const Contact& like, Values& out) {
  Scene other = scene;
  const int g = s.of_a ? like.geometry_a : like.geometry_b;
  if (!s.vertex) {
    other.model.geometry_size[3 * g + s.index] += h;
  } else {
    auto& mesh = other.model.meshes[other.model.geometry_mesh[g]];
    std::vector<double> v = mesh->vertices;
    v[3 * s.index + s.axis] += h;
    mesh = move_vertices(*mesh, v);
    CHECK(mesh != nullptr);
    if (mesh == nullptr) return false;
  }
  return detect(other, like, out);
}

void compare(const Scene& scene, const Contact& c, const Scalar& s, double longest, Tally& tally) {
  const int g = s.of_a ? c.geometry_a : c.geometry_b;
  const double* position = &scene.position[3 * (g + 1)];
  const double* rotation = &scene.rotation[9 * (g + 1)];
  ShapeMotion motion;
  if (s.vertex) {
    MeshCarrier carrier;
    find_carrier(scene.model, c, s.of_a, position, rotation, carrier);
    vertex_motion(c, carrier, s.index, s.axis, motion);
  } else {
    size_motion(scene.model, c, s.of_a, s.index, position, rotation, motion);
  }
  if (motion.frozen) {
    ++tally.frozen;
    return;
  }
  // Of several steps the one whose two Richardson values agree best.
  double error = 0, doubt = 1e300, scale = 1;
  bool any = false;
  for (double h = s.vertex ? longest : 2e-5; h > 1e-8; h *= 0.15) {
    Values v[6];
    bool there = true;
    for (int k = 0; k < 6 && there; ++k) there = changed(scene, s, (k % 2 ? -1 : 1) * h / (1 << k / 2), c, v[k]);
    if (!there) continue;
    any = true;
    double e = 0, disagree = 0, most = 1, bend = 0;
    for (int i = 0; i < 7; ++i) {
      const double analytic = i < 3 ? motion.dpoint[i] : i < 6 ? motion.dnormal[i - 3] : motion.ddistance;
      double d[3];
      for (int k = 0; k < 3; ++k) d[k] = (v[2 * k].x[i] - v[2 * k + 1].x[i]) / (2 * h / (1 << k));
      const double coarse = (4 * d[1] - d[0]) / 3, fine = (4 * d[2] - d[1]) / 3;
      e = std::max(e, std::abs(coarse - analytic));
      disagree = std::max(disagree, std::abs(fine - coarse));
      const double base = i < 3 ? c.point[i] : i < 6 ? c.normal[i - 3] : c.distance;
      bend = std::max(bend, std::abs(v[4].x[i] - 2 * base + v[5].x[i]) / (h / 4));
      most = std::max(most, std::abs(d[0]));
    }
    if (bend > 0.05 * most) continue;  // one slope on each side: a tie between two features
    if (disagree / most < doubt) doubt = disagree / most, error = e, scale = most;
    if (doubt < 1e-9) break;
  }
  if (!any || doubt > 1e-8) {
    ++(any ? tally.kinks : tally.lost);
    return;
  }
  ++tally.compared;
  if (verbose && error / scale > 1e-7)
    std::printf(
        "  rule %d of_a %d reference_a %d flats %d %d %s %d %d error %.2e scale %.2e distance %.2e doubt %.1e\n",
        int(c.rule), s.of_a, c.reference_on_a, c.a.num_flat, c.b.num_flat, s.vertex ? "vertex" : "size", s.index,
        s.axis, error, scale, c.distance, doubt);
  tally.worst = std::max(tally.worst, error / scale);
}

void compare_all(const PairState& state, const Named& a, const Named& b, const Contact& c,
                 std::map<std::string, int>& rules, Tally& tally) {
  const Scene& scene = state.scene;
  const int before = tally.compared;
  for (const bool of_a : {true, false}) {
    const int g = of_a ? c.geometry_a : c.geometry_b;
    const Named& shape = g == 0 ? a : b;
    for (int k = 0; k < num_sizes(shape.geometry.type); ++k) compare(scene, c, {of_a, false, k, 0}, 0, tally);
    if (!shape.geometry.mesh) continue;
    MeshCarrier carrier;
    find_carrier(scene.model, c, of_a, &scene.position[3 * (g + 1)], &scene.rotation[9 * (g + 1)], carrier);
    CHECK(carrier.count() > 0);
    for (int k = 0; k < carrier.count(); ++k)
      for (int axis = 0; axis < 3; ++axis) compare(scene, c, {of_a, true, carrier.vertex(k), axis}, shape.step, tally);
    int other = 0;
    for (int k = 0; k < carrier.count(); ++k)
      if (carrier.vertex(k) == other) ++other, k = -1;
    if (other < shape.geometry.mesh->num_vertices())
      compare(scene, c, {of_a, true, other, c.feature % 3}, shape.step, tally);
  }
  static constexpr const char* names[] = {"support", "vertex", "crossing", "frozen"};
  rules[names[int(c.rule)]] += tally.compared > before;
  if (c.rule != MotionRule::support)
    rules[std::string(names[int(c.rule)]) + (c.reference_on_a ? " on A" : " on B")] += tally.compared > before;
}

void check_pair(const Named& a, const Named& b, Random& random, std::map<std::string, int>& rules) {
  static constexpr double tilts[] = {-1, -1, 0, 1e-3, 0.01, 0.03}, gaps[] = {0.2, 1e-2, 1e-3, -1e-3, -1e-2, -0.1};
  Tally tally;
  for (int sample = 0; sample < 24; ++sample) {
    PairState state(a.geometry, b.geometry, tilts[sample % 6], random.uniform(0, 1) < 0.3, random);
    CollisionWorkspace workspace(state.scene.model);
    CollisionOptions stateless;
    stateless.stateless = true;
    CollisionCache none;
    std::vector<Contact> contacts = contacts_of(state.scene, stateless, none, workspace);
    CHECK(!contacts.empty());
    if (contacts.empty()) continue;
    const Contact first = deepest(contacts);
    axpy3(first.distance - gaps[static_cast<int>(random.uniform(0, 6))] * state.size, first.normal,
          state.scene.body_position(2));
    for (const Contact& c : contacts_of(state.scene, stateless, none, workspace))
      compare_all(state, a, b, c, rules, tally);
  }
  if (verbose)
    std::printf("%-10s %-10s compared %5d kinks %4d lost %4d frozen %4d worst %.1e\n", a.name, b.name, tally.compared,
                tally.kinks, tally.lost, tally.frozen, tally.worst);
  CHECK(tally.compared > 15);
  CHECK(tally.compared > 2 * (tally.kinks + tally.lost));
  CHECK_NEAR(tally.worst, 0, 1e-7);
}

}  // namespace

int main(int argc, char**) {
  verbose = argc > 1;
  Random random;
  std::map<std::string, int> rules;
  const std::vector<Named> all = shapes();
  for (const Named& a : all)
    for (const Named& b : all)
      if (a.geometry.type != ShapeType::half_space || b.geometry.type != ShapeType::half_space)
        check_pair(a, b, random, rules);
  for (const char* rule : {"support", "vertex on A", "vertex on B", "crossing on A", "crossing on B"}) {
    if (verbose) std::printf("%s: %d contacts\n", rule, rules[rule]);
    CHECK(rules[rule] > 25);
  }
  return report();
}
