// StepOptions: everything that defines a step besides the model: numbers and the stepper. Simulator derives them from
// SimulatorOptions.
#pragma once

#include <cstdint>

#include "coulomb/collision/collision_options.hpp"
#include "coulomb/constraints/constraint_options.hpp"
#include "coulomb/dynamics/joint_forces.hpp"
#include "coulomb/solvers/constraint_problem.hpp"
#include "coulomb/stepping/gradients/gradient_options.hpp"

namespace coulomb {

class Stepper;

/// Steps that are split at impacts (continuous_collision).
struct ImpactStepOptions {
  bool enabled = false;
  int max_impacts = 32;  ///< per step; beyond, impacts lose their restitution, then bodies wait for the next step
  double penetration_tolerance = 1e-5;  ///< m: touching bodies may sink this deep within a step
};

/// Newton's method of the implicit steppers, and the springs that constraints are there (implicit_springs.hpp; also with penalty contact).
struct ImplicitOptions {
  double tolerance = 1e-10;  ///< of the residual, relative to its terms
  int max_iterations = 50;
  int max_halvings = 8;                 ///< of the step where Newton fails
  double limit_stiffness = 1e4;         ///< k of joint limits: N/m, N m/rad
  double limit_damping = 1e3;           ///< d of joint limits: N s/m^2, N m s/rad^2
  double equality_stiffness = 1e6;      ///< k of equalities: N/m, N m/rad
  double equality_damping = 1e3;        ///< d of equalities: N s/m, N m s/rad
  double dry_friction_velocity = 1e-3;  ///< v_s: m/s, rad/s
};

struct StepOptions {
  const Stepper* stepper = nullptr;  ///< that takes these steps; chosen with the options
  ConstraintOptions constraints;
  CollisionOptions collision;
  SolverSettings solver;
  bool warm_start = true;
  ImpactStepOptions impacts;
  ImplicitOptions implicit;
  GradientOptions gradient;
  bool torque_free_spin =
      true;  ///< of free and ball joints (dynamics/spin.hpp); false: their gyroscopic torque is that at v
  ForcesAtEnd forces_at_end = ForcesAtEnd::speeds;  ///< what of actuators and springs is implicit
  bool keep_steps = false;                          ///< steps leave in their record what Stepper::keep writes
};

}  // namespace coulomb
