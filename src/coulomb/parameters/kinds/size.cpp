// size/<geometry>: what Model::geometry_size holds, in metres: a sphere's radius; radius and half-length of capsules
// and cylinders; half sides of boxes; semi-axes of ellipsoids. Only the surface moves: mass and inertia are parameters
// of their own and stay as they are. Right-hand sides: the contacts on the geometry, moved by size_motion. docs/theory.md (P5).
#include "coulomb/collision/contact.hpp"
#include "coulomb/collision/motion/shape_motion.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/parameters/kinds/geometry_pose.hpp"
#include "coulomb/parameters/parameter_kind.hpp"

namespace coulomb {
namespace {

/// For messages.
const char* size_name(ShapeType type, int k) {
  if (type == ShapeType::box) return "half side";
  if (type == ShapeType::ellipsoid) return "semi-axis";
  return k == 0 ? "radius" : "half-length";
}

class SizeKind : public ParameterKind {
  const char* name() const override { return "size"; }
  const char* unit() const override { return "m"; }
  std::vector<ParameterElement> elements(const Model& model) const override {
    // Half-spaces and meshes have no sizes.
    std::vector<ParameterElement> out;
    for (const ParameterElement& e : all_geometries(model, 0))
      if (const int n = num_sizes(model.geometry_type[e.index]); n > 0) {
        out.push_back({e.name, e.index, n});
      }
    return out;
  }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    for (int k = 0; k < e.size; ++k)
      values[k] = model.geometry_size[3 * e.index + k];
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    // All values are checked before any changes.
    const ShapeType type = model.geometry_type[e.index];
    for (int k = 0; k < e.size; ++k)
      checks::positive(what + (e.size > 1 ? "[" + std::to_string(k) + "]" : "") + " (" + size_name(type, k) + ")",
                       values[k]);
    for (int k = 0; k < e.size; ++k)
      model.geometry_size[3 * e.index + k] = values[k];
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    const GeometryPose pose(context, e.index);
    for (const BodyRows& b : context.rows.body_rows) {
      if (b.contact < 0 || context.inactive[b.block]) continue;
      const Contact& contact = context.contacts[b.contact];
      if (contact.geometry_a != e.index && contact.geometry_b != e.index) continue;

      // How the surface at the contact moves with each size.
      for (int k = 0; k < e.size; ++k) {
        ShapeMotion motion;
        size_motion(context.model, contact, contact.geometry_a == e.index, k, pose.position, pose.rotation, motion);
        add_surface_motion(context, b, motion.dnormal, motion.dpoint, motion.ddistance, out[k]);
      }
    }
  }
  int size_scalar(const ParameterElement& e, int k) const override { return k < e.size ? k : -1; }
  void surface_motions(const Model& model, const DynamicsWorkspace& dynamics, const Contact& contact,
                       const ParameterElement& e, std::vector<ShapeMotion>& out) const override {
    if (contact.geometry_a != e.index && contact.geometry_b != e.index) return;
    const GeometryPose pose(model, dynamics, e.index);
    out.resize(e.size);
    for (int k = 0; k < e.size; ++k)
      size_motion(model, contact, contact.geometry_a == e.index, k, pose.position, pose.rotation, out[k]);
  }
};

}  // namespace

std::unique_ptr<ParameterKind> make_size() { return std::make_unique<SizeKind>(); }

}  // namespace coulomb
