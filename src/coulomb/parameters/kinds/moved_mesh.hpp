// A convex mesh whose vertices moved.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coulomb/model.hpp"

namespace coulomb {

/// The same faces with their vertices (3 n as before, finite) elsewhere; null when a face would bend or the surface no
/// longer be convex.
std::shared_ptr<const ConvexMesh> move_vertices(const ConvexMesh& mesh, const std::vector<double>& vertices);

/// The hull of the vertices, in their order, for any number of bent faces. Throws std::invalid_argument, which starts
/// with `what`, when one of them is no corner of it.
std::shared_ptr<const ConvexMesh> hull_in_order(const std::vector<double>& vertices, const std::string& name,
                                                const std::string& what);

}  // namespace coulomb
