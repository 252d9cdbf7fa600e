// How a step depends on the wrenches that the user puts on bodies: they enter as joint forces tau = J(q)^T f at the configuration q where
// the step evaluates its forces, so their cotangent is the motion of the centres of mass at the "velocity" tau_bar:
//
//   f_bar = J(q) tau_bar      (force: of the point, torque: the angular velocity)
#pragma once

#include <vector>

#include "coulomb/dynamics/dynamics.hpp"

namespace coulomb {

/// fext (num_bodies x 6) += J tau_bar (nv). dynamics: after kinematics at q.
void add_wrench_cotangent(const Model& model, const DynamicsWorkspace& dynamics, const double* tau_bar,
                          std::vector<double>& fext);

}  // namespace coulomb
