#include "coulomb/constraints/row_derivatives.hpp"

#include <algorithm>

#include "coulomb/small_math.hpp"

// A contact's row r at the point p, A minus B:  c = r . (v_A(p) - v_B(p)) + beta.
//   kinematics at a point and direction fixed in the world:  J_k . (V x* e) + psi_dot_k . e,  e = (r, p x r)
//   moving point and frame:  dr . u + (r x (w_A - w_B)) . dp + (dbeta/dPhi) dPhi
// with u the relative velocity and V, w, u at v+ (the normal row of a bouncing contact: at v+ + e v).
// The impulse f at p:  df = lambda_n dn - n (lambda_t . dn), since the frame does not spin about n (the cone cannot see it; a
// pyramid does: frame_spin adds its part); the
// inverse-dynamics derivative holds f at a material point of each body, so what is added is (dp - v_X(p)) x f.

namespace coulomb {
namespace {

struct Velocity {
  double twist_a[6], twist_b[6];
};

Velocity row_velocity(const Model& model, const BodyRows& b, const RowVelocities& velocities, double restitution) {
  Velocity out;
  const double* a_plus = body_link_twist(model, velocities.twist_plus, b.body_a);
  const double* b_plus = body_link_twist(model, velocities.twist_plus, b.body_b);
  const double* a = body_link_twist(model, velocities.twist, b.body_a);
  const double* bb = body_link_twist(model, velocities.twist, b.body_b);
  for (int i = 0; i < 6; ++i) {
    out.twist_a[i] = restitution == 0 ? a_plus[i] : a_plus[i] + restitution * a[i];
    out.twist_b[i] = restitution == 0 ? b_plus[i] : b_plus[i] + restitution * bb[i];
  }
  return out;
}

// G += (l_v, l_w + r x l_v): a covector on the twist at the point, taken to the reference point.
COULOMB_INLINE void add_point_covector(const double* l, const double* r, double* G) {
  double moment[3];
  cross3(r, l, moment);
  for (int i = 0; i < 3; ++i) {
    G[i] += l[i];
    G[3 + i] += l[3 + i] + moment[i];
  }
}

COULOMB_INLINE void kinematic_row(const double* twist, const double* e, double sign, double* G_out, double* e_out) {
  cross_force(twist, e, G_out);
  for (int i = 0; i < 6; ++i) {
    G_out[i] *= sign;
    e_out[i] = sign * e[i];
  }
}

struct Geometry {
  double r_a[3], r_b[3];
};

// Rows of a contact: e and G of the moving sides.
COULOMB_SIMD void contact_block(const BodyRows& b, const ContactMotion& motion, const Velocity& at_plus,
                                const Velocity& bouncing, const Geometry& at, bool moving_a, bool moving_b,
                                BodyRowDerivative& out) {
  for (int i = 0; i < 3; ++i) {
    const Velocity& w = i == 2 ? bouncing : at_plus;
    const double* r = b.axes[i];
    double e[6], eta[3], u[3], va[3], vb[3], spin[3], l[12];
    cross3(w.twist_a + 3, at.r_a, va);
    cross3(w.twist_b + 3, at.r_b, vb);
    for (int j = 0; j < 3; ++j) u[j] = w.twist_a[j] + va[j] - w.twist_b[j] - vb[j];
    sub3(w.twist_a + 3, w.twist_b + 3, spin);
    cross3(r, spin, eta);
    double du_dn[3];  // dr . u as a covector on dn
    const double normal_speed = dot3(b.axes[2], u);
    for (int j = 0; j < 3; ++j) du_dn[j] = i == 2 ? u[j] : -normal_speed * r[j];
    const double slope = i == 2 ? b.dbias_dphi : 0.0;
    for (int c = 0; c < 12; ++c)
      l[c] = slope * motion.ddistance[c] + du_dn[0] * motion.dnormal[0][c] + du_dn[1] * motion.dnormal[1][c] +
             du_dn[2] * motion.dnormal[2][c] + eta[0] * motion.dpoint[0][c] + eta[1] * motion.dpoint[1][c] +
             eta[2] * motion.dpoint[2][c];
    copy3(r, e);
    if (moving_a) {
      cross3(at.r_a, r, e + 3);
      kinematic_row(w.twist_a, e, 1, out.G_a[i], out.e_a[i]);
      add_point_covector(l, at.r_a, out.G_a[i]);
    }
    if (moving_b) {
      cross3(at.r_b, r, e + 3);
      kinematic_row(w.twist_b, e, -1, out.G_b[i], out.e_b[i]);
      add_point_covector(l + 6, at.r_b, out.G_b[i]);
    }
  }
}

void equality_block(const Model& model, const BodyRows& b, const RowVelocities& velocities, const Geometry& at,
                    BodyRowDerivative& out) {
  const Velocity w = row_velocity(model, b, velocities, 0);
  for (int i = 0; i < b.size; ++i) {
    for (const double sign : {1.0, -1.0}) {
      const double *twist = sign > 0 ? w.twist_a : w.twist_b, *r = sign > 0 ? at.r_a : at.r_b;
      double *G = sign > 0 ? out.G_a[i] : out.G_b[i], *e_out = sign > 0 ? out.e_a[i] : out.e_b[i];
      double e[6] = {0, 0, 0, 0, 0, 0};
      if (i < 3) {
        copy3(b.axes[i], e);
        cross3(r, e, e + 3);
      } else {
        e[i] = b.torque_scale;
      }
      kinematic_row(twist, e, sign, G, e_out);
      if (i < 3) {
        double l[6] = {0, 0, 0, 0, 0, 0};
        cross3(b.axes[i], twist + 3, l);
        for (int j = 0; j < 3; ++j) l[j] = sign * (l[j] + b.dbias_dphi * b.axes[i][j]);
        add_point_covector(l, r, G);
      } else {
        const double* E = b.rotation_error;
        const double trace = E[0] + E[4] + E[8], scale = 0.5 * sign * b.dbias_dphi * b.torque_scale;
        for (int j = 0; j < 3; ++j) {
          const double entry = sign > 0 ? E[3 * (i - 3) + j] : E[3 * j + i - 3];
          G[3 + j] += scale * ((j == i - 3 ? trace : 0.0) - entry);
        }
      }
    }
  }
}

// Columns of M on a twist at the point p, taken to the reference point: M_w -= M_v [r]x.
COULOMB_INLINE void shift_columns(double M[6][6], const double* r) {
  for (int i = 0; i < 6; ++i) {
    const double* m = M[i];
    double t[3];
    cross3(r, m, t);  // -(M_v [r]x) as a row is r x M_v
    for (int j = 0; j < 3; ++j) M[i][3 + j] += t[j];
  }
}

COULOMB_SIMD void wrench_change(const BodyRows& b, const ContactMotion& motion, const double* lambda,
                                const Geometry& at, bool moving_a, bool moving_b, double on_a[2][6][6],
                                double on_b[2][6][6]) {
  const double *t1 = b.axes[0], *t2 = b.axes[1], *n = b.axes[2];
  const double ln = lambda[b.row + 2];
  double tangential[3], f[3];
  for (int i = 0; i < 3; ++i) {
    tangential[i] = lambda[b.row] * t1[i] + lambda[b.row + 1] * t2[i];
    f[i] = tangential[i] + ln * n[i];
  }
  for (int c = moving_a ? 0 : 6; c < (moving_b ? 12 : 6); ++c) {
    const double dn[3] = {motion.dnormal[0][c], motion.dnormal[1][c], motion.dnormal[2][c]};
    const double along = dot3(tangential, dn);
    double df[3], shift_a[3], shift_b[3], moment_a[3], moment_b[3];
    for (int i = 0; i < 3; ++i) {
      df[i] = ln * dn[i] - along * n[i];
      shift_a[i] = motion.dpoint[i][c] - (c == i ? 1.0 : 0.0);
      shift_b[i] = motion.dpoint[i][c] - (c == 6 + i ? 1.0 : 0.0);
    }
    cross3(at.r_a, df, moment_a);
    add_cross3(shift_a, f, moment_a);
    cross3(at.r_b, df, moment_b);
    add_cross3(shift_b, f, moment_b);
    const int side = c / 6, column = c % 6;
    for (int i = 0; i < 3; ++i) {
      on_a[side][i][column] = df[i];
      on_a[side][3 + i][column] = moment_a[i];
      on_b[side][i][column] = -df[i];
      on_b[side][3 + i][column] = -moment_b[i];
    }
  }
  if (moving_a) shift_columns(on_a[0], at.r_a), shift_columns(on_b[0], at.r_a);
  if (moving_b) shift_columns(on_a[1], at.r_b), shift_columns(on_b[1], at.r_b);
}

// A pyramid's axes spin about the normal by psi = contact_frame_spin(n, dn), a covector on the two twists:
//   dc_1 += psi t2 . u,  dc_2 -= psi t1 . u,  df += psi (lambda_1 t2 - lambda_2 t1)
void frame_spin(const BodyRows& b, const ContactMotion& motion, const Velocity& w, const Geometry& at,
                const double* lambda, bool moving_a, bool moving_b, BodyRowDerivative& out,
                PairWrenchDerivative& pair) {
  double l[12], psi_a[6] = {0, 0, 0, 0, 0, 0}, psi_b[6] = {0, 0, 0, 0, 0, 0};
  for (int c = 0; c < 12; ++c) {
    const double dn[3] = {motion.dnormal[0][c], motion.dnormal[1][c], motion.dnormal[2][c]};
    l[c] = contact_frame_spin(b.axes[2], dn);
  }
  add_point_covector(l, at.r_a, psi_a);
  add_point_covector(l + 6, at.r_b, psi_b);
  double va[3], vb[3], u[3], df[3], force_a[6], force_b[6];
  cross3(w.twist_a + 3, at.r_a, va);
  cross3(w.twist_b + 3, at.r_b, vb);
  for (int i = 0; i < 3; ++i) {
    u[i] = w.twist_a[i] + va[i] - w.twist_b[i] - vb[i];
    df[i] = lambda[b.row] * b.axes[1][i] - lambda[b.row + 1] * b.axes[0][i];
    force_a[i] = df[i], force_b[i] = -df[i];
  }
  cross3(at.r_a, force_a, force_a + 3);
  cross3(at.r_b, force_b, force_b + 3);
  const double u1 = dot3(b.axes[0], u), u2 = dot3(b.axes[1], u);
  for (int j = 0; j < 6; ++j) {
    if (moving_a) {
      out.G_a[0][j] += u2 * psi_a[j], out.G_a[1][j] -= u1 * psi_a[j];
      for (int i = 0; i < 6; ++i) pair.aa[i][j] += force_a[i] * psi_a[j], pair.ba[i][j] += force_b[i] * psi_a[j];
    }
    if (moving_b) {
      out.G_b[0][j] += u2 * psi_b[j], out.G_b[1][j] -= u1 * psi_b[j];
      for (int i = 0; i < 6; ++i) pair.ab[i][j] += force_a[i] * psi_b[j], pair.bb[i][j] += force_b[i] * psi_b[j];
    }
  }
}

PairWrenchDerivative& find_pair(RowDerivatives& out, int a, int b) {
  int& chain = out.pair_of_body[std::max(a, b)];  // not the world, which many bodies touch
  for (int i = chain; i >= 0; i = out.next_pair[i])
    if (out.wrenches[i].body_a == a && out.wrenches[i].body_b == b) return out.wrenches[i];
  out.next_pair.push_back(chain);
  chain = static_cast<int>(out.wrenches.size());
  PairWrenchDerivative& fresh = out.wrenches.emplace_back();  // zero
  fresh.body_a = a, fresh.body_b = b;
  return fresh;
}

void add6(const double from[6][6], double to[6][6]) {
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 6; ++j) to[i][j] += from[i][j];
}

}  // namespace

void row_derivatives(const Model& model, const DynamicsWorkspace& dynamics, const ConstraintRows& rows,
                     const std::vector<Contact>& contacts, const RowVelocities& velocities, const double* lambda,
                     const std::vector<unsigned char>& inactive, RowDerivatives& out, const SmoothedMotion* smoothed) {
  out.blocks.resize(rows.body_rows.size());
  out.motions.resize(contacts.size());
  out.wrenches.clear(), out.next_pair.clear();
  out.pair_of_body.assign(model.num_bodies, -1);
  for (std::size_t i = 0; i < rows.body_rows.size(); ++i) {
    const BodyRows& b = rows.body_rows[i];
    if (inactive[b.block]) continue;
    Geometry at;
    relative_point(model, dynamics, b.body_a, b.point_a, at.r_a);
    relative_point(model, dynamics, b.body_b, b.point_b, at.r_b);
    if (b.contact < 0) {
      equality_block(model, b, velocities, at, out.blocks[i]);
      continue;
    }
    ContactMotion& motion = out.motions[b.contact];
    if (smoothed) (*smoothed)(contacts[b.contact], motion);
    else contact_motion(contacts[b.contact], motion);
    const bool moving_a = model.body_last_dof[b.body_a] >= 0, moving_b = model.body_last_dof[b.body_b] >= 0;
    const Velocity at_plus = row_velocity(model, b, velocities, 0);
    contact_block(b, motion, at_plus, b.restitution == 0 ? at_plus : row_velocity(model, b, velocities, b.restitution),
                  at, moving_a, moving_b, out.blocks[i]);
    double on_a[2][6][6], on_b[2][6][6];
    wrench_change(b, motion, lambda, at, moving_a, moving_b, on_a, on_b);
    PairWrenchDerivative& pair = find_pair(out, b.body_a, b.body_b);
    if (moving_a) add6(on_a[0], pair.aa), add6(on_b[0], pair.ba);
    if (moving_b) add6(on_a[1], pair.ab), add6(on_b[1], pair.bb);
    if (rows.blocks[b.block].type == BlockType::pyramid)
      frame_spin(b, motion, at_plus, at, lambda, moving_a, moving_b, out.blocks[i], pair);
  }
}

}  // namespace coulomb
