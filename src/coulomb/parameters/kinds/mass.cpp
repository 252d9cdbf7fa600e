// mass/<body>: kg; the centre of mass and the rotational inertia about it stay. docs/theory.md (P2), (P3).
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/parameters/frame_motion.hpp"
#include "coulomb/parameters/kinds/inertial.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/parameters/right_hand_side.hpp"

namespace coulomb {
namespace {

class MassKind : public ParameterKind {
  const char* name() const override { return "mass"; }
  const char* unit() const override { return "kg"; }
  std::vector<ParameterElement> elements(const Model& model) const override { return moving_bodies(model, 1); }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    values[0] = model.body_mass[e.index];
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    checks::positive(what, values[0]);
    model.body_mass[e.index] = values[0];
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    // A point mass at the centre of mass.
    const double* c = context.model.body_com.data() + 3 * e.index;
    InertiaChange change{1, {c[0], c[1], c[2]}, {}};
    add_outer(1, c, c, change.second);
    add_inertia_change(context, e.index, change, out[0]);
  }
  void frame_motions(const Model&, const DynamicsWorkspace&, const ParameterElement& e,
                     std::vector<FrameMotion>& out) const override {
    FrameMotion motion;
    motion.body = e.index;
    motion.dmass = 1;
    out.push_back(motion);
  }
};

}  // namespace

std::unique_ptr<ParameterKind> make_mass() { return std::make_unique<MassKind>(); }

}  // namespace coulomb
