// Reverse mode of inverse dynamics in two tree sweeps, without the pair kernel: docs/theory.md (D15). For a cotangent y:
//
//   up the tree:   alpha, beta, gamma of dof k = sum over i >= k of y_i (a, b, c)_i
//   down the tree: eta_k = sum over i < k (strict ancestors) of y_i J_i
//   out_q = psi_ddot . alpha + psi_dot_w . beta + J_w . gamma + eta . u     (less the ball correction, derivative_pairs.cpp)
//   out_v = chi . alpha + J_w . beta + eta . w
#include "coulomb/base/simd.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/spatial.hpp"

namespace coulomb {
namespace {

/// The two sweeps of (D15). up (nv x 12): alpha, beta, gamma; down (nv x 6): eta.
COULOMB_SIMD void vjp_sweeps(const Model& model, const DynamicsWorkspace& ws, const double* y, double* __restrict up,
                             double* __restrict down, double* __restrict out_q, double* __restrict out_v) {
  const int nv = model.nv;
  const int* parent = model.dof_parent.data();

  // Up the tree: a dof's own a, b, c, weighted by y, and those of all that it moves.
  for (int d = 0; d < nv; ++d)
    for (int i = 0; i < 12; ++i)
      up[12 * d + i] = y[d] * ws.vectors[24 * d + i];

  for (int d = nv - 1; d >= 0; --d) {
    if (parent[d] < 0) continue;
    double* to = up + 12 * parent[d];
    for (int i = 0; i < 12; ++i)
      to[i] += up[12 * d + i];
  }

  // Down the tree: eta is what strict ancestors add.
  for (int d = 0; d < nv; ++d) {
    const int p = parent[d];
    const Spatial eta = p < 0 ? Spatial{} : load6(down + 6 * p) + y[p] * load6(&ws.columns[8 * p]);
    store6(down + 6 * d, eta);

    // Both products of (D15).
    const Spatial alpha = load6(up + 12 * d);
    const Vector3 beta = load3(up + 12 * d + 6);
    const Vector3 gamma = load3(up + 12 * d + 9);
    const Vector3 axis = load3(&ws.columns[8 * d + 3]);

    out_q[d] = dot(load6(&ws.column_acceleration[8 * d]), alpha) + dot(load3(&ws.column_rate[8 * d + 3]), beta) +
               dot(axis, gamma) + dot(eta, load6(&ws.vectors[24 * d + 12]));
    out_v[d] = dot(load6(&ws.column_chi[8 * d]), alpha) + dot(axis, beta) + dot(eta, load6(&ws.vectors[24 * d + 18]));
  }
}

/// Takes back J_k . (J_d x* F) for the rotations k before d of one joint, as derivative_pairs.cpp does.
void correct_balls(const Model& model, const DynamicsWorkspace& ws, const double* y, double* out_q) {
  for (int joint = 0; joint < model.num_joints; ++joint) {
    const JointType type = model.joint_type[joint];
    if (type != JointType::ball && type != JointType::free) continue;

    const int first = model.joint_v[joint] + (type == JointType::free ? 3 : 0);
    const Spatial force = load6(&ws.link[32 * model.joint_body[joint] + 12]);

    // Sum of y_k J_k over the rotations of the joint that come before d.
    Spatial earlier = y[first] * load6(&ws.columns[8 * first]);
    for (int d = first + 1; d < first + 3; ++d) {
      const Spatial column = load6(&ws.columns[8 * d]);
      out_q[d] -= dot(earlier, cross_force(column, force));
      earlier = earlier + y[d] * column;
    }
  }
}

}  // namespace

void inverse_dynamics_vjp(const Model& model, DynamicsWorkspace& ws, const double* y, double* out_q, double* out_v) {
  // Both sums live in the workspace's scratch.
  vjp_sweeps(model, ws, y, ws.scratch.data(), ws.scratch.data() + 12 * static_cast<std::size_t>(model.nv), out_q,
             out_v);
  correct_balls(model, ws, y, out_q);
}

void inverse_dynamics_vjp(const Model& model, DynamicsWorkspace& ws, const double* a, const BodyForces* forces,
                          const double* y, double* out_q, double* out_v) {
  prepare_derivatives(model, ws, a, forces);
  inverse_dynamics_vjp(model, ws, y, out_q, out_v);
}

}  // namespace coulomb
