// Building the surfaces of a model: from triangles, or from the heights of a field.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "coulomb/model.hpp"

namespace coulomb {

/// Half-spaces and surfaces: what bodies stand on, whose faces carry the normals of all contacts with them.
inline bool is_ground(ShapeType type) { return type == ShapeType::half_space || type == ShapeType::surface; }

/// Bits of TriangleSurface::features. Every edge and every corner is listed by one of its triangles.
namespace surface_feature {
constexpr std::uint8_t edge(int k) {
  return static_cast<std::uint8_t>(1u << k);
}  ///< edge (k, k + 1): convex, or the border
constexpr std::uint8_t corner(int k) {
  return static_cast<std::uint8_t>(1u << (3 + k));
}  ///< corner k: the end of such an edge
}  // namespace surface_feature

/// vertices: 3 n, metres; triangles: 3 m indices, counter-clockwise seen from outside. Throws std::invalid_argument, naming `what` and the
/// element, for a triangle without an area and for an edge of more than two triangles, or of two that face opposite sides.
std::shared_ptr<const TriangleSurface> make_triangle_surface(const std::vector<double>& vertices,
                                                             const std::vector<int>& triangles,
                                                             const std::string& what);

/// Walls below the border and a floor close the solid: what comes from the side meets a wall, not the inside of the ground. Their vertices
/// follow those of the grid.
std::shared_ptr<const TriangleSurface> make_height_field(const HeightField& field, const std::string& what);

/// The same surface with other vertices; its triangles stay. Throws as above.
std::shared_ptr<const TriangleSurface> move_surface(const TriangleSurface& surface, const std::vector<double>& vertices,
                                                    const std::string& what);

}  // namespace coulomb
