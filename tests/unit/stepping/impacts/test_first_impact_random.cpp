// No tunnelling: random fast scenes of all pairs of shapes, free bodies and chains, against samples of the motion by the engine's
// own kinematics. The time found is never late: no sample before it lies below the threshold. It is not early: there the distance
// is the threshold, 1e-9 s later it is passed, and no direction that a search finds separates the two shapes by more than that.
// The narrow phase's distance is the reference. A few in 10000 near-touching cylinders get an approximate normal from it,
// whose distance errs to the safe side: these are judged by the best direction found.
#include <cstdlib>
#include <ctime>

#include "check.hpp"
#include "stepping/moving_scene.hpp"

namespace coulomb::test {
namespace {

struct Tally {
  int scenes = 0, found = 0, grazing = 0, late = 0, early = 0, missed = 0, unanswered = 0, rough = 0;
  long evaluations = 0;
  int most = 0;
};

constexpr int samples = 120;

Geometry any_shape(Random& random, bool bounded) {
  const auto type = ShapeType(static_cast<int>(random.uniform(bounded ? 1 : 0, 7)));
  return random_geometry(type, random.uniform(0.02, 0.3), random.uniform(0, 1) < 0.3 ? 20 : 2, random);
}

void random_quaternion(Random& random, double* q) {
  double d[3];
  random.direction(d);
  const double half = random.uniform(0, M_PI);
  q[0] = std::cos(half);
  for (int i = 0; i < 3; ++i) q[1 + i] = std::sin(half) * d[i];
}

/// A speed up to `most`, of any order of magnitude.
double speed(Random& random, double most) { return most * std::pow(10, random.uniform(-4, 0)); }

void aim(MovingScene& s, int body, const double* target, double duration, Random& random) {
  double d[3], miss[3];
  sub3(target, s.free_q(body), d);
  random.direction(miss);
  const double length = norm3(d), least = std::min(1000.0, length / duration);
  const double v = std::max(speed(random, 1000), random.uniform(0, 1) < 0.7 ? least : 0.0),
               off = random.uniform(0, 0.1);
  for (int i = 0; i < 3; ++i) s.free_v(body)[i] = v * (d[i] / length + off * miss[i]);
}

void spin(MovingScene& s, int body, Random& random) {
  double d[3];
  random.direction(d);
  const double w = speed(random, 3000), a = speed(random, 1000), b = speed(random, 1e5);
  for (int i = 0; i < 3; ++i) s.free_v(body)[3 + i] = w * d[i];
  if (random.uniform(0, 1) < 0.5) return;
  random.direction(d);
  for (int i = 0; i < 3; ++i) s.free_a(body)[i] = a * d[i], s.free_a(body)[3 + i] = b * d[2 - i];
}

int add_thrown(MovingScene& s, Random& random) {
  const int body = s.add_body(0);
  s.add_joint(JointType::free);
  double p[3], q[4];
  random.direction(p);
  random_quaternion(random, q);
  for (double& x : p) x *= random.uniform(0, 1) < 0.5 ? 0.2 : 0.0;
  s.add_shape(any_shape(random, true), p, q);
  return body;
}

void throw_body(MovingScene& s, int body, double duration, Random& random) {
  double d[3];
  random.direction(d);
  const double far = random.uniform(0.5, 6);
  for (int i = 0; i < 3; ++i) s.free_q(body)[i] = far * d[i];
  if (s.model.geometry_type[0] == ShapeType::half_space) s.free_q(body)[2] = std::abs(s.free_q(body)[2]) + 0.6;
  random_quaternion(random, s.free_q(body) + 3);
  const double target[3] = {0, 0, 0};
  aim(s, body, target, duration, random);
  spin(s, body, random);
}

MovingScene thrown_scene(double duration, Random& random) {
  MovingScene s;
  const Geometry first = any_shape(random, false);
  const bool fixed = random.uniform(0, 1) < (first.type == ShapeType::half_space ? 0.8 : 0.3);
  double q[4];
  random_quaternion(random, q);
  if (fixed) s.add_body(0);
  if (fixed) s.add_shape(first, nullptr, first.type == ShapeType::half_space ? nullptr : q);
  else s.add_free(first);
  const int body = add_thrown(s, random);
  s.finish();
  if (!fixed) spin(s, 1, random);
  throw_body(s, body, duration, random);
  return s;
}

/// A chain of up to five links with any joints, on a fixed or a flying base, and a thrown body.
MovingScene chain_scene(double duration, Random& random) {
  MovingScene s;
  s.add_shape({ShapeType::half_space, {0, 0, 0}, nullptr});
  const bool flying = random.uniform(0, 1) < 0.5;
  int parent = 0;
  for (int k = static_cast<int>(random.uniform(2, 6)); k > 0; --k) {
    double p[3], q[4], axis[3], second[3], anchor[3];
    random.direction(p), random.direction(axis), random.direction(second), random.direction(anchor);
    random_quaternion(random, q);
    for (int i = 0; i < 3; ++i) p[i] *= 0.5, anchor[i] *= 0.05;
    if (parent == 0) p[2] = 1.5;
    parent = s.add_body(parent, p, q);
    if (flying && parent == 1) {
      s.add_joint(JointType::free);
    } else {
      s.add_joint(JointType(static_cast<int>(random.uniform(1, 4))), axis, anchor);
      if (random.uniform(0, 1) < 0.3) s.add_joint(JointType::hinge, second, anchor);
    }
    random.direction(p);
    for (double& x : p) x *= 0.2;
    s.add_shape(any_shape(random, true), p, q);
  }
  const int body = add_thrown(s, random);
  s.finish();
  const double w = speed(random, 100), a = random.uniform(0, 1) < 0.5 ? speed(random, 1000) : 0;
  for (int d = 0; d < s.model.nv; ++d) s.v[d] = w * random.uniform(-1, 1), s.a[d] = a * random.uniform(-1, 1);
  if (flying) s.place(1, 0, 0, 1.5);
  throw_body(s, body, duration, random);
  return s;
}

/// Starts in contact are not this test's concern (test_first_impact.cpp).
bool starts_apart(const MovingScene& s, PathReference& reference) {
  reference.move_to(0);
  for (int p = 0; p < static_cast<int>(s.model.pair_a.size()); ++p)
    if (!(reference.pair(p).distance > 1e-3)) return false;
  return true;
}

double best_separation(const MovingScene& s, const PathReference& reference, int pair, Random& random) {
  const Shape a = reference.shape(s.model.pair_a[pair]), b = reference.shape(s.model.pair_b[pair]);
  const SignedDistance now = reference.pair(pair);
  if (a.type == ShapeType::half_space || b.type == ShapeType::half_space) return now.distance;
  return best_gap(a, b, now.normal, random);
}

void check_scene(const MovingScene& s, double duration, unsigned seed, int index, Tally& tally) {
  PathReference reference(s);
  Random search;
  if (!starts_apart(s, reference)) return;
  const Impact impact = s.first(duration);
  ++tally.scenes, tally.evaluations += impact.evaluations, tally.most = std::max(tally.most, impact.evaluations);
  const auto complain = [&](const char* what, double value) {
    std::printf("seed %u scene %d: %s: %g, impact at %.17g, closing at %g m/s\n", seed, index, what, value, impact.time,
                impact.closing_speed);
  };
  if (impact.status != ImpactStatus::complete) {
    ++tally.unanswered;
    complain("no answer after evaluations", impact.evaluations);
    return;
  }
  for (int k = 1; k <= samples; ++k) {
    const double t = impact.time * (k < samples ? static_cast<double>(k) / samples : 1 - 1e-13);
    reference.move_to(t);
    for (int p = 0; p < static_cast<int>(s.model.pair_a.size()); ++p) {
      const double d = reference.pair(p).distance;
      if (d > -1e-13) continue;
      ++tally.rough;
      if (d > -1e-6 && best_separation(s, reference, p, search) > -1e-8) continue;
      ++(impact.found ? tally.late : tally.missed);
      complain("distance before the impact", d);
      return;
    }
  }
  if (!impact.found) return;
  ++tally.found, tally.grazing += impact.grazing;
  const double later = reference.distance(impact.pair, impact.time + 1e-9);
  reference.move_to(impact.time);
  const double gap = best_separation(s, reference, impact.pair, search);
  if (gap > 1e-9 || (later >= 0 && !impact.grazing)) {
    ++tally.early;
    complain("not there yet", later >= 0 ? later : gap);
  }
}

/// The motion goes on from an impact: the pair that was hit is in contact at the start, and leaves, slides or is pressed in.
bool start_in_contact(MovingScene& s, double duration, Random& random) {
  const Impact impact = s.first(duration);
  if (!impact.found) return false;
  const Model& m = s.model;
  std::vector<double> w(m.nv), q(s.q);
  for (int d = 0; d < m.nv; ++d) w[d] = impact.time * s.v[d] + 0.5 * impact.time * impact.time * s.a[d];
  integrate(m, q.data(), w.data(), s.q.data());
  const double back = random.uniform(0, 1), scale = back < 0.4   ? -speed(random, 1)
                                                    : back < 0.7 ? 1e-4
                                                                 : speed(random, 1);
  const double bend = random.uniform(0, 1) < 0.5 ? 1 : 0;
  for (int d = 0; d < m.nv; ++d) s.v[d] = scale * (s.v[d] + impact.time * s.a[d]), s.a[d] *= bend;
  return true;
}

/// What the step knows at the start changes rounding only; but a contact that it holds stays held until it is off by more than the tolerance.
void check_hints(const MovingScene& s, double duration, const Impact& plain) {
  const Model& m = s.model;
  DynamicsWorkspace dynamics(m);
  CollisionWorkspace collision(m);
  CollisionCache cache;
  kinematics(m, s.q.data(), dynamics);
  velocities(m, s.v.data(), dynamics);
  detect_contacts(m, dynamics.body_position.data(), dynamics.body_rotation.data(), {}, cache, collision);
  ImpactSearch search(m);
  const Impact hinted = search.first(
      m, {}, s.path(duration), {&dynamics, collision.contacts.data(), static_cast<int>(collision.contacts.size())});
  CHECK(hinted.found == plain.found);

  // The threshold follows the start distance to rounding, and the time follows the threshold.
  const bool closes = plain.found && plain.closing_speed > 0;
  const double rounding = 1e-11 * duration + (closes ? 1e-11 / plain.closing_speed : 0);
  const auto of_the_pair = [&](const Contact& contact) { return contact.pair == plain.pair; };
  const bool held = closes && std::any_of(collision.contacts.begin(), collision.contacts.end(), of_the_pair);
  const double later = held ? 2 * ImpactOptions().tolerance / plain.closing_speed : 0;
  CHECK(hinted.time >= plain.time - rounding);
  CHECK(hinted.time <= plain.time + rounding + later);
}

void check_contact_scene(MovingScene& s, double duration, unsigned seed, int index, Random& random, Tally& tally) {
  if (!start_in_contact(s, duration, random)) return;
  const Impact impact = s.first(duration);
  ++tally.scenes, tally.found += impact.found, tally.evaluations += impact.evaluations;
  tally.most = std::max(tally.most, impact.evaluations);
  if (impact.status != ImpactStatus::complete) {
    ++tally.unanswered;
    std::printf("seed %u scene %d: no answer after %d evaluations\n", seed, index, impact.evaluations);
    return;
  }
  PathReference reference(s);
  const ImpactOptions options;
  for (int p = 0; p < static_cast<int>(s.model.pair_a.size()); ++p) {
    const double start = reference.distance(p, 0);
    const double floor =
        start > s.model.pair_margin[p] ? 0 : std::min(-options.tolerance, start - 0.5 * options.tolerance);
    for (int k = 1; k <= samples; ++k) {
      const double d = reference.distance(p, impact.time * (k < samples ? double(k) / samples : 1 - 1e-13));
      if (d > floor - 1e-12) continue;
      reference.move_to(impact.time * (k < samples ? double(k) / samples : 1 - 1e-13));
      if (d > floor - 1e-6 && best_separation(s, reference, p, random) > floor - 1e-8) continue;
      ++tally.late;
      std::printf("seed %u scene %d: %g below the threshold before the impact\n", seed, index, floor - d);
      return;
    }
  }
  if (impact.found) CHECK_NEAR(impact.distance, impact.threshold, 1e-12);
  check_hints(s, duration, impact);
}

void run_from_contact(unsigned seed, int count) {
  Random random;
  random.engine.seed(seed);
  Tally tally;
  for (int i = 0; i < count; ++i) {
    const double duration = 0.01;
    MovingScene s = i % 2 ? chain_scene(duration, random) : thrown_scene(duration, random);
    check_contact_scene(s, duration, seed, i, random, tally);
  }
  std::printf("from contact, seed %u: %d scenes, %d impacts; %.1f evaluations each, at most %d\n", seed, tally.scenes,
              tally.found, double(tally.evaluations) / tally.scenes, tally.most);
  CHECK(tally.late == 0);
  CHECK(tally.unanswered == 0);
  CHECK(tally.scenes > count / 3 && tally.found > tally.scenes / 5);
}

void run(const char* name, MovingScene (*make)(double, Random&), unsigned seed, int count) {
  Random random;
  random.engine.seed(seed);
  Tally tally;
  const std::clock_t start = std::clock();
  for (int i = 0; i < count; ++i) {
    const double duration = 0.01;
    check_scene(make(duration, random), duration, seed, i, tally);
  }
  std::printf("%s, seed %u: %d scenes, %d impacts, %d grazing, %d rough; %.1f evaluations each, at most %d; %.1f s\n",
              name, seed, tally.scenes, tally.found, tally.grazing, tally.rough,
              double(tally.evaluations) / tally.scenes, tally.most, double(std::clock() - start) / CLOCKS_PER_SEC);
  CHECK(tally.late == 0);
  CHECK(tally.missed == 0);
  CHECK(tally.early == 0);
  CHECK(tally.unanswered == 0);
  CHECK(tally.rough <= count / 1000);
  CHECK(tally.scenes > count * 3 / 4 && tally.found > tally.scenes / 4);
}

}  // namespace
}  // namespace coulomb::test

int main(int argc, char** argv) {
  using namespace coulomb::test;
  const unsigned seed = argc > 1 ? std::atoi(argv[1]) : 20260;
  const int count = argc > 2 ? std::atoi(argv[2]) : 10000;
  run("thrown bodies", thrown_scene, seed, count);
  run("chains", chain_scene, seed + 1, count / 4);
  run_from_contact(seed + 2, count / 4);
  return report();
}
