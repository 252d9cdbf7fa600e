// Which actuators are at a bound of their force in a step, and which joints at a bound of their actuators' sum, docs/theory.md (S13). A bound
// holds for the force that the step feels: one that opposes its speed is judged with the speed of the end.
#pragma once

#include <vector>

namespace coulomb {

struct JointForces;
struct Model;
struct StepMotion;

/// Where a force is: at its lower bound, at none, at its upper one.
enum class ForceBound : signed char { lower = -1, none = 0, upper = 1 };

struct ForceClamps {
  explicit ForceClamps(const Model& model);
  std::vector<ForceBound> actuators;  ///< nu
  std::vector<ForceBound> joints;     ///< num_joints: of the sum
  bool known = false;      ///< joint_forces takes them as they are; else it judges them at the start of the step
  bool unsettled = false;  ///< the rounds of the step ended before every force was where the end of the step says
  bool any = false;        ///< a force with a bound opposes a motion, which the end of the step knows better

  // By actuator, at the start and without bounds: the force, and its slopes where they oppose a motion, else zero.
  std::vector<double> force;
  std::vector<double> by_speed;
  std::vector<double> by_length;

  std::vector<double> sums;          ///< num_joints, scratch
  std::vector<unsigned char> moved;  ///< num_joints, scratch
};

/// Of a force at the start of a step.
ForceBound bound_of(double force, double lower, double upper);

/// How clamps are judged anew.
enum class ClampRule {
  at_once,     ///< every force by itself: what it would be at this end
  by_turns,    ///< from a bound to none, or from none to a bound: the steps of an active-set search
  one_by_one,  ///< so, too, but the first one only
};

/// Judges the clamps of joint_forces by where the step ends. True: some changed, and the forces are those of other ones. After joint_forces.
bool judge_clamps_at_end(const Model& model, const StepMotion& motion, ClampRule rule, JointForces& forces);
/// Is every force where the end of the step says?
bool clamps_hold(const Model& model, const StepMotion& motion, JointForces& forces);
/// What the status says of clamps that do not; null: they do.
const char* clamp_limit_reason(const ForceClamps& clamps);
/// Is a force that opposes a motion at a bound at the end of the step, to rounding? The step has two slopes there.
bool any_clamp_is_tied(const Model& model, const StepMotion& motion, JointForces& forces);

}  // namespace coulomb
