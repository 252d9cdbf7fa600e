// Building the convex meshes of a model: from the triangles of a hull, or from a cloud of points.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "coulomb/model.hpp"

namespace coulomb {

/// Directions fall into cells of a cube's sides, direction_cells x direction_cells each.
inline constexpr int direction_cells = 12;
inline int direction_cell(const double direction[3]) {
  const double x = std::abs(direction[0]);
  const double y = std::abs(direction[1]);
  const double z = std::abs(direction[2]);
  const int axis = x >= y && x >= z ? 0 : (y >= z ? 1 : 2);
  const double size = axis == 0 ? x : (axis == 1 ? y : z);
  if (!(size > 0 && size < 1e300)) return 0;
  const double scale = 0.5 * direction_cells / size;
  const double half = 0.5 * direction_cells;
  const int i = static_cast<int>(direction[axis == 2 ? 0 : axis + 1] * scale + half);
  const int j = static_cast<int>(direction[axis == 0 ? 2 : axis - 1] * scale + half);
  const int side = 2 * axis + (direction[axis] < 0 ? 1 : 0);
  const int last = direction_cells - 1;
  return (side * direction_cells + (i < last ? i : last)) * direction_cells + (j < last ? j : last);
}

/// From the closed, outward or inward oriented triangles of a convex hull. Welds equal vertices, merges coplanar triangles into
/// polygons, drops vertices that are no corners. Throws std::invalid_argument, naming mesh and element, when the triangles are not
/// a closed convex surface. vertices: 3 n, metres; triangles: 3 m indices.
std::shared_ptr<const ConvexMesh> make_convex_mesh(const std::vector<double>& vertices,
                                                   const std::vector<int>& triangles, const std::string& name);

/// The convex hull of points (3 n, metres), at least four and not all in one plane; else throws std::invalid_argument.
std::shared_ptr<const ConvexMesh> make_convex_hull(const std::vector<double>& points, const std::string& name);

}  // namespace coulomb
