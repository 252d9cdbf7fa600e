#include "coulomb/stepping/simulator_options.hpp"

#include <cmath>
#include <stdexcept>
#include <utility>

#include "coulomb/dynamics/joint_forces.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/model/tendon.hpp"
#include "coulomb/stepping/soft_contacts.hpp"
#include "coulomb/stepping/steppers.hpp"

namespace coulomb {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

/// A number within [low, high], or (low, high].
void check_range(const char* name, double value, double low, double high, bool open_low) {
  const bool above = open_low ? value > low : value >= low;
  const bool ok = std::isfinite(value) && value <= high && above;
  if (ok) return;
  const std::string bracket = open_low ? "(" : "[";
  const std::string range = bracket + number_text(low) + ", " + number_text(high) + "]";
  refuse(std::string(name) + ": got " + number_text(value) + ", expected a number in " + range);
}

void check_least(const char* name, int value, int least) {
  if (value >= least) return;
  const std::string got = ": got " + std::to_string(value);
  refuse(name + got + ", expected at least " + std::to_string(least));
}

// Names of methods, gradients and laws.

SolverMethod solver_method(const std::string& name) {
  if (name == "automatic" || name == "auto") return SolverMethod::automatic;
  if (name == "ac_lm") return SolverMethod::ac_lm;
  if (name == "admm") return SolverMethod::admm;
  if (name == "pgs") return SolverMethod::pgs;
  if (name == "dantzig") return SolverMethod::dantzig;
  refuse("solver: got \"" + name + "\", expected \"auto\", \"ac_lm\", \"admm\", \"pgs\" or \"dantzig\"");
}

GradientMode gradient_mode(const std::string& name) {
  if (name == "exact") return GradientMode::exact;
  if (name == "complementarity_aware") return GradientMode::complementarity_aware;
  if (name == "approximate_bounce") return GradientMode::approximate_bounce;
  if (name == "smoothed_collision") return GradientMode::smoothed_collision;
  if (name == "smoothed_step") return GradientMode::smoothed_step;
  if (name == "from_distance") return GradientMode::from_distance;
  refuse("gradient: got \"" + name +
         "\", expected \"exact\", \"complementarity_aware\", \"approximate_bounce\", \"smoothed_collision\", "
         "\"smoothed_step\" or \"from_distance\"");
}

/// Of those with this name the first.
const Stepper& known_stepper(const std::string& name) {
  if (const Stepper* stepper = stepper_named(name)) return *stepper;
  const std::vector<std::string> names = stepper_names();
  std::string expected;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool last = i + 1 == names.size();
    if (i > 0) {
      expected += last ? " or " : ", ";
    }
    expected += "\"" + names[i] + "\"";
  }
  refuse("stepper: got \"" + name + "\", expected " + expected);
}

/// What is left to the stepper: hard contact, or springs.
ContactLaw contact_law(const std::string& name, const Stepper& stepper) {
  if (name == "automatic" || name == "auto") return stepper.usual_contact();
  if (name == "ncp") return ContactLaw::cone;
  if (name == "penalty") return ContactLaw::penalty;
  if (name == "lcp") return ContactLaw::pyramid;
  refuse("contact: got \"" + name + "\", expected \"auto\", \"ncp\", \"lcp\" or \"penalty\"");
}

/// Springs in the place of constraints, and Newton's method.
ImplicitOptions implicit_options(const SimulatorOptions& o) {
  ImplicitOptions out;
  check_range("limit_stiffness", o.limit_stiffness, 0, 1e15, true);
  check_range("limit_damping", o.limit_damping, 0, 1e15, false);
  check_range("equality_stiffness", o.equality_stiffness, 0, 1e15, true);
  check_range("equality_damping", o.equality_damping, 0, 1e15, false);
  check_range("dry_friction_velocity", o.dry_friction_velocity, 0, 1e3, true);
  check_least("newton_iterations", o.newton_iterations, 1);
  const bool halvings_ok = o.newton_halvings >= 0 && o.newton_halvings <= 16;
  if (!halvings_ok) {
    refuse("newton_halvings: got " + std::to_string(o.newton_halvings) + ", expected 0 to 16");
  }

  out.tolerance = o.tolerance;
  out.max_iterations = o.newton_iterations;
  out.max_halvings = o.newton_halvings;

  // The springs.
  out.limit_stiffness = o.limit_stiffness;
  out.limit_damping = o.limit_damping;
  out.equality_stiffness = o.equality_stiffness;
  out.equality_damping = o.equality_damping;
  out.dry_friction_velocity = o.dry_friction_velocity;
  return out;
}

/// What the stepper does not know: hard contact, impacts, gradients.
void check_stepper(const Model& model, const SimulatorOptions& o, const StepOptions& options) {
  const Stepper& stepper = *options.stepper;
  const bool penalty = options.constraints.contact == ContactLaw::penalty;

  // Springs know one law of contact; without a pair it does not matter.
  const bool may_touch = !model.pair_a.empty();
  if (stepper.has_springs() && !penalty && may_touch) {
    refuse("contact: got \"" + o.contact + "\" with stepper \"" + o.stepper +
           "\", expected \"penalty\": implicit steppers know no other contact, and this model has geometries that can "
           "touch");
  }

  // Impacts.
  if (options.impacts.enabled && !stepper.splits_at_impacts()) {
    const std::string contact = contact_name(options.constraints.contact);
    const std::string with = "with stepper \"" + o.stepper + "\" and contact \"" + contact + "\"";
    refuse("continuous_collision: got true, expected false " + with);
  }

  for (const Tendon& tendon : model.tendons)
    if (options.impacts.enabled && (tendon.limited || has_own_forces(tendon)))
      refuse("continuous_collision: got true, expected false with tendon '" + tendon.name +
             "': split steps know no limits, springs, dampers, armature and dry friction of tendons");
  if (options.impacts.enabled && !actuator_ties(model).empty())
    refuse("continuous_collision: got true, expected false: an actuator of this model ties several robots");
  for (const Tendon& tendon : model.tendons)
    if (tendon.armature > 0 && (stepper.has_springs() || penalty))
      refuse((penalty ? "contact: got \"" + o.contact : "stepper: got \"" + o.stepper) + "\" with tendon '" +
             tendon.name +
             "', whose armature it does not know: expected stepper \"semi_implicit\" and contact \"ncp\"");

  // Gradients.
  if (stepper.has_gradient(options.gradient.mode)) return;
  if (options.impacts.enabled) {
    refuse("gradient: \"" + o.gradient + "\" is not available with continuous_collision");
  }

  // Whether the stepper has brought springs, or the law of contact.
  const bool own = stepper.usual_contact() == ContactLaw::penalty;
  const std::string with = own ? "stepper \"" + o.stepper : "contact \"penalty";
  refuse("gradient: got \"" + o.gradient + "\", expected \"exact\" with " + with + "\"");
}

/// An option that has no influence on the simulator that is asked for is a mistake: refused, unless it is as it is by default.
void check_used(const SimulatorOptions& o, const StepOptions& out) {
  // What is there, and what the option would need.
  const SimulatorOptions unset;
  const ContactLaw law = out.constraints.contact;
  const bool springs = out.stepper->has_springs();
  const bool one_method = out.solver.method != SolverMethod::automatic;
  const GradientMode mode = out.gradient.mode;
  const bool smoothed = mode == GradientMode::smoothed_collision || mode == GradientMode::smoothed_step;

  const auto only = [](const char* option, bool changed, bool used, const char* with) {
    if (changed && !used)
      refuse(std::string(option) + ": has no influence here, it belongs to " + with + "; leave it out");
  };

  // The friction pyramid.
  const char* const lcp = "contact \"lcp\"";
  only("friction_directions", o.friction_directions != unset.friction_directions, law == ContactLaw::pyramid, lcp);
  only("friction_polygon", o.friction_polygon != unset.friction_polygon, law == ContactLaw::pyramid, lcp);

  // Springs, and the method that solves for them.
  const char* const of_springs = "implicit steppers and contact \"penalty\"";
  only("limit_stiffness", o.limit_stiffness != unset.limit_stiffness, springs, of_springs);
  only("limit_damping", o.limit_damping != unset.limit_damping, springs, of_springs);
  only("equality_stiffness", o.equality_stiffness != unset.equality_stiffness, springs, of_springs);
  only("equality_damping", o.equality_damping != unset.equality_damping, springs, of_springs);
  only("dry_friction_velocity", o.dry_friction_velocity != unset.dry_friction_velocity, springs, of_springs);
  only("newton_iterations", o.newton_iterations != unset.newton_iterations, springs, of_springs);
  only("newton_halvings", o.newton_halvings != unset.newton_halvings, springs, of_springs);

  // Hard constraints, and the methods that solve them.
  const char* const hard = "the semi-implicit stepper with contact \"ncp\" or \"lcp\"";
  only("solver", out.solver.method != SolverMethod::automatic, !springs, hard);
  only("max_iterations", o.max_iterations != unset.max_iterations, !springs && one_method,
       "a solver by itself (\"ac_lm\", \"admm\", \"pgs\", \"dantzig\")");
  only("baumgarte", o.baumgarte != unset.baumgarte, !springs, hard);
  only("slop", o.slop != unset.slop, !springs, hard);
  only("max_correction_speed", o.max_correction_speed != unset.max_correction_speed, !springs, hard);
  only("restitution_threshold", o.restitution_threshold != unset.restitution_threshold, !springs, hard);

  // Steps split at impacts, and gradients other than the exact one.
  only("max_impacts", o.max_impacts != unset.max_impacts, o.continuous_collision, "continuous_collision=True");
  only("penetration_tolerance", o.penetration_tolerance != unset.penetration_tolerance, o.continuous_collision,
       "continuous_collision=True");

  const char* const averages = "gradient \"smoothed_collision\" and \"smoothed_step\"";
  only("gradient_samples", o.gradient_samples != unset.gradient_samples, smoothed, averages);
  only("gradient_scale", o.gradient_scale != unset.gradient_scale, smoothed || mode == GradientMode::from_distance,
       "gradient \"smoothed_collision\", \"smoothed_step\" and \"from_distance\"");
  only("gradient_seed", o.gradient_seed != unset.gradient_seed, smoothed, averages);
  only("tie_margin", o.tie_margin != unset.tie_margin, mode == GradientMode::complementarity_aware,
       "gradient \"complementarity_aware\"");
}

/// The step's definition: time step, law of contact, stabilisation.
ConstraintOptions constraint_options(const Model& model, const SimulatorOptions& o) {
  ConstraintOptions out;
  out.timestep = o.timestep == 0 ? model.timestep : o.timestep;
  check_range("timestep", out.timestep, 0, 1, true);
  if (out.timestep < 1e-9) {
    refuse("timestep: got " + number_text(out.timestep) + ", expected at least 1e-9 s");
  }

  // The law of contact, and its polygon.
  out.contact = contact_law(o.contact, known_stepper(o.stepper));
  if (o.friction_directions < 2 || o.friction_directions > max_facets / 2)
    refuse("friction_directions: got " + std::to_string(o.friction_directions) + ", expected 2 to " +
           std::to_string(max_facets / 2));
  out.friction_directions = o.friction_directions;
  out.inscribed_polygon = o.friction_polygon == "inscribed";
  if (o.friction_polygon != "circumscribed" && o.friction_polygon != "inscribed")
    refuse("friction_polygon: got \"" + o.friction_polygon + "\", expected \"circumscribed\" or \"inscribed\"");

  // How errors are corrected, and what bounces.
  check_range("tolerance", o.tolerance, 0, 1e-2, true);
  check_range("baumgarte", o.baumgarte, 0, 1, false);
  check_range("slop", o.slop, 0, 1, false);
  check_range("max_correction_speed", o.max_correction_speed, 0, 1e6, true);
  check_range("restitution_threshold", o.restitution_threshold, 0, 1e6, false);
  check_least("max_iterations", o.max_iterations, 1);
  out.baumgarte = o.baumgarte;
  out.slop = o.slop;
  out.max_correction_speed = o.max_correction_speed;
  out.restitution_threshold = o.restitution_threshold;
  return out;
}

/// The implicit spin is torque-free; implicit steppers know no other.
bool torque_free_spin(const SimulatorOptions& o, const Stepper& stepper) {
  if (o.gyroscopic != "implicit" && o.gyroscopic != "explicit")
    refuse("gyroscopic: got \"" + o.gyroscopic + "\", expected \"implicit\" or \"explicit\"");
  if (o.gyroscopic == "explicit" && stepper.dynamics_at() == StepPoint::end)
    refuse("gyroscopic: got \"explicit\" with stepper \"" + o.stepper +
           "\", expected \"implicit\": only the semi-implicit stepper knows another one");
  return o.gyroscopic == "implicit";
}

/// What of actuators and joint springs is implicit; implicit steppers take all of it at the end.
ForcesAtEnd forces_at_end(const SimulatorOptions& o, const Stepper& stepper) {
  const std::string& rule = o.joint_forces;
  if (rule != "implicit_velocity" && rule != "implicit" && rule != "explicit")
    refuse("joint_forces: got \"" + rule + "\", expected \"implicit_velocity\", \"implicit\" or \"explicit\"");
  if (rule != "implicit_velocity" && stepper.dynamics_at() == StepPoint::end)
    refuse("joint_forces: has no influence here, stepper \"" + o.stepper +
           "\" takes all forces at the end of the step; leave it out");
  if (rule == "explicit") return ForcesAtEnd::none;
  return rule == "implicit" ? ForcesAtEnd::positions : ForcesAtEnd::speeds;
}

/// Steps split at impacts.
ImpactStepOptions impact_options(const SimulatorOptions& o) {
  ImpactStepOptions out;
  check_range("penetration_tolerance", o.penetration_tolerance, 0, 1, true);
  check_least("max_impacts", o.max_impacts, 1);
  out.enabled = o.continuous_collision;
  out.max_impacts = o.max_impacts;
  out.penetration_tolerance = o.penetration_tolerance;
  return out;
}

/// The method, and how far it goes.
SolverSettings solver_settings(const SimulatorOptions& o, const ConstraintOptions& constraints) {
  SolverSettings out;
  out.method = solver_method(o.solver);
  const bool boxed = constraints.contact == ContactLaw::pyramid && o.friction_directions == 2;
  if (out.method == SolverMethod::dantzig && (!boxed || constraints.inscribed_polygon))
    refuse(
        "solver: \"dantzig\" solves boxed LCPs: it needs contact \"lcp\", friction_directions 2 and the circumscribed "
        "polygon");
  out.tolerance = o.tolerance;
  out.max_iterations = o.max_iterations;
  return out;
}

/// Which derivative a step returns.
GradientOptions gradient_options(const SimulatorOptions& o) {
  GradientOptions out;
  out.mode = gradient_mode(o.gradient);
  check_least("gradient_samples", o.gradient_samples, 1);
  check_range("gradient_scale", o.gradient_scale, 0, 1, true);
  check_range("tie_margin", o.tie_margin, 0, 1e6, false);
  out.tie_margin = o.tie_margin;
  out.samples = o.gradient_samples;
  out.scale = o.gradient_scale;
  out.seed = o.gradient_seed;
  return out;
}

}  // namespace

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

const char* contact_name(ContactLaw law) {
  return law == ContactLaw::cone ? "ncp" : law == ContactLaw::pyramid ? "lcp" : "penalty";
}

StepOptions step_options(const Model& model, const SimulatorOptions& o) {
  StepOptions out;
  out.constraints = constraint_options(model, o);
  out.impacts = impact_options(o);
  out.stepper = &fitting_stepper(o.stepper, out);
  out.torque_free_spin = torque_free_spin(o, *out.stepper);
  out.forces_at_end = forces_at_end(o, *out.stepper);
  out.collision.stateless = !o.patches;
  out.solver = solver_settings(o, out.constraints);
  out.warm_start = o.warm_start;
  out.gradient = gradient_options(o);
  out.implicit = implicit_options(o);

  // What does not go together, and what would have no effect.
  check_stepper(model, o, out);
  check_used(o, out);
  check_soft_contacts(model, out);
  check_soft_limits(model, out);
  return out;
}

std::shared_ptr<const Model> with_penalty_options(std::shared_ptr<const Model> model, SimulatorOptions& o) {
  if (!model) refuse("model: got a null pointer");

  // Hard contact knows that of geometries only.
  if (contact_law(o.contact, known_stepper(o.stepper)) != ContactLaw::penalty) {
    const char* const why = ": has no influence here, it belongs to contact \"penalty\"; leave it out";
    if (o.contact_stiffness)
      refuse(std::string("contact_stiffness") + why + ", or give geometries their own (Scene.set_contact)");
    if (o.contact_damping) {
      refuse(std::string("contact_damping") + why);
    }
    if (o.contact_friction_stiffness) {
      refuse(std::string("contact_friction_stiffness") + why);
    }
    return model;
  }

  // Values of the options replace those of the model, and are used up.
  const auto given = [](std::optional<double>& option, double now) { return std::exchange(option, {}).value_or(now); };
  const PenaltyDefaults& own = model->penalty;
  const PenaltyDefaults wanted{given(o.contact_stiffness, own.stiffness), given(o.contact_damping, own.damping),
                               given(o.contact_friction_stiffness, own.friction_stiffness)};
  checks::positive("contact_stiffness", wanted.stiffness);
  checks::not_negative("contact_damping", wanted.damping);
  checks::not_negative("contact_friction_stiffness", wanted.friction_stiffness);

  // The model is shared where nothing changes.
  if (wanted.stiffness == own.stiffness && wanted.damping == own.damping &&
      wanted.friction_stiffness == own.friction_stiffness)
    return model;
  auto out = std::make_shared<Model>(*model);
  out->penalty = wanted;
  return out;
}

}  // namespace coulomb
