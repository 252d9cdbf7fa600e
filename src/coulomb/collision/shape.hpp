// Shape: one convex geometry with its pose, as the narrow phase reads it. A rounded shape is a core (point, segment)
// plus a radius, so that GJK and EPA work on polyhedral cores and end on exact features; an ellipsoid or a cylinder is
// its own core.
#pragma once

#include "coulomb/model.hpp"
#include "coulomb/model/shapes/triangle_surface.hpp"

namespace coulomb {

struct Shape {
  ShapeType type = ShapeType::sphere;
  const double* size = nullptr;                      ///< Model::geometry_size convention, 3 values
  const ConvexMesh* mesh = nullptr;                  ///< meshes only
  const TriangleSurface* surface = nullptr;          ///< surfaces only, which are not convex
  double position[3] = {0, 0, 0};                    ///< world
  double rotation[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};  ///< world from geometry, row major
};

/// Offset radius around the core: sphere and capsule their r, else 0.
double core_radius(const Shape& shape);

/// A geometry's kind, size and mesh or surface; its pose is left as it is.
void set_shape(const Model& model, int geometry, Shape& shape);

/// A pair of which one geometry is ground.
bool has_ground(const Model& model, int pair);

/// Distance from the geometry's centre (mesh: the centre of its box) to its farthest point, an upper bound; and that
/// centre.
double bounding_radius(const Shape& shape);
void bounding_center(const Shape& shape, double center[3]);

/// True for cores with finitely many vertices: sphere (1), capsule (2), box (8), mesh.
bool has_polyhedral_core(const Shape& shape);

/// Farthest point of the core along `direction` (world, any length). Returns the vertex index for polyhedral cores; for
/// a cylinder 0 (upper rim, local z > 0) or 1; for an ellipsoid 0. `hint`: vertex where hill climbing starts and, on
/// return, ends.
int core_support(const Shape& shape, const double direction[3], double point[3], int& hint);

/// Farthest point of the whole shape along `direction`.
int shape_support(const Shape& shape, const double direction[3], double point[3], int& hint);

/// World position of a vertex of a polyhedral core.
void core_vertex(const Shape& shape, int vertex, double point[3]);

// Faces of boxes and meshes. Box: face 2*axis is the + side, 2*axis + 1 the - side; bit i of a vertex index says +
// along axis i.
bool has_faces(const Shape& shape);
int num_faces(const Shape& shape);
void face_normal(const Shape& shape, int face, double normal[3]);  ///< world, unit, outward
double face_offset(const Shape& shape, int face);                  ///< n.x of the face's plane, world
int face_size(const Shape& shape, int face);
int face_vertex(const Shape& shape, int face, int k);  ///< counter-clockwise from outside
/// The face whose normal is closest to `direction`; its cosine.
int best_face(const Shape& shape, const double direction[3], double& cosine);
/// True when the two vertices are joined by an edge.
bool are_neighbours(const Shape& shape, int u, int v);

}  // namespace coulomb
