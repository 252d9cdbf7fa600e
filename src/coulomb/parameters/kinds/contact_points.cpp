// contact_points/<geometry>: where penalty contact looks on a geometry, 3 n numbers in metres in its frame; the geometries that were
// given points have it. A point moves the one contact that it makes.
#include "coulomb/collision/contact.hpp"
#include "coulomb/collision/motion/shape_motion.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/parameters/kinds/geometry_pose.hpp"
#include "coulomb/parameters/parameter_kind.hpp"

namespace coulomb {
namespace {

class ContactPointsKind : public ParameterKind {
  const char* name() const override { return "contact_points"; }
  const char* unit() const override { return "m"; }
  std::vector<ParameterElement> elements(const Model& model) const override {
    // Geometries without points of their own have no such parameter.
    std::vector<ParameterElement> out;
    for (const ParameterElement& e : all_geometries(model, 0))
      if (const int n = model.first_contact_point(e.index + 1) - model.first_contact_point(e.index); n > 0)
        out.push_back({e.name, e.index, 3 * n});
    return out;
  }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    for (int k = 0; k < e.size; ++k)
      values[k] = model.contact_points[3 * model.first_contact_point(e.index) + k];
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    checks::finite(what, values, e.size);
    for (int k = 0; k < e.size; ++k)
      model.contact_points[3 * model.first_contact_point(e.index) + k] = values[k];
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    const GeometryPose pose(context, e.index);
    for (const BodyRows& b : context.rows.body_rows) {
      if (b.contact < 0 || context.inactive[b.block]) continue;
      const Contact& contact = context.contacts[b.contact];

      // Along each axis the contact moves as its point does.
      const int first = first_scalar(context.model, contact, e);
      for (int axis = 0; first >= 0 && axis < 3; ++axis) {
        const ShapeMotion motion = moved(contact, pose, axis);
        add_surface_motion(context, b, motion.dnormal, motion.dpoint, motion.ddistance, out[first + axis]);
      }
    }
  }
  void surface_motions(const Model& model, const DynamicsWorkspace& dynamics, const Contact& contact,
                       const ParameterElement& e, std::vector<ShapeMotion>& out) const override {
    const int first = first_scalar(model, contact, e);
    if (first < 0) return;
    const GeometryPose pose(model, dynamics, e.index);
    out.resize(e.size);
    for (int axis = 0; axis < 3; ++axis)
      out[first + axis] = moved(contact, pose, axis);
  }

 private:
  /// Of the contact's point in the element; -1 if it is another's.
  static int first_scalar(const Model& model, const Contact& contact, const ParameterElement& e) {
    const int point = contact.contact_point - model.first_contact_point(e.index);
    return contact.contact_point >= 0 && point >= 0 && 3 * point < e.size ? 3 * point : -1;
  }

  /// How the contact moves with its point along one axis of the geometry.
  static ShapeMotion moved(const Contact& contact, const GeometryPose& pose, int axis) {
    const double u[3] = {pose.rotation[axis], pose.rotation[3 + axis], pose.rotation[6 + axis]};
    ShapeMotion motion;
    contact_point_motion(contact, u, motion);
    return motion;
  }
};

}  // namespace

std::unique_ptr<ParameterKind> make_contact_points() { return std::make_unique<ContactPointsKind>(); }

}  // namespace coulomb
