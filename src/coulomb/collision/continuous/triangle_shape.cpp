#include "coulomb/collision/continuous/triangle_shape.hpp"

#include <algorithm>

#include "coulomb/base/small_math.hpp"

namespace coulomb {

TriangleShape::TriangleShape() {
  // Two faces, back to back.
  mesh_.vertices.resize(9);
  mesh_.face_start = {0, 3, 6};
  mesh_.face_vertices = {0, 1, 2, 0, 2, 1};
  mesh_.face_normals.resize(6);
  mesh_.face_offsets.resize(2);
  mesh_.neighbour_start = {0, 2, 4, 6};
  mesh_.neighbours = {1, 2, 0, 2, 0, 1};
  mesh_.face_neighbour = {1, 1, 1, 0, 0, 0};
  mesh_.vertex_face_start = {0, 2, 4, 6};
  mesh_.vertex_faces = {0, 1, 0, 1, 0, 1};
  shape_.type = ShapeType::mesh;
  shape_.mesh = &mesh_;
}

void TriangleShape::place(const Shape& surface, int triangle) {
  const TriangleSurface& s = *surface.surface;
  shape_.size = surface.size;
  for (int k = 0; k < 3; ++k) {
    double* corner = &mesh_.vertices[3 * k];
    rotate(surface.rotation, &s.vertices[3 * s.triangles[3 * triangle + k]], corner);
    add3(corner, surface.position, corner);
  }

  // Its plane, from both sides.
  double* normal = mesh_.face_normals.data();
  rotate(surface.rotation, &s.normals[3 * triangle], normal);
  for (int i = 0; i < 3; ++i)
    normal[3 + i] = -normal[i];
  mesh_.face_offsets[0] = dot3(normal, mesh_.vertices.data());
  mesh_.face_offsets[1] = -mesh_.face_offsets[0];

  // Its box, which is what its bounding sphere is found by.
  for (int i = 0; i < 3; ++i) {
    const double x[3] = {mesh_.vertices[i], mesh_.vertices[3 + i], mesh_.vertices[6 + i]};
    const double low = std::min({x[0], x[1], x[2]});
    const double high = std::max({x[0], x[1], x[2]});
    mesh_.aabb_center[i] = 0.5 * (low + high);
    mesh_.aabb_half[i] = 0.5 * (high - low);
    mesh_.center[i] = (x[0] + x[1] + x[2]) / 3;
  }
}

}  // namespace coulomb
