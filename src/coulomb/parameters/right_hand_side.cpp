#include "coulomb/parameters/right_hand_side.hpp"

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/contact.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/spin.hpp"
#include "coulomb/model.hpp"
#include "coulomb/solvers/constraint_problem.hpp"

namespace coulomb {

void RightHandSide::add_wrench(int body, const double* linear, const double* angular, double sign) {
  Wrench w;
  w.body = body;
  for (int i = 0; i < 3; ++i) {
    w.value[i] = sign * linear[i];
    w.value[3 + i] = sign * angular[i];
  }
  wrenches.push_back(w);
}

std::optional<OneSidedSpring> spring_of(const ParameterContext& context, const BodyRows& b) {
  const bool forces = context.penalty != nullptr || context.options.contact == ContactLaw::penalty;
  if (b.contact < 0 || forces) return std::nullopt;
  return contact_spring(context.model.pair_penalty[context.contacts[b.contact].pair], b.phi[2]);
}

SpringState soft_row_state(const ParameterContext& context, const BodyRows& b, int i) {
  return {context.options.timestep, b.phi[i],
          row_velocity(context.model, context.dynamics, context.velocities.twist, b, i), context.lambda[b.row + i]};
}

void add_contact_force(const ParameterContext& context, const BodyRows& b, const double* f, RightHandSide& out) {
  // A gets f, B its opposite.
  for (const double sign : {1.0, -1.0}) {
    const int body = sign > 0 ? b.body_a : b.body_b;
    if (context.model.body_last_dof[body] < 0) continue;
    double arm[3];
    double moment[3];
    relative_point(context.model, context.dynamics, body, sign > 0 ? b.point_a : b.point_b, arm);
    cross3(arm, f, moment);
    out.add_wrench(body, f, moment, sign);
  }
}

/// Rows of torsional and rolling friction, and their torque m, turn with the normal: dm = m_n dn - n (m_t . dn).
static void add_turned_rows(const ParameterContext& context, const BodyRows& b, const double* dn, RightHandSide& out) {
  const double* n = b.axes[2];
  double m[3];
  double dm[3];
  block_torque(b, context.lambda + b.row, m);
  const double about_normal = dot3(m, n);
  const double along = dot3(m, dn);  // dn is orthogonal to n
  const bool spins = context.rows.blocks[b.block].type == BlockType::pyramid;
  const double psi = spins ? contact_frame_spin(n, dn) : 0.0;
  double spun[3];
  cross3(n, m, spun);
  for (int i = 0; i < 3; ++i)
    dm[i] = about_normal * dn[i] - along * n[i] + psi * spun[i];
  add_contact_torque(context, b, dm, out);

  // Row by row, with what does not turn with them.
  double spin[3];
  const double* twist_a = body_link_twist(context.model, context.velocities.twist_plus, b.body_a);
  const double* twist_b = body_link_twist(context.model, context.velocities.twist_plus, b.body_b);
  sub3(twist_a + 3, twist_b + 3, spin);
  for (int k = 3; context.fixed && k < b.size; ++k)
    axpy3(context.fixed[b.row + k] / b.turning_weight(k), b.axes[b.turning_axis(k)], spin);
  for (int k = 3; k < b.size; ++k) {
    const int axis = b.turning_axis(k);
    double across[3];
    cross3(n, b.axes[axis], across);
    const double turned =
        (axis == 2 ? dot3(spin, dn) : -dot3(n, spin) * dot3(b.axes[axis], dn)) + psi * dot3(across, spin);
    out.rows.push_back({b.row + k, b.turning_weight(k) * turned});
  }
}

void add_contact_torque(const ParameterContext& context, const BodyRows& b, const double* torque, RightHandSide& out) {
  const double no_force[3] = {0, 0, 0};
  for (const double sign : {1.0, -1.0}) {
    const int body = sign > 0 ? b.body_a : b.body_b;
    if (context.model.body_last_dof[body] >= 0) out.add_wrench(body, no_force, torque, sign);
  }
}

double row_velocity(const ParameterContext& context, const BodyRows& b, int k) {
  double velocity[3] = {0, 0, 0};
  double turning[3] = {0, 0, 0};
  for (const double sign : {1.0, -1.0}) {
    const int body = sign > 0 ? b.body_a : b.body_b;
    const double* twist = body_link_twist(context.model, context.velocities.twist_plus, body);
    double arm[3];
    double spin[3];
    relative_point(context.model, context.dynamics, body, b.point_a, arm);
    cross3(twist + 3, arm, spin);
    for (int i = 0; i < 3; ++i)
      velocity[i] += sign * (twist[i] + spin[i]);
    axpy3(sign, twist + 3, turning);
  }
  if (k < 3) return dot3(velocity, b.axes[k]);
  double row[3];
  b.angular_row(k, row);
  return dot3(row, turning);
}

// docs/theory.md (P5). s: dr . u + (r x (w_A - w_B)) . dp + (dbeta/dPhi) dPhi; r: df at the point and f at the point's shift.
void add_surface_motion(const ParameterContext& context, const BodyRows& b, const double* dn, const double* dp,
                        double dphi, RightHandSide& out) {
  // The force in the contact frame, and how it turns with the normal: the frame turns as little as it can, and a
  // pyramid's turns in its plane by psi.
  const double* n = b.axes[2];
  double tangential[3] = {0, 0, 0};
  for (int i = 0; i < 2; ++i)
    axpy3(context.lambda[b.row + i], b.axes[i], tangential);
  const double ln = context.lambda[b.row + 2];
  const double along = dot3(tangential, dn);
  const bool spins = context.rows.blocks[b.block].type == BlockType::pyramid;
  const double psi = spins ? contact_frame_spin(n, dn) : 0.0;

  double f[3] = {0, 0, 0};
  double df[3];
  for (int i = 0; i < 3; ++i) {
    f[i] = tangential[i] + ln * n[i];
    df[i] = ln * dn[i] - along * n[i] +
            psi * (context.lambda[b.row] * b.axes[1][i] - context.lambda[b.row + 1] * b.axes[0][i]);
  }

  // r: df acts at the contact's point, f at its shift dp.
  double arm[2][3];
  for (int side = 0; side < 2; ++side) {
    const int body = side == 0 ? b.body_a : b.body_b;
    relative_point(context.model, context.dynamics, body, side == 0 ? b.point_a : b.point_b, arm[side]);
    double moment[3];
    cross3(arm[side], df, moment);
    add_cross3(dp, f, moment);
    if (context.model.body_last_dof[body] >= 0) {
      out.add_wrench(body, df, moment, side == 0 ? 1 : -1);
    }
  }

  // s, row by row. The normal row of a bouncing contact sees v+ + e v.
  for (int i = 0; i < 3; ++i) {
    const double e = i == 2 ? b.restitution : 0.0;
    double twist[2][6];
    for (int side = 0; side < 2; ++side) {
      const int body = side == 0 ? b.body_a : b.body_b;
      const double* plus = body_link_twist(context.model, context.velocities.twist_plus, body);
      const double* before = body_link_twist(context.model, context.velocities.twist, body);
      for (int j = 0; j < 6; ++j)
        twist[side][j] = plus[j] + e * before[j];
    }

    // The relative velocity at the contact's point, and the turn of the bodies against each other.
    double va[3];
    double vb[3];
    double u[3];
    cross3(twist[0] + 3, arm[0], va);
    cross3(twist[1] + 3, arm[1], vb);
    for (int j = 0; j < 3; ++j)
      u[j] = twist[0][j] + va[j] - twist[1][j] - vb[j];
    for (int j = 0; context.fixed && j < 3; ++j)
      axpy3(context.fixed[b.row + j], b.axes[j], u);
    double spin[3];
    sub3(twist[0] + 3, twist[1] + 3, spin);
    double eta[3];
    cross3(b.axes[i], spin, eta);

    // The row's axis turns with the normal; the normal row sees the distance, too.
    double value = dot3(eta, dp);
    if (i == 2)
      value += dot3(u, dn) + b.dbias_dphi * dphi;
    else
      value += psi * (i == 0 ? dot3(b.axes[1], u) : -dot3(b.axes[0], u)) - dot3(n, u) * dot3(b.axes[i], dn);
    out.rows.push_back({b.row + i, value});
  }
  if (b.size > 3) add_turned_rows(context, b, dn, out);
}

namespace {

/// r += scale M dDelta, or dDelta itself.
void add_shift(const ParameterContext& context, const SpinDerivative& spin, const double* change, RightHandSide& out) {
  if (context.shift_itself) {
    for (int i = spin.linear < 0 ? 3 : 0; i < 6; ++i)
      out.shift.push_back({i < 3 ? spin.linear + i : spin.dof + i - 3, change[i]});
    return;
  }
  multiply_mass_of(context.model, context.dynamics, spin, change,
                   [&](int d, double value) { out.dofs.push_back({d, context.spin_scale * value}); });
}

}  // namespace

void add_spin_change(const ParameterContext& context, int body, const double* row, RightHandSide& out) {
  if (!context.spins) return;

  // Spins of the joints that carry the body.
  const Model& model = context.model;
  for (const SpinDerivative& spin : *context.spins) {
    const int carrier = model.joint_body[spin.joint];
    if (body < carrier || body >= model.body_subtree_end[carrier]) continue;
    double change[6];
    spin_change(spin, row, change);
    add_shift(context, spin, change, out);
  }
}

void add_spin_column(const ParameterContext& context, const SpinDerivative& spin, int column, RightHandSide& out) {
  double change[6];
  for (int i = 0; i < 6; ++i)
    change[i] = spin.by[i][column];
  add_shift(context, spin, change, out);
}

void expand(const ParameterContext& context, const RightHandSide& rhs, double* r, double* s, int stride) {
  // r: wrenches through the root paths of their bodies, and direct entries.
  const Model& m = context.model;
  for (const auto& w : rhs.wrenches) {
    const int last = m.body_last_dof[w.body];
    const int* path = m.dof_path.data() + m.dof_row[last];
    for (int k = 0; k <= m.dof_depth[last]; ++k)
      r[path[k]] += dot6(context.dynamics.columns.data() + 8 * path[k], w.value);
  }
  for (const auto& e : rhs.dofs)
    r[e.index] += e.value;

  // s.
  for (const auto& e : rhs.rows)
    s[std::size_t(e.index) * stride] += e.value;
}

double project(const ParameterContext& context, const RightHandSide& rhs, const double* y, const double* twist_y,
               const double* z) {
  // Wrenches do work on the twists of y.
  double sum = 0;
  for (const auto& w : rhs.wrenches)
    sum += dot6(body_link_twist(context.model, twist_y, w.body), w.value);
  for (const auto& e : rhs.dofs)
    sum += y[e.index] * e.value;
  for (const auto& e : rhs.rows)
    sum += z[e.index] * e.value;
  return sum;
}

}  // namespace coulomb
