#include "coulomb/dynamics/end_shift.hpp"

#include "coulomb/base/small_math.hpp"
#include "coulomb/configuration.hpp"

namespace coulomb {
namespace {

/// a = K^-1 (I w' x w').
void end_rate(const RigidSpin& body, const double* after, double* out) {
  double momentum[3];
  double torque[3];
  rotate(body.I, after, momentum);
  cross3(momentum, after, torque);
  rotate(body.K_inverse, torque, out);
}

/// h (a x c + w' x n) - n, n = w' x c.
void inner_of(const RigidSpin& body, double h, const double* after, const double* rate, double* out) {
  double n[3];
  cross3(after, body.c, n);
  cross3(rate, body.c, out);
  add_cross3(after, n, out);
  for (int i = 0; i < 3; ++i)
    out[i] = h * out[i] - n[i];
}

/// exp(x) y.
void turned_by(const double* x, const double* y, double* out) {
  double change[3];
  turn_minus_one(x, y, change);
  for (int i = 0; i < 3; ++i)
    out[i] = y[i] + change[i];
}

}  // namespace

void end_shift(const RigidSpin& body, double h, const double* after, double* shift) {
  double rate[3];
  double turned[3];
  double x[3];
  end_rate(body, after, rate);
  for (int i = 0; i < 3; ++i)
    x[i] = h * after[i];

  // Delta_w
  turned_by(x, rate, turned);
  for (int i = 0; i < 3; ++i) {
    shift[i] = 0;
    shift[3 + i] = after[i] - body.w[i] - h * turned[i];
  }
  if (body.linear < 0) return;

  // Delta_v
  double inner[3];
  inner_of(body, h, after, rate, inner);
  turned_by(x, inner, shift);
  add_cross3(body.w, body.c, shift);
}

EndShift::EndShift(const RigidSpin& body, const SpinParts& parts, double h)
    : body_(body), parts_(parts), turned_(turned_spin(body, parts)), h_(h) {
  end_shift(body, h, turned_.w, shift_);
  rotate(body.I, turned_.w, momentum_);
  inner_of(body, h, turned_.w, turned_.rate, inner_);

  // The turn of the step.
  double x[3];
  for (int i = 0; i < 3; ++i)
    x[i] = h * turned_.w[i];
  for (int k = 0; k < 3; ++k) {
    double axis[3] = {0, 0, 0};
    double moved[3];
    axis[k] = 1;
    turned_by(x, axis, moved);
    for (int i = 0; i < 3; ++i)
      T_[3 * i + k] = moved[i];
  }
  rotation_right_jacobian(x, J_);
  for (int k = 0; k < 6; ++k)
    inertia_[k] = by_inertia(k);
}

/// K da = (I dw') x w' + (I w') x dw' + torque.
void EndShift::add_rate(const double* torque, Column& out) const {
  double momentum[3];
  double right[3];
  rotate(body_.I, out.after, momentum);
  cross3(momentum, turned_.w, right);
  add_cross3(momentum_, out.after, right);
  add3(right, torque, right);
  rotate(body_.K_inverse, right, out.rate);
}

/// I and K change alike, by the unit change of entry (i, j) and (j, i).
EndShift::Column EndShift::by_inertia(int k) const {
  Column out;
  for (int i = 0; i < 3; ++i)
    out.after[i] = turned_.by_I[i][k] + turned_.by_K[i][k];

  double torque[3];
  torque_by_inertia(k, turned_.w, turned_.rate, torque);
  add_rate(torque, out);
  return out;
}

/// A free joint's I and K are about the centre of mass: those about the origin less what the parallel axes say.
EndShift::Column EndShift::by_steiner(const double* steiner) const {
  Column out;
  for (int n = 0; n < 6; ++n) {
    axpy3(-steiner[n], inertia_[n].after, out.after);
    axpy3(-steiner[n], inertia_[n].rate, out.rate);
  }
  return out;
}

EndShift::Column EndShift::column(int column) const {
  constexpr double none[3] = {0, 0, 0};
  Column out;
  if (column < SpinDerivative::inertia) {
    // By component k of w; a limited turn lasts the shorter the faster it is.
    const int k = column - SpinDerivative::spin;
    out.w[k] = 1;
    for (int i = 0; i < 3; ++i)
      out.after[i] = turned_.by_w[3 * i + k];
    if (parts_.limited) {
      axpy3(-parts_.time * body_.w[k] / dot3(body_.w, body_.w), turned_.rate, out.after);
    }
    add_rate(none, out);
    return out;
  }
  if (column < SpinDerivative::armature) return inertia_[column - SpinDerivative::inertia];
  if (column < SpinDerivative::first_moment) {
    // K alone has it, on its diagonal.
    constexpr int diagonal[3] = {0, 2, 5};
    const int k = column - SpinDerivative::armature;
    double torque[3] = {0, 0, 0};
    torque[k] = -turned_.rate[k];
    for (int i = 0; i < 3; ++i)
      out.after[i] = turned_.by_K[i][diagonal[k]];
    add_rate(torque, out);
    return out;
  }
  if (column == SpinDerivative::time) {
    // Where the turn is limited, w(h) no longer moves with it.
    out.h = 1;
    if (!parts_.limited) copy3(turned_.rate, out.after);
    add_rate(none, out);
    return out;
  }
  if (body_.linear < 0) return out;

  // Those about the origin less (p.p 1 - p p^T) / m, p = m c: by p, and by m at fixed p.
  const double* c = body_.c;
  const bool by_mass = column == SpinDerivative::mass;
  const int k = column - SpinDerivative::first_moment;
  double steiner[6];
  for (int n = 0; n < 6; ++n)
    steiner[n] = by_mass ? parallel_axes_by_mass(c, n) : parallel_axes_by_moment(c, n, k);
  out = by_steiner(steiner);
  if (by_mass)
    axpy3(-1 / body_.mass, c, out.c);
  else
    out.c[k] = 1 / body_.mass;
  return out;
}

void EndShift::along(const Column& x, double* out) const {
  // T y moves by T (dy + J dx x y), dx = h dw' + w' dh.
  double dx[3];
  double turn[3];
  for (int i = 0; i < 3; ++i)
    dx[i] = h_ * x.after[i] + turned_.w[i] * x.h;
  rotate(J_, dx, turn);

  // dDelta_w = dw' - dw - T (h da + a dh + h J dx x a)
  double inside[3];
  double moved[3];
  cross3(turn, turned_.rate, inside);
  for (int i = 0; i < 3; ++i)
    inside[i] = h_ * (inside[i] + x.rate[i]) + turned_.rate[i] * x.h;
  rotate(T_, inside, moved);
  for (int i = 0; i < 3; ++i)
    out[3 + i] = x.after[i] - x.w[i] - moved[i];
  out[0] = out[1] = out[2] = 0;
  if (body_.linear < 0) return;

  // dDelta_v = dw x c + w x dc + T (d(inner) + J dx x inner)
  double n[3];
  double dn[3];
  double still[3];
  double changed[3];
  cross3(turned_.w, body_.c, n);
  cross3(x.after, body_.c, dn);
  add_cross3(turned_.w, x.c, dn);
  cross3(turned_.rate, body_.c, still);
  add_cross3(turned_.w, n, still);
  cross3(x.rate, body_.c, changed);
  add_cross3(turned_.rate, x.c, changed);
  add_cross3(x.after, n, changed);
  add_cross3(turned_.w, dn, changed);
  cross3(turn, inner_, inside);
  for (int i = 0; i < 3; ++i)
    inside[i] += h_ * changed[i] + x.h * still[i] - dn[i];
  rotate(T_, inside, out);
  add_cross3(x.w, body_.c, out);
  add_cross3(body_.w, x.c, out);
}

}  // namespace coulomb
