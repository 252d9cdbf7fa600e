// contact_points/<geometry>: where penalty contact looks on a geometry, 3 n numbers in metres in its frame; the geometries that were
// given points have it. A point moves the one contact that it makes.
#include "coulomb/collision/shape_motion.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/parameters/geometry_pose.hpp"

namespace coulomb {
namespace {

class ContactPointsKind : public ParameterKind {
  const char* name() const override { return "contact_points"; }
  const char* unit() const override { return "m"; }
  std::vector<ParameterElement> elements(const Model& model) const override {
    std::vector<ParameterElement> out;
    for (const ParameterElement& e : all_geometries(model, 0))
      if (const int n = model.first_contact_point(e.index + 1) - model.first_contact_point(e.index); n > 0)
        out.push_back({e.name, e.index, 3 * n});
    return out;
  }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    for (int k = 0; k < e.size; ++k) values[k] = model.contact_points[3 * model.first_contact_point(e.index) + k];
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    checks::finite(what, values, e.size);
    for (int k = 0; k < e.size; ++k) model.contact_points[3 * model.first_contact_point(e.index) + k] = values[k];
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    const GeometryPose pose(context, e.index);
    const int first = context.model.first_contact_point(e.index), count = e.size / 3;
    for (const BodyRows& b : context.rows.body_rows) {
      if (b.contact < 0 || context.inactive[b.block]) continue;
      const Contact& contact = context.contacts[b.contact];
      const int point = contact.contact_point - first;
      if (contact.contact_point < 0 || point < 0 || point >= count) continue;
      for (int axis = 0; axis < 3; ++axis) {
        const double u[3] = {pose.rotation[axis], pose.rotation[3 + axis], pose.rotation[6 + axis]};
        ShapeMotion motion;
        contact_point_motion(contact, u, motion);
        add_surface_motion(context, b, motion.dnormal, motion.dpoint, motion.ddistance, out[3 * point + axis]);
      }
    }
  }
};

}  // namespace

std::unique_ptr<ParameterKind> make_contact_points() { return std::make_unique<ContactPointsKind>(); }

}  // namespace coulomb
