// Wrenches that are fixed on bodies and turn with them: of actuators at sites (rotors, thrusters), and of the medium (drag). As generalised
// forces J^T W; their derivatives couple all dofs on the path of the body.
//
// Of a wrench W carried by the body, and a dof i whose column J_i dof j carries (dJ_i = J_j x J_i), J_i . W does not change with q_j; of
// other dofs i, d(J_i . W) = J_i . (J_j x* W).
#pragma once

#include "coulomb/model.hpp"

namespace coulomb {

struct ActuatorDofs;
struct ActuatorForce;
struct DynamicsWorkspace;
struct JointForces;

/// Does a motion of dof j carry the column of dof i, both on one path? Its own joint carries a rotation of a ball or free joint.
bool is_carried(const Model& model, int i, int j);

/// Moment, length and their slopes of an actuator at a frame of a body that pushes off another one, `reference` (MuJoCo's refsite): the force
/// is along the axes of the reference's frame, and acts on the relative motion of the two. After kinematics.
void relative_site_moment(const Model& model, const DynamicsWorkspace& at, const Actuator& actuator,
                          const ActuatorDofs& dofs, ActuatorForce& out);
/// Moment of an actuator at a frame of a body, and how it turns: W = (R gear_force, R gear_torque) at the frame's origin. After kinematics.
void site_moment(const Model& model, const DynamicsWorkspace& at, const Actuator& actuator, ActuatorForce& out);
/// The wrench of a unit of its force, (f, n) about the reference point of the body's tree.
void site_wrench(const Model& model, const DynamicsWorkspace& at, const Actuator& actuator, double* wrench);

/// The medium's wrench on one body, that of a box (MuJoCo's inertia-box model): of each axis of the box
///   force  -(3 pi d mu + 1/2 rho b_j b_k |v|) v,   torque  -(pi d^3 mu + 1/64 rho b_i (b_j^4 + b_k^4) |w|) w
/// with the velocity v of the box's middle against the wind, w its angular velocity, sides b, and their mean d. Of a body that has ellipsoids
/// it is the sum of their forces instead (ellipsoid_drag.hpp).
class MediumOnBody {
 public:
  /// twist: of the body, about the reference point of its tree.
  MediumOnBody(const Model& model, const DynamicsWorkspace& at, int body, const double* twist);

  double wrench[6];        ///< (f, n) about the reference point
  double by_density[6];    ///< its derivatives
  double by_viscosity[6];  ///< the same

  /// Its change where the body's twist changes by `twist`, seen from the body.
  void respond(const double* twist, double* change) const;
  /// Where the wind changes.
  void respond_to_wind(const double* wind, double* change) const;
  /// Of a displacement xi of the body, and of the dofs before it, that carry the twist `before`: what the body sees of its velocity.
  void seen_change(const double* xi, const double* before, double* twist) const;

 private:
  void add_box(const Model& model, const DynamicsWorkspace& at, int body, const double* twist);
  void add_ellipsoids(const Model& model, const DynamicsWorkspace& at, int body, const double* twist);
  void to_reference(const double* force, const double* torque, double* out) const;
  bool is_box_;
  double axes_[9];  ///< world from box
  double arm_[3];   ///< of its middle, from the reference point
  double wind_[3];
  double linear_[3];   ///< d force / d velocity, by axis
  double angular_[3];  ///< the same of torque

  double slope_[6][6];  ///< d wrench / d twist of ellipsoids
};
inline bool has_medium(const Model& model) { return model.medium.density > 0 || model.medium.viscosity > 0; }

/// The ellipsoids of a body in Model::medium_ellipsoids: from first to before last.
struct EllipsoidRange {
  int first = 0;
  int last = 0;
};
inline EllipsoidRange ellipsoids_of(const Model& model, int body) {
  if (model.body_first_ellipsoid.empty()) return {};
  return {model.body_first_ellipsoid[body], model.body_first_ellipsoid[body + 1]};
}

/// Does the medium act on this body?
inline bool feels_medium(const Model& model, int body) {
  const EllipsoidRange ellipsoids = ellipsoids_of(model, body);
  return model.body_medium_box[body].size[0] != 0 || ellipsoids.first < ellipsoids.last;
}

/// What one ellipsoid's coefficients change of the wrench on its body about the reference point: 5 rows (f, n).
void ellipsoid_coefficient_wrenches(const Model& model, const DynamicsWorkspace& at, int body, int ellipsoid,
                                    const double* twist, double (*out)[6]);

/// tau and slopes of the medium on all bodies. After kinematics at q.
void add_medium_forces(const Model& model, const DynamicsWorkspace& at, const double* v, JointForces& out);

/// Twist of a body (6) about the reference point of its tree, from the columns on its path.
void twist_on_path(const Model& model, const DynamicsWorkspace& at, int body, const double* v, double* twist);

/// Entries of CoupledSlope that these forces make.
std::size_t count_wrench_slopes(const Model& model);

}  // namespace coulomb
