// A convex shape (body A) against a surface of triangles (body B): theory/geometry.md "Surfaces".
#pragma once

#include "coulomb/collision/narrow_phase/primitives_common.hpp"

namespace coulomb {

/// As CollidePair. Points of A against faces, and A against corners and edges of the surface where these are convex: the normal of every
/// contact separates the shapes next to it. At inner edges of what is flat, and in valleys, faces alone touch.
int collide_convex_surface(const Shape& a, const Shape& b, double margin, const CollisionOptions& options,
                           CollisionCache::Pair& cache, Contact* out);

/// The triangle nearest to a point of the surface's frame, by its distance along the triangle's normal: negative behind it. False: none of
/// the triangles that the point lies over or under is nearer than `reach`.
struct PointOverSurface {
  int triangle = -1;
  double height = 0;
};
bool point_over_surface(const TriangleSurface& surface, const double point[3], double reach, PointOverSurface& out);

/// What of the surface touches at one of its points with this outward normal: a face (num = 3), else an edge or a corner.
struct SurfaceFeature {
  int num = 0;
  int triangle = -1;
  int vertices[3];
};
/// tolerance: of the triangle's size; sine: between normals. False: there is none.
bool feature_at(const TriangleSurface& surface, const double point[3], const double normal[3], double tolerance,
                double sine, SurfaceFeature& out);

}  // namespace coulomb
