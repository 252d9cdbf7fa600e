// Actuators that a user asks for: what an Actuator's gain and bias are for a motor and for servos.
//
//   motor      force = u
//   position   force = kp (u - length) - kd speed
//   velocity   force = kd (u - speed)
//
// length and speed are the joint's, times the gear. The force is explicit in the step, as that of MuJoCo's actuators.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coulomb/scene.hpp"

namespace coulomb {

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
