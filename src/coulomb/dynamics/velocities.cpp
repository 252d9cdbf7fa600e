// Velocity sweep (docs/theory.md (D5)). With V0 the twist just before dof k (earlier dofs of the same body included) and V after its
// joint:
//
//   psi_dot_k = V0 x J_k        how the column turns with what carries it
//   chi_k = psi_dot_k + V x J_k its rate plus psi_dot: 2 psi_dot for hinge and slide
//   V += J_k v_k
//
// The three rotations of a ball or free joint share one V0, since their tangent is a rotation of everything behind them. The
// translations of a free joint are along world axes: psi_dot = chi = 0.
#include "coulomb/base/simd.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/spatial.hpp"

namespace coulomb {
namespace {

/// Twists, psi_dot and chi of all bodies and dofs that move; column_chi may be null.
COULOMB_SIMD void velocity_sweep(const Model& model, const double* columns, const double* v, double* body_twist,
                                 double* column_rate, double* column_chi) {
  for (const int b : model.moving_bodies) {
    Spatial twist = load6(body_twist + 8 * model.body_parent[b]);
    const int first = model.body_first_joint[b];
    const int end = first + model.body_num_joints[b];
    for (int j = first; j < end; ++j) {
      int d = model.joint_v[j];
      const JointType type = model.joint_type[j];

      // Hinges and slides: chi = 2 psi_dot, since J_k x J_k = 0.
      if (type == JointType::hinge || type == JointType::slide) {
        const Spatial column = load6(columns + 8 * d);
        const Spatial rate = cross_motion(twist, column);
        store6(column_rate + 8 * d, rate);
        if (column_chi) store6(column_chi + 8 * d, 2.0 * rate);
        twist = twist + v[d] * column;
        continue;
      }

      // The translations of a free joint are along world axes.
      if (type == JointType::free) {
        for (int i = 0; i < 3; ++i) {
          store6(column_rate + 8 * (d + i), {});
          if (column_chi) store6(column_chi + 8 * (d + i), {});
        }
        twist.linear = twist.linear + load3(v + d);
        d += 3;
      }

      // The three rotations share the twist before them.
      const Spatial before = twist;
      for (int i = 0; i < 3; ++i)
        twist = twist + v[d + i] * load6(columns + 8 * (d + i));

      for (int i = 0; i < 3; ++i) {
        const Spatial column = load6(columns + 8 * (d + i));
        store6(column_rate + 8 * (d + i), cross_motion(before, column));
        if (column_chi) {
          store6(column_chi + 8 * (d + i), cross_motion(before + twist, column));
        }
      }
    }
    store6(body_twist + 8 * b, twist);
  }
}

}  // namespace

void velocities(const Model& model, const double* v, DynamicsWorkspace& ws) {
  for (int d = 0; d < model.nv; ++d)
    ws.velocity[d] = v[d];
  velocity_sweep(model, ws.columns.data(), v, ws.body_twist.data(), ws.column_rate.data(), ws.column_chi.data());
}

void velocities(const Model& model, const DynamicsWorkspace& ws, const double* v, double* body_twist,
                // Padding and bodies that nothing moves are zero: the sweep does not write them.
                double* column_rate) {
  for (int b = 0; b < model.num_bodies; ++b)
    for (int i = b > 0 && model.body_tree[b] >= 0 ? 6 : 0; i < 8; ++i)
      body_twist[8 * b + i] = 0;
  for (int d = 0; d < model.nv; ++d)
    column_rate[8 * d + 6] = column_rate[8 * d + 7] = 0;
  velocity_sweep(model, ws.columns.data(), v, body_twist, column_rate, nullptr);
}

}  // namespace coulomb
