// One triangle of a surface as a convex shape: three corners and the plane from both sides.
#pragma once

#include "coulomb/collision/shape.hpp"
#include "coulomb/model.hpp"

namespace coulomb {

class TriangleShape {
 public:
  TriangleShape();
  TriangleShape(const TriangleShape&) = delete;
  TriangleShape& operator=(const TriangleShape&) = delete;

  /// Becomes that triangle of a placed surface.
  void place(const Shape& surface, int triangle);

  const Shape& shape() const { return shape_; }                    ///< in the world
  const double* corners() const { return mesh_.vertices.data(); }  ///< 3 x 3
  const double* normal() const { return mesh_.face_normals.data(); }

 private:
  ConvexMesh mesh_;
  Shape shape_;
};

}  // namespace coulomb
