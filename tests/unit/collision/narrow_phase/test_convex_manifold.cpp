// Manifolds of convex pairs: resting configurations, steadiness under small rotations, symmetry, and the derivative of
// every point against central differences.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "check.hpp"
#include "collision/convex_helpers.hpp"
#include "coulomb/collision/narrow_phase/convex_convex.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

Shape posed(ShapeType type, const double* size, double x, double y, double z) {
  Shape s;
  s.type = type, s.size = size;
  s.position[0] = x, s.position[1] = y, s.position[2] = z;
  return s;
}

// Rotates and moves the body: twist (velocity of the point `at`, angular velocity), time h.
Shape moved(const Shape& s, const double* twist, const double* at, double h) {
  Shape r = s;
  const double angle = norm3(twist + 3) * h;
  double q[4] = {std::cos(angle / 2), 0, 0, 0}, R[9], d[3];
  if (angle != 0)
    for (int i = 0; i < 3; ++i) q[1 + i] = std::sin(angle / 2) * twist[3 + i] * h / angle;
  quaternion_to_matrix(q, R);
  multiply3(R, s.rotation, r.rotation);
  sub3(s.position, at, d);
  rotate(R, d, d);
  for (int i = 0; i < 3; ++i) r.position[i] = at[i] + d[i] + h * twist[i];
  return r;
}

int collide(const Shape& a, const Shape& b, Contact* out, double margin = 0.05) {
  CollisionOptions options;
  options.stateless = true;
  CollisionCache::Pair cache;
  return collide_convex(a, b, margin, options, cache, out);
}

// Every point's contact_motion against central differences of the whole routine (points matched by feature).
int check_motion(const Shape& a, const Shape& b, Random& random, double tolerance) {
  Contact c[8], plus[8], minus[8];
  const int n = collide(a, b, c);
  int compared = 0;
  for (int k = 0; k < n; ++k) {
    double twist[12], motion_distance = 0, motion_point[3] = {0, 0, 0};
    for (double& x : twist) x = random.uniform(-1, 1);
    ContactMotion motion;
    contact_motion(c[k], motion);
    if (motion.frozen) continue;
    for (int j = 0; j < 12; ++j) {
      motion_distance += motion.ddistance[j] * twist[j];
      for (int i = 0; i < 3; ++i) motion_point[i] += motion.dpoint[i][j] * twist[j];
    }
    const double h = 1e-6;
    const int np = collide(moved(a, twist, c[k].point, h), moved(b, twist + 6, c[k].point, h), plus);
    const int nm = collide(moved(a, twist, c[k].point, -h), moved(b, twist + 6, c[k].point, -h), minus);
    for (int i = 0; i < np; ++i)
      for (int j = 0; j < nm; ++j) {
        if (plus[i].feature != c[k].feature || minus[j].feature != c[k].feature) continue;
        if (plus[i].rule != c[k].rule || minus[j].rule != c[k].rule) continue;
        if (norm3(plus[i].point) == 0) continue;
        double jump[3];
        sub3(plus[i].point, minus[j].point, jump);
        if (norm3(jump) > 1e-3) continue;  // a feature switch between the two states
        ++compared;
        const double fd = (plus[i].distance - minus[j].distance) / (2 * h);
        CHECK_NEAR(fd, motion_distance, tolerance);
        double error = 0;
        for (int x = 0; x < 3; ++x) error = std::max(error, std::abs(jump[x] / (2 * h) - motion_point[x]));
        CHECK_NEAR(error, 0, 100 * tolerance);
        if ((std::abs(fd - motion_distance) > tolerance || error > 100 * tolerance) && std::getenv("VERBOSE"))
          std::printf("  types %d %d rule %d points %d distance %g flat %d %d error %g\n", (int)a.type, (int)b.type,
                      (int)c[k].rule, n, c[k].distance, c[k].a.num_flat, c[k].b.num_flat, error);
      }
  }
  return compared;
}

void check_points(const Shape& a, const Shape& b, const Contact* c, int n) {
  for (int k = 0; k < n; ++k) {
    double d[3];
    sub3(c[k].point_a, c[k].point_b, d);
    axpy3(-c[k].distance, c[k].normal, d);
    CHECK_NEAR(norm3(d), 0, 1e-14 * 100);
    CHECK_NEAR(norm3(c[k].normal), 1, 1e-14);
    CHECK(c[k].distance >= support_gap(a, b, c[k].normal) - 1e-12);
  }
}

void box_on_box() {
  const double small[3] = {0.5, 0.3, 0.2}, large[3] = {2, 2, 1};
  Random random(3);
  Contact c[8];
  for (int trial = 0; trial < 200; ++trial) {
    Shape b = posed(ShapeType::box, large, 0, 0, -1), a = posed(ShapeType::box, small, 0.3, -0.2, 0.2 - 1e-4);
    const double tilt = trial == 0 ? 0 : std::pow(10, random.uniform(-9, -3));
    double twist[6] = {0, 0, 0, 0, 0, random.uniform(-3, 3)}, at[3] = {a.position[0], a.position[1], a.position[2]};
    a = moved(a, twist, at, 1);
    for (int i = 0; i < 3; ++i) twist[3 + i] = random.uniform(-1, 1);
    a = moved(a, twist, at, tilt);
    const int n = collide(a, b, c);
    CHECK(n == 4);
    check_points(a, b, c, n);
    for (int k = 0; k < n; ++k) {
      CHECK_NEAR(c[k].normal[2], 1, 1e-15);
      CHECK_NEAR(c[k].distance, c[k].point_a[2], 1e-14);  // the table's top is z = 0
    }
    Contact r[8];
    CHECK(collide(b, a, r) == 4);
    for (int k = 0; k < 4; ++k) {
      double nearest = 1;
      for (int i = 0; i < 4; ++i) {
        double d[3];
        sub3(c[k].point, r[i].point, d);
        nearest = std::min(nearest, norm3(d) + std::abs(c[k].distance - r[i].distance));
      }
      CHECK_NEAR(nearest, 0, 1e-12);
      CHECK_NEAR(r[k].normal[2], -1, 1e-15);
    }
  }
}

void rests() {
  const double large[3] = {2, 2, 1}, half = 1.5707963267948966;
  Contact c[8];
  Shape table = posed(ShapeType::box, large, 0, 0, -1);
  const double rod[3] = {0.1, 0.4, 0};
  for (const ShapeType type : {ShapeType::capsule, ShapeType::cylinder}) {
    Shape a = posed(type, rod, 0, 0, 0.1 - 1e-4);
    const double twist[6] = {0, 0, 0, 0, half, 0}, tilt[6] = {0, 0, 0, 0, 1e-3, 0};
    a = moved(a, twist, a.position, 1);
    CHECK(collide(a, table, c) == 2);
    a = moved(a, tilt, a.position, 1);
    const int n = collide(a, table, c);
    CHECK(n == 2);
    check_points(a, table, c, n);
    a.position[0] = 1.9;  // hangs over the edge
    const int m = collide(a, table, c);
    CHECK(m == 2);
    check_points(a, table, c, m);
  }
  Shape upright = posed(ShapeType::cylinder, rod, 0, 0, 0.4 - 1e-4);
  CHECK(collide(upright, table, c) == 4);
  upright.position[0] = 1.95;  // partly over the edge
  CHECK(collide(upright, table, c) >= 3);
  const double post[3] = {0.05, 0.05, 0.5};
  const Shape peg = posed(ShapeType::box, post, 0, 0, -0.5);
  upright.position[0] = 0;
  CHECK(collide(upright, peg, c) == 4);  // the cap is the larger face
  // Crossed boxes, equal boxes.
  const double bar[3] = {1, 0.1, 0.1};
  Shape x = posed(ShapeType::box, bar, 0, 0, 0.2 - 1e-4), y = posed(ShapeType::box, bar, 0, 0, 0);
  CHECK(collide(x, y, c) == 4);
  const double turn[6] = {0, 0, 0, 0, 0, half};
  x = moved(x, turn, x.position, 1);
  CHECK(collide(x, y, c) == 4);
}

void steady() {  // the set kept from step to step does not flicker
  const double a_size[3] = {0.5, 0.5, 0.5};
  Random random(9);
  Shape b = posed(ShapeType::box, a_size, 0, 0, 0);
  CollisionOptions options;
  CollisionCache::Pair cache;
  int last[4] = {0, 0, 0, 0}, changes = 0;
  for (int step = 0; step < 200; ++step) {
    Shape a = posed(ShapeType::box, a_size, 0.1, 0.05, 1 - 1e-4);
    double twist[6] = {0, 0, 0, 0, 0, 0.5};
    a = moved(a, twist, a.position, 1);
    for (int i = 0; i < 3; ++i) twist[3 + i] = random.uniform(-1, 1);
    a = moved(a, twist, a.position, 1e-5);
    Contact c[8];
    const int n = collide_convex(a, b, 0.01, options, cache, c);
    CHECK(n == 4);
    bool same = true;
    for (int k = 0; k < 4; ++k) same = same && c[k].feature == last[k], last[k] = c[k].feature;
    if (!same) ++changes;
  }
  CHECK(changes == 1);
}

/// A plate that tips over the edge of a box: its own side carries the normal, and that of the box, which did, stays only within the error.
void tipping(double error, bool stays) {
  const double size[3] = {0.5, 0.5, 0.5}, plate[3] = {0.5, 0.5, 0.1};
  const Shape b = posed(ShapeType::box, size, 0, 0, 0);
  CollisionOptions options;
  options.kept_face_error = error;
  CollisionCache::Pair cache;
  Contact c[8];

  // An edge of the plate on the box, then the plate on an edge of the box, x = 0.5.
  const double low[3] = {-0.4, 0, 0.5}, edge[3] = {0.5, 0, 0.5}, back[6] = {0, 0, 0, 0, -0.01, 0},
               forth[6] = {0, 0, 0, 0, 0.01, 0};
  const Shape flat = posed(ShapeType::box, plate, 0.1, 0, 0.6 - 1e-6);
  CHECK(collide_convex(moved(flat, back, low, 1), b, 0.01, options, cache, c) >= 2);
  CHECK_NEAR(std::abs(c[0].normal[2]), 1, 1e-15);
  const Shape tipped = moved(flat, forth, edge, 1);
  const int n = collide_convex(tipped, b, 0.01, options, cache, c);
  CHECK(n >= 2);
  for (int k = 0; k < n; ++k) CHECK_NEAR(std::abs(c[k].normal[0]), stays ? 0 : std::sin(0.01), 1e-12);
}

void degenerate() {
  Random random(5);
  Contact c[8];
  const double zero[3] = {0, 0, 0}, one[3] = {1, 1, 1};
  const ShapeType types[5] = {ShapeType::sphere, ShapeType::capsule, ShapeType::cylinder, ShapeType::box,
                              ShapeType::ellipsoid};
  for (const double* size_a : {zero, one})
    for (const ShapeType ta : types)
      for (const ShapeType tb : types) {
        const Shape a = posed(ta, size_a, 0, 0, 0), b = posed(tb, one, 0, 0, 0);
        const int n = collide(a, b, c);
        CHECK(n >= 1);
        if (n < 1) std::printf("  types %d %d\n", (int)ta, (int)tb);
        for (int k = 0; k < n; ++k) {
          CHECK(std::isfinite(c[k].distance + c[k].point[0] + c[k].point[1] + c[k].point[2]));
          CHECK_NEAR(norm3(c[k].normal), 1, 1e-12);
        }
      }
}

}  // namespace

int main() {
  box_on_box();
  rests();
  steady();
  tipping(1, true);
  tipping(1e-5, false);
  degenerate();
  Random random(11);
  int compared = 0;
  const ShapeType types[6] = {ShapeType::sphere, ShapeType::capsule,   ShapeType::cylinder,
                              ShapeType::box,    ShapeType::ellipsoid, ShapeType::mesh};
  for (const ShapeType ta : types)
    for (const ShapeType tb : types)
      for (int trial = 0; trial < 8; ++trial) {
        auto a = random_shape(ta, random), b = random_shape(tb, random);
        double axis[3], n[3];
        random.direction(axis);
        // From far along `axis` to a small overlap or gap, twice because the normal is not the direction of travel.
        for (int i = 0; i < 3; ++i) a->shape.position[i] = 5 * axis[i];
        for (int pass = 0; pass < 3; ++pass) {
          int hints[2] = {-1, -1};
          Witness w;
          copy3(axis, n);
          convex_witness(a->shape, b->shape, 1e9, n, hints, w);
          axpy3(-(w.distance - (trial % 2 ? 0.02 : -0.02)), w.normal, a->shape.position);
        }
        compared += check_motion(a->shape, b->shape, random, 2e-6);
      }
  const double large[3] = {1, 1, 1}, small[3] = {0.4, 0.3, 0.5};
  for (const ShapeType type : {ShapeType::box, ShapeType::cylinder, ShapeType::capsule})
    for (int trial = 0; trial < 20; ++trial) {
      Shape b = posed(ShapeType::box, large, 0, 0, 0);
      Shape a = posed(type, small, random.uniform(-1, 1), random.uniform(-1, 1), 0);
      const double lie[6] = {0, 0, 0, 0, trial % 2 && type != ShapeType::box ? 1.5707963267948966 : 0.0, 0};
      a = moved(a, lie, a.position, 1);
      const double tilt[6] = {0, 0, 0, random.uniform(-0.01, 0.01), random.uniform(-0.01, 0.01), random.uniform(-3, 3)};
      a = moved(a, tilt, a.position, 1);
      int hint = 0;
      double low[3];
      const double down[3] = {0, 0, -1};
      shape_support(a, down, low, hint);
      a.position[2] += 1 - low[2] - 0.01;
      compared += check_motion(a, b, random, 2e-6);
    }
  std::printf("%d derivatives compared\n", compared);
  return report();
}
