// Random but valid Models for unit tests: several trees, every joint type, several joints per body, bodies without joints in the
// middle of a tree, bodies fixed to the world. Deterministic in the seed on every platform (own generator).
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "coulomb/configuration.hpp"
#include "coulomb/model/scene/topology.hpp"

namespace coulomb::test {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 0x1234567ull) {}
  std::uint64_t bits() {  // splitmix64
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  double uniform(double low, double high) { return low + (high - low) * static_cast<double>(bits() >> 11) * 0x1p-53; }
  int integer(int low, int high) { return low + static_cast<int>(bits() % static_cast<std::uint64_t>(high - low + 1)); }
  std::vector<double> vector(int n, double scale = 1.0) {
    std::vector<double> x(n);
    for (double& e : x) e = uniform(-scale, scale);
    return x;
  }
  /// A unit vector of n <= 4 entries.
  std::array<double, 4> unit(int n) {
    for (;;) {
      std::array<double, 4> x{};
      double s = 0;
      for (int i = 0; i < n; ++i) x[i] = uniform(-1, 1), s += x[i] * x[i];
      if (s < 0.05 || s > 1) continue;
      for (double& e : x) e /= std::sqrt(s);
      return x;
    }
  }

 private:
  std::uint64_t state_;
};

inline void add_random_body(Model& m, int parent, Random& random) {
  m.body_names.push_back("body" + std::to_string(m.num_bodies++));
  m.body_parent.push_back(parent);
  const auto quat = random.unit(4);
  for (int i = 0; i < 3; ++i) m.body_pos.push_back(parent < 0 ? 0.0 : random.uniform(-0.4, 0.4));
  for (int i = 0; i < 4; ++i) m.body_quat.push_back(parent < 0 ? (i == 0) : quat[i]);
  m.body_mass.push_back(parent < 0 ? 0.0 : random.uniform(0.3, 2.0));
  for (int i = 0; i < 3; ++i) m.body_com.push_back(parent < 0 ? 0.0 : random.uniform(-0.2, 0.2));
  // a third of the bodies has part of its weight taken away, one of these more than all of it
  const bool compensated = parent >= 0 && m.num_bodies % 3 == 0;
  m.body_gravity_compensation.push_back(!compensated ? 0.0 : m.num_bodies == 6 ? 1.3 : 0.6);
  m.has_gravity_compensation = m.has_gravity_compensation || compensated;
  // inertia of a few point masses about their centre: always physical
  double s[6] = {};  // second moments xx xy yy xz yz zz
  for (int k = 0; k < 4 && parent >= 0; ++k) {
    const double x = random.uniform(-0.2, 0.2), y = random.uniform(-0.2, 0.2), z = random.uniform(-0.2, 0.2);
    s[0] += x * x, s[1] += x * y, s[2] += y * y, s[3] += x * z, s[4] += y * z, s[5] += z * z;
  }
  for (double e : {s[2] + s[5], -s[1], s[0] + s[5], -s[3], -s[4], s[0] + s[2]}) m.body_inertia.push_back(e);
}

inline void add_random_joint(Model& m, JointType type, Random& random) {
  const int body = m.num_bodies - 1;
  m.joint_names.push_back("joint" + std::to_string(m.joint_type.size()));
  m.joint_type.push_back(type);
  m.joint_body.push_back(body);
  const auto axis = random.unit(3), quat = random.unit(4);
  for (int i = 0; i < 3; ++i) m.joint_axis.push_back(axis[i]);
  for (int i = 0; i < 3; ++i) m.joint_pos.push_back(type == JointType::free ? 0.0 : random.uniform(-0.2, 0.2));
  m.joint_limited.push_back(0);
  m.joint_lower.push_back(0);
  m.joint_upper.push_back(0);
  m.joint_limit_stiffness.push_back(0);
  m.joint_limit_dashpot.push_back(0);
  m.joint_limit_curve.emplace_back();
  m.joint_stiffness.push_back(0);
  m.joint_actuator_lower.push_back(-HUGE_VAL);
  m.joint_actuator_upper.push_back(HUGE_VAL);
  std::vector<double> q0;
  if (type == JointType::free)
    q0 = {random.uniform(-1, 1), random.uniform(-1, 1), random.uniform(-1, 1), quat[0], quat[1], quat[2], quat[3]};
  else if (type == JointType::ball) q0 = {1, 0, 0, 0};
  else q0 = {random.uniform(-0.5, 0.5)};
  m.q_neutral.insert(m.q_neutral.end(), q0.begin(), q0.end());
}

/// num_bodies besides the world. Body 1 is fixed to the world, bodies 2 and 3 start a fixed-base and a free-floating tree.
inline Model random_model(std::uint64_t seed, int num_bodies = 14) {
  Random random(seed);
  Model m;
  m.gravity = {random.uniform(-3, 3), random.uniform(-3, 3), -9.81};
  add_random_body(m, -1, random);
  std::vector<int> ancestors{
      0};  // the path to the last body: candidates for the next parent keep the order depth first
  for (int b = 1; b <= num_bodies; ++b) {
    const bool floating = b == 3 || (b > 3 && random.integer(0, 9) == 0);
    int up = b <= 3 || floating         ? static_cast<int>(ancestors.size()) - 1
             : random.integer(0, 5) < 4 ? 0
                                        : random.integer(0, 2);
    while (up-- > 0 && ancestors.size() > 1) ancestors.pop_back();
    const int parent = ancestors.back();
    add_random_body(m, parent, random);
    ancestors.push_back(b);
    if (b == 1) continue;
    if (floating) {
      add_random_joint(m, JointType::free, random);
      continue;
    }
    const int joints = b == 2 ? 1 : random.integer(0, 2);
    bool ball = false;
    for (int j = 0; j < joints; ++j) {
      const int pick = random.integer(0, 5);
      const JointType type = pick == 0 && !ball ? JointType::ball : pick <= 2 ? JointType::slide : JointType::hinge;
      ball |= type == JointType::ball;
      add_random_joint(m, type, random);
    }
  }
  m.q_spring = m.q_neutral;
  finalize_topology(m);
  for (int d = 0; d < m.nv; ++d) m.dof_armature[d] = random.integer(0, 1) ? random.uniform(0, 0.3) : 0.0;
  return m;
}

inline std::vector<double> random_configuration(const Model& m, Random& random, double spread = 1.5) {
  std::vector<double> q(m.nq);
  integrate(m, m.q_neutral.data(), random.vector(m.nv, spread).data(), q.data());
  return q;
}

}  // namespace coulomb::test
