#include "coulomb/dynamics/force_clamps.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/dynamics/joint_forces.hpp"

namespace coulomb {
namespace {

// Relative, and absolute below 1 N. Rounding of states and velocities, 1e-13 of forces that stiff gains make, decides nothing; 1e-9 is seen
// by nobody.
constexpr double same_force = 1e-9;

double rounding(double bound) { return same_force * std::max(1.0, std::abs(bound)); }

bool is_at(double force, double bound) { return std::isfinite(bound) && std::abs(force - bound) <= rounding(bound); }

/// Does the force, which is at `bound` now, belong elsewhere?
ForceBound judge(ForceBound bound, double force, double lower, double upper, ClampRule rule) {
  if (rule == ClampRule::at_once) return bound_of(force, lower, upper);
  switch (bound) {
    case ForceBound::lower: return force > lower + rounding(lower) ? ForceBound::none : bound;
    case ForceBound::upper: return force < upper - rounding(upper) ? ForceBound::none : bound;
    case ForceBound::none: break;
  }
  if (force < lower - rounding(lower)) return ForceBound::lower;
  return force > upper + rounding(upper) ? ForceBound::upper : ForceBound::none;
}

/// Of actuator k at the end of the step, without its bounds.
double force_at_end(const Model& model, const StepMotion& motion, int k, const JointForces& forces) {
  const ForceClamps& clamps = forces.clamps;
  const int joint = model.actuators[k].joint;
  const int first = model.joint_v[joint];
  const int n = joint_num_dofs(model.joint_type[joint]);
  double change = 0;
  double end = 0;
  for (int i = 0; i < n; ++i) {
    const double moment = forces.moment[max_actuator_dofs * k + i];
    change += moment * (motion.v_plus[first + i] - motion.v[first + i]);
    end += moment * motion.v_plus[first + i];
  }
  const double by_length = motion.rule == ForcesAtEnd::positions ? motion.h * clamps.by_length[k] : 0.0;
  return clamps.force[k] + clamps.by_speed[k] * change + by_length * end;
}

bool is_limited(const Model& model, int joint) {
  return std::isfinite(model.joint_actuator_lower[joint]) || std::isfinite(model.joint_actuator_upper[joint]);
}

/// What an actuator of a tendon or body, or a muscle, adds to the sums of its joints: its force at the start.
void add_coupled_force(const Model& model, int k, JointForces& forces) {
  const ActuatorDofs dofs = actuator_dofs(model, k);
  for (int i = 0; i < dofs.num; ++i)
    forces.clamps.sums[model.dof_joint[dofs.dof[i]]] +=
        forces.moment[max_actuator_dofs * k + i] * forces.actuator_force[k];
}

/// Calls visit(bound, force, lower, upper) of every actuator whose force the end moves, then of every joint with such ones; it says whether to
/// stop. felt: without the actuators of joints that are at a bound.
template <class Visit>
void visit_forces(const Model& model, const StepMotion& motion, bool felt, JointForces& forces, Visit visit) {
  ForceClamps& clamps = forces.clamps;
  std::fill(clamps.sums.begin(), clamps.sums.end(), 0.0);
  std::fill(clamps.moved.begin(), clamps.moved.end(), 0);
  for (int k = 0; k < model.nu; ++k) {
    const Actuator& actuator = model.actuators[k];
    if (!may_act_at_end(actuator)) {
      add_coupled_force(model, k, forces);
      continue;
    }
    const bool limited = is_limited(model, actuator.joint);
    if (!actuator.force_limited && !limited) continue;
    const bool moves = clamps.by_speed[k] != 0 || (motion.rule == ForcesAtEnd::positions && clamps.by_length[k] != 0);
    double force = force_at_end(model, motion, k, forces);
    if (actuator.force_limited) {
      const double lower = actuator.force_range[0];
      const double upper = actuator.force_range[1];
      const bool hidden = felt && clamps.joints[actuator.joint] != ForceBound::none;
      if (moves && !hidden && visit(clamps.actuators[k], force, lower, upper)) return;
      force = std::clamp(force, lower, upper);
    }
    clamps.sums[actuator.joint] += actuator.gear[0] * force;
    if (moves) clamps.moved[actuator.joint] = 1;
  }

  // Sums of hinges and slides.
  for (int j = 0; j < model.num_joints; ++j)
    if (clamps.moved[j] && is_limited(model, j) &&
        visit(clamps.joints[j], clamps.sums[j], model.joint_actuator_lower[j], model.joint_actuator_upper[j]))
      return;
}

}  // namespace

ForceClamps::ForceClamps(const Model& model)
    : actuators(model.nu), joints(model.num_joints), force(model.nu), by_speed(model.nu), by_length(model.nu),
      sums(model.num_joints), moved(model.num_joints) {}

ForceBound bound_of(double force, double lower, double upper) {
  if (force < lower) return ForceBound::lower;
  return force > upper ? ForceBound::upper : ForceBound::none;
}

bool judge_clamps_at_end(const Model& model, const StepMotion& motion, ClampRule rule, JointForces& forces) {
  if (!forces.clamps.any || motion.rule == ForcesAtEnd::none) return false;
  bool changed = false;
  const bool felt = rule != ClampRule::at_once;
  visit_forces(model, motion, felt, forces, [&](ForceBound& bound, double force, double lower, double upper) {
    const ForceBound now = judge(bound, force, lower, upper, rule);
    changed = changed || now != bound;
    bound = now;
    return changed && rule == ClampRule::one_by_one;
  });
  return changed;
}

bool clamps_hold(const Model& model, const StepMotion& motion, JointForces& forces) {
  if (!forces.clamps.any || motion.rule == ForcesAtEnd::none) return true;
  bool hold = true;
  visit_forces(model, motion, true, forces, [&](ForceBound& bound, double force, double lower, double upper) {
    hold = judge(bound, force, lower, upper, ClampRule::by_turns) == bound;
    return !hold;
  });
  return hold;
}

const char* clamp_limit_reason(const ForceClamps& clamps) {
  return clamps.unsettled ? "force_bounds: no choice of servos at the bounds of their force was found that agrees with "
                            "the motion; the last one was used: take a shorter step"
                          : nullptr;
}

bool any_clamp_is_tied(const Model& model, const StepMotion& motion, JointForces& forces) {
  if (!forces.clamps.any || motion.rule == ForcesAtEnd::none) return false;
  bool tied = false;
  visit_forces(model, motion, true, forces, [&](ForceBound&, double force, double lower, double upper) {
    tied = tied || is_at(force, lower) || is_at(force, upper);
    return tied;
  });
  return tied;
}

}  // namespace coulomb
