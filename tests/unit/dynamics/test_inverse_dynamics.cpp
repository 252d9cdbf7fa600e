// Kinematics, velocities, mass matrix, factor and bias on random trees, each against something that does not share its formula:
// finite differences of poses, columns of inverse dynamics, power balance, the energy of the moving bodies.
#include "check.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/implicit_gains.hpp"
#include "random_model.hpp"

#include <algorithm>

using namespace coulomb;
using namespace coulomb::test;

namespace {

struct Scene {
  Model m;
  std::vector<double> q, v, a;
  explicit Scene(std::uint64_t seed) : m(random_model(seed, 4 + static_cast<int>(seed) % 18)) {
    Random random(seed + 77);
    q = random_configuration(m, random);
    v = random.vector(m.nv, 2), a = random.vector(m.nv, 4);
  }
};

std::vector<double> dense_mass(const Model& m, const DynamicsWorkspace& ws) {
  std::vector<double> dense(m.nv * m.nv);
  for (int d = 0; d < m.nv; ++d)
    for (int i = m.dof_row[d]; i < m.dof_row[d + 1]; ++i)
      dense[d * m.nv + m.dof_path[i]] = dense[m.dof_path[i] * m.nv + d] = ws.mass[i];
  return dense;
}

/// body_twist gives the velocity of every material point: compare with moving q along v.
void twists_match_finite_differences(const Scene& s) {
  const Model& m = s.m;
  DynamicsWorkspace ws(m), high(m), low(m);
  kinematics(m, s.q.data(), ws);
  velocities(m, s.v.data(), ws);
  const double h = 1e-6;
  std::vector<double> q(m.nq), step(m.nv);
  for (int sign : {1, -1}) {
    for (int d = 0; d < m.nv; ++d) step[d] = sign * h * s.v[d];
    integrate(m, s.q.data(), step.data(), q.data());
    kinematics(m, q.data(), sign > 0 ? high : low);
  }
  double worst = 0;
  for (int b = 1; b < m.num_bodies; ++b) {
    const int tree = m.body_tree[b];
    for (int point = 0; point < 3; ++point) {
      double p[3], rate[3];
      const double local[3] = {point == 0 ? 1.0 : 0.1, point == 1 ? 1.0 : 0.2, point == 2 ? 1.0 : -0.3};
      for (int i = 0; i < 3; ++i) {
        const auto at = [&](const DynamicsWorkspace& w) {
          double x = w.body_position[3 * b + i];
          for (int k = 0; k < 3; ++k) x += w.body_rotation[9 * b + 3 * i + k] * local[k];
          return x;
        };
        rate[i] = (at(high) - at(low)) / (2 * h);
        p[i] = at(ws) - (tree >= 0 ? ws.reference[3 * tree + i] : 0);
      }
      const double *t = &ws.body_twist[8 * b], *w = t + 3;
      const double expected[3] = {t[0] + w[1] * p[2] - w[2] * p[1], t[1] + w[2] * p[0] - w[0] * p[2],
                                  t[2] + w[0] * p[1] - w[1] * p[0]};
      for (int i = 0; i < 3; ++i) worst = std::max(worst, std::abs(expected[i] - rate[i]));
    }
  }
  CHECK_NEAR(worst, 0.0, 2e-8);
  std::vector<double> twist(8 * m.num_bodies, 1e300), rate(8 * m.nv, 1e300);
  velocities(m, ws, s.v.data(), twist.data(), rate.data());
  CHECK(twist == ws.body_twist);
  CHECK(rate == ws.column_rate);
}

void mass_is_inverse_dynamics_of_unit_accelerations(const Scene& s) {
  const Model& m = s.m;
  DynamicsWorkspace ws(m);
  kinematics(m, s.q.data(), ws);
  velocities(m, s.v.data(), ws);
  mass_matrix(m, ws);
  bias(m, ws);
  const std::vector<double> dense = dense_mass(m, ws);
  std::vector<double> unit(m.nv), tau(m.nv);
  for (int k = 0; k < m.nv; ++k) {
    std::fill(unit.begin(), unit.end(), 0.0);
    unit[k] = 1;
    inverse_dynamics(m, ws, unit.data(), tau.data());
    for (int d = 0; d < m.nv; ++d) CHECK_NEAR(tau[d] - ws.bias[d], dense[d * m.nv + k], 1e-11);
  }
  std::vector<double> product(m.nv);
  multiply_mass(m, ws, s.a.data(), product.data());
  inverse_dynamics(m, ws, s.a.data(), tau.data());
  double energy = 0;
  for (int d = 0; d < m.nv; ++d) CHECK_NEAR(tau[d] - ws.bias[d], product[d], 1e-10);
  multiply_mass(m, ws, s.v.data(), product.data());
  for (int d = 0; d < m.nv; ++d) energy += 0.5 * s.v[d] * product[d];
  CHECK_NEAR(kinetic_energy(m, ws), energy, 1e-11 * (1 + energy));
}

void factor_inverts(const Scene& s, bool with_extra) {
  const Model& m = s.m;
  Random random(5);
  DynamicsWorkspace ws(m);
  kinematics(m, s.q.data(), ws);
  mass_matrix(m, ws);
  std::vector<double> extra = random.vector(m.nv);
  for (double& e : extra) e = std::abs(e);
  CHECK(factor(m, with_extra ? extra.data() : nullptr, ws));
  expand_factor(m, ws);
  std::vector<double> u_hat(std::size_t(m.nv) * ws.ld);
  add_by_tree(ws, ws.u_hat, u_hat.data(), ws.ld);
  std::vector<double> x = s.a, back(m.nv), dense(m.nv);
  solve_mass(m, ws, x.data());
  multiply_mass(m, ws, x.data(), back.data());
  for (int d = 0; d < m.nv; ++d) CHECK_NEAR(back[d] + (with_extra ? extra[d] * x[d] : 0.0), s.a[d], 1e-9);
  for (int k = 0; k < m.nv; ++k) {
    double z = 0;
    for (int i = 0; i < ws.ld; ++i) {
      const bool inside = i >= k && i < m.dof_subtree_end[k];
      if (!inside) CHECK(u_hat[k * ws.ld + i] == 0);
      else z += u_hat[k * ws.ld + i] * s.a[i];
    }
    for (int i = 0; i < m.nv; ++i) dense[i] += u_hat[k * ws.ld + i] * z;
  }
  double size = 1;
  for (double e : x) size = std::max(size, std::abs(e));
  for (int d = 0; d < m.nv; ++d) CHECK_NEAR(dense[d], x[d], 1e-10 * size);
}

/// Gains along several dofs of a joint stand beside M; M itself has its own bits afterwards.
void factor_takes_gains_of_joints(const Scene& s) {
  const Model& m = s.m;
  Random random(6);
  DynamicsWorkspace ws(m);
  kinematics(m, s.q.data(), ws);
  mass_matrix(m, ws);
  const std::vector<double> mass = ws.mass;

  // Two actuators on every joint.
  JointMatrix gains(m);
  gains.set_diagonal(1, m.dof_damping);
  for (int j = 0; j < m.num_joints; ++j)
    for (double gain : {0.5, 300.0})
      gains.add_outer(gain, random.vector(6).data(), m.joint_v[j], joint_num_dofs(m.joint_type[j]));
  CHECK(factor(m, gains, ws));
  CHECK(ws.mass == mass);

  std::vector<double> x = s.a, back(m.nv);
  solve_mass(m, ws, x.data());
  multiply_mass(m, ws, x.data(), back.data());
  gains.add_product(1, x.data(), back.data());
  for (int d = 0; d < m.nv; ++d) CHECK_NEAR(back[d], s.a[d], 1e-8);
}

/// tau . v = d/dt (kinetic + potential) along a motion with acceleration a; free and ball velocities are in moving axes.
void power_balances(const Scene& s) {
  const Model& m = s.m;
  DynamicsWorkspace ws(m);
  std::vector<double> tau(m.nv), q(m.nq), v(m.nv), step(m.nv);
  kinematics(m, s.q.data(), ws);
  velocities(m, s.v.data(), ws);
  inverse_dynamics(m, ws, s.a.data(), tau.data());
  double power = 0, energy[2];
  for (int d = 0; d < m.nv; ++d) power += tau[d] * s.v[d];
  const double h = 1e-5;
  for (int side = 0; side < 2; ++side) {
    const double t = side ? h : -h;
    for (int d = 0; d < m.nv; ++d) step[d] = t * s.v[d], v[d] = s.v[d] + t * s.a[d];
    integrate(m, s.q.data(), step.data(), q.data());
    kinematics(m, q.data(), ws);
    velocities(m, v.data(), ws);
    energy[side] = kinetic_energy(m, ws) + potential_energy(m, ws);
  }
  CHECK_NEAR((energy[1] - energy[0]) / (2 * h), power, 1e-6 * (1 + std::abs(power)));
}

/// A tree far from the origin keeps its digits: M and bias do not change when everything is shifted by a power of two.
void far_from_origin(const Scene& s) {
  const Model& m = s.m;
  DynamicsWorkspace near(m), far(m);
  std::vector<double> q = s.q;
  bool moved = false;
  for (int j = 0; j < m.num_joints; ++j)
    if (m.joint_type[j] == JointType::free) q[m.joint_q[j]] += 1048576.0, moved = true;
  if (!moved) return;
  for (DynamicsWorkspace* ws : {&near, &far}) {
    kinematics(m, ws == &near ? s.q.data() : q.data(), *ws);
    velocities(m, s.v.data(), *ws);
    mass_matrix(m, *ws);
    bias(m, *ws);
  }
  for (std::size_t i = 0; i < m.dof_path.size(); ++i) CHECK_NEAR(near.mass[i], far.mass[i], 1e-7);
  for (int d = 0; d < m.nv; ++d) CHECK_NEAR(near.bias[d], far.bias[d], 1e-6);
}

}  // namespace

int main() {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Scene s(seed);
    twists_match_finite_differences(s);
    mass_is_inverse_dynamics_of_unit_accelerations(s);
    factor_inverts(s, false);
    factor_inverts(s, true);
    factor_takes_gains_of_joints(s);
    power_balances(s);
    far_from_origin(s);
  }
  return report();
}
