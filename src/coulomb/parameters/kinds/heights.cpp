// heights/<geometry>: the heights of a height field, rows x columns numbers in metres, row by row. Right-hand sides: the contacts on the
// geometry, moved by the few vertices that carry them, along z of the geometry's frame.
#include <stdexcept>
#include <string>

#include "coulomb/collision/contact.hpp"
#include "coulomb/collision/motion/shape_motion.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/model/shapes/triangle_surface.hpp"
#include "coulomb/parameters/kinds/geometry_pose.hpp"
#include "coulomb/parameters/kinds/moved_surface.hpp"
#include "coulomb/parameters/parameter_kind.hpp"

namespace coulomb {
namespace {

void check_above_floor(const TriangleSurface& surface, const double* heights, const std::string& what) {
  const double floor = surface.vertices.back();
  for (int v = 0; v < surface.num_heights(); ++v)
    if (!(heights[v] > floor))
      throw std::invalid_argument(what + "[" + std::to_string(v) + "]: " + std::to_string(heights[v]) +
                                  " m is not above the field's floor at " + std::to_string(floor) +
                                  " m; build the field with a larger base");
}

class HeightsKind : public ParameterKind {
  const char* name() const override { return "heights"; }
  const char* unit() const override { return "m"; }

  std::vector<ParameterElement> elements(const Model& model) const override {
    std::vector<ParameterElement> out;
    for (const ParameterElement& e : all_geometries(model, 0))
      if (is_height_field(model, e.index)) out.push_back({e.name, e.index, surface_of(model, e.index).num_heights()});
    return out;
  }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    const TriangleSurface& surface = surface_of(model, e.index);
    for (int v = 0; v < e.size; ++v)
      values[v] = surface.vertices[3 * v + 2];
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    checks::finite(what, values, e.size);
    check_above_floor(surface_of(model, e.index), values, what);
    std::vector<double> vertices = surface_of(model, e.index).vertices;
    for (int v = 0; v < e.size; ++v)
      vertices[3 * v + 2] = values[v];
    replace_surface(model, e.index, vertices, what);
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    add_surface_sides(context, e.index,
                      [&](int vertex, int axis) { return axis == 2 && vertex < e.size ? &out[vertex] : nullptr; });
  }
  int vertex_scalar(const ParameterElement& e, int vertex, int axis) const override {
    return axis == 2 && vertex < e.size ? vertex : -1;
  }
  void surface_motions(const Model& model, const DynamicsWorkspace& dynamics, const Contact& contact,
                       const ParameterElement& e, std::vector<ShapeMotion>& out) const override {
    if (contact.geometry_a != e.index && contact.geometry_b != e.index) return;
    const GeometryPose pose(model, dynamics, e.index);
    SurfaceCarrier carrier;
    find_carrier(model, contact, contact.geometry_a == e.index, pose.position, pose.rotation, carrier);
    out.resize(e.size);
    for (int k = 0; k < carrier.num; ++k)
      if (carrier.list[k] < e.size) vertex_motion(contact, carrier, k, 2, out[carrier.list[k]]);
  }
};

}  // namespace

std::unique_ptr<ParameterKind> make_heights() { return std::make_unique<HeightsKind>(); }

}  // namespace coulomb
