// Every convex pair against duality: a normal whose support gap equals the distance of two points that lie in the
// shapes proves a separated pair optimal; overlapping pairs are searched for a shallower direction.
#include <cstdio>
#include <cstdlib>

#include "check.hpp"
#include "collision/convex_helpers.hpp"
#include "coulomb/collision/narrow_phase/convex_convex.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

int raw = 0, total = 0, worse = 0;

// How far `p` sticks out of `s` along any of some directions.
double outside(const Shape& s, const double* p, const double* guess, Random& random) {
  double worst = -1, d[3], q[3];
  int hint = 0;
  for (int i = 0; i < 60; ++i) {
    if (i == 0) copy3(guess, d);
    else random.direction(d);
    shape_support(s, d, q, hint);
    worst = std::max(worst, dot3(d, p) - dot3(d, q));
  }
  return worst;
}

// Best gap over random directions with a shrinking local search.
double search(const Shape& a, const Shape& b, const double* start, Random& random) {
  double best = -1e30, n[3], d[3], at[3];
  copy3(start, at);
  for (int i = 0; i < 300; ++i) {
    random.direction(d);
    const double g = support_gap(a, b, d);
    if (g > best) best = g, copy3(d, at);
  }
  double step = 0.2;
  for (int i = 0; i < 500; ++i) {
    random.direction(d);
    for (int c = 0; c < 3; ++c) n[c] = at[c] + step * d[c];
    const double length = norm3(n);
    for (double& x : n) x /= length;
    const double g = support_gap(a, b, n);
    if (g > best) best = g, copy3(n, at);
    else step = std::max(step * 0.97, 1e-9);
  }
  return best;
}

void check_pair(const Shape& a, const Shape& b, Random& random) {
  double axis[3] = {0, 0, 0}, back[3] = {0, 0, 0};
  int hints[2] = {-1, -1}, hints_back[2] = {-1, -1};
  Witness w, v;
  CHECK(convex_witness(a, b, 1e9, axis, hints, w));
  CHECK(convex_witness(b, a, 1e9, back, hints_back, v));
  ++total;
  const double gap = support_gap(a, b, w.normal), error = std::abs(gap - w.distance);
  if (error > 1e-12) {
    ++raw;
    if (std::getenv("VERBOSE"))
      std::printf("types %d %d distance %g error %g kinds %d %d\n", (int)a.type, (int)b.type, w.distance, error,
                  (int)w.a.kind, (int)w.b.kind);
  }
  // The direction between corners that all but touch is known to rounding over distance.
  CHECK_NEAR(gap, w.distance, 1e-12 + (w.distance > 1e-10 ? 1e-15 / w.distance : 0.0));
  // Overlapping smooth shapes: of two optima closer than EPA's 1e-4 of the size either may be taken.
  const bool smooth = !has_polyhedral_core(a) || !has_polyhedral_core(b);
  CHECK_NEAR(w.distance, v.distance, w.distance > 0 || !smooth ? 2e-12 : 5e-4);
  CHECK_NEAR(norm3(w.normal), 1, 1e-14);
  double d[3];
  sub3(w.point_a, w.point_b, d);
  axpy3(-w.distance, w.normal, d);
  CHECK_NEAR(norm3(d), 0, 2e-12);
  const double inward[3] = {-w.normal[0], -w.normal[1], -w.normal[2]};
  CHECK(outside(a, w.point_a, inward, random) < 1e-10);
  CHECK(outside(b, w.point_b, w.normal, random) < 1e-10);
  if (w.distance < 0 && search(a, b, w.normal, random) > w.distance + (smooth ? 5e-4 : 1e-10)) {
    ++worse;
    if (std::getenv("VERBOSE")) std::printf("types %d %d not global\n", (int)a.type, (int)b.type);
  }
}

// A separated pair brought to a chosen gap along its normal: the new distance is known.
void check_near(Shape a, const Shape& b, Random& random) {
  double axis[3] = {0, 0, 0};
  int hints[2] = {-1, -1};
  Witness w;
  convex_witness(a, b, 1e9, axis, hints, w);
  if (w.distance <= 0) return;
  double at = w.distance, n[3];
  copy3(w.normal, n);
  for (const double gap : {1e-1, 1e-3, 1e-5, 1e-7, 1e-9, 1e-11, 0.0, -1e-11, -1e-9, -1e-7, -1e-5}) {
    axpy3(gap - at, n, a.position);
    at = gap;
    copy3(n, axis);
    convex_witness(a, b, 1e9, axis, hints, w);
    CHECK(w.distance >= gap - 2e-12);  // just overlapping corners and edges have a shallower way out
    if (gap >= 0) CHECK_NEAR(w.distance, gap, 2e-12);
    check_pair(a, b, random);
  }
}

}  // namespace

int main() {
  Random random(1);
  const ShapeType types[6] = {ShapeType::sphere, ShapeType::capsule,   ShapeType::cylinder,
                              ShapeType::box,    ShapeType::ellipsoid, ShapeType::mesh};
  for (const ShapeType ta : types)
    for (const ShapeType tb : types)
      for (int trial = 0; trial < 30; ++trial) {
        auto a = random_shape(ta, random), b = random_shape(tb, random);
        double d[3];
        random.direction(d);
        const double range = trial % 3 == 0 ? 3.0 : trial % 3 == 1 ? 1.2 : 0.4;
        for (int i = 0; i < 3; ++i) a->shape.position[i] = random.uniform(0.1, range) * d[i];
        check_pair(a->shape, b->shape, random);
        if (trial < 6) check_near(a->shape, b->shape, random);
      }
  std::printf("%d pairs, %d inexact, %d not global\n", total, raw, worse);
  CHECK(worse == 0);
  return report();
}
