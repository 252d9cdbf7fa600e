// The derivative of a step with respect to the wrenches that the user applies to bodies. They act as joint forces tau =
// J(q)^T f at the configuration q where the step evaluates its forces. Their cotangent is therefore the motion of the
// centres of mass at the "velocity" tau_bar:
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
