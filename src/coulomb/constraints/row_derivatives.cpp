#include "coulomb/constraints/row_derivatives.hpp"

#include <algorithm>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/motion/smoothed_motion.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/model.hpp"
#include "coulomb/solvers/constraint_problem.hpp"

// A contact's row r at the point p, A minus B:  c = r . (v_A(p) - v_B(p)) + beta.
//   kinematics at a point and direction fixed in the world:  J_k . (V x* e) + psi_dot_k . e,  e = (r, p x r)
//   moving point and frame:  dr . u + (r x (w_A - w_B)) . dp + (dbeta/dPhi) dPhi
// with u the relative velocity and V, w, u at v+ (the normal row of a bouncing contact: at v+ + e v).
// (docs/theory.md (G10)). The impulse f at p, (G11):  df = lambda_n dn - n (lambda_t . dn), since the frame does not spin about n (the
// cone cannot see it; a pyramid does: add_frame_spin adds its part); the inverse-dynamics derivative holds f at a material point of each
// body, so what is added is (dp - v_X(p)) x f.
//
// Rows of torsional and rolling friction, l a . (w_A - w_B) with a an axis of the frame, act at no point: e = (0, l a), l da . (w_A - w_B),
// and their torque m turns as f does, dm = m_n dn - n (m_t . dn).

namespace coulomb {
namespace {

/// Twists of the two bodies of a block.
struct Velocity {
  double twist_a[6];
  double twist_b[6];
};

/// At v+, and for a bouncing row e v more.
Velocity row_velocity(const Model& model, const BodyRows& b, const RowVelocities& velocities, double restitution) {
  Velocity out;
  const double* a_plus = body_link_twist(model, velocities.twist_plus, b.body_a);
  const double* b_plus = body_link_twist(model, velocities.twist_plus, b.body_b);
  const double* a_before = body_link_twist(model, velocities.twist, b.body_a);
  const double* b_before = body_link_twist(model, velocities.twist, b.body_b);
  for (int i = 0; i < 6; ++i) {
    out.twist_a[i] = restitution == 0 ? a_plus[i] : a_plus[i] + restitution * a_before[i];
    out.twist_b[i] = restitution == 0 ? b_plus[i] : b_plus[i] + restitution * b_before[i];
  }
  return out;
}

/// Where a block acts: its points about the references of the two trees, and which of its bodies can move.
struct Geometry {
  double r_a[3];
  double r_b[3];
  bool moving_a;
  bool moving_b;
};

/// G += (l_v, l_w + r x l_v): a covector on the twist at the point, taken to the reference point.
COULOMB_INLINE void add_point_covector(const double* l, const double* r, double* G) {
  double moment[3];
  cross3(r, l, moment);
  for (int i = 0; i < 3; ++i) {
    G[i] += l[i];
    G[3 + i] += l[3 + i] + moment[i];
  }
}

/// Kinematics of a row at a point and direction fixed in the world: G = sign V x* e, e = sign e.
COULOMB_INLINE void kinematic_row(const double* twist, const double* e, double sign, double* G_out, double* e_out) {
  cross_force(twist, e, G_out);
  for (int i = 0; i < 6; ++i) {
    G_out[i] *= sign;
    e_out[i] = sign * e[i];
  }
}

/// Velocity of A against B at the point.
COULOMB_INLINE void relative_velocity(const Velocity& w, const Geometry& at, double* u) {
  double va[3];
  double vb[3];
  cross3(w.twist_a + 3, at.r_a, va);
  cross3(w.twist_b + 3, at.r_b, vb);
  for (int j = 0; j < 3; ++j)
    u[j] = w.twist_a[j] + va[j] - w.twist_b[j] - vb[j];
}

/// Of a contact: the velocity in world axes that is added to the one of its bodies, but does not depend on them.
void fixed_velocity(const RowState& state, const BodyRows& b, double* fixed) {
  std::fill_n(fixed, 3, 0.0);
  for (int i = 0; state.fixed && i < 3; ++i)
    axpy3(state.fixed[b.row + i], b.axes[i], fixed);
}

/// Rows of a contact: e and G of the moving sides. The normal row sees the bouncing velocity.
COULOMB_SIMD void contact_block(const BodyRows& b, const ContactMotion& motion, const Velocity& at_plus,
                                const Velocity& bouncing, const Geometry& at, const double* fixed,
                                BodyRowDerivative& out) {
  for (int i = 0; i < 3; ++i) {
    const Velocity& w = i == 2 ? bouncing : at_plus;
    const double* r = b.axes[i];

    // r x (w_A - w_B), the covector on dp.
    double u[3];
    double spin[3];
    double by_point[3];
    relative_velocity(w, at, u);
    sub3(w.twist_a + 3, w.twist_b + 3, spin);
    cross3(r, spin, by_point);

    // dr . u, a covector on dn.
    add3(u, fixed, u);
    double by_normal[3];
    const double normal_speed = dot3(b.axes[2], u);
    for (int j = 0; j < 3; ++j)
      by_normal[j] = i == 2 ? u[j] : -normal_speed * r[j];

    // How distance, normal and point move, as one covector on the twists of both bodies at the point.
    double l[12];
    const double slope = i == 2 ? b.dbias_dphi : 0.0;
    for (int c = 0; c < 12; ++c)
      l[c] = slope * motion.ddistance[c] + by_normal[0] * motion.dnormal[0][c] + by_normal[1] * motion.dnormal[1][c] +
             by_normal[2] * motion.dnormal[2][c] + by_point[0] * motion.dpoint[0][c] +
             by_point[1] * motion.dpoint[1][c] + by_point[2] * motion.dpoint[2][c];

    // And the kinematics of the row where it is.
    double e[6];
    copy3(r, e);
    if (at.moving_a) {
      cross3(at.r_a, r, e + 3);
      kinematic_row(w.twist_a, e, 1, out.G_a[i], out.e_a[i]);
      add_point_covector(l, at.r_a, out.G_a[i]);
    }
    if (at.moving_b) {
      cross3(at.r_b, r, e + 3);
      kinematic_row(w.twist_b, e, -1, out.G_b[i], out.e_b[i]);
      add_point_covector(l + 6, at.r_b, out.G_b[i]);
    }
  }
}

/// A velocity beside the one of the bodies, along the rows that turn, that does not turn with them.
void fixed_spin(const RowState& state, const BodyRows& b, double* fixed) {
  std::fill_n(fixed, 3, 0.0);
  for (int i = 3; state.fixed && i < b.size; ++i)
    axpy3(state.fixed[b.row + i] / b.turning_weight(i), b.axes[b.turning_axis(i)], fixed);
}

/// How a pyramid's frame spins about its normal, a covector on the twists of both bodies at the point; a cone's does not.
void frame_spin(const Block& block, const BodyRows& b, const ContactMotion& motion, double* psi) {
  std::fill_n(psi, 12, 0.0);
  if (block.type != BlockType::pyramid) return;
  for (int c = 0; c < 12; ++c) {
    const double dn[3] = {motion.dnormal[0][c], motion.dnormal[1][c], motion.dnormal[2][c]};
    psi[c] = contact_frame_spin(b.axes[2], dn);
  }
}

/// Rows of a contact that turn.
void turning_rows(const RowState& state, const BodyRows& b, const ContactMotion& motion, const double* psi,
                  const Velocity& w, const Geometry& at, BodyRowDerivative& out) {
  double spin[3];
  double fixed[3];
  sub3(w.twist_a + 3, w.twist_b + 3, spin);
  fixed_spin(state, b, fixed);
  add3(spin, fixed, spin);
  const double about_normal = dot3(b.axes[2], spin);
  for (int i = 3; i < b.size; ++i) {
    // The axis turns with the normal.
    const int axis = b.turning_axis(i);
    const double weight = b.turning_weight(i);
    double by_normal[3];
    for (int j = 0; j < 3; ++j)
      by_normal[j] = weight * (axis == 2 ? spin[j] : -about_normal * b.axes[axis][j]);
    double spun[3];
    cross3(b.axes[2], b.axes[axis], spun);
    const double by_spin = weight * dot3(spun, spin);
    double l[12];
    for (int c = 0; c < 12; ++c)
      l[c] = by_normal[0] * motion.dnormal[0][c] + by_normal[1] * motion.dnormal[1][c] +
             by_normal[2] * motion.dnormal[2][c] + by_spin * psi[c];

    // And the kinematics of the row.
    double e[6] = {0, 0, 0, 0, 0, 0};
    b.angular_row(i, e + 3);
    if (at.moving_a) {
      kinematic_row(w.twist_a, e, 1, out.G_a[i], out.e_a[i]);
      add_point_covector(l, at.r_a, out.G_a[i]);
    }
    if (at.moving_b) {
      kinematic_row(w.twist_b, e, -1, out.G_b[i], out.e_b[i]);
      add_point_covector(l + 6, at.r_b, out.G_b[i]);
    }
  }
}

/// One side of an equality: its body's twist and point, its sign.
struct Side {
  const double* twist;
  const double* r;
  double sign;
};

/// Row i of an equality on the distance of two points: these are material, and the bias follows the distance.
void point_row(const BodyRows& b, int i, const Side& side, double* G, double* e_out) {
  double e[6] = {0, 0, 0, 0, 0, 0};
  copy3(b.axes[i], e);
  cross3(side.r, e, e + 3);
  kinematic_row(side.twist, e, side.sign, G, e_out);

  // An error that goes at the largest speed changes the bias across its direction alone.
  double l[6] = {0, 0, 0, 0, 0, 0};
  cross3(b.axes[i], side.twist + 3, l);
  for (int j = 0; j < 3; ++j) {
    double along = 0;
    for (int k = 0; k < 3; ++k)
      along += b.fastest[k] * b.axes[k][j];
    l[j] = side.sign * (l[j] + b.bias_slope[0] * (b.axes[i][j] - b.fastest[i] * along));
  }
  add_point_covector(l, side.r, G);
}

/// Row i >= 3 of a weld: the bias follows the axial vector of R_a R_b^T = E, whose derivative by the rotation of a side is
/// (tr E - E) / 2, or its transpose.
void angular_row(const BodyRows& b, int i, const Side& side, double* G, double* e_out) {
  double e[6] = {0, 0, 0, 0, 0, 0};
  e[i] = b.torque_scale;
  kinematic_row(side.twist, e, side.sign, G, e_out);

  const double* E = b.rotation_error;
  const double trace = E[0] + E[4] + E[8];
  const double scale = 0.5 * side.sign * b.bias_slope[1] * b.torque_scale;
  const auto slope = [&](int row, int column) {
    const double entry = side.sign > 0 ? E[3 * row + column] : E[3 * column + row];
    return (column == row ? trace : 0.0) - entry;
  };
  for (int j = 0; j < 3; ++j) {
    double along = 0;
    for (int k = 0; k < 3; ++k)
      along += b.fastest[3 + k] * slope(k, j);
    G[3 + j] += scale * (slope(i - 3, j) - b.fastest[i] * along);
  }
}

/// The rows of a soft equality, whose numbers depend on the size n of its error,
///   n dn = p . dp + torque_scale^2 sin(angle)/4 axis . (w_A - w_B)
void add_softness(const BodyRows& b, const SoftBlock& soft, const Side& side, Matrix6& G) {
  if (!(soft.error > 0)) return;
  double l[6] = {0, 0, 0, 0, 0, 0};
  for (int j = 0; j < 3; ++j) {
    l[j] = side.sign * b.phi[j] / soft.error;
    if (b.size == 6) l[3 + j] = side.sign * 0.25 * b.torque_scale * b.phi[3 + j] / soft.error;
  }
  double on_twist[6] = {0, 0, 0, 0, 0, 0};
  add_point_covector(l, side.r, on_twist);
  for (int i = 0; i < b.size; ++i)
    for (int j = 0; j < 6; ++j)
      G[i][j] += soft.slope[i] * on_twist[j];
}

/// Rows of an equality, all of which see the velocity before the step where a mass moves along.
void equality_block(const RowState& state, const BodyRows& b, const Geometry& at, BodyRowDerivative& out) {
  const Velocity w = row_velocity(state.model, b, state.velocities, b.restitution);
  const Side side_a{w.twist_a, at.r_a, 1};
  const Side side_b{w.twist_b, at.r_b, -1};
  for (int i = 0; i < b.size; ++i) {
    const auto row = i < 3 ? point_row : angular_row;
    row(b, i, side_a, out.G_a[i], out.e_a[i]);
    row(b, i, side_b, out.G_b[i], out.e_b[i]);
  }
  if (b.soft < 0) return;
  add_softness(b, state.rows.soft_blocks[b.soft], side_a, out.G_a);
  add_softness(b, state.rows.soft_blocks[b.soft], side_b, out.G_b);
}

/// Columns of M on a twist at the point p, taken to the reference point: M_w -= M_v [r]x, a row of which is r x M_v.
COULOMB_INLINE void shift_columns(Matrix6& M, const double* r) {
  for (int i = 0; i < 6; ++i) {
    const double* m = M[i];
    double t[3];
    cross3(r, m, t);
    for (int j = 0; j < 3; ++j)
      M[i][3 + j] += t[j];
  }
}

/// Changes of the wrenches on A and on B per unit twist of either: [by][component][twist].
struct WrenchChange {
  Matrix6 on_a[2];
  Matrix6 on_b[2];
};

/// (G11), for the sides that can move.
COULOMB_SIMD void wrench_change(const BodyRows& b, const ContactMotion& motion, const double* lambda,
                                const Geometry& at, WrenchChange& out) {
  // The impulse, and its part in the plane of contact.
  const double* t1 = b.axes[0];
  const double* t2 = b.axes[1];
  const double* n = b.axes[2];
  const double ln = lambda[b.row + 2];
  double tangential[3];
  double f[3];
  for (int i = 0; i < 3; ++i) {
    tangential[i] = lambda[b.row] * t1[i] + lambda[b.row + 1] * t2[i];
    f[i] = tangential[i] + ln * n[i];
  }

  for (int c = at.moving_a ? 0 : 6; c < (at.moving_b ? 12 : 6); ++c) {
    // It turns with the normal, and its point moves against the material of each body.
    const double dn[3] = {motion.dnormal[0][c], motion.dnormal[1][c], motion.dnormal[2][c]};
    const double along = dot3(tangential, dn);
    double df[3];
    double shift_a[3];
    double shift_b[3];
    for (int i = 0; i < 3; ++i) {
      df[i] = ln * dn[i] - along * n[i];
      shift_a[i] = motion.dpoint[i][c] - (c == i ? 1.0 : 0.0);
      shift_b[i] = motion.dpoint[i][c] - (c == 6 + i ? 1.0 : 0.0);
    }

    // Moments about the references.
    double moment_a[3];
    double moment_b[3];
    cross3(at.r_a, df, moment_a);
    add_cross3(shift_a, f, moment_a);
    cross3(at.r_b, df, moment_b);
    add_cross3(shift_b, f, moment_b);

    const int side = c / 6;
    const int column = c % 6;
    for (int i = 0; i < 3; ++i) {
      out.on_a[side][i][column] = df[i];
      out.on_a[side][3 + i][column] = moment_a[i];
      out.on_b[side][i][column] = -df[i];
      out.on_b[side][3 + i][column] = -moment_b[i];
    }
  }

  // Twists at the point become twists about the references.
  if (at.moving_a) {
    shift_columns(out.on_a[0], at.r_a);
    shift_columns(out.on_b[0], at.r_a);
  }
  if (at.moving_b) {
    shift_columns(out.on_a[1], at.r_b);
    shift_columns(out.on_b[1], at.r_b);
  }
}

/// The torque of the rows that turn, which turns with the normal and spins with the frame: into the change of the wrenches.
void add_torque_change(const BodyRows& b, const ContactMotion& motion, const double* psi, const double* lambda,
                       const Geometry& at, PairWrenchDerivative& pair) {
  const double* n = b.axes[2];
  double m[3];
  double tangential[3];
  block_torque(b, lambda + b.row, m);
  const double about_normal = dot3(m, n);
  copy3(m, tangential);
  axpy3(-about_normal, n, tangential);
  double spun[3];
  cross3(n, tangential, spun);

  // dm on the twists at the point, then about the references.
  double dm[3][12];
  for (int c = 0; c < 12; ++c) {
    const double dn[3] = {motion.dnormal[0][c], motion.dnormal[1][c], motion.dnormal[2][c]};
    const double along = dot3(tangential, dn);
    for (int i = 0; i < 3; ++i)
      dm[i][c] = about_normal * dn[i] - along * n[i] + psi[c] * spun[i];
  }
  for (int i = 0; i < 3; ++i) {
    double by_a[6] = {0, 0, 0, 0, 0, 0};
    double by_b[6] = {0, 0, 0, 0, 0, 0};
    add_point_covector(dm[i], at.r_a, by_a);
    add_point_covector(dm[i] + 6, at.r_b, by_b);
    for (int j = 0; j < 6; ++j) {
      if (at.moving_a) {
        pair.aa[3 + i][j] += by_a[j];
        pair.ba[3 + i][j] -= by_a[j];
      }
      if (at.moving_b) {
        pair.ab[3 + i][j] += by_b[j];
        pair.bb[3 + i][j] -= by_b[j];
      }
    }
  }
}

void add_outer6(const double* x, const double* y, int column, Matrix6& to) {
  for (int i = 0; i < 6; ++i)
    to[i][column] += x[i] * y[column];
}

/// A pyramid's axes spin about the normal by psi = contact_frame_spin(n, dn), a covector on the two twists:
///   dc_1 += psi t2 . u,  dc_2 -= psi t1 . u,  df += psi (lambda_1 t2 - lambda_2 t1)
void add_frame_spin(const Block& block, const BodyRows& b, const ContactMotion& motion, const Velocity& w,
                    const Geometry& at, const double* lambda, const double* fixed, BodyRowDerivative& out,
                    PairWrenchDerivative& pair) {
  // psi on either twist.
  double l[12];
  double psi_a[6] = {0, 0, 0, 0, 0, 0};
  double psi_b[6] = {0, 0, 0, 0, 0, 0};
  frame_spin(block, b, motion, l);
  add_point_covector(l, at.r_a, psi_a);
  add_point_covector(l + 6, at.r_b, psi_b);

  // The tangential velocity, and the impulse per spin as wrenches on the bodies.
  double u[3];
  double force_a[6];
  double force_b[6];
  relative_velocity(w, at, u);
  add3(u, fixed, u);
  for (int i = 0; i < 3; ++i) {
    const double df = lambda[b.row] * b.axes[1][i] - lambda[b.row + 1] * b.axes[0][i];
    force_a[i] = df;
    force_b[i] = -df;
  }
  cross3(at.r_a, force_a, force_a + 3);
  cross3(at.r_b, force_b, force_b + 3);
  const double u1 = dot3(b.axes[0], u);
  const double u2 = dot3(b.axes[1], u);

  for (int j = 0; j < 6; ++j) {
    if (at.moving_a) {
      out.G_a[0][j] += u2 * psi_a[j];
      out.G_a[1][j] -= u1 * psi_a[j];
      add_outer6(force_a, psi_a, j, pair.aa);
      add_outer6(force_b, psi_a, j, pair.ba);
    }
    if (at.moving_b) {
      out.G_b[0][j] += u2 * psi_b[j];
      out.G_b[1][j] -= u1 * psi_b[j];
      add_outer6(force_a, psi_b, j, pair.ab);
      add_outer6(force_b, psi_b, j, pair.bb);
    }
  }
}

/// The entry of two bodies, made if it is not there.
PairWrenchDerivative& find_pair(RowDerivatives& out, int a, int b) {
  // By the later of them: not the world, which many bodies touch.
  int& chain = out.pair_of_body[std::max(a, b)];
  for (int i = chain; i >= 0; i = out.next_pair[i])
    if (out.wrenches[i].body_a == a && out.wrenches[i].body_b == b) return out.wrenches[i];

  // A new one is zero.
  out.next_pair.push_back(chain);
  chain = int(out.wrenches.size());
  PairWrenchDerivative& fresh = out.wrenches.emplace_back();
  fresh.body_a = a;
  fresh.body_b = b;
  return fresh;
}

void add6(const Matrix6& from, Matrix6& to) {
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 6; ++j)
      to[i][j] += from[i][j];
}

}  // namespace

void row_derivatives(const RowState& state, const std::vector<Contact>& contacts, RowDerivatives& out,
                     const SmoothedMotion* smoothed) {
  const Model& model = state.model;
  const ConstraintRows& rows = state.rows;
  out.blocks.resize(rows.body_rows.size());
  out.motions.resize(contacts.size());
  out.wrenches.clear();
  out.next_pair.clear();
  out.pair_of_body.assign(model.num_bodies, -1);

  for (std::size_t i = 0; i < rows.body_rows.size(); ++i) {
    const BodyRows& b = rows.body_rows[i];
    if (state.inactive[b.block]) continue;

    Geometry at;
    relative_point(model, state.dynamics, b.body_a, b.point_a, at.r_a);
    relative_point(model, state.dynamics, b.body_b, b.point_b, at.r_b);
    at.moving_a = model.body_last_dof[b.body_a] >= 0;
    at.moving_b = model.body_last_dof[b.body_b] >= 0;
    if (b.contact < 0) {
      equality_block(state, b, at, out.blocks[i]);
      continue;
    }

    // A contact's point and normal move by the rule of its shapes.
    ContactMotion& motion = out.motions[b.contact];
    if (smoothed)
      (*smoothed)(contacts[b.contact], motion);
    else
      contact_motion(contacts[b.contact], motion);

    // Its rows.
    const Velocity at_plus = row_velocity(model, b, state.velocities, 0);
    const Velocity bouncing = b.restitution == 0 ? at_plus : row_velocity(model, b, state.velocities, b.restitution);
    double fixed[3];
    fixed_velocity(state, b, fixed);
    contact_block(b, motion, at_plus, bouncing, at, fixed, out.blocks[i]);

    // Its wrenches, summed over the contacts of the same bodies.
    WrenchChange change;
    wrench_change(b, motion, state.lambda, at, change);
    PairWrenchDerivative& pair = find_pair(out, b.body_a, b.body_b);
    if (at.moving_a) {
      add6(change.on_a[0], pair.aa);
      add6(change.on_b[0], pair.ba);
    }
    if (at.moving_b) {
      add6(change.on_a[1], pair.ab);
      add6(change.on_b[1], pair.bb);
    }
    if (rows.blocks[b.block].type == BlockType::pyramid)
      add_frame_spin(rows.blocks[b.block], b, motion, at_plus, at, state.lambda, fixed, out.blocks[i], pair);
    if (b.size == 3) continue;
    double psi[12];
    frame_spin(rows.blocks[b.block], b, motion, psi);
    turning_rows(state, b, motion, psi, at_plus, at, out.blocks[i]);
    add_torque_change(b, motion, psi, state.lambda, at, pair);
  }
}

}  // namespace coulomb
