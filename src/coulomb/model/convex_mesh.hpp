// Building the convex meshes of a model: from the triangles of a hull, or from a cloud of points.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coulomb/model/model.hpp"

namespace coulomb {

/// From the closed, outward or inward oriented triangles of a convex hull. Welds equal vertices, merges coplanar triangles into
/// polygons, drops vertices that are no corners. Throws std::invalid_argument, naming mesh and element, when the triangles are not
/// a closed convex surface. vertices: 3 n, metres; triangles: 3 m indices.
std::shared_ptr<const ConvexMesh> make_convex_mesh(const std::vector<double>& vertices, const std::vector<int>& triangles,
                                                   const std::string& name);

/// The convex hull of points (3 n, metres), at least four and not all in one plane; else throws std::invalid_argument.
std::shared_ptr<const ConvexMesh> make_convex_hull(const std::vector<double>& points, const std::string& name);

}  // namespace coulomb
