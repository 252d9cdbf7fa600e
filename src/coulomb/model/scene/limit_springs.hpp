// Joint limits as the verbs of a Scene set them.
#pragma once

#include <string>

#include "coulomb/scene.hpp"

namespace coulomb {

/// The limits of the joint with these changes. Throws std::invalid_argument, after `what`, for what no limit can be.
JointPart with_limits(const std::string& what, JointPart joint, const JointLimitOptions& options);

/// Gives the limits of a robot's joints their springs; `verb` is what messages begin with.
void set_limit_springs(const std::string& verb, const LimitSprings& limits, SceneParts& parts);

}  // namespace coulomb
