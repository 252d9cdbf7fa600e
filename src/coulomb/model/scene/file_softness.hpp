// MuJoCo's softness as springs: its contacts and joint limits act as a spring, a dashpot and a mass that moves with the surface,
// docs/conventions.md, "The softness of MJCF files".
#pragma once

#include "coulomb/scene_parts.hpp"

namespace coulomb {

struct NeutralInertia;

/// Springs of the pairs and joint limits whose parts have a softness. After set_constraint_weights.
void set_file_softness(const SceneParts& parts, const NeutralInertia& neutral, Model& model);

}  // namespace coulomb
