// Reads URDF by urdfdom, which stays in the .cpp.
#pragma once

#include <string>

#include "coulomb/scene.hpp"

namespace coulomb {

/// A path, or XML text (first character '<'). `name`: out, the robot's name if it comes in empty.
/// Throws std::invalid_argument naming file and element.
SceneParts read_urdf(const std::string& path_or_xml, const UrdfOptions& options, std::string& name);

}  // namespace coulomb
