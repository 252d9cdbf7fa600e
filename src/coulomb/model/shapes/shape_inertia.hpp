// Volume, centre and inertia of solid shapes of unit density.
#pragma once

#include "coulomb/scene_parts.hpp"

namespace coulomb {

struct MassProperties {
  double mass = 0;
  Vec3 com{0, 0, 0};
  std::array<double, 6> inertia{};  ///< Ixx Ixy Iyy Ixz Iyz Izz about the com
};

/// Size as in Model::geometry_size; mesh only for ShapeType::mesh. Density 1 kg/m^3.
MassProperties solid_properties(ShapeType type, const Vec3& size, const ConvexMesh* mesh);

}  // namespace coulomb
