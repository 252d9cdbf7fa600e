// How far two moving shapes can advance before their signed distance may reach a threshold: the step of conservative advancement,
// docs/theory.md (I9), (I10).
//
// For a fixed unit n the signed distance is at least the gap along n. Of a point x of a shape with twist (v, w) about o, after s:
//   n.x(s) >= n.(o + s v) + (n + s n x w).(x - o) - K s^2 / 2,   K >= |n.x''|,
// and the least of the linear part over a convex shape is a support value in the direction turned by s n x w. So
//   g(s) = n.(o_A + s v_A) - h_A(-(n + s n x w_A)) - n.(o_B + s v_B) - h_B(n + s n x w_B) - K s^2 / 2
// is a lower bound of the signed distance, and concave: above the threshold at the ends of an interval, above it throughout.
// Sliding, and spinning about n or of a sphere, cost nothing. A half-space carries n: see half_space_gap. Between edges and faces
// that turn, n may turn with them, at any constant rate: g is then still a lower bound, and loses nothing at first order where a fixed
// n would cut the edges' ends off (turn_gap).
#pragma once

#include "coulomb/collision/continuous/signed_distance.hpp"
#include "coulomb/collision/shape.hpp"

namespace coulomb {

/// A shape, the motion of its body now, and bounds of that motion until the horizon.
struct MovingShape {
  Shape shape;
  double origin[3] = {0, 0, 0};  ///< of the body, a point that moves with `velocity`
  double velocity[3] = {0, 0, 0};
  double angular[3] = {0, 0, 0};

  /// Bounds of the above's norms
  double speed = 0;
  double angular_speed = 0;

  /// Bounds of their rates, without drift
  double acceleration = 0;
  double angular_acceleration = 0;

  double drift[3] = {0, 0, 0};  ///< constant part of the origin's acceleration
  double reach = 0;             ///< from the origin to the core's farthest point
};

/// -d(signed distance)/ds at s = 0.
double closing_speed(const MovingShape& a, const MovingShape& b, const SignedDistance& now);

/// Bound of |d(signed distance)/ds| until the horizon.
double relative_speed_bound(const MovingShape& a, const MovingShape& b, double horizon);

/// g(horizon) along now.normal.
double separation_bound(const MovingShape& a, const MovingShape& b, const SignedDistance& now, double horizon);

struct SafeAdvance {
  double time = 0;
  bool cut = false;  ///< far from what the witness points alone would allow: another direction may prove more
};

/// Some s in [0, horizon] such that the signed distance stays >= threshold from 0 to s: near the largest that the bound can prove,
/// and 0 only if now.distance is not above the threshold. turn: rate of the direction, perpendicular to it (not for half-spaces).
SafeAdvance safe_advance(const MovingShape& a, const MovingShape& b, const SignedDistance& now, double threshold,
                         double horizon, const double* turn = nullptr);

/// The same, where edges or faces that turn cut it short also along a normal that turns: at the given rate, across it, or with one of the
/// shapes.
double longest_advance(const MovingShape& a, const MovingShape& b, const SignedDistance& now, double threshold,
                       double horizon, const double turn[3]);

}  // namespace coulomb
