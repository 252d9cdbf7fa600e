// The bound of the signed distance holds for every motion within its premises: plates and rods whose angular velocity turns as fast as
// it may, above a fixed and a turning half-space and above another shape. For a ball, and for spin about the normal, it is sharp.
#include "check.hpp"
#include "collision/all_pairs.hpp"
#include "coulomb/collision/continuous/separation_bound.hpp"

namespace coulomb::test {
namespace {

/// Angular velocity w + s l, w and l fixed in the world; velocity v + s a.
struct Motion {
  double w[3], l[3], v[3], a[3];
};

/// The shape after s, turned about its position by many small steps.
void move(MovingShape& m, const Motion& motion, double s) {
  constexpr int steps = 400;
  for (int k = 0; k < steps; ++k) {
    double turn[3], turned[9];
    for (int i = 0; i < 3; ++i) turn[i] = s / steps * (motion.w[i] + s * (k + 0.5) / steps * motion.l[i]);
    const double angle = norm3(turn), half = angle > 0 ? std::sin(angle / 2) / angle : 0;
    const double q[4] = {std::cos(angle / 2), half * turn[0], half * turn[1], half * turn[2]};
    double R[9];
    quaternion_to_matrix(q, R);
    multiply3(R, m.shape.rotation, turned);
    for (int i = 0; i < 9; ++i) m.shape.rotation[i] = turned[i];
  }
  for (int i = 0; i < 3; ++i) m.shape.position[i] += s * (motion.v[i] + 0.5 * s * motion.a[i]);
}

MovingShape moving(const Geometry& g, const double* position, const Motion& motion, double horizon) {
  MovingShape m;
  m.shape.type = g.type, m.shape.size = g.size, m.shape.mesh = g.mesh.get();
  copy3(position, m.shape.position), copy3(position, m.origin);
  copy3(motion.v, m.velocity), copy3(motion.w, m.angular);
  m.speed = norm3(motion.v) + horizon * norm3(motion.a), m.acceleration = norm3(motion.a);
  m.angular_acceleration = norm3(motion.l), m.angular_speed = norm3(motion.w) + horizon * m.angular_acceleration;
  m.reach = g.type == ShapeType::sphere || g.type == ShapeType::half_space ? 0
            : g.type == ShapeType::capsule                                 ? g.size[1]
                                                                           : norm3(g.size);
  return m;
}

double bound_and_truth(const MovingShape& a, const Motion& ma, const MovingShape& b, const Motion& mb, double s,
                       double& truth) {
  SignedDistance now, later;
  signed_distance(a.shape, b.shape, now);
  MovingShape a1 = a, b1 = b;
  move(a1, ma, s), move(b1, mb, s);
  signed_distance(a1.shape, b1.shape, later);
  truth = later.distance;
  return separation_bound(a, b, now, s);
}

/// At rest, but for what is given.
Motion motion(double wx, double wy, double wz, double lx = 0, double ly = 0, double vz = 0, double az = 0) {
  return {{wx, wy, wz}, {lx, ly, 0}, {0, 0, vz}, {0, 0, az}};
}

void worst_turns() {
  const Geometry shapes[] = {{ShapeType::box, {0.5, 0.4, 0.01}, nullptr},
                             {ShapeType::capsule, {0.02, 0.5, 0}, nullptr},
                             {ShapeType::ellipsoid, {0.5, 0.3, 0.05}, nullptr},
                             {ShapeType::cylinder, {0.5, 0.02, 0}, nullptr}};
  const Geometry plane{ShapeType::half_space, {0, 0, 0}, nullptr}, table{ShapeType::box, {2, 2, 0.1}, nullptr};
  const double up[3] = {0, 0, 0.3}, ground[3] = {0, 0, 0}, below[3] = {0, 0, -0.1};
  double closest = 1e300;
  for (const Geometry& g : shapes)
    for (const Motion& m : {motion(0, 0, 100, 0, 3000), motion(0, 0, 1000, 0, 1e5), motion(0, 20, 50, 3000, 0),
                            motion(0, 0, 0, 3000, 0), motion(30, 0, 0, 0, 0, -1, -50), motion(0, 0, 300, 3e4, 3e4, 2)})
      for (const double s : {3e-4, 1e-3, 3e-3, 1e-2, 3e-2}) {
        const MovingShape a = moving(g, up, m, s);
        for (const Motion& o : {motion(0, 0, 0), motion(5, 3, 0, 20), motion(0, 2, 40, 0, 500, 1)}) {
          double truth;
          double bound = bound_and_truth(a, m, moving(plane, ground, o, s), o, s, truth);
          CHECK(bound <= truth + 1e-9);
          bound = bound_and_truth(a, m, moving(table, below, o, s), o, s, truth);
          CHECK(bound <= truth + 1e-9);
          closest = std::min(closest, truth - bound);
        }
      }
  CHECK(closest < 0.01);
}

/// A half-space that turns under a ball: what turns its normal twice, and what moves along it while it turns.
void turning_half_space() {
  const Geometry plane{ShapeType::half_space, {0, 0, 0}, nullptr}, ball{ShapeType::sphere, {0.1, 0, 0}, nullptr};
  const double at[3] = {-0.3, 0, 3}, ground[3] = {0, 0, 0};
  for (const double along : {0.0, 200.0, -200.0})
    for (const double turn : {40.0, -40.0, 5.0})
      for (const double s : {1e-3, 3e-3, 1e-2}) {
        Motion fly = motion(0, 0, 0), carry = motion(0, turn, 0, 0, 20 * turn);
        fly.v[0] = along;
        double truth;
        const double bound =
            bound_and_truth(moving(ball, at, fly, s), fly, moving(plane, ground, carry, s), carry, s, truth);
        CHECK(bound <= truth + 1e-9);
      }
}

/// What spins about the normal, and balls: exactly the straight line.
void sharp() {
  const Geometry plane{ShapeType::half_space, {0, 0, 0}, nullptr}, plate{ShapeType::box, {0.5, 0.4, 0.01}, nullptr},
      ball{ShapeType::sphere, {0.1, 0, 0}, nullptr};
  const double up[3] = {0, 0, 0.3}, ground[3] = {0, 0, 0};
  const Motion still = motion(0, 0, 0), spin = motion(0, 0, 1000, 0, 0, -3), any = motion(100, 200, 300, 1e4, 0, -3);
  double truth;
  CHECK_NEAR(
      bound_and_truth(moving(plate, up, spin, 0.01), spin, moving(plane, ground, still, 0.01), still, 0.01, truth),
      0.29 - 0.03, 1e-12);
  CHECK_NEAR(bound_and_truth(moving(ball, up, any, 0.01), any, moving(plane, ground, still, 0.01), still, 0.01, truth),
             0.2 - 0.03, 1e-12);
  const MovingShape a = moving(ball, up, any, 0.1), b = moving(plane, ground, still, 0.1);
  SignedDistance now;
  signed_distance(a.shape, b.shape, now);
  CHECK_NEAR(closing_speed(a, b, now), 3, 1e-12);
  CHECK_NEAR(safe_advance(a, b, now, 0, 0.1).time, 0.2 / 3, 1e-12);
  CHECK(safe_advance(a, b, now, -0.2, 0.1).time == 0.1);
  CHECK(safe_advance(a, b, now, 0.2, 0.1).time == 0);
}

/// Least signed distance on the way, from s/n to s.
double least_distance(const MovingShape& a, const Motion& ma, const MovingShape& b, const Motion& mb, double s) {
  constexpr int n = 12;
  double least = 1e300;
  for (int k = 1; k <= n; ++k) {
    MovingShape a1 = a, b1 = b;
    move(a1, ma, s * k / n), move(b1, mb, s * k / n);
    SignedDistance later;
    signed_distance(a1.shape, b1.shape, later);
    least = std::min(least, later.distance);
  }
  return least;
}

/// Directions that turn at any rate prove nothing false: random boxes and rods close together, random motions.
void turning_directions() {
  const Geometry shapes[] = {{ShapeType::box, {0.5, 0.4, 0.01}, nullptr},
                             {ShapeType::box, {0.1, 0.1, 0.1}, nullptr},
                             {ShapeType::capsule, {0.02, 0.5, 0}, nullptr},
                             {ShapeType::cylinder, {0.2, 0.02, 0}, nullptr}};
  std::uint64_t state = 12345;
  const auto random = [&state](double size) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return size * (2 * static_cast<double>(state >> 11) / 9007199254740992.0 - 1);
  };
  int longer = 0, moves = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const Geometry &ga = shapes[trial % 4], &gb = shapes[trial / 4 % 4];
    Motion ma, mb;
    for (Motion* m : {&ma, &mb})
      for (int i = 0; i < 3; ++i)
        m->w[i] = random(50), m->l[i] = random(500), m->v[i] = random(2), m->a[i] = random(50);
    const double horizon = 3e-3, origin[3] = {0, 0, 0};
    const double at[3] = {random(0.3), random(0.3), 0.05 + std::abs(random(0.5))};
    MovingShape a = moving(ga, at, ma, horizon), b = moving(gb, origin, mb, horizon);
    Motion place = {{random(300), random(300), random(300)}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}};
    move(a, place, 0.01);
    SignedDistance now;
    signed_distance(a.shape, b.shape, now);
    double m[3];
    for (int i = 0; i < 3; ++i) m[i] = random(60);
    if (trial % 2 == 0) cross3(trial % 4 == 0 ? ma.w : mb.w, now.normal, m);
    axpy3(-dot3(now.normal, m), now.normal, m);
    const double threshold = now.distance - 1e-4 * (1 + std::abs(random(100)));
    const SafeAdvance fixed = safe_advance(a, b, now, threshold, horizon);
    const SafeAdvance turned = safe_advance(a, b, now, threshold, horizon, m);
    CHECK(turned.time > 0);
    CHECK(least_distance(a, ma, b, mb, turned.time) >= threshold - 1e-9);
    CHECK(least_distance(a, ma, b, mb, fixed.time) >= threshold - 1e-9);
    longer += turned.time > 1.2 * fixed.time, ++moves;
  }
  CHECK(longer > moves / 20);
}

/// Two rods across each other that turn like one body: a fixed direction cuts their ends off, the one that turns with them does not.
void crossing_edges() {
  const Geometry rod{ShapeType::box, {0.5, 0.01, 0.01}, nullptr}, across{ShapeType::box, {0.01, 0.5, 0.01}, nullptr};
  const double origin[3] = {0, 0, 0}, above[3] = {0, 0, 0.02 + 1e-9};
  Motion turn = motion(1, 1, 0), carried = turn;
  cross3(turn.w, above, carried.v);
  const MovingShape a = moving(rod, above, carried, 1e-2), b = moving(across, origin, turn, 1e-2);
  SignedDistance now;
  signed_distance(a.shape, b.shape, now);
  double m[3];
  cross3(turn.w, now.normal, m);
  const SafeAdvance fixed = safe_advance(a, b, now, 0, 1e-2), turned = safe_advance(a, b, now, 0, 1e-2, m);
  CHECK(fixed.cut);
  CHECK(fixed.time < 1e-8);
  CHECK(!turned.cut);
  CHECK(turned.time > 1e-5);
}

}  // namespace
}  // namespace coulomb::test

int main() {
  using namespace coulomb::test;
  worst_turns();
  turning_half_space();
  sharp();
  turning_directions();
  crossing_edges();
  return report();
}
