// RobotDescription to SceneParts: what the URDF loader and Scene::add_robot share.
#pragma once

#include "coulomb/robot_description.hpp"
#include "coulomb/scene.hpp"

namespace coulomb {

/// Which frames are kept as sites: links that a fixed joint welds to a body, or all.
enum class FramesKept : std::uint8_t { links, all };

/// Joints become bodies in depth-first order; fills one PinocchioMap. Throws std::invalid_argument that opens with the description's
/// source and names the element.
SceneParts robot_parts(const RobotDescription& robot, const RobotOptions& options, bool self_collision,
                       FramesKept frames);

}  // namespace coulomb
