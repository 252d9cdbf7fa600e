// The lower bound g(s) of a pair, for two bounded shapes and for a half-space, and the largest step that it proves safe.
#include "coulomb/collision/continuous/separation_bound.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"

namespace coulomb {
namespace {

/// Of the witness points' advance.
constexpr double cut_share = 0.5;

/// The linear prediction of one shape: the support value of its core in a direction that turns at a constant rate.
struct Side {
  const MovingShape* body;
  double sign;          ///< +1: the shape lies towards +n (A), -1: towards -n (B)
  double direction[3];  ///< outward at s = 0, towards the other shape
  double turn[3];       ///< its rate

  double start;  ///< sign n.o
  double rate;   ///< sign n.v

  /// sign times n.x after s of the core's foremost point, in the linear prediction.
  // The direction after s, and the core's foremost point along it.
  double value(double s) const {
    double d[3];
    double p[3];
    for (int i = 0; i < 3; ++i)
      d[i] = direction[i] + s * turn[i];

    int hint = -1;
    core_support(body->shape, d, p, hint);
    sub3(p, body->origin, p);
    return start + s * rate - dot3(d, p);
  }
};

/// Velocity of a point of the shape.
void velocity_at(const MovingShape& m, const double* point, double* out) {
  double arm[3];
  sub3(point, m.origin, arm);
  copy3(m.velocity, out);
  add_cross3(m.angular, arm, out);
}

/// Outward is -n for A (sign 1), n for B (-1); it turns as the body does.
Side make_side(const MovingShape& m, const double* normal, double sign) {
  Side side;
  side.body = &m;
  side.sign = sign;
  cross3(normal, m.angular, side.turn);
  for (int i = 0; i < 3; ++i) {
    side.direction[i] = -sign * normal[i];
    side.turn[i] *= -sign;
  }
  side.start = sign * dot3(normal, m.origin);
  side.rate = sign * dot3(normal, m.velocity);
  return side;
}

/// Bound of |n.x''| over the shape until the horizon, drift apart: of n.(w x (w x r)) = (n x w).(w x r) at most |n x w| |w| |r|.
/// turning: the speed at which n itself turns.
double curvature(const MovingShape& m, const double* normal, double turning, double horizon) {
  // How far n tilts against the axis of the turn, now and until the horizon.
  double across[3];
  cross3(normal, m.angular, across);
  const double rate = m.angular_acceleration + turning * m.angular_speed;
  const double tilt = std::min(m.angular_speed, norm3(across) + rate * horizon);
  return m.acceleration + (m.angular_acceleration + tilt * m.angular_speed) * m.reach;
}

/// g(s) of a pair.
struct Gap {
  Side a;
  Side b;
  double radii;
  double half_curvature;

  double value(double s) const { return a.value(s) + b.value(s) - radii - half_curvature * s * s; }
};

/// The half-space B carries n = up: the height up(s).(x(s) - o_B(s)) has the rate up.(v_x - v_B) + (w_B x up).(x - o_B), linear in x,
/// so that its prediction is a support value of A in the direction turned by up x (w_A - w_B); and |height''| is at most
///   (W_B^2 + L_B) |x - o_B| + 2 W_B |v_x - v_B| + |a_x - a_B|.
Gap half_space_gap(const MovingShape& a, const MovingShape& plane, const double* up, double horizon) {
  // A side whose direction turns with both bodies.
  Gap gap;
  gap.a = make_side(a, up, 1);
  double arm[3];
  double relative[3];
  double turn[3];
  double carried[3];
  sub3(a.origin, plane.shape.position, arm);
  velocity_at(plane, plane.shape.position, relative);
  sub3(a.velocity, relative, relative);
  cross3(plane.angular, up, carried);
  cross3(up, a.angular, turn);
  add3(turn, carried, turn);
  gap.a.start = dot3(up, arm);
  gap.a.rate = dot3(up, relative) + dot3(carried, arm);
  for (int i = 0; i < 3; ++i)
    gap.a.turn[i] = -turn[i];

  // The other side is a plane.
  gap.b.body = nullptr;
  gap.radii = core_radius(a.shape);
  double k = curvature(a, up, plane.angular_speed, horizon);

  // A plane that moves itself.
  if (plane.angular_speed > 0 || plane.acceleration > 0) {
    double offset[3];
    sub3(plane.shape.position, plane.origin, offset);
    const double w = plane.angular_speed;
    const double l = plane.angular_acceleration;
    const double r = norm3(offset);
    const double speed = a.speed + a.angular_speed * a.reach + plane.speed + w * r;
    k += (w * w + l) * (norm3(arm) + a.reach + horizon * speed) + 2 * w * speed + plane.acceleration + (l + w * w) * r;
  }
  gap.half_curvature = k;
  return gap;
}

/// The direction n(s) turns at the rate m: of x_A(s) and x_B(s), the gap n(s).(x_A - x_B) has the rate n.(v_A - v_B) + m.(x_A - x_B),
/// linear in the points, and its second rate is at most that along a fixed n and |m|^2 |x_A - x_B| + 2 |m| |v_A - v_B|.
void turn_gap(const MovingShape& a, const MovingShape& b, const double* m, const SignedDistance& now, double horizon,
              Gap& gap) {
  double from_a[3];
  double from_b[3];
  double apart[3];
  double relative[3];

  // Each side turns by m, about A's witness.
  sub3(a.origin, now.point_a, from_a);
  sub3(b.origin, now.point_a, from_b);
  gap.a.rate += dot3(m, from_a);
  gap.b.rate -= dot3(m, from_b);
  for (int i = 0; i < 3; ++i) {
    gap.a.turn[i] -= m[i];
    gap.b.turn[i] += m[i];
  }

  // What the turn of n adds to the curvature.
  sub3(a.origin, b.origin, apart);
  sub3(a.velocity, b.velocity, relative);
  const double speed = norm3(relative) + horizon * (a.acceleration + b.acceleration + norm3(a.drift) + norm3(b.drift)) +
                       a.angular_speed * a.reach + b.angular_speed * b.reach;
  const double w = norm3(m);
  const double size = norm3(apart) + a.reach + b.reach + horizon * speed;
  gap.half_curvature =
      curvature(a, now.normal, w, horizon) + curvature(b, now.normal, w, horizon) + w * (w * size + 2 * speed);
}

/// Adds what drift does to the gap: exact along a fixed normal; what opens it is left out, to keep the bound concave.
void add_drift(const MovingShape& a, const MovingShape& b, const double* normal, bool carried, Gap& gap) {
  double drift[3];
  sub3(a.drift, b.drift, drift);
  const double along = carried ? -norm3(drift) : dot3(normal, drift);
  gap.half_curvature = 0.5 * (1 + 1e-12) * (gap.half_curvature + std::max(0.0, -along));
}

double value(const Gap& gap, double s) {
  if (gap.b.body) return gap.value(s);
  return gap.a.value(s) - gap.radii - gap.half_curvature * s * s;
}

Gap make_gap(const MovingShape& a, const MovingShape& b, const SignedDistance& now, double horizon,
             const double* turn = nullptr) {
  Gap gap;
  const double* normal = now.normal;
  const bool half_space = a.shape.type == ShapeType::half_space || b.shape.type == ShapeType::half_space;

  // A half-space carries its own normal.
  if (half_space) {
    const bool first = a.shape.type == ShapeType::half_space;
    const double up[3] = {first ? -normal[0] : normal[0], first ? -normal[1] : normal[1],
                          first ? -normal[2] : normal[2]};
    const MovingShape& plane = first ? a : b;
    gap = half_space_gap(first ? b : a, plane, up, horizon);
    add_drift(a, b, normal, plane.angular_speed > 0, gap);
    return gap;
  }

  // Two bounded shapes along a fixed normal, or one that turns.
  gap.a = make_side(a, normal, 1);
  gap.b = make_side(b, normal, -1);
  gap.radii = core_radius(a.shape) + core_radius(b.shape);
  if (turn)
    turn_gap(a, b, turn, now, horizon, gap);
  else
    gap.half_curvature = curvature(a, normal, 0, horizon) + curvature(b, normal, 0, horizon);
  add_drift(a, b, normal, turn != nullptr, gap);
  return gap;
}
}  // namespace

double closing_speed(const MovingShape& a, const MovingShape& b, const SignedDistance& now) {
  double va[3];
  double vb[3];
  velocity_at(a, now.point_a, va);
  velocity_at(b, now.point_b, vb);
  sub3(vb, va, va);
  return dot3(now.normal, va);
}

double relative_speed_bound(const MovingShape& a, const MovingShape& b, double horizon) {
  const double speed = a.speed + a.angular_speed * (a.reach + core_radius(a.shape)) + b.speed +
                       b.angular_speed * (b.reach + core_radius(b.shape));
  for (const MovingShape* plane : {&a, &b}) {
    if (plane->shape.type != ShapeType::half_space || plane->angular_speed == 0) continue;

    // Where it is, the half-space moves like a point of its own.
    const MovingShape& other = plane == &a ? b : a;
    double arm[3];
    sub3(other.origin, plane->origin, arm);
    return speed + plane->angular_speed * (norm3(arm) + other.reach + core_radius(other.shape) + horizon * speed);
  }
  return speed;
}

double separation_bound(const MovingShape& a, const MovingShape& b, const SignedDistance& now, double horizon) {
  return value(make_gap(a, b, now, horizon), horizon);
}

SafeAdvance safe_advance(const MovingShape& a, const MovingShape& b, const SignedDistance& now, double threshold,
                         double horizon, const double* turn) {
  // Nothing to prove: it is too near already, or no time is left.
  const double room = now.distance - threshold;
  if (!(room > 0) || !(horizon > 0)) return {};

  const Gap gap = make_gap(a, b, now, horizon, turn);
  const double closing = closing_speed(a, b, now);
  const double k = 2 * gap.half_curvature;

  // The witness alone reaches the threshold here: the bound cannot prove more.
  const double root = std::sqrt(closing * closing + 2 * k * room);
  const double sum = closing + root;
  double high = sum > 0 ? std::min(horizon, 2 * room / sum) : horizon;
  const double enough = threshold + 1e-3 * room;

  // It proves all of it, or nothing.
  double high_room = value(gap, high) - threshold;
  if (high_room >= 0) return {high, false};
  const double at_best = high;
  double low = 0;
  double low_room = value(gap, 0) - threshold;
  if (!(low_room > 0)) return {0, true};

  // The largest step it proves, between low and high: chords are safe, since g is concave.
  for (int i = 0; i < 8 && high - low > 0.02 * high; ++i) {
    const double chord = low + (high - low) * low_room / (low_room - high_room);
    const double trial = i % 2 == 0 ? chord : 0.5 * (chord + high);
    const double trial_room = value(gap, trial) - threshold;
    if (trial_room >= 0) {
      low = trial;
      low_room = trial_room;
    } else {
      high = trial;
      high_room = trial_room;
    }

    if (low > 0 && low_room + threshold <= enough) break;
  }

  // A step much shorter than the witness' own asks for another normal.
  return {low, low < cut_share * at_best};
}

double longest_advance(const MovingShape& a, const MovingShape& b, const SignedDistance& now, double threshold,
                       double horizon, const double turn[3]) {
  SafeAdvance best = safe_advance(a, b, now, threshold, horizon);
  const bool half_space = a.shape.type == ShapeType::half_space || b.shape.type == ShapeType::half_space;
  if (half_space) return best.time;
  const double* n = now.normal;
  const auto try_turn = [&](const double* rate) {
    if (!best.cut || norm3(rate) == 0) return;
    double across[3];
    copy3(rate, across);
    axpy3(-dot3(n, rate), n, across);
    const SafeAdvance other = safe_advance(a, b, now, threshold, horizon, across);
    if (other.time > best.time) best = other;
  };

  try_turn(turn);
  for (const MovingShape* shape : {&a, &b}) {
    if (shape->angular_speed == 0) continue;
    double rate[3];
    cross3(shape->angular, n, rate);
    try_turn(rate);
  }
  return best.time;
}
}  // namespace coulomb
