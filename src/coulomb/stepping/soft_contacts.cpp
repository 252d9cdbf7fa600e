#include "coulomb/stepping/soft_contacts.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

#include "coulomb/constraints/one_sided_spring.hpp"
#include "coulomb/model.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/stepping/step_options.hpp"

namespace coulomb {
namespace {

/// One pair, in words.
class PairCheck {
 public:
  PairCheck(const Model& model, std::size_t pair)
      : penalty_(model.pair_penalty[pair]), a_(model.pair_a[pair]), b_(model.pair_b[pair]), model_(model), pair_(pair) {
  }

  /// Contact as forces has another damper: that of a geometry, or the one of all pairs that somebody gave.
  void as_forces() const {
    if (penalty_.curve.inertia > 0)
      refuse("softness=\"file\"",
             "MuJoCo's law of contact has no counterpart in contact \"penalty\" and implicit "
             "steppers: choose contact \"ncp\" or \"lcp\", or load without it");
    const double usual = PenaltyDefaults{}.damping;
    if (has_dashpot() && !penalty_.damping && model_.penalty.damping == usual)
      refuse("contact_dashpot",
             "has no influence with contact \"penalty\", which damps by contact_damping (N s/m^2): give one of the two "
             "geometries that too, or the simulator another one than the usual " +
                 checks::text(usual));
  }

  /// Contact as a row of the constraint problem.
  void as_row(bool splits_at_impacts, double timestep) const {
    if (!penalty_.stiffness) return;
    const double e = model_.pair_restitution[pair_];
    const double compliance = model_.pair_compliance[pair_];

    // What bounces by its spring has no coefficient of restitution, and one law is enough.
    if (splits_at_impacts)
      refuse(stiffness(),
             "steps split at impacts know rigid contact only: leave continuous_collision out, or build the scene "
             "without contact_stiffness");
    if (e > 0)
      refuse(stiffness_with("restitution", e),
             "a soft contact bounces by its spring and contact_dashpot: set restitution 0");
    if (compliance > 0)
      refuse(stiffness_with("compliance", compliance), "a contact gives way by one of the two: set compliance 0");

    // Nothing would carry, or damp.
    if (!(penalty_.scale > 0))
      refuse(stiffness_with("contact_scale", 0), "this contact could carry nothing: set contact_scale > 0");
    if (penalty_.damping && !has_dashpot())
      refuse(
          stiffness_with("contact_damping", *penalty_.damping),
          "contact_damping (N s/m^2) is that of contact \"penalty\"; here the damper is contact_dashpot (N s/m): give "
          "that too, 0 for none");

    // So soft that how far it gives way cannot be written.
    if (!std::isfinite(contact_compliance(model_, static_cast<int>(pair_), timestep)))
      refuse(stiffness(), "1 / (h (h k + d)) exceeds double precision at timestep " + checks::text(timestep) +
                              ": make contact_stiffness or contact_scale larger");
  }

 private:
  bool has_dashpot() const {
    return penalty_.dashpot > 0 || model_.geometry_materials[a_].penalty.dashpot ||
           model_.geometry_materials[b_].penalty.dashpot;
  }
  std::string stiffness() const { return "contact_stiffness " + checks::text(*penalty_.stiffness); }
  std::string stiffness_with(const char* what, double value) const {
    return stiffness() + " with " + what + " " + checks::text(value);
  }
  [[noreturn]] void refuse(const std::string& what, const std::string& why) const {
    throw std::invalid_argument(what + " of '" + model_.geometry_names[a_] + "' and '" + model_.geometry_names[b_] +
                                "': " + why);
  }

  const PairPenalty& penalty_;
  int a_;
  int b_;
  const Model& model_;
  std::size_t pair_;
};

/// Limits of one joint.
void check_soft_limit(const Model& model, int joint, const OneSidedSpring& spring, const StepOptions& options) {
  const std::string what =
      "joint_limit_stiffness " + checks::text(spring.stiffness) + " of joint '" + model.joint_names[joint] + "'";
  if (options.impacts.enabled)
    throw std::invalid_argument(what +
                                ": steps split at impacts support rigid limits only: leave continuous_collision "
                                "out, or build the scene without it");
  if (options.constraints.contact == ContactLaw::penalty && model.joint_limit_curve[joint].inertia > 0)
    throw std::invalid_argument(what +
                                ": softness=\"file\" has no counterpart in contact \"penalty\" and implicit steppers: "
                                "choose contact \"ncp\" or \"lcp\", or load without it");
  const double h = options.constraints.timestep;
  if (!std::isfinite(spring_row(spring, h, 0, 0).compliance))
    throw std::invalid_argument(what + ": 1 / (h (h k + d)) exceeds double precision at timestep " + checks::text(h) +
                                ": make it larger");
}

/// Equalities, tendons and dry friction, which only a file makes soft.
void check_soft_row(const std::string& what, const RowSpring& law, const StepOptions& options) {
  if (!law.acts()) return;
  if (options.impacts.enabled)
    throw std::invalid_argument("softness=\"file\" of " + what +
                                ": steps split at impacts support rigid constraints only: leave "
                                "continuous_collision out, or load without it");
  if (options.constraints.contact == ContactLaw::penalty)
    throw std::invalid_argument("softness=\"file\" of " + what +
                                ": has no counterpart in contact \"penalty\" and implicit steppers: choose contact "
                                "\"ncp\" or \"lcp\", or load without it");
  const double h = options.constraints.timestep;
  if (!std::isfinite(two_sided_row(at_depth(law, 0), h, 0, 0).compliance))
    throw std::invalid_argument("softness=\"file\" of " + what +
                                ": so soft that 1 / (h (h k + d + m / h)) exceeds double "
                                "precision at timestep " +
                                checks::text(h) + ": load without it");
}

}  // namespace

void check_soft_limits(const Model& model, const StepOptions& options) {
  for (int j = 0; j < model.num_joints; ++j)
    if (const auto spring = limit_spring(model, j, 0)) check_soft_limit(model, j, *spring, options);
  for (const Equality& equality : model.equalities)
    check_soft_row("equality '" + equality.name + "'", equality.spring, options);
  for (const Tendon& tendon : model.tendons) {
    check_soft_row("the limits of tendon '" + tendon.name + "'", tendon.limit_spring, options);
    check_soft_row("the dry friction of tendon '" + tendon.name + "'", tendon.friction_spring, options);
  }
  for (int d = 0; d < model.nv; ++d)
    check_soft_row("the dry friction of joint '" + model.joint_names[model.dof_joint[d]] + "'",
                   model.dof_friction_spring[d], options);
}

void check_soft_contacts(const Model& model, const StepOptions& options) {
  for (std::size_t pair = 0; pair < model.pair_a.size(); ++pair) {
    const PairCheck check(model, pair);
    if (options.constraints.contact == ContactLaw::penalty)
      check.as_forces();
    else
      check.as_row(options.impacts.enabled, options.constraints.timestep);
  }
}

}  // namespace coulomb
