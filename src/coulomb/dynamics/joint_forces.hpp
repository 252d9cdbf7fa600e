// Forces that joints make: actuators tau_u(u, q, v), passive springs and dampers, with their derivatives.
#pragma once

#include <vector>

#include "coulomb/dynamics/force_clamps.hpp"
#include "coulomb/model.hpp"

namespace coulomb {

struct DynamicsWorkspace;

/// The dofs that an actuator acts on: those of its joint, of its tendon, or of the path of its body.
inline constexpr int max_actuator_dofs = 16;
struct ActuatorDofs {
  int num = 0;
  int dof[max_actuator_dofs];
};
ActuatorDofs actuator_dofs(const Model& model, int actuator);
/// The tree that they belong to; -1 where they move nothing.
int actuator_tree(const Model& model, int actuator);  ///< of its first degree of freedom
/// Trees that actuators tie, by tendons or bodies of several: what one does changes the force on another. Each pair once for every actuator.
std::vector<std::pair<int, int>> actuator_ties(const Model& model);

/// Does it act on one joint? Those of tendons and bodies act on several.
inline bool drives_joint(const Actuator& actuator) { return actuator.joint >= 0; }

/// Has it a muscle's curves?
inline bool has_curves(const Actuator& actuator) { return actuator.muscle.pulls || actuator.muscle.resists; }

/// May a step feel its force as it is at the end? Only one that is affine and acts on one joint.
inline bool may_act_at_end(const Actuator& actuator) { return drives_joint(actuator) && !has_curves(actuator); }

/// What a force on several joints (of a tendon, a site, the medium) adds to the derivatives of the forces of other joints.
struct CoupledSlope {
  int row;     ///< dof of the force
  int column;  ///< dof of the coordinate
  double dq;
  double dv;
};

/// Generalised forces of one state and their sparse derivatives. A joint's force depends on its own coordinates only, but for
/// tendons, sites and the medium, so a row holds the columns of its own joint: dtau_dq[6 d + j] = d tau_d / d q_(first dof of the joint + j).
struct JointForces {
  explicit JointForces(const Model& model);
  std::vector<double> tau;  ///< nv: actuators + springs + explicit part -D v of the dampers

  std::vector<double> dtau_dq;               ///< nv x 6
  std::vector<double> dtau_dv;               ///< nv x 6
  std::vector<CoupledSlope> coupled_slopes;  ///< beside dtau_dq and dtau_dv
  std::vector<double> dtau_du;         ///< nu x max_actuator_dofs: column of actuator k over its dofs (actuator_dofs)
  std::vector<double> dtau_dgain;      ///< the same by the constant part g0 of the gain
  std::vector<double> dtau_dbias;      ///< the same by the constant part b0 of the bias
  std::vector<double> actuator_force;  ///< nu: after gain, bias and force clamp

  std::vector<double> actuator_length;  ///< nu
  std::vector<double> actuator_speed;   ///< nu
  bool any_dq = false;                  ///< some dtau_dq is non-zero

  // What a step may take at its end, by actuator: gains that oppose its motion, zero beyond a clamp. Others stay as they are at the start.
  std::vector<double> moment;       ///< nu x max_actuator_dofs
  std::vector<double> speed_gain;   ///< nu: max(0, -d force / d speed)
  std::vector<double> length_gain;  ///< nu: max(0, -d force / d length)
  bool any_gain = false;            ///< some speed_gain or length_gain is non-zero
  bool at_kink = false;             ///< the moment of some actuator that gives a force

  ForceClamps clamps;              ///< who is at a bound
  bool at_end = false;             ///< joint_forces_at_end was here
  std::vector<double> tau_at_end;  ///< nv, scratch
};

/// q: nq, v: nv, u: nu; at: after kinematics at q.
void joint_forces(const Model& model, const DynamicsWorkspace& at, const double* q, const double* v, const double* u,
                  JointForces& out);
/// Its two parts. The joints' own clamp acts on the sum of the actuators, so actuators come first.
void add_actuator_forces(const Model& model, const DynamicsWorkspace& at, const double* q, const double* v,
                         const double* u, JointForces& out);
void add_passive_forces(const Model& model, const DynamicsWorkspace& at, const double* q, const double* v,
                        JointForces& out);
/// Which forces of joints a step takes at its end (dynamics/implicit_gains.hpp). Dampers are there in any case.
enum class ForcesAtEnd {
  none,      ///< actuators and springs act as at the start
  speeds,    ///< actuators feel the speed at the end
  positions  ///< and the length; springs, too, the position
};

/// A step whose velocity goes from v to v_plus in the time h.
struct StepMotion {
  ForcesAtEnd rule;
  double h;
  const double* v;
  const double* v_plus;
};

/// One actuator: its coordinate, the moment that turns its force into forces of its dofs, and their derivatives over these. Other entries of
/// arrays are left as they are.
struct ActuatorForce {
  double length = 0;
  double dlength[max_actuator_dofs];  ///< d length / dq
  double moment[max_actuator_dofs];
  bool turns = false;    ///< the moment changes with q
  bool at_kink = false;  ///< at different rates on the two sides of this q (TendonState)
  double dmoment[max_actuator_dofs][max_actuator_dofs];  ///< where it turns: d moment_i / dq_j; else left as it is

  double speed = 0;                  ///< moment . v
  double dspeed[max_actuator_dofs];  ///< d speed / dq

  // The force and its derivatives; those are zero beyond a clamp.
  double force = 0;
  double df_dlength = 0;
  double df_dspeed = 0;
  double df_du = 0;
  double df_dgain = 0;
  double df_dbias = 0;

  double du = 0;            ///< d (control after its clamp) / du where the force is not clamped
  bool end_speed = false;   ///< by take_to_end: the speed is that of v_plus,
  bool end_length = false;  ///< the length that h later
};
ActuatorForce actuator_force(const Model& model, const DynamicsWorkspace& at, int actuator, const double* q,
                             const double* v, double u);
/// The same without its bounds.
ActuatorForce unbounded_force(const Model& model, const DynamicsWorkspace& at, int actuator, const double* q,
                              const double* v, double u);
/// What the bound of a tendon's force makes of the forces f_k of its actuators without their own bounds: s f_k, s = bound / sum f, which then
/// keep to those. Their slopes: s (df_k - f_k (sum df) / sum f).
struct TendonShare {
  bool bounded = false;  ///< else s = 1
  double scale = 1;      ///< s
  double sum = 0;        ///< of f
  double pull = 0;       ///< sum of gear s f over the actuators that are not at their own bounds
};
TendonShare tendon_share(const Model& model, const DynamicsWorkspace& at, int tendon, const double* q, const double* v,
                         const double* u);
/// Of the force of actuator k, which its tendon has scaled.
ForceBound own_bound(const Actuator& actuator, double force);
/// The force of a step's start (without slopes where it is at a bound) becomes that which the step feels: the parts that oppose the motion at
/// the end. Derivatives by q, u and gains at fixed v_plus.
void take_to_end(const Model& model, int actuator, const StepMotion& motion, ActuatorForce& force);

/// All derivatives, lengths and speeds become those of the forces that a step feels, at fixed v_plus; tau stays that of the start. Once,
/// however often it is called. Dampers stay as they are: the step itself has theirs. After joint_forces at (q, v, u).
void joint_forces_at_end(const Model& model, const DynamicsWorkspace& at, const double* q, const double* u,
                         const StepMotion& motion, JointForces& forces);
/// By the gains of a servo, which are in gain and bias both, from the derivatives by gain and by bias, whatever they are of: the force or tau.
double by_position_gain(double by_gain, double by_bias, double length);
double by_velocity_gain(const Actuator& actuator, double by_gain, double by_bias, double speed);
/// The spring of one joint with stiffness 1: what its force changes by per unit of stiffness.
void add_unit_spring(const Model& model, int joint, const double* q, JointForces& out);

int joint_num_dofs(JointType type);

}  // namespace coulomb
