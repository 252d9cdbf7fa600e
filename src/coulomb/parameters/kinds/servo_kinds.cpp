// Gains of servos: force = kp (u - length) - kd speed, or kd (u - speed). Each is in the gain of the actuator and in its bias, which
// actuator_gain moves apart; here they move together.
//
//   r = h tau(actuator) by the gain, at the length and speed that the step takes (joint_forces_at_end)
#include "coulomb/constraints/constraint_options.hpp"
#include "coulomb/dynamics/joint_forces.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/model/scene/actuator_laws.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/parameters/right_hand_side.hpp"

namespace coulomb {
namespace {

class ServoKind : public ParameterKind {
 public:
  std::vector<ParameterElement> elements(const Model& model) const override {
    // Actuators that are servos of that gain.
    std::vector<ParameterElement> out;
    for (int k = 0; k < model.nu; ++k)
      if (gain(model.actuators[k])) {
        out.push_back({model.actuators[k].name, k, 1});
      }
    return out;
  }

  void read(const Model& model, const ParameterElement& e, double* values) const override {
    values[0] = *gain(model.actuators[e.index]);
  }

  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    const Actuator& actuator = context.model.actuators[e.index];
    const JointForces& forces = context.joint_forces;
    const ActuatorDofs dofs = actuator_dofs(context.model, e.index);

    // The derivative by the gain, over the dofs of its joint or tendon.
    for (int i = 0; i < dofs.num; ++i) {
      const std::size_t at = std::size_t(max_actuator_dofs) * e.index + i;
      const double dtau = derivative(actuator, forces.dtau_dgain[at], forces.dtau_dbias[at],
                                     forces.actuator_length[e.index], forces.actuator_speed[e.index]);
      out[0].dofs.push_back({dofs.dof[i], context.options.timestep * dtau});
    }
  }

 protected:
  virtual std::optional<double> gain(const Actuator& actuator) const = 0;
  virtual double derivative(const Actuator& actuator, double by_gain, double by_bias, double length,
                            double speed) const = 0;
};

class PositionGainKind : public ServoKind {
  const char* name() const override { return "actuator_kp"; }
  const char* unit() const override { return "N/m or N m/rad"; }
  std::optional<double> gain(const Actuator& actuator) const override { return servo_gains(actuator).kp; }

  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    checks::positive(what, values[0]);
    model.actuators[e.index].gain[0] = values[0];
    model.actuators[e.index].bias[1] = -values[0];
  }

  double derivative(const Actuator&, double by_gain, double by_bias, double length, double) const override {
    return by_position_gain(by_gain, by_bias, length);
  }
};

class VelocityGainKind : public ServoKind {
  const char* name() const override { return "actuator_kd"; }
  const char* unit() const override { return "N s/m or N m s/rad"; }
  std::optional<double> gain(const Actuator& actuator) const override { return servo_gains(actuator).kd; }

  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    // A velocity servo has kd in its gain as well.
    Actuator& actuator = model.actuators[e.index];
    const bool in_gain = actuator.bias[1] == 0;
    if (in_gain)
      checks::positive(what, values[0]);
    else
      checks::not_negative(what, values[0]);
    if (in_gain) actuator.gain[0] = values[0];
    actuator.bias[2] = -values[0];
  }

  double derivative(const Actuator& actuator, double by_gain, double by_bias, double, double speed) const override {
    return by_velocity_gain(actuator, by_gain, by_bias, speed);
  }
};

}  // namespace

std::unique_ptr<ParameterKind> make_actuator_kp() { return std::make_unique<PositionGainKind>(); }
std::unique_ptr<ParameterKind> make_actuator_kd() { return std::make_unique<VelocityGainKind>(); }

}  // namespace coulomb
