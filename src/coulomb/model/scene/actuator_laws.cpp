#include "coulomb/model/scene/actuator_laws.hpp"

#include <algorithm>

#include "coulomb/model/checks.hpp"
#include "coulomb/model/name_hints.hpp"

namespace coulomb {
namespace {

/// Degrees of freedom of a joint.
int num_dofs(JointType type) { return type == JointType::free ? 6 : type == JointType::ball ? 3 : 1; }

/// An interval, not a point.
void check_range(const std::string& what, const std::array<double, 2>& range) {
  checks::finite(what, range.data(), 2);
  if (!(range[0] < range[1]))
    checks::fail(what, "(" + checks::text(range[0]) + ", " + checks::text(range[1]) + ") is not an interval");
}

/// One number a degree of freedom; a joint with one may do without.
void set_gear(const std::string& what, const JointPart& joint, const std::vector<double>& gear, Actuator& out) {
  const int size = num_dofs(joint.type);
  if (gear.empty() && size > 1)
    checks::fail(what + " gear", "needed: joint '" + joint.name + "' has " + std::to_string(size) +
                                     " degrees of freedom, give the force on each of them");
  if (!gear.empty() && static_cast<int>(gear.size()) != size)
    checks::fail(what + " gear", "got " + std::to_string(gear.size()) + " numbers, joint '" + joint.name + "' has " +
                                     std::to_string(size) + " degrees of freedom");
  checks::finite(what + " gear", gear.data(), static_cast<int>(gear.size()));
  if (!gear.empty() && std::all_of(gear.begin(), gear.end(), [](double g) { return g == 0; }))
    checks::fail(what + " gear", "all zero, the actuator would do nothing");

  // A missing gear is 1.
  out.gear = {0, 0, 0, 0, 0, 0};
  out.gear[0] = 1;
  std::copy(gear.begin(), gear.end(), out.gear.begin());
}

/// The gain of one motor; `gains` that name joints must name every one.
std::optional<double> gain_of(const std::string& what, const JointGains& gains, const std::string& joint) {
  if (gains.of_joint.empty()) return gains.all;
  const auto it = gains.of_joint.find(joint);
  if (it == gains.of_joint.end()) {
    checks::fail(what, "no value for joint '" + joint + "', which has a motor");
  }
  return it->second;
}

/// Refuses gains of joints that have no motor.
void check_joints(const std::string& what, const JointGains& gains, const std::vector<std::string>& joints) {
  for (const auto& [joint, value] : gains.of_joint) {
    static_cast<void>(value);
    if (std::find(joints.begin(), joints.end(), joint) == joints.end())
      checks::fail(what + " of '" + joint + "'", no_such("joint with a motor", joint, joints, "the robot"));
  }
}

}  // namespace

void set_actuator_law(const std::string& what, const std::string& kind, const std::optional<double>& kp,
                      const std::optional<double>& kd, Actuator& actuator) {
  // Gains that a kind does not have are refused by name, those that it has are asked for.
  const auto refuse = [&](const char* gain, const std::optional<double>& value, const char* reason) {
    if (value) {
      checks::fail(what + " " + gain, "got " + checks::text(*value) + ", but " + reason);
    }
  };
  const auto need = [&](const char* gain, const std::optional<double>& value) {
    if (!value) {
      checks::fail(what + " " + gain, "needed for kind '" + kind + "'");
    }
    checks::positive(what + " " + gain, *value);
    return *value;
  };

  // A motor passes its control on; servos pull towards it (gain and bias as in MuJoCo).
  if (kind == "motor") {
    refuse("kp", kp, "a motor has no gains; kind 'position' has");
    refuse("kd", kd, "a motor has no gains; kinds 'position' and 'velocity' have");
    actuator.gain = {1, 0, 0};
    actuator.bias = {0, 0, 0};
  } else if (kind == "position") {
    const double stiffness = need("kp", kp);
    if (kd) {
      checks::not_negative(what + " kd", *kd);
    }
    actuator.gain = {stiffness, 0, 0};
    actuator.bias = {0, -stiffness, -kd.value_or(0.0)};
  } else if (kind == "velocity") {
    refuse("kp", kp, "kind 'velocity' has kd alone");
    const double damping = need("kd", kd);
    actuator.gain = {damping, 0, 0};
    actuator.bias = {0, 0, -damping};
  } else {
    checks::fail(what + " kind", "got '" + kind + "', expected 'motor', 'position' or 'velocity'");
  }
}

Actuator make_actuator(const std::string& what, const std::vector<JointPart>& joints, int joint,
                       const ActuatorOptions& options) {
  const JointPart& on = joints[joint];
  Actuator out;
  out.joint = joint;
  out.name = options.name.empty() ? on.name : options.name;

  set_actuator_law(what, options.kind, options.kp, options.kd, out);
  if (options.kind == "position" && on.type == JointType::free)
    checks::fail(what + " kind", "got 'position', but joint '" + on.name + "' is free: it has no length to control");
  set_gear(what, on, options.gear, out);

  // Ranges of the control and of the force clamp them; by default nothing does.
  if (options.control_range) {
    check_range(what + " control_range", *options.control_range);
    out.control_limited = true;
    out.control_range = *options.control_range;
  }
  if (options.force_range) {
    check_range(what + " force_range", *options.force_range);
    out.force_limited = true;
    out.force_range = *options.force_range;
  }
  return out;
}

void set_motors(const std::string& what, const MotorOptions& options, SceneParts& parts) {
  // Gains by joint may name only joints that have a motor.
  std::vector<std::string> driven;
  for (const Actuator& motor : parts.actuators)
    driven.push_back(parts.joints[motor.joint].name);
  check_joints(what + " kp", options.kp, driven);
  check_joints(what + " kd", options.kd, driven);

  for (Actuator& motor : parts.actuators) {
    const std::string& joint = parts.joints[motor.joint].name;
    const auto kp = gain_of(what + " kp", options.kp, joint);
    const auto kd = gain_of(what + " kd", options.kd, joint);
    set_actuator_law(what, options.kind, kp, kd, motor);

    // A motor's control is its torque; a servo's is not, its torque has the limit.
    if (options.kind == "motor" || !motor.control_limited) continue;
    motor.force_limited = true;
    motor.force_range = motor.control_range;
    motor.control_limited = false;
    motor.control_range = {0, 0};
  }

  // Without motors, an option that could not be right is still one.
  Actuator none;
  if (parts.actuators.empty()) {
    set_actuator_law(what, options.kind, options.kp.all, options.kd.all, none);
  }
}

ServoGains servo_gains(const Actuator& a) {
  // Servos of this library have one gain and no constant force.
  const bool plain = a.gain[1] == 0 && a.gain[2] == 0 && a.bias[0] == 0 && a.gain[0] > 0;

  // Position: kp (u - length) - kd speed; velocity: kd (u - speed).
  if (plain && a.bias[1] == -a.gain[0]) return {a.gain[0], 0 - a.bias[2]};
  if (plain && a.bias[1] == 0 && a.bias[2] == -a.gain[0]) {
    return {std::nullopt, a.gain[0]};
  }
  return {};
}

}  // namespace coulomb
