// Inverse-dynamics derivatives on random trees: columns against central differences on the manifold, and the vjp against the
// assembled matrices. Forces are constant in world axes and act at material points.
#include "check.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "random_model.hpp"

#include <algorithm>

using namespace coulomb;
using namespace coulomb::test;

namespace {

struct PointForce {
  int body;
  std::array<double, 3> local, force;
};

void world_point(const DynamicsWorkspace& ws, const PointForce& p, double* out) {
  const double *r = &ws.body_rotation[9 * p.body], *x = &ws.body_position[3 * p.body];
  for (int i = 0; i < 3; ++i)
    out[i] = x[i] + r[3 * i] * p.local[0] + r[3 * i + 1] * p.local[1] + r[3 * i + 2] * p.local[2];
}

/// ID' = ID - sum J^T f, with the wrench of each force taken to the tree's reference point of this q.
std::vector<double> loaded_inverse_dynamics(const Model& m, DynamicsWorkspace& ws, const double* q, const double* v,
                                            const double* a, const std::vector<PointForce>& points) {
  kinematics(m, q, ws);
  velocities(m, v, ws);
  std::vector<double> tau(m.nv);
  inverse_dynamics(m, ws, a, tau.data());
  BodyForces forces(m);
  for (const PointForce& p : points) {
    double x[3];
    world_point(ws, p, x);
    add_body_force(m, ws, forces, p.body, x, p.force.data());
  }
  for (int b = 1; b < m.num_bodies; ++b)
    for (int d = m.body_last_dof[b]; d >= 0; d = m.dof_parent[d])
      for (int i = 0; i < 6; ++i) tau[d] -= ws.columns[8 * d + i] * forces.wrench[8 * b + i];
  return tau;
}

void check_model(std::uint64_t seed, int bodies, bool with_forces) {
  const Model m = random_model(seed, bodies);
  Random random(seed + 1000);
  DynamicsWorkspace ws(m), other(m);
  const int nv = m.nv;
  const std::vector<double> q = random_configuration(m, random), v = random.vector(nv, 2), a = random.vector(nv, 5);
  std::vector<PointForce> points;
  for (int i = 0; with_forces && i < 5; ++i) {
    PointForce p{random.integer(1, bodies), {}, {}};
    for (int k = 0; k < 3; ++k) p.local[k] = random.uniform(-0.5, 0.5), p.force[k] = random.uniform(-20, 20);
    points.push_back(p);
  }
  kinematics(m, q.data(), ws);
  velocities(m, v.data(), ws);
  mass_matrix(m, ws);
  BodyForces forces(m);
  for (const PointForce& p : points) {
    double x[3];
    world_point(ws, p, x);
    add_body_force(m, ws, forces, p.body, x, p.force.data());
  }
  inverse_dynamics_derivatives(m, ws, a.data(), with_forces ? &forces : nullptr);

  std::vector<double> dq_T(std::size_t(nv) * ws.ld), dv_T(dq_T);
  add_by_tree(ws, ws.id_dq_T, dq_T.data(), ws.ld), add_by_tree(ws, ws.id_dv_T, dv_T.data(), ws.ld);
  const double h = 1e-5;
  double worst_q = 0, worst_v = 0, scale = 1;
  for (double x : ws.id_dq_T) scale = std::max(scale, std::abs(x));
  for (int k = 0; k < nv; ++k) {
    std::vector<double> step(nv), high(m.nq), low(m.nq);
    step[k] = h;
    integrate(m, q.data(), step.data(), high.data());
    step[k] = -h;
    integrate(m, q.data(), step.data(), low.data());
    const auto up = loaded_inverse_dynamics(m, other, high.data(), v.data(), a.data(), points);
    const auto down = loaded_inverse_dynamics(m, other, low.data(), v.data(), a.data(), points);
    auto v_up = v, v_down = v;
    v_up[k] += h, v_down[k] -= h;
    const auto fast = loaded_inverse_dynamics(m, other, q.data(), v_up.data(), a.data(), points);
    const auto slow = loaded_inverse_dynamics(m, other, q.data(), v_down.data(), a.data(), points);
    for (int d = 0; d < nv; ++d) {
      worst_q = std::max(worst_q, std::abs(dq_T[k * ws.ld + d] - (up[d] - down[d]) / (2 * h)));
      worst_v = std::max(worst_v, std::abs(dv_T[k * ws.ld + d] - (fast[d] - slow[d]) / (2 * h)));
    }
  }
  for (const DofBlock& tree : ws.trees)
    for (int k = 0; k < tree.size; ++k)
      for (int d = tree.size; d < tree.ld; ++d) {
        const std::size_t at = tree.matrix + std::size_t(k) * tree.ld + d;
        CHECK(ws.id_dq_T[at] == 0 && ws.id_dv_T[at] == 0);
      }
  CHECK_NEAR(worst_q / scale, 0.0, 1e-7);
  CHECK_NEAR(worst_v / scale, 0.0, 1e-7);

  const std::vector<double> y = random.vector(nv);
  std::vector<double> out_q(nv), out_v(nv), again_q(nv), again_v(nv);
  inverse_dynamics_vjp(m, ws, y.data(), out_q.data(), out_v.data());
  inverse_dynamics_vjp(m, ws, a.data(), with_forces ? &forces : nullptr, y.data(), again_q.data(), again_v.data());
  for (int k = 0; k < nv; ++k) {
    double expected_q = 0, expected_v = 0;
    for (int d = 0; d < nv; ++d) expected_q += y[d] * dq_T[k * ws.ld + d], expected_v += y[d] * dv_T[k * ws.ld + d];
    CHECK_NEAR(out_q[k] / scale, expected_q / scale, 1e-13);
    CHECK_NEAR(out_v[k] / scale, expected_v / scale, 1e-13);
    CHECK(out_q[k] == again_q[k] && out_v[k] == again_v[k]);
  }
}

}  // namespace

int main() {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    check_model(seed, 3 + static_cast<int>(seed) % 20, seed % 2 == 0);
    check_model(seed + 100, 12, true);
  }
  return report();
}
