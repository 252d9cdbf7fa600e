// Pair kernel of the inverse-dynamics derivatives, for every k <= d:
//
//   row d, column k:      dq = psi_ddot_k . a_d + psi_dot_k,w . b_d + J_k,w . c_d      dv = chi_k . a_d + J_k,w . b_d
//   row k, column d != k: dq = J_k . u_d                                              dv = J_k . w_d
//
// Inside one ball (or the rotations of one free joint), for k < d, J_k . (J_d x* F) is subtracted from the upper dq entry: both
// rotations act on the same frame, so the order of a stack of hinges does not apply. The vectors J, psi_dot_w, psi_ddot, chi of
// the root path are a stack in structure-of-arrays form; rows come out packed in blocks of 8 and are scattered afterwards.
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/spatial.hpp"
#include "coulomb/simd.hpp"

namespace coulomb {
namespace {

constexpr int num_streams = 21;  // J 0-5, psi_dot_w 6-8, psi_ddot 9-14, chi 15-20


/// Load, blend, store: a scalar store would stall the vector load that follows.
COULOMB_INLINE void set_lane(double* block, int lane, double value) {
  for (int i = 0; i < 8; ++i) block[i] = i == lane ? value : block[i];
}

COULOMB_INLINE void push(const DynamicsWorkspace& ws, int d, int depth, double* __restrict stack, int capacity) {
  const int block = depth & ~7, lane = depth - block;
  double* at = stack + block;
  const double *column = &ws.columns[8 * d], *rate = &ws.column_rate[8 * d], *ddot = &ws.column_acceleration[8 * d],
               *chi = &ws.column_chi[8 * d];
  for (int i = 0; i < 6; ++i) set_lane(at + i * capacity, lane, column[i]);
  for (int i = 0; i < 3; ++i) set_lane(at + (6 + i) * capacity, lane, rate[3 + i]);
  for (int i = 0; i < 6; ++i) set_lane(at + (9 + i) * capacity, lane, ddot[i]);
  for (int i = 0; i < 6; ++i) set_lane(at + (15 + i) * capacity, lane, chi[i]);
}

COULOMB_SIMD void pair_rows(const Model& model, const DynamicsWorkspace& ws, double* __restrict stack, double* __restrict lower_dq,
                            double* __restrict upper_dq, double* __restrict lower_dv, double* __restrict upper_dv) {
  const int n = ws.path_capacity;
  for (int d = 0; d < model.nv; ++d) {
    const int depth = model.dof_depth[d], row = model.dof_row[d];
    push(ws, d, depth, stack, n);
    const double *x = &ws.vectors[24 * d], *a = x, *b = x + 6, *c = x + 9, *u = x + 12, *w = x + 18;
    for (int k = 0; k <= depth; k += 8) {
      const double *j = stack + k, *rate = j + 6 * n, *ddot = j + 9 * n, *chi = j + 15 * n;
      for (int i = 0; i < 8; ++i) {
        const double j0 = j[i], j1 = j[n + i], j2 = j[2 * n + i], j3 = j[3 * n + i], j4 = j[4 * n + i], j5 = j[5 * n + i];
        lower_dq[row + k + i] = ddot[i] * a[0] + ddot[n + i] * a[1] + ddot[2 * n + i] * a[2] + ddot[3 * n + i] * a[3] +
                                ddot[4 * n + i] * a[4] + ddot[5 * n + i] * a[5] + rate[i] * b[0] + rate[n + i] * b[1] +
                                rate[2 * n + i] * b[2] + j3 * c[0] + j4 * c[1] + j5 * c[2];
        lower_dv[row + k + i] = chi[i] * a[0] + chi[n + i] * a[1] + chi[2 * n + i] * a[2] + chi[3 * n + i] * a[3] +
                                chi[4 * n + i] * a[4] + chi[5 * n + i] * a[5] + j3 * b[0] + j4 * b[1] + j5 * b[2];
        upper_dq[row + k + i] = j0 * u[0] + j1 * u[1] + j2 * u[2] + j3 * u[3] + j4 * u[4] + j5 * u[5];
        upper_dv[row + k + i] = j0 * w[0] + j1 * w[1] + j2 * w[2] + j3 * w[3] + j4 * w[4] + j5 * w[5];
      }
    }
  }
}

void scatter(const Model& model, DynamicsWorkspace& ws) {
  const int ld = ws.ld;
  double *__restrict dq = ws.id_dq_T.data(), *__restrict dv = ws.id_dv_T.data();
  for (int d = 0; d < model.nv; ++d) {
    const int start = model.dof_row[d], last = model.dof_row[d + 1] - 1;
    for (int i = start; i < last; ++i) {
      const int k = model.dof_path[i];
      dq[k * ld + d] = ws.pair_lower_dq[i];
      dv[k * ld + d] = ws.pair_lower_dv[i];
      dq[d * ld + k] = ws.pair_upper_dq[i];
      dv[d * ld + k] = ws.pair_upper_dv[i];
    }
    dq[d * ld + d] = ws.pair_lower_dq[last];
    dv[d * ld + d] = ws.pair_lower_dv[last];
  }
}

void correct_balls(const Model& model, DynamicsWorkspace& ws) {
  for (int joint = 0; joint < model.num_joints; ++joint) {
    const JointType type = model.joint_type[joint];
    if (type != JointType::ball && type != JointType::free) continue;
    const int first = model.joint_v[joint] + (type == JointType::free ? 3 : 0);
    const Spatial force = load6(&ws.link[32 * model.joint_body[joint] + 12]);
    for (int d = first + 1; d < first + 3; ++d) {
      const Spatial turned = cross_force(load6(&ws.columns[8 * d]), force);
      for (int k = first; k < d; ++k) ws.id_dq_T[d * ws.ld + k] -= dot(load6(&ws.columns[8 * k]), turned);
    }
  }
}

}  // namespace

void derivative_pairs(const Model& model, DynamicsWorkspace& ws) {
  pair_rows(model, ws, ws.scratch.data(), ws.pair_lower_dq.data(), ws.pair_upper_dq.data(), ws.pair_lower_dv.data(),
            ws.pair_upper_dv.data());
  scatter(model, ws);
  correct_balls(model, ws);
}

void inverse_dynamics_derivatives(const Model& model, DynamicsWorkspace& ws, const double* a, const BodyForces* forces) {
  prepare_derivatives(model, ws, a, forces);
  derivative_pairs(model, ws);
}

}  // namespace coulomb
