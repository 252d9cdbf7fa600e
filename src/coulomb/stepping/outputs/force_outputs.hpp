// Forces of a step as outputs: contacts, joint limits, actuators. A scalar of a force is a number whose gradient has
// seven parts,
//
//   dy = a . dlambda + b . dx + c . dx1 + e . du + f . dtheta + g . dfext,   x = (q, v), x1 = (q1, v1)
//
// lambda are the impulses of record.rows. Contact forces are sums of frame^T lambda / h. The frames rotate with the
// normals at the configuration where the contacts were found: q, or q1 with implicit steppers and penalty contact.
// There, limits are springs, functions of x1 (implicit_springs.hpp), and with steppers bdf1 and bdf2 actuators also act
// at the end of the step.
#pragma once

#include <optional>
#include <vector>

#include "coulomb/parameters/state_outputs.hpp"
#include "coulomb/stepping/implicit/implicit_springs.hpp"
#include "coulomb/stepping/outputs/motion_sensors.hpp"
#include "coulomb/stepping/step_gradient.hpp"

namespace coulomb {

struct BodyRows;
struct StepOptions;
struct StepRecord;

struct ForceGradient {
  std::vector<double> lambda;  ///< num_rows
  std::vector<double> q;       ///< nv, as the next three
  std::vector<double> v;
  std::vector<double> q_next;
  std::vector<double> v_next;
  std::vector<double> u;           ///< nu
  std::vector<double> parameters;  ///< set.size()
  std::vector<double> fext;        ///< num_bodies x 6, or empty: nothing depends on wrenches directly
  /// Sizes and zeros; set may be null.
  void clear(const Model& model, const StepRecord& record, const ParameterSet* set);
};

class ForceOutputs {
 public:
  ForceOutputs(const Model& model, const StepOptions& options);

  /// The step to look at; it must stay as it is.
  void move_to(const StepRecord& record);
  /// sensor_size numbers. Throws std::logic_error where the step does not tell.
  void read(const Sensor& sensor, double* readings);
  /// to += sum over k of weights[k] times the gradient of the reading's k-th number.
  void add_gradient(const Sensor& sensor, const double* weights, const ParameterSet* set, ForceGradient& to);

 private:
  /// reading = constant + sum of coefficient x impulse; the rest moves it.
  struct Scalar {
    double value = 0;
    std::vector<std::pair<int, double>> impulses;  ///< row, coefficient
    struct Turn {
      int contact;  ///< index into record.collision.contacts
      double by_normal[3];
      double by_point[3] = {0, 0, 0};
      double by_depth = 0;
      bool of_impulses = true;  ///< divided by the time step
    };
    std::vector<Turn> turns;

    // By the state, dof by dof.
    bool at_end = false;  ///< of the next one
    std::vector<std::pair<int, double>> dq;
    std::vector<std::pair<int, double>> dv;
    OutputRow of_frames;        ///< of the state `at_end`
    std::vector<double> da;     ///< nv or empty: by the mean acceleration of the step
    MotionSensors::Row motion;  ///< where da is not empty

    // By controls and parameters: actuator or dof, derivative.
    std::vector<std::pair<int, double>> du;
    std::vector<std::pair<int, double>> gains;
    std::vector<std::pair<int, double>> kps;
    std::vector<std::pair<int, double>> kds;
    std::vector<std::pair<int, double>> dry_frictions;
    int limit_joint = -1;
    int limit_tendon = -1;
    double dlower = 0;
    double dupper = 0;
    double timestep = 0;
  };
  bool found_at_end() const;
  const DynamicsWorkspace& where_found();
  const DynamicsWorkspace& where_driven();
  void scalars(const Sensor& sensor);
  void close(Scalar& s) const;
  void add_coupled_actuator(int k, int joint, Scalar& out);
  bool add_joint_actuators(int joint, Scalar& out);
  void add_actuator_parameter(const Scalar& s, const ParameterSet::Item& item, double weight, double* parameters) const;
  void add_turning_parameter(const Scalar& s, const ParameterSet::Item& item, double weight, double* parameters) const;
  void add_touch(const Site& site, Scalar& out);
  void add_contact_force(const Sensor& sensor);
  struct SeenContact;
  struct ContactGradient;
  void add_contact_sensor(const Sensor& sensor);
  void find_contacts(const Sensor& sensor, std::vector<SeenContact>& out);
  bool lies_in(const Site& site, const double* point);
  void follow_contact(const SeenContact& seen, const ContactGradient& g, Scalar& out) const;
  int tell_contact(const SeenContact& seen, std::uint32_t field, int num_found, Scalar* out) const;
  int tell_net(const std::vector<SeenContact>& seen, std::uint32_t field, Scalar* out) const;
  void turn_by_normal(const BodyRows& b, const double* c, double scale, double* by_normal) const;
  void turn_torque_by_normal(const BodyRows& b, const double* c, double scale, double* by_normal) const;
  double add_actuator(int k, double scale, Scalar& out);
  void add_slopes(int k, const ActuatorForce& a, double scale, Scalar& out) const;
  void add_limit(int joint, int tendon, Scalar& out);
  void add_tendon_actuators(int tendon, Scalar& out);
  void add_dry_friction(int joint);
  void add_motion(const Sensor& sensor);
  void shift_by_spin(const Sensor& sensor);
  double by_shift(const Scalar& s, const SpinDerivative& spin, const double* change) const;
  void add_wrenches(const Scalar& s, double weight, ForceGradient& to);
  void collect_outside_forces();
  void add_outside_forces(Scalar& out);
  void add_equality(int index);
  void add_equality_spring(const Equality& equality, int index);
  const SpringForces& springs();
  void add_turns(const Scalar& s, double weight, const ParameterSet* set, ForceGradient& to);
  void add_parameters(const Sensor& sensor, const Scalar& s, double weight, const ParameterSet& set, ForceGradient& to);

  const Model* model_;
  const StepOptions* options_;
  const StepRecord* record_ = nullptr;
  DynamicsWorkspace at_;  // where the contacts were found
  bool have_at_ = false;
  std::optional<DynamicsWorkspace> driven_;  // where actuators act, if that is not in the record
  bool have_driven_ = false;
  SpringForces springs_;
  MotionSensors motion_;
  std::vector<OutsideForce> outside_;  // on all bodies, of the sensor looked at
  std::vector<double> acceleration_;
  SpinShift spin_;
  std::vector<SpinDerivative> spins_;  // of the sensor looked at, if it balances forces
  std::vector<Scalar> scalars_;
};

/// Throws std::logic_error naming the first output that steps with these options do not tell.
void check_forces_told(const OutputSet& outputs, const StepOptions& options);

}  // namespace coulomb
