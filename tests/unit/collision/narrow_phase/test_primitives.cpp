// Closed-form pairs against their definition (support heights over a plane) and against the general convex routine;
// coincident cores; parallel capsules; the choice of points on meshes and its memory.
#include <algorithm>
#include <cstring>

#include "check.hpp"
#include "collision/scene.hpp"
#include "coulomb/collision/narrow_phase/convex_convex.hpp"
#include "coulomb/collision/narrow_phase/primitives_half_space.hpp"
#include "coulomb/collision/narrow_phase/primitives_round.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

struct Posed {
  double size[3];
  std::shared_ptr<const ConvexMesh> mesh;
  Shape shape;
  Posed(ShapeType type, double x, double y, double z, std::shared_ptr<const ConvexMesh> m = nullptr)
      : size{x, y, z}, mesh(m) {
    shape.type = type, shape.size = size, shape.mesh = mesh.get();
  }
  Posed(const Posed&) = delete;
};

void randomise(Shape& shape, Random& random, double spread) {
  random.rotation(shape.rotation);
  for (double& x : shape.position) x = random.uniform(-spread, spread);
}

void check_witnesses(const Contact& c) {
  for (int i = 0; i < 3; ++i) {
    CHECK_NEAR(c.point_a[i] - c.point_b[i], c.distance * c.normal[i], 1e-12);
    CHECK_NEAR(c.point[i], 0.5 * (c.point_a[i] + c.point_b[i]), 1e-12);
  }
  CHECK_NEAR(norm3(c.normal), 1, 1e-12);
}

void half_space(CollidePair collide, Posed& other, Random& random) {
  Posed plane(ShapeType::half_space, 0, 0, 0);
  const double margin = 0.02;
  for (int sample = 0; sample < 500; ++sample) {
    randomise(plane.shape, random, 1);
    randomise(other.shape, random, 1);
    const double* R = plane.shape.rotation;
    const double up[3] = {R[2], R[5], R[8]}, down[3] = {-up[0], -up[1], -up[2]};
    double p[3], d[3];
    const double target = random.uniform(-0.05, 0.03);
    int hint = -1;
    shape_support(other.shape, down, p, hint);
    sub3(p, plane.shape.position, d);
    const double shift = target - dot3(up, d);
    for (int i = 0; i < 3; ++i) other.shape.position[i] += shift * up[i];
    CollisionCache::Pair cache;
    Contact out[8];
    const int count = collide(plane.shape, other.shape, margin, {}, cache, out);
    CHECK((count > 0) == (target <= margin) && count <= 4);
    double deepest = 1;
    for (int k = 0; k < count; ++k) {
      check_witnesses(out[k]);
      CHECK_NEAR(dot3(out[k].normal, up), -1, 1e-12);
      CHECK(out[k].distance <= margin);
      sub3(out[k].point_a, plane.shape.position, d);
      CHECK_NEAR(dot3(up, d), 0, 1e-12);
      deepest = std::min(deepest, out[k].distance);
    }
    double sine = 1;  // an upright cylinder stands on four points of its cap, not on its rim
    if (other.shape.type == ShapeType::cylinder) {
      double w[3];
      rotate_transposed(other.shape.rotation, up, w);
      sine = std::hypot(w[0], w[1]);
    }
    if (count > 0 && sine > 0.02) CHECK_NEAR(deepest, target, 1e-12);
  }
}

void against_convex(CollidePair collide, Posed& a, Posed& b, Random& random, double tolerance) {
  for (int sample = 0; sample < 500; ++sample) {
    randomise(a.shape, random, 0.15);
    randomise(b.shape, random, 0.15);
    CollisionCache::Pair cache, other;
    Contact out[8], reference[8];
    const int count = collide(a.shape, b.shape, 0.1, {}, cache, out);
    const int expected = collide_convex(a.shape, b.shape, 0.1, {}, other, reference);
    CHECK((count > 0) == (expected > 0));
    if (count == 0 || expected == 0) continue;
    double least = 1, best = 1;
    for (int k = 0; k < count; ++k) check_witnesses(out[k]), least = std::min(least, out[k].distance);
    for (int k = 0; k < expected; ++k) best = std::min(best, reference[k].distance);
    if (least > -0.9 * a.size[0]) CHECK_NEAR(least, best, tolerance);  // deeper: crossed cores, other local optima
  }
}

void coincident() {
  Posed a(ShapeType::sphere, 0.1, 0, 0), b(ShapeType::sphere, 0.2, 0, 0);
  CollisionCache::Pair cache;
  Contact c;
  ContactMotion motion;
  CHECK(collide_sphere_sphere(a.shape, b.shape, 0, {}, cache, &c) == 1);
  CHECK_NEAR(c.distance, -0.3, 1e-15);
  check_witnesses(c);
  c.size = 0.1;
  contact_motion(c, motion);
  CHECK(motion.frozen);
  for (const auto& row : motion.dpoint)
    for (double x : row) CHECK(std::isfinite(x));
  Posed p(ShapeType::capsule, 0.1, 0.3, 0), q(ShapeType::capsule, 0.1, 0.2, 0);
  Contact two[8];
  CHECK(collide_capsule_capsule(p.shape, q.shape, 0, {}, cache, two) == 2);
  check_witnesses(two[0]);
  CHECK_NEAR(two[0].normal[2], 0, 1e-15);
}

/// Side by side, 0.05 apart, shifted by 0.1 along the axis: the common part is [-0.1, 0.3] of the first.
void parallel_capsules() {
  Posed a(ShapeType::capsule, 0.1, 0.3, 0), b(ShapeType::capsule, 0.1, 0.2, 0);
  b.shape.position[0] = 0.25, b.shape.position[2] = 0.1;
  CollisionCache::Pair cache;
  Contact out[8];
  CHECK(collide_capsule_capsule(a.shape, b.shape, 0.1, {}, cache, out) == 2);
  CHECK_NEAR(out[0].point[2], -0.1, 1e-12);
  CHECK_NEAR(out[1].point[2], 0.3, 1e-12);
  for (int k = 0; k < 2; ++k) CHECK_NEAR(out[k].distance, 0.05, 1e-12), CHECK_NEAR(out[k].normal[0], -1, 1e-12);
}

/// A prism of 40 sides standing on its flat end keeps its four points while it shakes; its memory obeys the options.
void standing_prism() {
  std::vector<double> v;
  std::vector<int> t;
  const int n = 40;
  for (int k = 0; k < n; ++k)
    for (double z : {-0.1, 0.1})
      v.insert(v.end(), {0.1 * std::cos(2 * M_PI * k / n), 0.1 * std::sin(2 * M_PI * k / n), z});
  for (int k = 0; k < n; ++k) {
    const int a = 2 * k, b = 2 * ((k + 1) % n);
    t.insert(t.end(), {a, b, a + 1, b, b + 1, a + 1});
    if (k > 0 && k < n - 1) t.insert(t.end(), {0, b, a, 1, a + 1, b + 1});
  }
  const auto prism = make_convex_mesh(v, t, "prism");
  CHECK(prism->num_faces() == n + 2 && prism->num_vertices() == 2 * n);
  Posed plane(ShapeType::half_space, 0, 0, 0), body(ShapeType::mesh, 0, 0, 0, prism);
  Random random;
  CollisionCache::Pair cache;
  int first[4] = {-1, -1, -1, -1};
  for (int step = 0; step < 100; ++step) {
    const double q[4] = {1, random.uniform(-1e-5, 1e-5), random.uniform(-1e-5, 1e-5), 0};
    quaternion_to_matrix(q, body.shape.rotation);
    body.shape.position[2] = 0.0999;
    Contact out[8];
    const int count = collide_half_space_mesh(plane.shape, body.shape, 0.001, {}, cache, out);
    CHECK(count == 4);
    for (int k = 0; k < count; ++k) {
      if (step == 0) first[k] = out[k].feature;
      CHECK(out[k].feature == first[k]);
      CHECK(k == 0 || out[k].feature > out[k - 1].feature);
    }
    CollisionCache::Pair before = cache;
    CollisionOptions frozen;
    frozen.frozen_cache = true;
    body.shape.position[2] = 0.2;
    collide_half_space_mesh(plane.shape, body.shape, 0.001, frozen, cache, out);
    CHECK(std::memcmp(&before, &cache, sizeof before) == 0);
  }
}

}  // namespace

int main() {
  Random random;
  const auto few = faceted_ellipsoid(0.1, 0.12, 0.09, 3, 6), many = faceted_ellipsoid(0.1, 0.12, 0.09, 12, 20);
  Posed sphere(ShapeType::sphere, 0.1, 0, 0), other(ShapeType::sphere, 0.15, 0, 0),
      capsule(ShapeType::capsule, 0.07, 0.15, 0), thin(ShapeType::capsule, 0.05, 0.2, 0),
      cylinder(ShapeType::cylinder, 0.09, 0.12, 0), box(ShapeType::box, 0.1, 0.13, 0.08),
      ellipsoid(ShapeType::ellipsoid, 0.08, 0.11, 0.14), small(ShapeType::mesh, 0, 0, 0, few),
      large(ShapeType::mesh, 0, 0, 0, many);
  half_space(collide_half_space_sphere, sphere, random);
  half_space(collide_half_space_capsule, capsule, random);
  half_space(collide_half_space_cylinder, cylinder, random);
  half_space(collide_half_space_box, box, random);
  half_space(collide_half_space_ellipsoid, ellipsoid, random);
  half_space(collide_half_space_mesh, small, random);
  half_space(collide_half_space_mesh, large, random);
  against_convex(collide_sphere_sphere, sphere, other, random, 1e-12);
  against_convex(collide_sphere_capsule, sphere, capsule, random, 1e-10);
  against_convex(collide_capsule_capsule, thin, capsule, random, 1e-10);
  against_convex(collide_sphere_box, sphere, box, random, 1e-10);
  against_convex(collide_sphere_cylinder, sphere, cylinder, random, 1e-8);
  coincident();
  parallel_capsules();
  standing_prism();
  return report();
}
