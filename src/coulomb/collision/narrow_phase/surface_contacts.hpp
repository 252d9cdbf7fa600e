// A convex shape (body A) against a surface of triangles (body B): theory/geometry.md "Surfaces".
#pragma once

#include "coulomb/collision/narrow_phase/primitives_common.hpp"

namespace coulomb {

/// As CollidePair. Points of A against faces, and A against corners and edges of the surface where these are convex: the normal of every
/// contact separates the shapes next to it. At inner edges of what is flat, and in valleys, faces alone touch.
int collide_convex_surface(const Shape& a, const Shape& b, double margin, const CollisionOptions& options,
                           CollisionCache::Pair& cache, Contact* out);

}  // namespace coulomb
