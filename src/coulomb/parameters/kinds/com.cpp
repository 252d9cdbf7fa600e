// com/<body>: centre of mass in the body's frame, m; mass and the rotational inertia about it stay. docs/theory.md (P3).
#include "coulomb/base/small_math.hpp"
#include "coulomb/constraints/constraint_options.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/parameters/frame_motion.hpp"
#include "coulomb/parameters/kinds/inertial.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/parameters/right_hand_side.hpp"

namespace coulomb {
namespace {

class ComKind : public ParameterKind {
  const char* name() const override { return "com"; }
  const char* unit() const override { return "m"; }
  std::vector<ParameterElement> elements(const Model& model) const override { return moving_bodies(model, 3); }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    copy3(model.body_com.data() + 3 * e.index, values);
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string&) const override {
    copy3(values, model.body_com.data() + 3 * e.index);
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    // The first moment m c and, through c c^T, the second moments.
    const double mass = context.model.body_mass[e.index];
    const double* c = context.model.body_com.data() + 3 * e.index;
    const double* R = context.dynamics.body_rotation.data() + 9 * e.index;
    for (int k = 0; k < 3; ++k) {
      // The first moment changes by m, the second moments by m (dc c^T + c dc^T).
      double axis[3] = {0, 0, 0};
      axis[k] = 1;
      InertiaChange change;
      change.first[k] = mass;
      add_outer(2 * mass, c, axis, change.second);
      add_inertia_change(context, e.index, change, out[k]);

      // Wrenches of the user act at the centre of mass: h (dc x f).
      if (context.fext.empty()) continue;
      const double* f = context.fext.data() + 6 * e.index;
      const double turned[3] = {R[k], R[3 + k], R[6 + k]};
      const double zero[3] = {0, 0, 0};
      double moment[3];
      cross3(turned, f, moment);

      out[k].add_wrench(e.index, zero, moment, context.options.timestep);
    }
  }
  void frame_motions(const Model&, const DynamicsWorkspace&, const ParameterElement& e,
                     std::vector<FrameMotion>& out) const override {
    for (int k = 0; k < 3; ++k) {
      FrameMotion motion;
      motion.body = e.index;
      motion.dcom[k] = 1;
      out.push_back(motion);
    }
  }
};

}  // namespace

std::unique_ptr<ParameterKind> make_com() { return std::make_unique<ComKind>(); }

}  // namespace coulomb
