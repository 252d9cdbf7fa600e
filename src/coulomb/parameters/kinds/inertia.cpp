// inertia/<body>: the ten inertial parameters in Pinocchio's order, m, m cx, m cy, m cz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz, with I about
// the origin of the body's frame. Unlike mass and com, each of the ten moves with the other nine held. docs/theory.md (P2), (P3).
#include <algorithm>

#include "coulomb/base/small_math.hpp"
#include "coulomb/constraints/constraint_options.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/model/scene/build_model.hpp"
#include "coulomb/parameters/frame_motion.hpp"
#include "coulomb/parameters/kinds/inertial.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/parameters/right_hand_side.hpp"

namespace coulomb {
namespace {

/// m (c.c 1 - c c^T), as xx xy yy xz yz zz.
void point_inertia(double mass, const double* c, double* out) {
  const double squared = dot3(c, c);
  const double value[6] = {
      squared - c[0] * c[0], -c[0] * c[1], squared - c[1] * c[1], -c[0] * c[2], -c[1] * c[2], squared - c[2] * c[2],
  };
  for (int k = 0; k < 6; ++k)
    out[k] = mass * value[k];
}

/// How the centre of mass c = (m c) / m moves, in the body's axes, with number k of the ten.
void centre_motion(double mass, const double* c, int k, double* out) {
  for (int i = 0; i < 3; ++i)
    out[i] = 0;
  if (k == 0) {
    for (int i = 0; i < 3; ++i)
      out[i] = -c[i] / mass;
  } else if (k < 4) {
    out[k - 1] = 1 / mass;
  }
}

/// How the inertia about the centre of mass, I - m (c.c 1 - c c^T), changes with number k of the ten.
void central_motion(const double* c, int k, double* out) {
  std::fill_n(out, 6, 0.0);
  if (k == 0) point_inertia(1, c, out);
  if (k >= 4) out[k - 4] = 1;
  if (k == 0 || k >= 4) return;

  // By m c_i: c e_i^T + e_i c^T - 2 c_i.
  const int i = k - 1;
  static constexpr int row[6] = {0, 0, 1, 0, 1, 2};
  static constexpr int column[6] = {0, 1, 1, 2, 2, 2};
  for (int e = 0; e < 6; ++e) {
    if (row[e] == i) out[e] += c[column[e]];
    if (column[e] == i) out[e] += c[row[e]];
    if (row[e] == column[e]) out[e] -= 2 * c[i];
  }
}

class InertiaKind : public ParameterKind {
  const char* name() const override { return "inertia"; }
  const char* unit() const override { return "kg, kg m, kg m^2"; }
  std::vector<ParameterElement> elements(const Model& model) const override { return moving_bodies(model, 10); }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    // From the centre of mass to the origin of the frame.
    const double mass = model.body_mass[e.index];
    const double* c = model.body_com.data() + 3 * e.index;
    values[0] = mass;
    for (int i = 0; i < 3; ++i)
      values[1 + i] = mass * c[i];

    point_inertia(mass, c, values + 4);
    for (int k = 0; k < 6; ++k)
      values[4 + k] += model.body_inertia[6 * e.index + k];
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    // Back to the centre of mass; there it has to be a rigid body's.
    checks::positive(what + "[0] (mass)", values[0]);
    const Vec3 c{values[1] / values[0], values[2] / values[0], values[3] / values[0]};
    std::array<double, 6> I{};
    point_inertia(values[0], c.data(), I.data());
    for (int k = 0; k < 6; ++k)
      I[k] = values[4 + k] - I[k];

    check_inertia(what, values[0], c, I);

    model.body_mass[e.index] = values[0];
    for (int i = 0; i < 3; ++i)
      model.body_com[3 * e.index + i] = c[i];
    for (int k = 0; k < 6; ++k)
      model.body_inertia[6 * e.index + k] = I[k];
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    // All ten enter linearly: mass, first moment, and the second moments S = tr(I)/2 1 - I.
    for (int k = 0; k < 10; ++k) {
      InertiaChange change;
      if (k == 0) change.mass = 1;
      if (k >= 1 && k < 4) {
        change.first[k - 1] = 1;
      }
      if (k >= 4) {
        double I[6] = {0, 0, 0, 0, 0, 0};
        I[k - 4] = 1;
        const double half = 0.5 * (I[0] + I[2] + I[5]);
        for (int i = 0; i < 6; ++i)
          change.second[i] = (i == 0 || i == 2 || i == 5 ? half : 0.0) - I[i];
      }
      add_inertia_change(context, e.index, change, out[k]);
    }

    // The user's wrench acts at c = (m c) / m: the same shift as com's, through c.
    if (context.fext.empty()) return;
    const double mass = context.model.body_mass[e.index];
    const double* c = context.model.body_com.data() + 3 * e.index;
    const double* R = context.dynamics.body_rotation.data() + 9 * e.index;
    const double* f = context.fext.data() + 6 * e.index;

    for (int k = 0; k < 4; ++k) {
      // How c moves, in the axes of the world.
      double shift[3];
      double turned[3];
      centre_motion(mass, c, k, shift);
      rotate(R, shift, turned);

      // h (dc x f)
      const double zero[3] = {0, 0, 0};
      double moment[3];
      cross3(turned, f, moment);
      out[k].add_wrench(e.index, zero, moment, context.options.timestep);
    }
  }
  void frame_motions(const Model& model, const DynamicsWorkspace&, const ParameterElement& e,
                     std::vector<FrameMotion>& out) const override {
    const double mass = model.body_mass[e.index];
    const double* c = model.body_com.data() + 3 * e.index;
    for (int k = 0; k < 10; ++k) {
      FrameMotion motion;
      motion.body = e.index;
      motion.dmass = k == 0 ? 1 : 0;
      centre_motion(mass, c, k, motion.dcom);
      central_motion(c, k, motion.dinertia);
      out.push_back(motion);
    }
  }
};

}  // namespace

std::unique_ptr<ParameterKind> make_inertia() { return std::make_unique<InertiaKind>(); }

}  // namespace coulomb
