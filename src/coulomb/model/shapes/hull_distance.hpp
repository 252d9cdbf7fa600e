// How far the convex hull of a mesh is from the mesh itself: 0 for a convex mesh, the depth of its pockets for others.
#pragma once

#include <vector>

namespace coulomb {

/// The largest distance of points of the hull's surface, a thirtieth of its size apart, from the triangles, m. vertices: 3 n, m; triangles:
/// 3 m indices; hull: those of the hull, where they are known; negligible: m, smaller distances count as 0 and cost little. Throws std::invalid_argument where an index is none of the vertices', or all
/// points lie in one plane.
double hull_distance(const std::vector<double>& vertices, const std::vector<int>& triangles,
                     const std::vector<int>& hull = {}, double negligible = 0);

}  // namespace coulomb
