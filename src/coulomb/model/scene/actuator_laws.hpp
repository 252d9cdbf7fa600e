// Actuators that a user asks for: what an Actuator's gain and bias are for a motor and for servos.
//
//   motor      force = u
//   position   force = kp (u - length) - kd speed
//   velocity   force = kd (u - speed)
//
// length and speed are the joint's, times the gear. The force is explicit in the step, as that of MuJoCo's actuators.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coulomb/model/scene/scene_parts.hpp"

namespace coulomb {

struct ActuatorOptions {
  std::string kind = "motor";  ///< "motor", "position" or "velocity"
  std::optional<double> kp;    ///< N/m or N m/rad, > 0; position only, and needed there
  std::optional<double> kd;    ///< N s/m or N m s/rad, >= 0; position (default 0) and velocity (needed)

  /// Force on each dof of the joint per unit of actuator force: 1, 3 or 6; empty: 1 (one dof only)
  std::vector<double> gear;

  std::optional<std::array<double, 2>> control_range;  ///< u is clamped to it
  std::optional<std::array<double, 2>> force_range;    ///< and the force before the gear to this
  std::string name;                                    ///< default: the joint's
};

/// A gain of every motor of a robot: one for all, or by the name of the joint.
struct JointGains {
  std::optional<double> all;
  std::map<std::string, double> of_joint;
  bool given() const { return all || !of_joint.empty(); }
};

/// What the motors of a robot's file become.
struct MotorOptions {
  std::string kind = "motor";
  JointGains kp;
  JointGains kd;
};

/// Fills gain and bias. Throws std::invalid_argument that opens with `what`.
void set_actuator_law(const std::string& what, const std::string& kind, const std::optional<double>& kp,
                      const std::optional<double>& kd, Actuator& actuator);

/// An actuator on joints[joint].
Actuator make_actuator(const std::string& what, const std::vector<JointPart>& joints, int joint,
                       const ActuatorOptions& options);

/// The motors of `parts` as `options` want them; limits of their torque stay. Throws for gains of joints that no motor drives.
void set_motors(const std::string& what, const MotorOptions& options, SceneParts& parts);

/// Whether the actuator is such a servo, and which of its gains it has.
struct ServoGains {
  std::optional<double> kp;
  std::optional<double> kd;
};
ServoGains servo_gains(const Actuator& actuator);

}  // namespace coulomb
