// The acceleration sweep's step over one joint, shared by inverse dynamics and its derivatives (docs/theory.md (D5)).
//
//   A += psi_dot_k v_k + J_k a_k,   psi_ddot_k = A0 x J_k + V0 x psi_dot_k
//
// V0, A0 are taken just before dof k; before all three for the rotations of a ball or free joint. A carries -gravity at the root.
#pragma once

#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/spatial.hpp"

namespace coulomb {

/// Advances (twist, acceleration) over joint j. a may be null (zero); psi_ddot (nv x 8) may be null (not wanted).
COULOMB_INLINE void accelerate_over_joint(const Model& model, const DynamicsWorkspace& ws, int j, const double* a,
                                          Spatial& twist, Spatial& acceleration, double* psi_ddot) {
  int d = model.joint_v[j];
  int count = 1;
  const JointType type = model.joint_type[j];

  // The translations of a free joint are along world axes and come first; psi_ddot of them stays zero.
  if (type == JointType::free) {
    twist.linear = twist.linear + load3(&ws.velocity[d]);
    if (a) acceleration.linear = acceleration.linear + load3(a + d);
    d += 3;
    count = 3;
  } else if (type == JointType::ball) {
    count = 3;
  }

  // All rotations of the joint see the motion just before it.
  const Spatial twist0 = twist;
  const Spatial acceleration0 = acceleration;

  // Each dof adds its share of (D5); the columns turn with what carries them.
  for (int i = d; i < d + count; ++i) {
    const Spatial column = load6(&ws.columns[8 * i]);
    const Spatial rate = load6(&ws.column_rate[8 * i]);
    if (psi_ddot) store6(psi_ddot + 8 * i, cross_motion(acceleration0, column) + cross_motion(twist0, rate));
    twist = twist + ws.velocity[i] * column;
    acceleration = acceleration + ws.velocity[i] * rate;
    if (a) acceleration = acceleration + a[i] * column;
  }
}

/// A of a body's parent: the parent's, or -gravity where the parent is fixed to the world.
COULOMB_INLINE Spatial parent_acceleration(const Model& model, const DynamicsWorkspace& ws, int b) {
  const int parent = model.body_parent[b];
  if (model.body_tree[parent] >= 0) return load6(&ws.body_acceleration[8 * parent]);
  return {{-model.gravity[0], -model.gravity[1], -model.gravity[2]}, {}};
}

/// The part of A (which carries -gravity) that is taken away from b: (-c g, 0).
COULOMB_INLINE Spatial compensated_acceleration(const Model& model, int b) {
  return {-model.body_gravity_compensation[b] * load3(model.gravity.data()), {}};
}

/// The force at b's centre of mass that takes away a share of its weight, about the tree's reference point: (-c m g, com x -c m g).
COULOMB_INLINE Spatial compensating_force(const Model& model, const DynamicsWorkspace& ws, int b) {
  return inertia_times(&ws.inertia[12 * b], compensated_acceleration(model, b));
}

}  // namespace coulomb
