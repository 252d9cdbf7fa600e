// Accelerometers, and the force and torque between a body and its parent. They are functions of (q, v, a) and of the
// external forces on bodies. For a step, a = (v+ - v) / h is the mean acceleration.
//
//   accelerometer   y = R^T (a_p - g)                       of the frame's origin p, in the frame's axes; frame_acceleration: without R^T
//   frame_angular_acceleration   y = A_w
//   force, torque   y = S . sum over the subtree of (I A + V x* I V - w)
//
// S is the screw of the frame's axis (force: a translation along it; torque: a rotation about it, through p), w the
// wrench of contacts, equalities and the user on bodies; A includes -g. A torque is thus the inverse dynamics of a
// virtual joint at the frame, whatever the joint of the body.
//
// The derivatives of the twist V and the acceleration A that dof k moves by J_k follow from psi_dot_k and psi_ddot_k
// (dynamics/acceleration.hpp):
//
//   by q_k   dV = psi_dot + J x V,  dA = psi_ddot + psi_dot x V + J x A
//   by v_k   dV = J,  dA = chi + J x V
//   by a_k   dA = J
//
// Parameters that displace subtrees act like a virtual dof. The forces balance the accelerations that forces cause: a =
// (v+ - v - Delta) / h if free and ball joints spin (dynamics/spin.hpp).
#pragma once

#include <vector>

#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/outputs.hpp"
#include "coulomb/dynamics/spatial.hpp"
#include "coulomb/dynamics/spin.hpp"
#include "coulomb/parameters.hpp"
#include "coulomb/solver.hpp"

namespace coulomb {

struct ConstraintOptions;
struct ConstraintRows;
struct Contact;
struct StepRecord;
struct FrameMotion;
struct ParameterContext;

/// A force f (world axes) on a body at a point that moves with it, or a torque n: what a sensor of forces does not feel as inertia.
struct OutsideForce {
  int body;
  double point[3];
  double f[3];
  double n[3];
  bool material = true;  ///< the point is the body's; of a contact it moves as contact_motion says
};

/// Does a sensor of this type read an acceleration, which is a function of the motion alone?
inline bool is_acceleration(SensorType type) {
  return type == SensorType::accelerometer || type == SensorType::frame_acceleration ||
         type == SensorType::frame_angular_acceleration;
}

class MotionSensors {
 public:
  explicit MotionSensors(const Model& model) : model_(&model), ws_(model) {}

  /// a: nv. All later calls are at this state.
  void move_to(const double* q, const double* v, const double* a);
  const DynamicsWorkspace& dynamics() const { return ws_; }

  /// One number of a sensor: what it feels of each body's motion.
  struct Row {
    bool of_forces = false;  ///< force or torque
    bool turns = false;      ///< torque
    int body = 0;            ///< the frame's
    double c[3];             ///< its axis, world
    double position[3];      ///< its origin
    double G[6];             ///< accelerations: on the displacement of the body
    double H[6];             ///< ... on the change of V
    double K[6];             ///< ... on the change of A
    double value = 0;        ///< without outside forces
  };
  Row row(const Sensor& sensor, int k) const;

  /// Whether an outside force on that body is between the frame and the rest of the world; and what the row has of it, per f and per n.
  bool feels(const Row& row, int body) const;
  void screw_at(const Row& row, const double* point, double* by_f, double* by_n) const;

  /// nv each, added to.
  void add_columns(const Row& row, const std::vector<OutsideForce>& outside, double* by_q, double* by_v,
                   double* by_a) const;
  /// By which parameters, of which step, and how many times.
  struct ParameterRequest {
    const ParameterSet& set;
    const StepRecord& record;
    const ConstraintOptions& options;
    double scale;
  };
  /// set.size(), added to: what moves frames and subtrees, mass, com, inertia, gravity; not what moves contacts.
  void add_parameters(const Row& row, const Sensor& sensor, const std::vector<OutsideForce>& outside,
                      const ParameterRequest& request, double* out) const;
  /// set.size(), added to: by_shift (nv) times the derivative of Delta.
  void add_spin_parameters(const std::vector<SpinDerivative>& spins, std::vector<double> by_shift,
                           const ParameterRequest& request, double* out);

 private:
  /// A subtree displaced by xi (about its tree's reference point), and how xi itself changes in time.
  struct Displacement {
    int root;
    Spatial xi;
    Spatial rate;
    Spatial acceleration;
  };
  Spatial twist(int body) const;
  Spatial acceleration(int body) const;
  Spatial screw_about(const Row& row, int body) const;
  bool inside(int root, int body) const;
  double displaced(const Row& row, const std::vector<OutsideForce>& outside, const Displacement& d) const;
  double frame_displaced(const Row& row, const std::vector<OutsideForce>& outside, Spatial xi) const;
  double moved_by(const Row& row, const Sensor& sensor, const std::vector<OutsideForce>& outside,
                  const FrameMotion& motion) const;
  void add_weight(const Row& row, const ParameterSet::Item& item, double scale, double* out) const;
  double sped_up(const Row& row, int root, Spatial dV, Spatial dA) const;
  ParameterContext parameter_context(const ConstraintOptions& options, const StepRecord& record,
                                     const ConstraintRows& rows, const std::vector<Contact>& contacts,
                                     const double* lambda, const std::vector<Mode>& modes) const;

  const Model* model_;
  DynamicsWorkspace ws_;
};

}  // namespace coulomb
