// Delta of a joint whose forces are taken at the end of the step (backward Euler): docs/theory.md (B14).
//
// Without a torque such a step has to end with w' = w(h), the spin of torque-free motion (rigid_spin.hpp), and with the centre of mass going
// straight. Its equation, with a = -K^-1 (w' x I w') the acceleration at the end and T = exp(h w') the turn of the step, does so if the
// velocity that it starts from is v + Delta,
//
//   Delta_w = w' - w - h T a
//   Delta_v = R [w x c + T (h (a x c + w' x n) - n)],   n = w' x c     (free joint: velocity of its origin, R its rotation)
#pragma once

#include "coulomb/dynamics/turned_spin.hpp"

namespace coulomb {

/// Delta (6) in the joint's axes: linear (zero of a ball), angular. after: w(h).
void end_shift(const RigidSpin& body, double h, const double* after, double* shift);

/// Its derivatives by the columns of SpinDerivative.
class EndShift {
 public:
  EndShift(const RigidSpin& body, const SpinParts& parts, double h);

  /// What an input moves, and what follows: w, w', a, c and h.
  struct Column {
    double w[3] = {0, 0, 0};
    double after[3] = {0, 0, 0};
    double rate[3] = {0, 0, 0};
    double c[3] = {0, 0, 0};
    double h = 0;
  };
  Column column(int column) const;
  /// Change of Delta (6).
  void along(const Column& x, double* out) const;
  /// Delta_v.
  const double* linear() const { return shift_; }

 private:
  void add_rate(const double* torque, Column& out) const;
  Column by_inertia(int k) const;
  Column by_steiner(const double* steiner) const;

  const RigidSpin& body_;
  const SpinParts& parts_;
  TurnedSpin turned_;
  double h_;
  double shift_[6];
  double momentum_[3];  // I w'
  double inner_[3];     // h (a x c + w' x n) - n
  double T_[9];         // exp(h w')
  double J_[9];         // its right Jacobian
  Column inertia_[6];
};

}  // namespace coulomb
