// How far rounding moves a residual. Forces that cancel one another leave a residual far smaller than each of them, and the rounding of
// each: a box at rest has four contacts whose moments about its normal are zero but for rounding. With dF the errors of the forces on the
// bodies below dof d, and p where they act from the tree's reference,
//
//   |dR_d| <= |J_d linear| sum |dF| + |J_d angular| sum |p| |dF|
//
// in units of the roundoff. A force f(phi, c) errs by itself, and by what rounding of its place and of its speed make of it: |dF| = |f| +
// |df/dphi| |p| + |df/dc| |c|.
#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/stepping/implicit/implicit_equation.hpp"

namespace coulomb {
namespace {

/// Sizes about the tree's reference: how far a point is, and how fast its body moves there.
struct PointSizes {
  double arm = 0;
  double speed = 0;
};

PointSizes point_sizes(const Model& model, const DynamicsWorkspace& at, int body, const double* point) {
  PointSizes out;
  if (model.body_last_dof[body] < 0) return out;
  double arm[3];
  relative_point(model, at, body, point, arm);
  const double* twist = at.body_twist.data() + 8 * body;
  out.arm = norm3(arm);
  out.speed = norm3(twist) + norm3(twist + 3) * out.arm;
  return out;
}

/// How a row's force follows its place and its speed.
struct RowSlopes {
  double by_place = 0;
  double by_speed = 0;
};

/// Of all three rows of a penalty contact: friction follows the normal force by N.
RowSlopes contact_slopes(const BodyRows& b, const PenaltyLaw& law) {
  const double friction = 1 + std::hypot(law.N[0], law.N[1]);
  double viscosity = 0;
  for (const auto& row : law.T)
    viscosity = std::max(viscosity, std::hypot(row[0], row[1]));
  return {friction * std::abs(b.dbias_dphi), friction * std::abs(1 + b.restitution) + viscosity};
}

}  // namespace

/// A force that errs by `force` at a point of the body, and a torque.
void ImplicitEquation::add_error(const Model& model, int body, double arm, double force, double torque) {
  const int d = model.body_last_dof[body];
  if (d < 0) return;
  errors_[2 * d] += force;
  errors_[2 * d + 1] += arm * force + torque;
}

/// Errors of the forces of rows on two bodies.
void ImplicitEquation::add_row_error(const Model& model, const BodyRows& b, const double* f, double by_place,
                                     double by_speed) {
  const PointSizes a = point_sizes(model, dynamics, b.body_a, b.point_a);
  const PointSizes other = point_sizes(model, dynamics, b.body_b, b.point_b);
  const double place = norm3(b.point_a) + a.arm + other.arm;
  const double change = by_place * place + by_speed * (a.speed + other.speed);
  const double force = norm3(f) + change;

  // A weld's torques follow angles, which are about one.
  const double torque = b.size > 3 ? b.torque_scale * (norm3(f + 3) + by_place + change) : 0;
  add_error(model, b.body_a, a.arm, force, torque);
  add_error(model, b.body_b, other.arm, force, torque);
}

void ImplicitEquation::find_rounding(const Model& model) {
  errors_.assign(2 * std::size_t(model.nv), 0.0);

  // Weight and inertia, and the user's forces.
  const DynamicsWorkspace& inertia = inertial();
  for (int body = 1; body < model.num_bodies; ++body) {
    if (model.body_last_dof[body] < 0) continue;
    double com[3];
    centre_of_mass(model, inertia, body, com);
    const double arm = point_sizes(model, inertia, body, com).arm;
    const double* acceleration = inertia.body_acceleration.data() + 8 * body;
    const double weight = model.body_mass[body] * (norm3(acceleration) + norm3(acceleration + 3) * arm);
    add_error(model, body, arm, weight, 0);
    if (inputs_.fext->empty()) continue;
    const double* f = inputs_.fext->data() + 6 * body;
    add_error(model, body, arm, norm3(f), norm3(f + 3));
  }

  // Springs and contacts.
  for (const BodyRows& b : springs.rows.body_rows) {
    const double stiffness = std::abs(springs.dforce_dphi[b.row]);
    const double damping = std::abs(springs.dforce_drate[b.row]);
    add_row_error(model, b, springs.force.data() + b.row, stiffness, damping);
  }
  for (const BodyRows& b : contacts.rows.body_rows) {
    if (contacts.inactive[b.block]) continue;
    const RowSlopes s = contact_slopes(b, contacts.laws[b.block]);
    add_row_error(model, b, contacts.force.data() + b.row, s.by_place, s.by_speed);
  }

  // From the leaves to the roots.
  for (int d = model.nv - 1; d >= 0; --d) {
    const double* column = dynamics.columns.data() + 8 * d;
    rounding[d] = norm3(column) * errors_[2 * d] + norm3(column + 3) * errors_[2 * d + 1];
    const int parent = model.dof_parent[d];
    if (parent < 0) continue;
    errors_[2 * parent] += errors_[2 * d];
    errors_[2 * parent + 1] += errors_[2 * d + 1];
  }
}

}  // namespace coulomb
