// Hinges and slides: the gap is a parabola. Balls: the angle grows no faster than |v + t a|, so time advances by the gap over that.
#include "coulomb/stepping/impacts/impact_limits.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/configuration.hpp"

namespace coulomb {
namespace {

constexpr double grazing_speed = 1e-9;
constexpr int max_advances = 500;
constexpr int max_newton_steps = 50;
constexpr double reached = 1e-14;  // m, rad

/// Of equal times the first stays; `complete` is that of all.
void keep_earlier(const LimitHit& candidate, LimitHit& best) {
  if (!candidate.found || (best.found && !(candidate.time < best.time))) return;
  const bool complete = best.complete && candidate.complete;
  best = candidate;
  best.complete = complete;
}

/// A gap phi + t rate + t^2/2 acceleration. Held limits are left to their rows, unless they lift off and come back.
LimitHit parabola(const ConstraintOptions& options, double phi, double rate, double acceleration, double duration) {
  LimitHit hit;

  // Does it reach zero at all?
  const double gap = std::max(phi, 0.0);
  const double square = rate * rate - 2 * acceleration * gap;
  if (!(square >= 0) || (rate >= 0 && acceleration >= 0)) return hit;

  // What touches counts where it rises beyond what is held.
  const bool rises = rate > 0 && acceleration < 0;
  const bool near = phi <= closed_gap || is_held(options, phi, rate);
  if (near && !(rises && phi + 0.5 * rate * rate / -acceleration > options.touching)) return hit;

  // The root on its way down, without cancellation.
  const double speed = std::sqrt(square);
  const double time = rises ? (rate + speed) / -acceleration : 2 * gap / (speed - rate);
  if (!(time < duration)) return hit;
  hit.found = true;
  hit.time = time;
  hit.closing_speed = speed;
  hit.grazing = !(square > 2 * std::abs(acceleration) * grazing_depth && speed > grazing_speed);
  return hit;
}

/// t v + t^2/2 a of a ball joint.
void turn_after(const Model& model, int joint, const MotionPath& path, double t, double* turn) {
  const int d = model.joint_v[joint];
  for (int i = 0; i < 3; ++i)
    turn[i] = t * path.v[d + i] + 0.5 * t * t * path.a[d + i];
}

/// The joint's quaternion after t, as a rotation vector; returns the angle.
double ball_angle(const Model& model, int joint, const MotionPath& path, double t, double* vector) {
  double turn[3];
  double b[4];
  turn_after(model, joint, path, t, turn);
  rotation_exp(turn, b);

  // The product of the quaternions.
  const double* a = path.q + model.joint_q[joint];
  double now[4];
  now[0] = a[0] * b[0] - dot3(a + 1, b + 1);
  cross3(a + 1, b + 1, now + 1);
  for (int i = 1; i < 4; ++i)
    now[i] += a[0] * b[i] + b[0] * a[i];
  return rotation_vector(now, vector);
}

/// How fast the angle of that rotation vector grows after t.
double turning_speed(const Model& model, int joint, const MotionPath& path, double t, const double* vector) {
  double turn[3];
  double J[9];
  turn_after(model, joint, path, t, turn);
  rotation_right_jacobian(turn, J);

  // The angular velocity there, along the rotation vector.
  const int d = model.joint_v[joint];
  double rate[3];
  for (int i = 0; i < 3; ++i)
    rate[i] = path.v[d + i] + t * path.a[d + i];
  double spin[3];
  rotate(J, rate, spin);
  return dot3(vector, spin) / norm3(vector);
}

/// Conservative advancement: the angle grows no faster than |v| + duration |a|.
LimitHit ball(const Model& model, const ConstraintOptions& options, int joint, const MotionPath& path) {
  // Held limits are left to their rows.
  LimitHit hit;
  const int d = model.joint_v[joint];
  double vector[3];
  const double start = model.joint_upper[joint] - ball_angle(model, joint, path, 0, vector);
  if (start <= closed_gap) return hit;
  if (start <= options.touching && is_held(options, start, -turning_speed(model, joint, path, 0, vector))) return hit;

  const double fastest = norm3(path.v + d) + path.duration * norm3(path.a + d);
  double t = 0;
  for (int k = 0; k < max_advances; ++k) {
    // By the time in which it cannot close.
    const double gap = model.joint_upper[joint] - ball_angle(model, joint, path, t, vector);
    if (gap > 1e-13) {
      t += gap / fastest;
      if (!(t < path.duration)) return hit;
      continue;
    }

    hit.found = true;
    hit.time = t;
    hit.closing_speed = turning_speed(model, joint, path, t, vector);
    hit.grazing = !(hit.closing_speed > grazing_speed);
    return hit;
  }

  // Too many: safe until here.
  hit.found = true;
  hit.complete = false;
  hit.time = t;
  hit.grazing = true;
  return hit;
}

/// The gap of a limit after t; its closing speed.
double gap_after(const Model& model, const MotionPath& path, int joint, bool upper, double t, double& closing_speed) {
  const double bound = upper ? model.joint_upper[joint] : model.joint_lower[joint];
  if (model.joint_type[joint] == JointType::ball) {
    double vector[3];
    const double gap = bound - ball_angle(model, joint, path, t, vector);
    closing_speed = turning_speed(model, joint, path, t, vector);
    return gap;
  }

  const int d = model.joint_v[joint];
  const double sign = upper ? -1 : 1;
  closing_speed = -sign * (path.v[d] + t * path.a[d]);
  return sign * (path.q[model.joint_q[joint]] + t * (path.v[d] + 0.5 * t * path.a[d]) - bound);
}

}  // namespace

LimitHit first_limit(const Model& model, const ConstraintOptions& options, const MotionPath& path) {
  LimitHit first;
  for_each_limit(model, [&](int joint, bool upper) {
    LimitHit hit;
    if (model.joint_type[joint] == JointType::ball) {
      hit = ball(model, options, joint, path);
    } else {
      const JointLimit limit = joint_limit(model, joint, upper, path.q);
      hit = parabola(options, limit.phi, limit.rate(path.v), limit.rate(path.a), path.duration);
    }
    hit.joint = joint;
    hit.upper = upper;
    keep_earlier(hit, first);
  });
  return first;
}

LimitHit limit_touch(const Model& model, const MotionPath& path, int joint, bool upper, double earliest) {
  LimitHit hit;
  hit.joint = joint;
  hit.upper = upper;
  for (int k = 0; k < max_newton_steps; ++k) {
    const double gap = gap_after(model, path, joint, upper, hit.time, hit.closing_speed);
    if (!(hit.closing_speed > grazing_speed)) return hit;

    // Newton's step to where it closed, until time has no more digits.
    const double next = std::min(hit.time + gap / hit.closing_speed, 0.0);
    if (std::abs(gap) <= reached || next == hit.time) {
      hit.found = true;
      return hit;
    }
    if (!(next >= earliest)) return hit;
    hit.time = next;
  }
  return hit;
}

}  // namespace coulomb
