// What a Scene takes from loaders, its own and others': indices lead somewhere, numbers are finite and in their range.
#pragma once

#include <string>

#include "coulomb/scene_parts.hpp"

namespace coulomb {

/// Throws std::invalid_argument that names robot, element and value. The order of bodies and joints is left to finalize_topology, masses and
/// inertias of what moves to check_inertia.
void check_parts(const std::string& robot, const SceneParts& parts);

}  // namespace coulomb
