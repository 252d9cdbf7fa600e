// How far a convex shape can advance towards a surface of triangles before their distance may reach a threshold: docs/theory.md (I14).
//
// A contact's distance is never below all of these: that of the shape to the plane of a triangle, in front of it, and that to the triangle
// itself. Each is followed by the bound of convex pairs (I9), the better of the two for each triangle that the shape can reach in time.
#pragma once

#include "coulomb/collision/continuous/separation_bound.hpp"
#include "coulomb/collision/continuous/triangle_shape.hpp"

namespace coulomb {

inline bool has_surface(const MovingShape& a, const MovingShape& b) {
  return a.shape.type == ShapeType::surface || b.shape.type == ShapeType::surface;
}

/// One of a and b is a surface, the other one convex.
class SurfaceAdvance {
 public:
  /// Is any triangle nearer to the convex shape than `reach`, by its box?
  static bool is_near(const Shape& a, const Shape& b, double reach);

  /// Some s in [0, horizon] such that the signed distance, which is `distance` now, stays >= threshold from 0 to s. 0 only if it is not
  /// above the threshold now. turn: a rate at which the normal from b to a may turn.
  double time(const MovingShape& a, const MovingShape& b, double distance, double threshold, double horizon,
              const double turn[3]);

 private:
  bool is_in_plane(const TriangleSurface& surface, int triangle, double size) const;
  double safe_from_triangle(const MovingShape& a, const MovingShape& surface, int triangle, double room,
                            double threshold, double horizon, const double turn[3]);

  TriangleShape triangle_;
  int plane_ = -1;  ///< of a triangle: nothing comes down on it in time; -1: none is known
};

}  // namespace coulomb
