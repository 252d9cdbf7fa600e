// One rigid body that turns without torque: K dw/dt = -w x I w, by its Taylor series, and what spin.cpp and spin_derivatives.cpp share.
//
//   w(t) = sum x_k,   m_k = I x_k,   x_(k+1) = -t / (k + 1) K^-1 sum_(i <= k) x_i x m_(k - i)
//
// |dw/dt| <= |w|^2 / sqrt(3), since the moments of a rigid body satisfy the triangle inequality, so that |x_k| <= |w| r^k with
// r = t |w| / sqrt(3). The motion is followed in equal parts of r <= 1/8, each with as many terms as rounding asks for. Number of
// parts and of terms depend on |w| alone and change w(t) by rounding only.
#pragma once

#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/spin.hpp"

namespace coulomb {

/// What a free or ball joint carries, its other joints held, in the joint's axes.
struct RigidSpin {
  int dof = 0;      ///< first of the three rotations
  int linear = -1;  ///< first of the three translations; -1: a ball
  double w[3];      ///< rad/s
  double K[9];      ///< I + armature
  double K_inverse[9];
  double I[9];  ///< about the centre of mass (free) or the anchor (ball)

  double mass = 0;          ///< free: kg
  double c[3] = {0, 0, 0};  ///< free: centre of mass from the origin
  double gyroscopic[3];     ///< w x I w
  double a_0[3];            ///< -K^-1 (w x I w)
};

/// False: no spin, one whose square is no double, or K is not positive definite.
bool rigid_spin(const Model& model, const DynamicsWorkspace& ws, int joint, const double* v, RigidSpin& out);

/// The joint carries one body of equal moments of inertia, about its centre of mass: Delta = 0 whatever the state.
bool turns_evenly(const Model& model, int joint);

inline constexpr int largest_order = 20;

/// Terms x_k and m_k of one part.
struct SpinSeries {
  int order = 0;
  double part = 0;  ///< s
  double x[largest_order + 1][3];
  double m[largest_order + 1][3];
};

/// How a motion of length `time` is followed.
struct SpinParts {
  int count = 1;
  int order = 1;
  double time = 0;       ///< s: no longer than it takes to turn by largest_turn
  bool limited = false;  ///< it is that
};
SpinParts spin_parts(const RigidSpin& body, double time);

/// w after the time; more parts where these are too few. False: the series does not converge, the inertia is no rigid body's.
bool follow_spin(const RigidSpin& body, SpinParts& parts, double* after);

/// The series from w on, and its sum, w after the part.
void sum_series(const RigidSpin& body, const double* w, SpinSeries& series, double* after);

/// exp(x) n - n.
void turn_minus_one(const double* x, const double* n, double* out);

}  // namespace coulomb
