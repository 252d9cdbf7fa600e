#include "coulomb/dynamics/muscle_curves.hpp"

namespace coulomb {
namespace {

/// A number of a curve and its slope.
struct Curve {
  double value = 0;
  double slope = 0;
};

/// Between `foot`, where it is zero and level, and `top`, where it is one and level: a parabola up to halfway, another one from there.
Curve rise(double foot, double top, double x) {
  const double half = 0.5 * (top - foot);
  const double from_foot = (x - foot) / half;
  const double to_top = (top - x) / half;
  if (from_foot <= 1) return {0.5 * from_foot * from_foot, from_foot / half};
  return {1 - 0.5 * to_top * to_top, to_top / half};
}

/// FL(L)
Curve active_curve(const Muscle& m, double L) {
  if (L < m.shortest || L > m.longest) return {};
  return L <= 1 ? rise(m.shortest, 1, L) : rise(m.longest, 1, L);
}

/// FV(V)
Curve velocity_curve(const Muscle& m, double V) {
  const double beyond = m.stretched - 1;
  if (V <= -1) return {};
  if (V <= 0) return {(V + 1) * (V + 1), 2 * (V + 1)};
  if (V > beyond) return {m.stretched, 0};
  return {m.stretched - (beyond - V) * (beyond - V) / beyond, 2 * (beyond - V) / beyond};
}

/// FP(L)
Curve passive_curve(const Muscle& m, double L) {
  const double half = 0.5 * (m.longest - 1);
  const double x = (L - 1) / half;
  if (x <= 0) return {};
  if (x <= 1) return {0.5 * m.passive * x * x, m.passive * x / half};
  return {m.passive * (x - 0.5), m.passive / half};
}

/// m: the length at which the muscle is strongest.
double unit_length(const Muscle& m) { return (m.length_range[1] - m.length_range[0]) / (m.range[1] - m.range[0]); }

/// L
double relative_length(const Muscle& m, double length) {
  return m.range[0] + (length - m.length_range[0]) / unit_length(m);
}

}  // namespace

MuscleForce muscle_gain(const Muscle& muscle, double length, double speed) {
  const double unit = unit_length(muscle);
  const double unit_speed = unit * muscle.fastest;
  const Curve active = active_curve(muscle, relative_length(muscle, length));
  const Curve velocity = velocity_curve(muscle, speed / unit_speed);
  const double F = muscle.peak_force;
  return {-F * active.value * velocity.value, -F * active.slope * velocity.value / unit,
          -F * active.value * velocity.slope / unit_speed};
}

MuscleForce muscle_bias(const Muscle& muscle, double length) {
  const Curve passive = passive_curve(muscle, relative_length(muscle, length));
  return {-muscle.peak_force * passive.value, -muscle.peak_force * passive.slope / unit_length(muscle), 0};
}

}  // namespace coulomb
