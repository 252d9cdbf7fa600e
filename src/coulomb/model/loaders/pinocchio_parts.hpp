// pinocchio::Model and GeometryModel to SceneParts. For the two loaders only: nothing else includes Pinocchio.
#pragma once

#include <pinocchio/geometry.hpp>
#include <pinocchio/multibody.hpp>

#include "coulomb/scene.hpp"

namespace coulomb {

/// Which frames of a pin model are kept as sites: links that a fixed joint welds to a body, or also frames of joints and operational ones.
enum class FramesKept : std::uint8_t { links, all };

/// Joints become bodies in depth-first order; fills one PinocchioMap. geometry may be null. `source` opens error messages.
SceneParts pinocchio_parts(const pinocchio::Model& model, const pinocchio::GeometryModel* geometry,
                           const PinocchioOptions& options, bool self_collision, FramesKept frames,
                           const std::string& source);

}  // namespace coulomb
