// The first impact against closed forms: times, where it happens, what touches already, and what cannot be answered.

#include "check.hpp"
#include "count_allocations.hpp"
#include "stepping/moving_scene.hpp"

namespace coulomb::test {
namespace {

const Geometry plane{ShapeType::half_space, {0, 0, 0}, nullptr};
Geometry ball(double r) { return {ShapeType::sphere, {r, 0, 0}, nullptr}; }
Geometry rod(double r, double half) { return {ShapeType::capsule, {r, half, 0}, nullptr}; }
Geometry box(double x, double y, double z) { return {ShapeType::box, {x, y, z}, nullptr}; }

void expect(const Impact& impact, double time, double relative = 1e-12) {
  CHECK(impact.status == ImpactStatus::complete);
  CHECK(impact.found && !impact.grazing);
  CHECK(impact.time <= time);
  CHECK(impact.time >= time * (1 - relative));
  CHECK(impact.distance >= impact.threshold && impact.distance <= impact.threshold + 1e-12);
}

void bullet_and_wall() {
  for (const Geometry& wall : {plane, box(0.5, 2, 2)}) {
    MovingScene s;
    const double quaternion[4] = {std::sqrt(0.5), 0, -std::sqrt(0.5), 0}, at[3] = {5.5, 0, 0}, face[3] = {5, 0, 0};
    const bool flat = wall.type == ShapeType::half_space;  // solid where x >= 5
    s.add_shape(wall, flat ? face : at, flat ? quaternion : nullptr);
    const int bullet = s.add_free(ball(0.01));
    s.finish();
    s.free_v(bullet)[0] = 1000;
    const Impact impact = s.first(0.01);
    expect(impact, 0.00499);
    CHECK_NEAR(impact.closing_speed, 1000, 1e-9);
    CHECK_NEAR(impact.point[0], 5, 1e-12);
    CHECK_NEAR(impact.normal[0], 1, 1e-12);  // from the bullet to the wall, geometry a
    CHECK(impact.evaluations < 8);
    CHECK(!s.first(0.00498).found);
    CHECK_NEAR(s.first(0.00498).time, 0.00498, 0);
  }
}

void turning_rod() {
  MovingScene s;
  s.add_shape(plane);
  const double level[4] = {std::sqrt(0.5), 0, std::sqrt(0.5), 0};
  for (const double r : {1e-9, 0.02}) {
    MovingScene one = s;
    const int body = one.add_body(0);
    one.add_joint(JointType::free);
    one.add_shape(rod(r, 0.5), nullptr, level);
    one.finish();
    one.place(body, 0, 0, 0.3 + r);
    one.free_v(body)[4] = 10;  // about y
    const Impact impact = one.first(0.1);
    expect(impact, std::asin(0.6) / 10);
    CHECK_NEAR(impact.closing_speed, 10 * 0.4, 1e-9);
  }
}

void falling_ball() {
  MovingScene s;
  s.add_shape(plane);
  const int body = s.add_free(ball(0.1));
  s.finish();
  s.place(body, 0, 0, 1.1);
  s.free_a(body)[2] = -9.81;
  expect(s.first(1), std::sqrt(2 / 9.81), 1e-13);
  // thrown up from rest on the plane: the second contact, not the first
  s.place(body, 0, 0, 0.1);
  s.free_v(body)[2] = 2, s.free_v(body)[0] = 3, s.free_v(body)[4] = 300;
  expect(s.first(1), 4 / 9.81, 1e-13);
  CHECK_NEAR(s.first(1).threshold, 0, 0);
  s.free_v(body)[2] = 0.05;  // up by 0.13 mm
  expect(s.first(1), 0.1 / 9.81, 1e-10);
  CHECK(!s.first(0.0101).found);
}

void two_balls() {
  Random random;
  for (int i = 0; i < 200; ++i) {
    MovingScene s;
    const int a = s.add_free(ball(0.1)), b = s.add_free(ball(0.2));
    s.finish();
    double d[3];
    random.direction(d);
    for (int k = 0; k < 3; ++k) s.free_q(b)[k] = 2 * d[k];
    for (int k = 0; k < 6; ++k) s.free_v(a)[k] = 100 * random.uniform(-1, 1), s.free_v(b)[k] = random.uniform(-1, 1);
    double p[3], w[3];
    sub3(s.free_q(b), s.free_q(a), p), sub3(s.free_v(b), s.free_v(a), w);
    const double half = dot3(p, w), ww = dot3(w, w), c = dot3(p, p) - 0.09, disc = half * half - ww * c;
    const bool hits = half < 0 && disc > 0;
    const Impact impact = s.first(0.1);
    const double time = hits ? c / (-half + std::sqrt(disc)) : 1;
    CHECK(impact.found == (time < 0.1));
    if (impact.found) CHECK_NEAR(impact.time, time, 1e-12 * time + 1e-14);
  }
}

// A cube spins above a face: its corner, then its edge comes down first.
void corner_and_edges() {
  MovingScene s;
  s.add_body(0);
  s.add_shape(box(1, 1, 0.5));
  const int cube = s.add_free(box(0.1, 0.1, 0.1));
  s.finish();
  s.place(cube, 0.1, 0.2, 0.5 + 0.1 * std::sqrt(2.0) - 0.01);  // edge down once it has turned by 45 degrees
  s.free_v(cube)[4] = 50;
  // height of the corner at angle t: 0.1 (cos t + sin t) = 0.1 sqrt 2 cos(pi/4 - t)
  const double height = 0.1 * std::sqrt(2.0) - 0.01;
  expect(s.first(0.02), (M_PI / 4 - std::acos(height / (0.1 * std::sqrt(2.0)))) / 50, 1e-11);
  // Two bars, crossed: edge on edge.
  MovingScene t;
  const int upper = t.add_free(box(0.5, 0.05, 0.05)), lower = t.add_free(box(0.5, 0.05, 0.05));
  t.finish();
  const double c = std::cos(M_PI / 8), d = std::sin(M_PI / 8);
  const double tilt[4] = {c, d, 0, 0},
               cross[4] = {std::sqrt(0.5) * c, std::sqrt(0.5) * d, std::sqrt(0.5) * d, std::sqrt(0.5) * c};
  std::copy(tilt, tilt + 4, t.free_q(upper) + 3), std::copy(cross, cross + 4, t.free_q(lower) + 3);
  t.place(upper, 0.03, 0.01, 0.5);
  t.free_v(upper)[2] = -100, t.free_v(lower)[2] = 50;
  expect(t.first(0.01), (0.5 - 0.1 * std::sqrt(2.0)) / 150);
}

void rods_and_ellipsoid() {
  MovingScene s;
  const int a = s.add_free(rod(0.05, 0.4)), b = s.add_free(rod(0.05, 0.4));
  s.finish();
  const double along_x[4] = {std::sqrt(0.5), 0, std::sqrt(0.5), 0};
  std::copy(along_x, along_x + 4, s.free_q(a) + 3);
  s.place(b, 0, 1, 0);
  s.free_v(b)[1] = -200;
  s.free_v(b)[5] = 1000;  // about its own axis: nothing
  expect(s.first(0.01), 0.9 / 200);
  // An ellipsoid turns above a plane: h = sqrt(a^2 sin^2 + c^2 cos^2)
  MovingScene t;
  t.add_shape(plane);
  const int body = t.add_free({ShapeType::ellipsoid, {0.3, 0.2, 0.1}, nullptr});
  t.finish();
  t.place(body, 0, 0, 0.2);
  t.free_v(body)[4] = 20;
  expect(t.first(0.1), std::asin(std::sqrt((0.04 - 0.01) / (0.09 - 0.01))) / 20, 1e-11);
}

// A plate spins about the normal of the plane and begins to tumble: the tilt of the spin is what brings it down.
void tumbling_plate() {
  MovingScene s;
  s.add_shape(plane);
  const int body = s.add_free(box(0.5, 0.4, 0.01));
  s.finish();
  s.place(body, 0, 0, 0.1);
  s.free_v(body)[5] = 3000, s.free_a(body)[4] = 1e5;
  const Impact impact = s.first(0.01);
  CHECK(impact.found && impact.status == ImpactStatus::complete);
  PathReference reference(s);
  for (int k = 1; k < 2000; ++k) CHECK(reference.distance(0, impact.time * k / 2000) > 0);
  CHECK_NEAR(reference.distance(0, impact.time), 0, 1e-12);
}

// Nothing is at rest in the world: a hinged arm hits a ball that rides on the same slide.
void arm_on_a_slide() {
  MovingScene s;
  const double x[3] = {1, 0, 0}, z[3] = {0, 0, 1}, out[3] = {0.5, 0, 0}, target[3] = {0, 0.8, 0};
  const double along_x[4] = {std::sqrt(0.5), 0, std::sqrt(0.5), 0};
  const int cart = s.add_body(0);
  s.add_joint(JointType::slide, x);
  s.add_shape(ball(0.05), target);
  s.add_body(cart);
  s.add_joint(JointType::hinge, z);
  s.add_shape(rod(0.05, 0.5), out, along_x);
  s.finish();
  s.v = {500, 40};
  // the arm's axis is r = 0.1 from the ball's centre when it has turned to asin(cos) = pi/2 - asin(0.1 / 0.8)
  const Impact impact = s.first(0.05);
  expect(impact, (M_PI / 2 - std::asin(0.1 / 0.8)) / 40, 1e-11);
  CHECK(impact.evaluations < 40);
  CHECK_NEAR(impact.point[0], 500 * impact.time + 0.05 * impact.normal[0] * (s.model.pair_a[0] == 0 ? -1 : 1), 1e-9);
}

// A half-space may move, too: here it turns and rises under a ball.
void moving_half_space() {
  MovingScene s;
  const int body = s.add_free(ball(0.1));
  const double y[3] = {0, 1, 0};
  s.add_body(0);
  s.add_joint(JointType::hinge, y);
  s.add_shape(plane);
  s.finish();
  s.place(body, -1, 0, 1);
  s.v.back() = 5;  // up = (sin 5t, 0, cos 5t): the height of the centre is cos - sin of 5t
  expect(s.first(0.2), (std::acos(0.1 / std::sqrt(2.0)) - M_PI / 4) / 5, 1e-11);
}

void touching() {
  MovingScene s;
  s.add_shape(plane);
  const int body = s.add_free(box(0.1, 0.1, 0.1));
  s.finish();
  s.place(body, 0, 0, 0.1);
  s.free_v(body)[0] = 1000, s.free_v(body)[5] = 30;  // slides and spins on the plane
  Impact impact = s.first(0.01);
  CHECK(!impact.found && impact.time == 0.01 && impact.evaluations <= 1);
  s.free_v(body)[4] = 1;  // tips over an edge: deeper by the tolerance
  const double at = 0.1;
  impact = s.first(0.01);
  CHECK(impact.found);
  CHECK_NEAR(impact.threshold, -1e-5, 0);
  CHECK_NEAR(impact.distance, -1e-5, 1e-12);
  // from there: half a tolerance deeper, as the contact is that deep already
  s.place(body, 0, 0, at - 1e-5);
  impact = s.first(0.01);
  CHECK(impact.found && impact.time > 0);
  CHECK_NEAR(impact.threshold, -1.5e-5, 1e-15);
  s.place(body, 0, 0, at - 0.01);  // deep, and coming out
  s.free_v(body)[2] = 1, s.free_v(body)[4] = s.free_v(body)[0] = 0;
  CHECK(!s.first(0.02).found);
}

void grazing() {
  MovingScene s;
  s.add_shape(plane);
  const int body = s.add_free(ball(0.1));
  s.finish();
  s.place(body, 0, 0, 0.1 + 0.5e-2);
  s.free_v(body)[2] = -1, s.free_a(body)[2] = 100;  // lowest where it touches
  const Impact impact = s.first(0.1);
  CHECK(impact.found && impact.grazing);
  CHECK_NEAR(impact.time, 0.01, 1e-7);
  s.place(body, 0, 0, 0.1 + 0.5e-2 + 1e-12);
  CHECK(!s.first(0.1).found);
  s.place(body, 0, 0, 0.1 + 0.5e-2 - 1e-9);
  CHECK(s.first(0.1).found && !s.first(0.1).grazing);
  CHECK_NEAR(s.first(0.1).time, 0.01 - std::sqrt(2e-11), 1e-10);
}

void limits() {
  MovingScene s;
  s.add_body(0);
  s.add_shape(box(1, 1, 1));
  const int body = s.add_free(box(1, 1, 1));
  s.finish();
  s.place(body, 0, 0, 2.5);
  s.free_v(body)[2] = -0.1;
  for (int i = 3; i < 6; ++i) s.free_v(body)[i] = 1e4;  // 17000 rad/s
  ImpactOptions few;
  few.max_evaluations = 4;  // and one at the start
  const Impact stopped = s.first(0.01, few), whole = s.first(0.01);
  CHECK(!stopped.found && stopped.status == ImpactStatus::evaluation_limit);
  CHECK(stopped.evaluations == 5 && stopped.time > 0 && stopped.time < whole.time);
  CHECK(whole.found);
  PathReference reference(s);
  CHECK_NEAR(reference.distance(0, whole.time), 0, 1e-12);
  for (const double value : {1e200, 1e308, HUGE_VAL, std::nan("")}) {
    s.free_v(body)[0] = value;
    const Impact impact = s.first(0.01);
    CHECK(impact.status == ImpactStatus::not_finite || !impact.found);
    CHECK(std::isfinite(impact.time) && std::isfinite(impact.distance) && std::isfinite(impact.closing_speed));
  }
  CHECK(s.first(0.01).status == ImpactStatus::not_finite && s.first(0.01).time == 0);
}

void allocates_nothing() {
  MovingScene s;
  s.add_shape(plane);
  for (int i = 0; i < 6; ++i) s.add_free(i % 2 ? box(0.1, 0.1, 0.1) : rod(0.05, 0.2));
  s.finish();
  for (int i = 1; i <= 6; ++i) {
    s.place(i, 0.3 * i, 0, 0.5);
    for (int k = 0; k < 6; ++k) s.free_v(i)[k] = std::sin(17.0 * i + k) * 30;
  }
  ImpactSearch search(s.model);
  const long before = allocations;
  int found = 0;
  for (int i = 0; i < 20; ++i) {
    s.v[6] += 1;
    found += search.first(s.model, {}, s.path(0.05)).found;
  }
  CHECK(allocations == before);
  CHECK(found > 0);
}

}  // namespace
}  // namespace coulomb::test

int main() {
  using namespace coulomb::test;
  bullet_and_wall();
  turning_rod();
  falling_ball();
  two_balls();
  corner_and_edges();
  rods_and_ellipsoid();
  tumbling_plate();
  arm_on_a_slide();
  moving_half_space();
  touching();
  grazing();
  limits();
  allocates_nothing();
  return report();
}
