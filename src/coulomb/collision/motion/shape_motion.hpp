// How a contact moves when the shape of one of its geometries changes, bodies held (docs/theory.md (G12): the rule with the
// velocity of the surface at fixed normal, and the turning of faces and edges that a mesh's vertices cause; sizes turn
// nothing).
#pragma once

#include "coulomb/model.hpp"

namespace coulomb {

struct Contact;

struct ShapeMotion {
  double dnormal[3] = {0, 0, 0};
  double dpoint[3] = {0, 0, 0};
  double ddistance = 0;
  bool frozen = false;  ///< the declared fall-back: point and normal held, the distance right to first order
};

/// Numbers in Model::geometry_size that a shape has: sphere 1, capsule and cylinder 2, box and ellipsoid 3, half-space
/// and mesh 0.
int num_sizes(ShapeType type);

/// Motion of the contact per metre of size k (< num_sizes) of geometry A (of_a) or B. Pose of that geometry: position
/// in the world, world from geometry, row major.
void size_motion(const Model& model, const Contact& contact, bool of_a, int k, const double* geometry_position,
                 const double* geometry_rotation, ShapeMotion& out);

/// Motion of a contact made by a contact point (Contact::contact_point) that moves by u, world axes.
void contact_point_motion(const Contact& contact, const double* u, ShapeMotion& out);

/// What of a mesh carries a contact: a point with few vertices, or a face, all of whose vertices turn it. Found once
/// per contact.
struct MeshCarrier {
  enum class Role { point, edge, face, incident_face, corner, side };
  Role role = Role::point;
  int face = -1;  ///< roles from face on

  /// Point: with weights; edge, side: its two ends; corner: that vertex
  int num = 0;
  int list[3];

  double weight[3];
  const ConvexMesh* mesh = nullptr;
  bool of_a = false;

  // All vectors are in the geometry's frame.
  double rotation[9];  ///< world from geometry
  double normal[3];    ///< the contact's
  double at[3];        ///< own witness
  double across[3];    ///< the other's witness
  double side[3];      ///< normal of the crossed side

  double area2 = 0;   ///< twice the face's area
  int count() const;  ///< vertices that move the contact
  int vertex(int k) const;
};
void find_carrier(const Model& model, const Contact& contact, bool of_a, const double* geometry_position,
                  const double* geometry_rotation, MeshCarrier& out);

/// Motion per metre of a mesh vertex along axis 0..2 of the geometry's frame; zero for vertices that do not carry the
/// contact. Faces of more than three vertices are the plane through their first vertex whose normal is the mean over
/// the polygon (as in ConvexMesh).
void vertex_motion(const Contact& contact, const MeshCarrier& carrier, int vertex, int axis, ShapeMotion& out);

/// The same for a surface: its face, edge or corner that touches, found from the contact's place and normal, in the geometry's frame.
struct SurfaceCarrier {
  int num = 0;  ///< vertices that move the contact: 3, 2 or 1
  int list[3];
  double weight[3];
  const TriangleSurface* surface = nullptr;
  int face = -1;  ///< the triangle, where it carries the contact
  bool of_a = false;
  double rotation[9];  ///< world from geometry
  double normal[3];    ///< the contact's
};
void find_carrier(const Model& model, const Contact& contact, bool of_a, const double* geometry_position,
                  const double* geometry_rotation, SurfaceCarrier& out);

/// Motion per metre of entry k of its list along axis 0..2 of the geometry's frame.
void vertex_motion(const Contact& contact, const SurfaceCarrier& carrier, int k, int axis, ShapeMotion& out);

}  // namespace coulomb
