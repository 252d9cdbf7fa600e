// First half of the derivatives of ID'(q, v, a) = ID(q, v, a) - sum J^T f, docs/theory.md (D9) to (D13): what each body adds, composites
// over subtrees, and five vectors per dof. The second half is the pair kernel (derivative_pairs.cpp) or, in reverse,
// inverse_dynamics_vjp.cpp.
//
//   P = v (mc)^T + [w] S,  K = 2 (tr P 1 - P),  p linear momentum,  F = I A + V x* (I V) - phi     (additive per link)
//   Coriolis operator D(v, w) = (-2 p x w, K w),   force operator C(v, w) = (f_s x w, E w)
//   a = I J,  b = 2 p x J_v + K^T J_w,  c = -(J_v x f_s + E^T J_w),  u = J x* F + I psi_ddot + D psi_dot - C J,  w = I chi + D J
#include <algorithm>

#include "coulomb/base/simd.hpp"
#include "coulomb/dynamics/acceleration.hpp"

namespace coulomb {
namespace {

// Offsets in the rows of 32 of DynamicsWorkspace::link, summed over subtrees.
constexpr int at_momentum = 0;         // p (3)
constexpr int at_k = 3;                // K (9)
constexpr int at_force = 12;           // F (6)
constexpr int at_contact_force = 18;   // f_s (3)
constexpr int at_contact_moment = 21;  // E (9)

/// What one body adds: p and F (D7), and K of the Coriolis operator (D11).
COULOMB_INLINE void store_link(const double* inertia, Spatial twist, Spatial acceleration, double* link) {
  const Spatial momentum = inertia_times(inertia, twist);
  const Spatial force = inertia_times(inertia, acceleration) + cross_force(twist, momentum);

  // P = v (mc)^T + [w] S by rows; S as xx xy yy xz yz zz.
  const double* s = inertia + 4;
  const Vector3 mc = load3(inertia + 1);
  const Vector3 v = twist.linear;
  const Vector3 w = twist.angular;
  const Vector3 s0{s[0], s[1], s[3]};
  const Vector3 s1{s[1], s[2], s[4]};
  const Vector3 s2{s[3], s[4], s[5]};
  const Vector3 p0 = v.x * mc + w.y * s2 - w.z * s1;
  const Vector3 p1 = v.y * mc + w.z * s0 - w.x * s2;
  const Vector3 p2 = v.z * mc + w.x * s1 - w.y * s0;

  store3(link + at_momentum, momentum.linear);

  // K = 2 (tr P 1 - P)
  double* k = link + at_k;
  k[0] = 2 * (p1.y + p2.z);
  k[1] = -2 * p0.y;
  k[2] = -2 * p0.z;
  k[3] = -2 * p1.x;
  k[4] = 2 * (p0.x + p2.z);
  k[5] = -2 * p1.z;
  k[6] = -2 * p2.x;
  k[7] = -2 * p2.y;
  k[8] = 2 * (p0.x + p1.y);
  store6(link + at_force, force);
}

/// Known forces on a body: F gets their negative, C (D12) their sum and their virials.
COULOMB_INLINE void subtract_forces(const BodyForces& forces, int b, double* link) {
  const double* wrench = &forces.wrench[8 * b];
  for (int i = 0; i < 6; ++i)
    link[at_force + i] -= wrench[i];
  for (int i = 0; i < 3; ++i)
    link[at_contact_force + i] = wrench[i];
  for (int i = 0; i < 9; ++i)
    link[at_contact_moment + i] = forces.moment[9 * b + i];
}

/// The weight that is taken away (has_gravity_compensation) is a known force as well: f = -c m g at the centre of mass, whose virial about
/// the reference point is f com^T - (com . f) 1.
COULOMB_INLINE void subtract_compensation(const Model& model, const DynamicsWorkspace& ws, int b, double* link) {
  const Spatial force = compensating_force(model, ws, b);
  store6(link + at_force, load6(link + at_force) - force);
  store3(link + at_contact_force, load3(link + at_contact_force) + force.linear);

  // m com is in the inertia, so f com^T = -c g (m com)^T.
  const Vector3 up = compensated_acceleration(model, b).linear;
  const Vector3 moment = load3(&ws.inertia[12 * b + 1]);
  const double trace = dot(up, moment);
  double* e = link + at_contact_moment;
  const double f[3] = {up.x, up.y, up.z};
  const double mc[3] = {moment.x, moment.y, moment.z};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      e[3 * i + j] += f[i] * mc[j] - (i == j ? trace : 0.0);
}

/// a is there already (mass_matrix.cpp); stores b, c, u, w of one dof (D13).
COULOMB_INLINE void store_dof_vectors(const DynamicsWorkspace& ws, const double* inertia, const double* link,
                                      bool with_forces, int d, double* out) {
  const Spatial column = load6(&ws.columns[8 * d]);
  const Spatial rate = load6(&ws.column_rate[8 * d]);

  // The Coriolis operator of all that the dof moves.
  const Vector3 momentum = load3(link + at_momentum);
  const double* k = link + at_k;
  const auto coriolis = [&](Spatial m) __attribute__((always_inline)) {
    return Spatial{-2.0 * cross(momentum, m.angular), multiply3(k, m.angular)};
  };

  const Vector3 b = 2.0 * cross(momentum, column.linear) + multiply3_transposed(k, column.angular);

  // u without the forces known on bodies, and what they change.
  Spatial u = cross_force(column, load6(link + at_force)) +
              inertia_times(inertia, load6(&ws.column_acceleration[8 * d])) + coriolis(rate);
  Vector3 c;
  if (with_forces) {
    const Vector3 f = load3(link + at_contact_force);
    const double* e = link + at_contact_moment;
    c = -(cross(column.linear, f) + multiply3_transposed(e, column.angular));
    u = u - Spatial{cross(f, column.angular), multiply3(e, column.angular)};
  }

  // w of (D13) is the last.
  store3(out + 6, b);
  store3(out + 9, c);
  store6(out + 12, u);
  store6(out + 18, inertia_times(inertia, load6(&ws.column_chi[8 * d])) + coriolis(column));
}

COULOMB_SIMD void prepare_sweeps(const Model& model, DynamicsWorkspace& ws, const double* a, const BodyForces* forces) {
  const bool with_forces = forces || model.has_gravity_compensation;

  // From the root to the leaves: motion, and what every body adds.
  for (const int b : model.moving_bodies) {
    Spatial twist = load6(&ws.body_twist[8 * model.body_parent[b]]);
    Spatial acceleration = parent_acceleration(model, ws, b);

    const int first = model.body_first_joint[b];
    const int end = first + model.body_num_joints[b];
    for (int j = first; j < end; ++j)
      accelerate_over_joint(model, ws, j, a, twist, acceleration, ws.column_acceleration.data());

    store6(&ws.body_acceleration[8 * b], acceleration);
    store_link(&ws.inertia[12 * b], twist, acceleration, &ws.link[32 * b]);
    if (forces)
      subtract_forces(*forces, b, &ws.link[32 * b]);
    else if (with_forces)
      std::fill_n(&ws.link[32 * b + at_contact_force], 12, 0.0);
    if (model.has_gravity_compensation) subtract_compensation(model, ws, b, &ws.link[32 * b]);
  }

  // From the leaves to the root: the vectors of every dof, from the sums over all that it moves.
  const int used = with_forces ? 32 : 18;
  for (auto body = model.moving_bodies.rbegin(); body != model.moving_bodies.rend(); ++body) {
    const int b = *body;
    const double* link = &ws.link[32 * b];
    const int first = model.body_first_dof[b];
    const int end = first + model.body_num_dofs[b];
    const int parent = model.body_parent[b];
    for (int d = first; d < end; ++d)
      store_dof_vectors(ws, &ws.composite[12 * b], link, with_forces, d, &ws.vectors[24 * d]);

    // The parent moves all this, too; without forces the last entries are not in use.
    if (model.body_tree[parent] < 0) continue;
    double* to = &ws.link[32 * parent];
    for (int i = 0; i < used; ++i)
      to[i] += link[i];
  }
}

}  // namespace

void prepare_derivatives(const Model& model, DynamicsWorkspace& ws, const double* a, const BodyForces* forces) {
  prepare_sweeps(model, ws, a, forces);
}

}  // namespace coulomb
