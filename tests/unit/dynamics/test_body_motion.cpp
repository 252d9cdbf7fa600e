// A body along a path: its pose is that of kinematics, its twist the rate of that pose, and no sample of the motion leaves the bounds,
// relative to the world and to every ancestor; bounds that single terms make up are met.
#include <algorithm>

#include "check.hpp"
#include "coulomb/base/small_math.hpp"
#include "coulomb/dynamics/body_motion.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "random_model.hpp"

namespace coulomb::test {
namespace {

struct Path {
  std::vector<double> q, v, a;
  double duration = 0.2;
  MotionPath path(bool curved) const { return {q.data(), v.data(), curved ? a.data() : nullptr, duration}; }
};

double distance_of(const double* a, const double* b, int n) {
  double most = 0;
  for (int i = 0; i < n; ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

void check_pose(const Model& m, const Path& p, double t) {
  DynamicsWorkspace ws(m);
  std::vector<double> w(m.nv), q(m.nq);
  for (int d = 0; d < m.nv; ++d) w[d] = t * p.v[d] + 0.5 * t * t * p.a[d];
  integrate(m, p.q.data(), w.data(), q.data());
  kinematics(m, q.data(), ws);
  for (int b = 1; b < m.num_bodies; ++b) {
    BodyMotion motion;
    body_motion(m, p.path(true), b, 0, t, motion);
    CHECK_NEAR(distance_of(motion.position, &ws.body_position[3 * b], 3), 0, 1e-13);
    CHECK_NEAR(distance_of(motion.rotation, &ws.body_rotation[9 * b], 9), 0, 1e-13);
  }
}

/// Largest share of each bound that samples use: speed, turning speed, acceleration, turning acceleration.
struct Use {
  double share[4] = {0, 0, 0, 0};
  void see(int k, double value, double bound) {
    CHECK(value <= bound * (1 + 1e-6) + 1e-6);
    if (bound > 1e-3) share[k] = std::max(share[k], value / bound);
  }
};

void check_motion(const Model& m, const Path& p, bool curved, int body, int top, Use& use) {
  const MotionPath path = p.path(curved);
  MotionBounds bounds;
  motion_bounds(m, path, body, top, bounds);
  const double e = 1e-6;
  for (int k = 0; k <= 8; ++k) {
    const double t = e + (p.duration - 2 * e) * k / 8;
    BodyMotion now, before, after;
    body_motion(m, path, body, top, t, now);
    body_motion(m, path, body, top, t - e, before);
    body_motion(m, path, body, top, t + e, after);
    double rate[3], acceleration[3], turning[3], spin[9];
    for (int i = 0; i < 3; ++i) {
      rate[i] = (after.position[i] - before.position[i]) / (2 * e);
      acceleration[i] = (after.velocity[i] - before.velocity[i]) / (2 * e) - bounds.drift[i];
      turning[i] = (after.angular[i] - before.angular[i]) / (2 * e);
    }
    for (int i = 0; i < 3; ++i)  // R' = w x R
      for (int j = 0; j < 3; ++j) spin[3 * i + j] = (after.rotation[3 * i + j] - before.rotation[3 * i + j]) / (2 * e);
    double column[3], turned[3];
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 3; ++i) column[i] = now.rotation[3 * i + j];
      cross3(now.angular, column, turned);
      for (int i = 0; i < 3; ++i) CHECK_NEAR(spin[3 * i + j], turned[i], 1e-6);
    }
    CHECK_NEAR(distance_of(rate, now.velocity, 3), 0, 1e-5);
    use.see(0, norm3(now.velocity), bounds.speed);
    use.see(1, norm3(now.angular), bounds.angular_speed);
    use.see(2, norm3(acceleration), bounds.acceleration);
    use.see(3, norm3(turning), bounds.angular_acceleration);
  }
}

void random_chains() {
  for (int seed = 1; seed <= 12; ++seed) {
    const Model m = random_model(seed);
    Random random(100 + seed);
    Path p;
    p.q = random_configuration(m, random), p.v = random.vector(m.nv, 4), p.a = random.vector(m.nv, seed % 3 ? 10 : 200);
    check_pose(m, p, 0), check_pose(m, p, 0.13);
    Use use;
    for (int b = 1; b < m.num_bodies; ++b)
      for (int top = b; top >= 0; top = m.body_parent[top]) {
        if (top > 0 && m.body_tree[top] < 0) continue;
        check_motion(m, p, seed % 4 != 0, b, top, use);
      }
    for (const double share : use.share) CHECK(share > 0.3);
  }
}

/// One body per joint, each on the one before.
Model chain(const std::vector<JointType>& types, const std::vector<std::array<double, 3>>& axes,
            const std::array<double, 3>& offset, const std::array<double, 3>& anchor) {
  Model m;
  Random random(1);
  add_random_body(m, -1, random);
  for (std::size_t k = 0; k < types.size(); ++k) {
    add_random_body(m, static_cast<int>(k), random);
    add_random_joint(m, types[k], random);
    const std::size_t body = k + 1;
    for (int i = 0; i < 3; ++i) {
      m.body_pos[3 * body + i] = k == 0 ? 0 : offset[i];
      m.joint_axis[3 * k + i] = axes[k][i], m.joint_pos[3 * k + i] = anchor[i];
    }
    for (int i = 0; i < 4; ++i) m.body_quat[4 * body + i] = i == 0;
  }
  m.q_spring = m.q_neutral;
  finalize_topology(m);
  return m;
}

/// Two joints: how much of the bounds of the last body they use.
Use use_of(const Model& m, const std::vector<double>& q, const std::vector<double>& v, const std::vector<double>& a) {
  Path p;
  p.q = m.q_neutral, p.v = v, p.a = a, p.duration = 0.01;
  for (std::size_t i = 0; i < q.size(); ++i) p.q[i] += q[i];
  Use use;
  check_motion(m, p, true, m.num_bodies - 1, 0, use);
  return use;
}

void single_terms() {
  const std::array<double, 3> x{1, 0, 0}, z{0, 0, 1}, none{0, 0, 0};
  using enum JointType;
  Use u = use_of(chain({hinge, hinge}, {z, x}, none, none), {0, 0}, {20, 30}, {0, 0});  // w1 x w2
  CHECK_NEAR(u.share[3], 1, 1e-6);
  u = use_of(chain({hinge, slide}, {z, x}, none, none), {0, 0}, {3, 50}, {0, 0});  // 2 w x s', and w x (w x s)
  CHECK(u.share[0] > 0.96 && u.share[2] > 0.98);
  u = use_of(chain({hinge, slide}, {z, x}, none, none), {0, 7}, {3, 0}, {0, 0});
  CHECK(u.share[0] > 0.999 && u.share[2] > 0.999);
  u = use_of(chain({hinge, hinge}, {z, z}, x, none), {0, 0}, {3, 0}, {40, 0});  // w' x r
  CHECK(u.share[2] > 0.75);
  u = use_of(chain({hinge}, {z}, none, x), {0}, {3}, {0});  // about an anchor
  CHECK(u.share[0] > 0.999 && u.share[2] > 0.999);
  u = use_of(chain({slide}, {z}, none, none), {0}, {3}, {-700});
  CHECK(u.share[0] > 0.99 && u.share[2] > 0.999);
  u = use_of(chain({ball}, {z}, none, none), {}, {0, 5, 0}, {0, 60, 0});
  CHECK(u.share[1] > 0.99 && u.share[3] > 0.999);
}

}  // namespace
}  // namespace coulomb::test

int main() {
  using namespace coulomb::test;
  random_chains();
  single_terms();
  return report();
}
