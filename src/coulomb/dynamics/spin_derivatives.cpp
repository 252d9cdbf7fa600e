// How the shift Delta of a joint moves with its spin, with what it carries, and with the time step.
#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/dynamics/end_shift.hpp"
#include "coulomb/dynamics/turned_spin.hpp"

namespace coulomb {
namespace {

/// [a] of [a] b = a x b.
void cross_matrix(const double* a, double* out) {
  const double value[9] = {0, -a[2], a[1], a[2], 0, -a[0], -a[1], a[0], 0};
  std::copy_n(value, 9, out);
}

/// One column of the derivative: what an input moves, and what follows.
struct SpinColumn {
  double w[3] = {0, 0, 0};
  double after[3] = {0, 0, 0};
  double a_0[3] = {0, 0, 0};
  double c[3] = {0, 0, 0};
  double h = 0;
};

/// Derivatives of w(h), a_0 and Delta by the columns of SpinDerivative; Delta_v in the joint's axes.
class ShiftDerivative {
 public:
  ShiftDerivative(const RigidSpin& body, const SpinParts& parts, double h)
      : body_(body), parts_(parts), turned_(turned_spin(body, parts)), h_(h) {
    rotate(body.I, body.w, momentum_);
    for (int i = 0; i < 3; ++i)
      angular_[i] = turned_.w[i] - body.w[i] - h * body.a_0[i];
    for (int k = 0; k < 6; ++k)
      inertia_[k] = by_inertia(k);
    if (body.linear >= 0) prepare_linear();
  }

  /// Delta of the origin's velocity.
  const double* linear() const { return d_; }

  /// What one column of SpinDerivative moves.
  SpinColumn column(int column) const {
    if (column < SpinDerivative::inertia) {
      return by_spin(column - SpinDerivative::spin);
    }
    if (column < SpinDerivative::armature) {
      return inertia_[column - SpinDerivative::inertia];
    }
    if (column < SpinDerivative::first_moment) {
      return by_armature(column - SpinDerivative::armature);
    }
    if (column < SpinDerivative::mass) {
      return by_first_moment(column - SpinDerivative::first_moment);
    }
    if (column == SpinDerivative::mass) return by_mass();

    // The last one is h: where the turn is limited, w(h) no longer moves with it.
    SpinColumn out;
    out.h = 1;
    if (!parts_.limited) copy3(turned_.rate, out.after);
    return out;
  }

  /// Change of Delta (6).
  // Delta_w = w(h) - w - h a_0
  void along(const SpinColumn& x, double* out) const {
    double* angular = out + 3;
    for (int i = 0; i < 3; ++i)
      angular[i] = x.after[i] - x.w[i] - x.h * body_.a_0[i] - h_ * x.a_0[i];

    // A ball has no origin that moves.
    if (body_.linear < 0) {
      out[0] = out[1] = out[2] = 0;
      return;
    }

    // c x dDelta_w, and the rest of Delta_v.
    cross3(body_.c, angular, out);
    for (int i = 0; i < 3; ++i)
      out[i] += dot3(by_after_ + 3 * i, x.after) + dot3(by_w_ + 3 * i, x.w) + dot3(by_c_ + 3 * i, x.c) + x.h * by_h_[i];
  }

 private:
  /// d = c x Delta_w + h w x (w x c) - (exp(x) - 1) n,  x = h w(h), n = w(h) x c, by w(h), w, c and h, but for Delta_w.
  void prepare_linear() {
    const double* w = body_.w;
    const double* after = turned_.w;
    const double* c = body_.c;

    // The value (spin.hpp), by the same operations as in spin.cpp.
    double x[3];
    double n[3];
    double wc[3];
    double wwc[3];
    double turned_n[3];
    for (int i = 0; i < 3; ++i)
      x[i] = h_ * after[i];
    cross3(after, c, n);
    cross3(w, c, wc);
    cross3(w, wc, wwc);
    turn_minus_one(x, n, turned_n);
    cross3(c, angular_, d_);
    for (int i = 0; i < 3; ++i)
      d_[i] += h_ * wwc[i] - turned_n[i];

    // T = exp(x) - 1, and exp(x + dx) = exp(x) exp(J dx): d(T n) = T dn - exp(x) [n] J dx.
    double T[9];
    double turn[9];
    double J[9];
    double cross_n[9];
    for (int k = 0; k < 3; ++k) {
      double axis[3] = {0, 0, 0};
      double moved[3];
      axis[k] = 1;
      turn_minus_one(x, axis, moved);
      for (int i = 0; i < 3; ++i) {
        T[3 * i + k] = moved[i];
        turn[3 * i + k] = moved[i] + axis[i];
      }
    }

    // T n moves with x, that is, with h w(h).
    rotation_right_jacobian(x, J);
    cross_matrix(n, cross_n);
    double by_x[9];  // -d(T n)/dx
    multiply3(turn, cross_n, by_x);
    multiply3(by_x, J, by_x);

    // All else is products of cross matrices.
    double cross_c[9];
    double cross_w[9];
    double cross_after[9];
    double cross_wc[9];
    double T_c[9];
    double T_after[9];
    double w_c[9];
    double w_w[9];
    double cross_angular[9];
    cross_matrix(c, cross_c);
    cross_matrix(w, cross_w);
    cross_matrix(after, cross_after);
    cross_matrix(wc, cross_wc);
    cross_matrix(angular_, cross_angular);
    multiply3(T, cross_c, T_c);
    multiply3(T, cross_after, T_after);
    multiply3(cross_w, cross_c, w_c);
    multiply3(cross_w, cross_w, w_w);

    // Collected by w(h), w and c ...
    for (int i = 0; i < 9; ++i) {
      by_after_[i] = T_c[i] + h_ * by_x[i];
      by_w_[i] = -h_ * (cross_wc[i] + w_c[i]);
      by_c_[i] = h_ * w_w[i] - T_after[i] - cross_angular[i];
    }

    // ... and by h.
    for (int i = 0; i < 3; ++i)
      by_h_[i] = wwc[i] + dot3(by_x + 3 * i, after);
  }

  /// By component k of w.
  SpinColumn by_spin(int k) const {
    SpinColumn out;
    out.w[k] = 1;
    for (int i = 0; i < 3; ++i)
      out.after[i] = turned_.by_w[3 * i + k];

    // A limited turn lasts the shorter the faster it is.
    if (parts_.limited) {
      const double dt = -parts_.time * body_.w[k] / dot3(body_.w, body_.w);
      axpy3(dt, turned_.rate, out.after);
    }

    // K a_0 = -w x I w
    const double column[3] = {body_.I[k], body_.I[3 + k], body_.I[6 + k]};
    double right[3];
    cross3(momentum_, out.w, right);
    add_cross3(column, body_.w, right);
    rotate(body_.K_inverse, right, out.a_0);
    return out;
  }

  /// I and K change alike.
  SpinColumn by_inertia(int k) const {
    SpinColumn out;
    for (int i = 0; i < 3; ++i)
      out.after[i] = turned_.by_I[i][k] + turned_.by_K[i][k];

    // K da_0 = (dI w) x w - dK a_0
    double right[3];
    torque_by_inertia(k, body_.w, body_.a_0, right);
    rotate(body_.K_inverse, right, out.a_0);
    return out;
  }

  /// K alone has it, on its diagonal.
  SpinColumn by_armature(int k) const {
    constexpr int diagonal[3] = {0, 2, 5};
    SpinColumn out;
    for (int i = 0; i < 3; ++i) {
      out.after[i] = turned_.by_K[i][diagonal[k]];
      out.a_0[i] = -body_.K_inverse[3 * i + k] * body_.a_0[k];
    }
    return out;
  }

  /// A free joint's I and K are about the centre of mass: those about the origin less (p.p 1 - p p^T) / m, p = m c.
  SpinColumn by_first_moment(int k) const {
    SpinColumn out;
    if (body_.linear < 0) return out;

    const double* c = body_.c;
    for (int n = 0; n < 6; ++n) {
      const double steiner = parallel_axes_by_moment(c, n, k);
      axpy3(-steiner, inertia_[n].after, out.after);
      axpy3(-steiner, inertia_[n].a_0, out.a_0);
    }
    out.c[k] = 1 / body_.mass;
    return out;
  }

  /// As by_first_moment, with c = p / m at fixed p.
  SpinColumn by_mass() const {
    SpinColumn out;
    if (body_.linear < 0) return out;

    const double* c = body_.c;
    for (int n = 0; n < 6; ++n) {
      const double steiner = parallel_axes_by_mass(c, n);
      axpy3(-steiner, inertia_[n].after, out.after);
      axpy3(-steiner, inertia_[n].a_0, out.a_0);
    }
    axpy3(-1 / body_.mass, c, out.c);
    return out;
  }

  const RigidSpin& body_;
  const SpinParts& parts_;
  TurnedSpin turned_;
  double h_;
  double momentum_[3];  // I w
  double angular_[3];
  double d_[3] = {0, 0, 0};  // Delta_w, Delta_v
  SpinColumn inertia_[6];
  double by_after_[9];
  double by_w_[9];
  double by_c_[9];
  double by_h_[3];  // of Delta_v
};

/// Delta by an inertia row (mass, first moments, S; 10) about the tree's reference point, from that by the joint's own inertia. With
/// p the joint's origin and A its axes in the world, S about p is S - p mc^T - mc p^T + m p p^T, and I = tr S 1 - A^T S A.
void set_by_row(const DynamicsWorkspace& ws, SpinDerivative& spin) {
  // Axes and origin of the joint, from its columns.
  const double* columns = &ws.columns[8 * spin.dof];
  double A[9];
  double p[3] = {0, 0, 0};
  for (int j = 0; j < 3; ++j) {
    const double* axis = columns + 8 * j + 3;
    for (int i = 0; i < 3; ++i)
      A[3 * i + j] = axis[i];
    if (spin.linear < 0) add_cross3(axis, columns + 8 * j, p);  // a column is (p x a, a): the sum is 2 p
  }
  for (double& x : p)
    x *= 0.5;

  // Row by row: the gradient by I, turned into the world and carried over to S ...
  for (int r = 0; r < 6; ++r) {
    const double* by = spin.by[r];
    const double* g = by + SpinDerivative::inertia;  // of xx xy yy xz yz zz
    const double G[9] = {g[0], 0.5 * g[1], 0.5 * g[3], 0.5 * g[1], g[2], 0.5 * g[4], 0.5 * g[3], 0.5 * g[4], g[5]};
    double turned[9];
    double of_S[9];
    multiply3(A, G, turned);
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j)
        of_S[3 * i + j] = (i == j ? G[0] + G[4] + G[8] : 0.0) - dot3(turned + 3 * i, A + 3 * j);

    // ... and from p to the reference point, which the first moments and the mass pay for.
    double along[3];
    rotate(of_S, p, along);
    double* out = spin.by_row[r];
    rotate(A, by + SpinDerivative::first_moment, out + 1);
    axpy3(-2, along, out + 1);
    out[0] = by[SpinDerivative::mass] + dot3(p, along);
    for (int k = 0; k < 6; ++k)
      out[4 + k] = (row_of[k] == column_of[k] ? 1 : 2) * of_S[3 * row_of[k] + column_of[k]];
  }
}

/// All columns in the joint's axes, Delta_v turned into the world.
template <class Shift>
void store_derivative(const DynamicsWorkspace& ws, const Model& model, const Shift& shift, SpinDerivative& spin) {
  const double* R = &ws.body_rotation[9 * model.joint_body[spin.joint]];
  for (int column = 0; column < SpinDerivative::count; ++column) {
    double change[6];
    shift.along(shift.column(column), change);
    if (spin.linear >= 0) rotate(R, change, change);
    for (int i = 0; i < 6; ++i)
      spin.by[i][column] = change[i];
  }
  set_by_row(ws, spin);

  // R exp(dq) d = R d + R (dq x d)
  if (spin.linear < 0) return;
  for (int k = 0; k < 3; ++k) {
    double axis[3] = {0, 0, 0};
    double moved[3];
    axis[k] = 1;
    cross3(axis, shift.linear(), moved);
    rotate(R, moved, moved);
    for (int i = 0; i < 3; ++i)
      spin.turned[3 * i + k] = moved[i];
  }
}

}  // namespace

void spin_derivatives(const Model& model, const DynamicsWorkspace& ws, const double* v, double h, bool even,
                      std::vector<SpinDerivative>& out, const SpinRule& rule) {
  out.clear();
  for (int joint = 0; joint < model.num_joints; ++joint) {
    const JointType type = model.joint_type[joint];
    if (type != JointType::free && type != JointType::ball) continue;
    if (rule.left_out && rule.left_out[model.body_tree[model.joint_body[joint]]]) continue;

    // Only what spins, and whose spin a series follows.
    RigidSpin body;
    if ((!even && turns_evenly(model, joint)) || !rigid_spin(model, ws, joint, v, body)) continue;
    SpinParts parts = spin_parts(body, h);
    double after[3];
    if (!follow_spin(body, parts, after)) continue;

    SpinDerivative& spin = out.emplace_back();
    spin.joint = joint;
    spin.dof = body.dof;
    spin.linear = body.linear;

    if (rule.law == SpinLaw::at_end)
      store_derivative(ws, model, EndShift(body, parts, h), spin);
    else
      store_derivative(ws, model, ShiftDerivative(body, parts, h), spin);
  }
}

void spin_change(const SpinDerivative& spin, const double* row, double* change) {
  // The row is linear in mass, first moments and S.
  for (int i = 0; i < 6; ++i) {
    const double* by = spin.by_row[i];
    change[i] = by[0] * row[0] + dot3(by + 1, row + 1) + dot6(by + 4, row + 4);
  }
}

void displaced_inertia(const double* inertia, const double* twist, double* row) {
  const double* mc = inertia + 1;
  const double* s = inertia + 4;  // xx xy yy xz yz zz
  const double* v = twist;
  const double* w = twist + 3;

  // d(m c) = w x (m c) + m v,   dS = [w] S - S [w] + v (m c)^T + (m c) v^T
  row[0] = row[10] = row[11] = 0;
  cross3(w, mc, row + 1);
  axpy3(inertia[0], v, row + 1);
  const double S[9] = {s[0], s[1], s[3], s[1], s[2], s[4], s[3], s[4], s[5]};
  double turned[9];  // [w] S, whose columns are w x those of S
  for (int j = 0; j < 3; ++j) {
    const double column[3] = {S[j], S[3 + j], S[6 + j]};
    double crossed[3];
    cross3(w, column, crossed);
    for (int i = 0; i < 3; ++i)
      turned[3 * i + j] = crossed[i];
  }
  for (int k = 0; k < 6; ++k) {
    const int i = row_of[k];
    const int j = column_of[k];
    row[4 + k] = turned[3 * i + j] + turned[3 * j + i] + v[i] * mc[j] + mc[i] * v[j];
  }
}

}  // namespace coulomb
