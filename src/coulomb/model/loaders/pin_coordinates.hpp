// Coordinates of the `pin` package and back, for one robot of a model (Model::pinocchio_maps). Ours and theirs differ for free joints
// (quaternion order; their linear velocity is in body axes), continuous joints (they store cos and sin) and planar joints.
#pragma once

#include "coulomb/model.hpp"

namespace coulomb {

/// q: nq, v: nv of the model; q_pin: map.nq, v_pin: map.nv. v and v_pin may both be null.
void to_pinocchio(const PinocchioMap& map, const double* q, const double* v, double* q_pin, double* v_pin);
/// The inverse; writes the coordinates of this robot only. Angles of continuous joints come back in (-pi, pi].
void from_pinocchio(const PinocchioMap& map, const double* q_pin, const double* v_pin, double* q, double* v);
/// T, map.nv x nv row major: v_pin = T v, and for tangent vectors dq_pin = T dq. Jacobians: J_pin T = J.
void pinocchio_tangent(const Model& model, const PinocchioMap& map, const double* q, double* T);

}  // namespace coulomb
