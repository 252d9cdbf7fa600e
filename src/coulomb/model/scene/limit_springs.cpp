#include "coulomb/model/scene/limit_springs.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "coulomb/model/checks.hpp"
#include "coulomb/model/name_hints.hpp"

namespace coulomb {
namespace {

constexpr double infinity = JointPart::infinity;

/// The interval, of which a side may be open.
void set_range(const std::string& what, const JointLimitOptions& options, JointPart& joint) {
  if (!options.lower && !options.upper) return;
  const bool ball = joint.type == JointType::ball;
  if (ball && options.lower) checks::fail(what + " lower", "a ball has a largest angle only: upper");
  if (!joint.limited) {
    joint.lower = ball ? 0 : -infinity;
    joint.upper = infinity;
  }
  joint.limited = true;
  joint.lower = options.lower.value_or(joint.lower);
  joint.upper = options.upper.value_or(joint.upper);
  if (ball) checks::positive(what + " upper", joint.upper);

  // A point is an interval, too.
  if (!(joint.lower <= joint.upper))
    checks::fail(what,
                 "lower " + checks::text(joint.lower) + " and upper " + checks::text(joint.upper) + " leave no room");
}

/// A number that may be infinite.
bool is_rigid(double stiffness) { return stiffness == infinity; }

void set_spring(const std::string& what, const JointLimitOptions& options, JointPart& joint) {
  if (options.stiffness) {
    joint.limit_softness.reset();
    if (!is_rigid(*options.stiffness)) checks::positive(what + " stiffness", *options.stiffness);
    joint.limit_stiffness = is_rigid(*options.stiffness) ? 0 : *options.stiffness;
    if (is_rigid(*options.stiffness)) joint.limit_dashpot = 0;
  }
  if (options.dashpot) {
    checks::not_negative(what + " dashpot", *options.dashpot);
    if (*options.dashpot > 0 && !(joint.limit_stiffness > 0))
      checks::fail(what + " dashpot",
                   checks::text(*options.dashpot) + " needs a stiffness: a rigid limit does not move");
    joint.limit_dashpot = *options.dashpot;
  }
}

/// The value for one joint; none where the dict does not name it.
std::optional<double> value_of(const JointGains& values, const std::string& joint) {
  const auto it = values.of_joint.find(joint);
  return it != values.of_joint.end() ? std::optional(it->second) : values.all;
}

void check_names(const std::string& what, const JointGains& values, const std::vector<std::string>& limited) {
  for (const auto& entry : values.of_joint)
    if (std::find(limited.begin(), limited.end(), entry.first) == limited.end())
      checks::fail(what + " of '" + entry.first + "'", no_such("joint with limits", entry.first, limited, "the robot"));
}

}  // namespace

JointPart with_limits(const std::string& what, JointPart joint, const JointLimitOptions& options) {
  if (joint.type == JointType::free) checks::fail(what, "a free joint has no limits");
  set_range(what, options, joint);
  const bool springs = options.stiffness || options.dashpot;
  if (springs && !joint.limited) checks::fail(what, "the joint has no limits: give lower or upper");
  set_spring(what, options, joint);
  return joint;
}

void set_limit_springs(const std::string& verb, const LimitSprings& limits, SceneParts& parts) {
  if (!limits.stiffness.given() && !limits.dashpot.given()) return;
  std::vector<std::string> limited;
  for (const JointPart& joint : parts.joints)
    if (joint.limited) limited.push_back(joint.name);
  check_names(verb + " limit_stiffness", limits.stiffness, limited);
  check_names(verb + " limit_dashpot", limits.dashpot, limited);

  for (JointPart& joint : parts.joints) {
    if (!joint.limited) continue;
    JointLimitOptions own;
    own.stiffness = value_of(limits.stiffness, joint.name);
    own.dashpot = value_of(limits.dashpot, joint.name);
    joint = with_limits(verb + " limits of '" + joint.name + "'", joint, own);
  }
}

}  // namespace coulomb
