// vertices/<geometry>: the corners of a mesh or of a triangle mesh (a surface, whose triangles stay), 3 n numbers in metres in the geometry's frame, n as in ConvexMesh (the
// corners of the hull, coplanar triangles merged). Mass and inertia do not change with them. A face of more than three
// corners that is bent breaks into triangles: across that its derivative is the one of the face kept flat
// (shape_motion.hpp). Right-hand sides: the contacts on the geometry, moved by the few vertices that carry them.
#include <algorithm>

#include "coulomb/collision/contact.hpp"
#include "coulomb/collision/motion/shape_motion.hpp"
#include "coulomb/collision/penalty/contact_share.hpp"
#include "coulomb/collision/shape.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/constraints/penalty/penalty_contact.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/parameters/kinds/geometry_pose.hpp"
#include "coulomb/parameters/kinds/moved_mesh.hpp"
#include "coulomb/parameters/kinds/moved_surface.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/parameters/penalty_sides.hpp"

namespace coulomb {
namespace {

/// The geometry as a shape in the world.
Shape posed(const ParameterContext& context, int geometry) {
  const Model& m = context.model;
  const GeometryPose pose(context, geometry);
  Shape out;
  set_shape(m, geometry, out);
  copy3(pose.position, out.position);
  std::copy(pose.rotation, pose.rotation + 9, out.rotation);
  return out;
}

/// The vertices of the two faces whose common outline the contact is on.
void add_share_changes(const ParameterContext& context, const BodyRows& b, bool of_a, RightHandSide* out) {
  const ContactShare& share = context.penalty->shares[b.contact];
  if (share.kind == ContactShare::Kind::whole) return;
  const Contact& contact = context.contacts[b.contact];

  // The face of this mesh, as the reference or as the incident one.
  const Shape shape_a = posed(context, contact.geometry_a);
  const Shape shape_b = posed(context, contact.geometry_b);
  const Shape& own = of_a ? shape_a : shape_b;
  const int face = of_a == share.reference_on_a ? share.reference : share.incident;

  for (int k = 0; k < face_size(own, face); ++k) {
    const int vertex = face_vertex(own, face, k);
    double change[3];
    share_by_vertex(shape_a, shape_b, share, of_a, vertex, change);
    for (int axis = 0; axis < 3; ++axis)
      add_share_change(context, b, change[axis], out[3 * vertex + axis]);
  }
}

class VerticesKind : public ParameterKind {
  const char* name() const override { return "vertices"; }
  const char* unit() const override { return "m"; }
  static const ConvexMesh& mesh(const Model& model, int geometry) {
    return *model.meshes[model.geometry_mesh[geometry]];
  }

  static const std::vector<double>& vertices(const Model& model, int geometry) {
    const bool is_surface = model.geometry_type[geometry] == ShapeType::surface;
    return is_surface ? surface_of(model, geometry).vertices : mesh(model, geometry).vertices;
  }

  std::vector<ParameterElement> elements(const Model& model) const override {
    std::vector<ParameterElement> out;
    for (const ParameterElement& e : all_geometries(model, 0))
      if (model.geometry_type[e.index] == ShapeType::mesh ||
          (model.geometry_type[e.index] == ShapeType::surface && !is_height_field(model, e.index)))
        out.push_back({e.name, e.index, static_cast<int>(vertices(model, e.index).size())});
    return out;
  }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    const std::vector<double>& v = vertices(model, e.index);
    for (int k = 0; k < e.size; ++k)
      values[k] = v[k];
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    checks::finite(what, values, e.size);
    const std::vector<double> changed(values, values + e.size);
    if (model.geometry_type[e.index] == ShapeType::surface) {
      replace_surface(model, e.index, changed, what);
      return;
    }

    // Small changes keep the faces; others are those of the hull.
    const ConvexMesh& old = mesh(model, e.index);
    if (changed == old.vertices) return;
    auto moved = move_vertices(old, changed);
    if (moved == nullptr) {
      moved = hull_in_order(changed, old.name, what);
    }

    // Geometries that share the mesh keep the old one.
    bool shared = false;
    for (int g = 0; g < model.num_geometries; ++g)
      shared |= g != e.index && model.geometry_type[g] == ShapeType::mesh &&
                model.geometry_mesh[g] == model.geometry_mesh[e.index];
    if (shared) {
      model.geometry_mesh[e.index] = static_cast<int>(model.meshes.size());
      model.meshes.push_back(moved);
    } else {
      model.meshes[model.geometry_mesh[e.index]] = moved;
    }
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    if (context.model.geometry_type[e.index] == ShapeType::surface) {
      add_surface_sides(context, e.index, [out](int vertex, int axis) { return &out[3 * vertex + axis]; });
      return;
    }
    const GeometryPose pose(context, e.index);
    for (const BodyRows& b : context.rows.body_rows) {
      if (b.contact < 0 || context.inactive[b.block]) continue;
      const Contact& contact = context.contacts[b.contact];
      if (contact.geometry_a != e.index && contact.geometry_b != e.index) continue;

      // The few vertices that carry the contact.
      MeshCarrier carrier;
      find_carrier(context.model, contact, contact.geometry_a == e.index, pose.position, pose.rotation, carrier);
      for (int k = 0; k < carrier.count(); ++k)
        for (int axis = 0; axis < 3; ++axis) {
          const int vertex = carrier.vertex(k);
          ShapeMotion motion;
          vertex_motion(contact, carrier, vertex, axis, motion);
          add_surface_motion(context, b, motion.dnormal, motion.dpoint, motion.ddistance, out[3 * vertex + axis]);
        }

      // Shares of two faces' common outline move with the vertices, too.
      if (context.penalty) {
        add_share_changes(context, b, contact.geometry_a == e.index, out);
      }
    }
  }
  int vertex_scalar(const ParameterElement&, int vertex, int axis) const override { return 3 * vertex + axis; }
  void surface_motions(const Model& model, const DynamicsWorkspace& dynamics, const Contact& contact,
                       const ParameterElement& e, std::vector<ShapeMotion>& out) const override {
    if (contact.geometry_a != e.index && contact.geometry_b != e.index) return;
    const GeometryPose pose(model, dynamics, e.index);
    if (model.geometry_type[e.index] == ShapeType::surface) {
      SurfaceCarrier on;
      find_carrier(model, contact, contact.geometry_a == e.index, pose.position, pose.rotation, on);
      out.resize(e.size);
      for (int k = 0; k < on.num; ++k)
        for (int axis = 0; axis < 3; ++axis)
          vertex_motion(contact, on, k, axis, out[3 * on.list[k] + axis]);
      return;
    }

    MeshCarrier carrier;
    find_carrier(model, contact, contact.geometry_a == e.index, pose.position, pose.rotation, carrier);

    out.resize(e.size);
    for (int k = 0; k < carrier.count(); ++k)
      for (int axis = 0; axis < 3; ++axis)
        vertex_motion(contact, carrier, carrier.vertex(k), axis, out[3 * carrier.vertex(k) + axis]);
  }
};

}  // namespace

std::unique_ptr<ParameterKind> make_vertices() { return std::make_unique<VerticesKind>(); }

}  // namespace coulomb
