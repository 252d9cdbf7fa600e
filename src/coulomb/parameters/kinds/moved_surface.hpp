// What the parameters of surfaces share: heights of fields, vertices of triangle meshes.
#pragma once

#include "coulomb/collision/contact.hpp"
#include "coulomb/collision/motion/shape_motion.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/model/shapes/triangle_surface.hpp"
#include "coulomb/parameters/kinds/geometry_pose.hpp"
#include "coulomb/parameters/right_hand_side.hpp"

namespace coulomb {

inline const TriangleSurface& surface_of(const Model& model, int geometry) {
  return *model.surfaces[static_cast<std::size_t>(model.geometry_mesh[geometry])];
}

inline bool is_height_field(const Model& model, int geometry) {
  return model.geometry_type[geometry] == ShapeType::surface && surface_of(model, geometry).rows > 0;
}

/// Of one geometry; others that share the surface keep the old one.
inline void replace_surface(Model& model, int geometry, const std::vector<double>& vertices, const std::string& what) {
  const TriangleSurface& old = surface_of(model, geometry);
  if (vertices == old.vertices) return;
  auto moved = move_surface(old, vertices, what);
  bool shared = false;
  for (int g = 0; g < model.num_geometries; ++g)
    shared |= g != geometry && model.geometry_type[g] == ShapeType::surface &&
              model.geometry_mesh[g] == model.geometry_mesh[geometry];
  if (!shared) {
    model.surfaces[static_cast<std::size_t>(model.geometry_mesh[geometry])] = std::move(moved);
    return;
  }
  model.geometry_mesh[geometry] = static_cast<int>(model.surfaces.size());
  model.surfaces.push_back(std::move(moved));
}

/// Adds what the vertices move of each contact on the geometry to `side(vertex, axis)`, where that is not null.
template <class Side>
void add_surface_sides(const ParameterContext& context, int geometry, Side side) {
  const GeometryPose pose(context, geometry);
  for (const BodyRows& b : context.rows.body_rows) {
    if (b.contact < 0 || context.inactive[b.block]) continue;
    const Contact& contact = context.contacts[b.contact];
    if (contact.geometry_a != geometry && contact.geometry_b != geometry) continue;
    SurfaceCarrier carrier;
    find_carrier(context.model, contact, contact.geometry_a == geometry, pose.position, pose.rotation, carrier);
    for (int k = 0; k < carrier.num; ++k)
      for (int axis = 0; axis < 3; ++axis) {
        RightHandSide* to = side(carrier.list[k], axis);
        if (to == nullptr) continue;
        ShapeMotion motion;
        vertex_motion(contact, carrier, k, axis, motion);
        add_surface_motion(context, b, motion.dnormal, motion.dpoint, motion.ddistance, *to);
      }
  }
}

}  // namespace coulomb
