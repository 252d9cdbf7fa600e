// Inverse dynamics (Newton-Euler, docs/theory.md (D7)): F_b = I A + V x* (I V) per body, summed over subtrees; tau_k = J_k . F +
// armature_k a_k.
#include "coulomb/base/simd.hpp"
#include "coulomb/dynamics/acceleration.hpp"

namespace coulomb {
namespace {

/// a may be null: zero accelerations.
COULOMB_SIMD void newton_euler(const Model& model, DynamicsWorkspace& ws, const double* a, double* tau) {
  // The force that every body needs (D7), in rows of 32 of which the first 6 are used here.
  double* force = ws.link.data();

  // From the root to the leaves: twists and accelerations over the joints, then forces.
  for (const int b : model.moving_bodies) {
    Spatial twist = load6(&ws.body_twist[8 * model.body_parent[b]]);
    Spatial acceleration = parent_acceleration(model, ws, b);

    const int first = model.body_first_joint[b];
    const int end = first + model.body_num_joints[b];
    for (int j = first; j < end; ++j)
      accelerate_over_joint(model, ws, j, a, twist, acceleration, nullptr);

    store6(&ws.body_acceleration[8 * b], acceleration);

    const double* inertia = &ws.inertia[12 * b];
    Spatial needed = inertia_times(inertia, acceleration) + cross_force(twist, inertia_times(inertia, twist));
    if (model.has_gravity_compensation) needed = needed - compensating_force(model, ws, b);
    store6(force + 32 * b, needed);
  }

  // From the leaves to the root: joints give what all bodies beyond them need.
  for (auto body = model.moving_bodies.rbegin(); body != model.moving_bodies.rend(); ++body) {
    const int b = *body;
    const Spatial f = load6(force + 32 * b);

    const int first = model.body_first_dof[b];
    const int end = first + model.body_num_dofs[b];
    const int parent = model.body_parent[b];
    for (int d = first; d < end; ++d)
      tau[d] = dot(load6(&ws.columns[8 * d]), f) + (a ? model.dof_armature[d] * a[d] : 0.0);

    // The parent has to give it as well.
    if (model.body_tree[parent] >= 0) {
      store6(force + 32 * parent, load6(force + 32 * parent) + f);
    }
  }
}

}  // namespace

void bias(const Model& model, DynamicsWorkspace& ws) { newton_euler(model, ws, nullptr, ws.bias.data()); }

void inverse_dynamics(const Model& model, DynamicsWorkspace& ws, const double* a, double* tau) {
  newton_euler(model, ws, a, tau);
}

double kinetic_energy(const Model& model, const DynamicsWorkspace& ws) {
  // Bodies that nothing moves have none.
  double twice = 0;
  for (const int b : model.moving_bodies) {
    const Spatial twist = load6(&ws.body_twist[8 * b]);
    twice += dot(twist, inertia_times(&ws.inertia[12 * b], twist));
  }

  // Rotors.
  for (int d = 0; d < model.nv; ++d)
    twice += model.dof_armature[d] * ws.velocity[d] * ws.velocity[d];
  return 0.5 * twice;
}

double potential_energy(const Model& model, const DynamicsWorkspace& ws) {
  const Vector3 gravity{model.gravity[0], model.gravity[1], model.gravity[2]};
  double energy = 0;
  for (int b = 1; b < model.num_bodies; ++b) {
    const Vector3 com =
        load3(&ws.body_position[3 * b]) + multiply3(&ws.body_rotation[9 * b], load3(&model.body_com[3 * b]));
    const double weighing = 1 - model.body_gravity_compensation[b];
    energy -= weighing * model.body_mass[b] * dot(gravity, com);
  }
  return energy;
}

}  // namespace coulomb
