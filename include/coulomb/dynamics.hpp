// The rigid-body quantities of one state, for users: checked input, plain arrays out, no workspace to keep.
// The step itself calls the same kernels.
//
//   M(q) a + b(q, v) = tau + J^T f          (docs/theory.md (D8))
//
// Sizes: q nq, v and a nv. Matrices are dense, row major. Derivatives are in the tangent space of integrate(). Every function throws
// std::invalid_argument that names argument, element and value.
#pragma once

#include <vector>

#include "coulomb/model.hpp"

namespace coulomb {

/// Derivatives of inverse dynamics, nv x nv each; dtau_da is the mass matrix.
struct InverseDynamicsDerivatives {
  std::vector<double> dtau_dq;
  std::vector<double> dtau_dv;
  std::vector<double> dtau_da;
};

/// World poses: positions (n x 3) and rotations (n x 9, row major, world from local).
struct Placements {
  std::vector<double> positions;
  std::vector<double> rotations;
};

struct Energy {
  double kinetic = 0;    ///< J: 1/2 v^T M v, rotor inertias (armature) included
  double potential = 0;  ///< J: gravity (zero at the world's origin) and joint springs
};

/// M (nv x nv), armature included.
std::vector<double> mass_matrix(const Model& model, const std::vector<double>& q);
/// b = ID(q, v, 0) (nv): Coriolis, centrifugal and gravity forces.
std::vector<double> bias(const Model& model, const std::vector<double>& q, const std::vector<double>& v);
/// tau = M a + b (nv): what joints, passive forces and contacts together must give.
std::vector<double> inverse_dynamics(const Model& model, const std::vector<double>& q, const std::vector<double>& v,
                                     const std::vector<double>& a);
InverseDynamicsDerivatives inverse_dynamics_derivatives(const Model& model, const std::vector<double>& q,
                                                        const std::vector<double>& v, const std::vector<double>& a);
Placements body_placements(const Model& model, const std::vector<double>& q);
Placements geometry_placements(const Model& model, const std::vector<double>& q);
/// num_bodies x 6: velocity of each body frame's origin, angular velocity; world axes.
std::vector<double> body_velocities(const Model& model, const std::vector<double>& q, const std::vector<double>& v);
/// 6 x nv: velocity of a point given in a body's frame, then angular velocity of the body, world axes, per v. Throws
/// std::out_of_range when there is no such body.
std::vector<double> point_jacobian(const Model& model, const std::vector<double>& q, int body,
                                   const std::vector<double>& point);

/// Forces that joints make by themselves (nv): springs and dampers.
std::vector<double> passive_forces(const Model& model, const std::vector<double>& q, const std::vector<double>& v);
/// And those of the actuators under the controls u (nu).
std::vector<double> actuator_forces(const Model& model, const std::vector<double>& q, const std::vector<double>& v,
                                    const std::vector<double>& u);

Energy energy(const Model& model, const std::vector<double>& q, const std::vector<double>& v);

}  // namespace coulomb
