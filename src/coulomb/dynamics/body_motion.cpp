// The rules of kinematics.cpp for one body, with velocities, and the bounds of body_motion.hpp.
#include "coulomb/dynamics/body_motion.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/dynamics/spatial.hpp"

namespace coulomb {
namespace {

/// Entry d of v + t a, the path's velocity at time t.
double rate_at(const MotionPath& path, int d, double t) { return path.v[d] + (path.a ? t * path.a[d] : 0.0); }

/// Entry d of t v + t^2/2 a, the path's displacement at time t.
double shift_at(const MotionPath& path, int d, double t) {
  return t * path.v[d] + (path.a ? 0.5 * t * t * path.a[d] : 0.0);
}

/// The point at `arm` (world axes) from the frame's origin becomes the origin.
void move_origin(BodyMotion& m, const double* arm) {
  add3(m.position, arm, m.position);
  add_cross3(m.angular, arm, m.velocity);
}

/// Turns the frame by a quaternion in its own axes.
void turn(BodyMotion& m, const double* local) {
  double product[4];
  quaternion_multiply(m.quaternion, local, product);
  for (int i = 0; i < 4; ++i)
    m.quaternion[i] = product[i];
  quaternion_to_matrix(m.quaternion, m.rotation);
}

/// q (+) w(t) of a rotation, and its angular velocity in its own axes.
void rotation_at(const MotionPath& path, const double* q, int d, double t, double* quaternion, double* angular) {
  double w[3];
  double rate[3];
  double start[4];
  double step[4];
  double J[9];

  // Displacement and its rate, as rotation vectors.
  for (int i = 0; i < 3; ++i) {
    w[i] = shift_at(path, d + i, t);
    rate[i] = rate_at(path, d + i, t);
  }

  // Where the displacement takes the rotation.
  quaternion_normalize(q, start);
  rotation_exp(w, step);
  quaternion_multiply(start, step, quaternion);

  // About a fixed axis the rate is the angular velocity; otherwise the right Jacobian J_r (D2) of the exponential
  // takes one to the other.
  copy3(rate, angular);
  if (path.a == nullptr) return;
  rotation_right_jacobian(w, J);
  rotate(J, rate, angular);
}

/// A turn by `local` about the point joint_pos of the body, with the given rate: in the axes after the turn
/// (local_rate) or before it.
void follow_rotation(BodyMotion& m, const double* local, const double* joint_pos, const double* rate, bool local_rate) {
  double arm[3];
  double world[3];

  // Go to the joint's anchor, which the turn leaves where it is.
  rotate(m.rotation, joint_pos, arm);
  move_origin(m, arm);

  // The angular velocity is turned into the axes of `top`; a hinge's axis is the same before and after.
  if (!local_rate) rotate(m.rotation, rate, world);
  turn(m, local);
  if (local_rate) rotate(m.rotation, rate, world);
  add3(m.angular, world, m.angular);

  // Back from the anchor to the body's origin, now in the turned axes.
  rotate(m.rotation, joint_pos, arm);
  for (double& x : arm)
    x = -x;
  move_origin(m, arm);
}

/// Moves the frame over joint j at time t, as move_by_joint of kinematics.cpp does, and adds the joint's velocity.
void follow_joint(const Model& model, const MotionPath& path, int j, double t, BodyMotion& m) {
  const int iq = model.joint_q[j];
  const int d = model.joint_v[j];
  const double* axis = &model.joint_axis[3 * j];
  double local[4];
  double rate[3];
  switch (model.joint_type[j]) {
    case JointType::hinge: {
      // Half the angle and the quaternion of the turn.
      const double half = 0.5 * (path.q[iq] + shift_at(path, d, t) - model.q_neutral[iq]);
      const double s = std::sin(half);
      local[0] = std::cos(half);
      for (int i = 0; i < 3; ++i) {
        local[1 + i] = s * axis[i];
        rate[i] = rate_at(path, d, t) * axis[i];
      }

      follow_rotation(m, local, &model.joint_pos[3 * j], rate, false);
      break;
    }
    case JointType::slide: {
      // The frame is shifted along the axis, which moves with the body.
      double world[3];
      rotate(m.rotation, axis, world);
      const double s = path.q[iq] + shift_at(path, d, t) - model.q_neutral[iq];
      double arm[3];
      for (int i = 0; i < 3; ++i)
        arm[i] = s * world[i];
      move_origin(m, arm);
      axpy3(rate_at(path, d, t), world, m.velocity);
      break;
    }
    case JointType::ball:
      rotation_at(path, path.q + iq, d, t, local, rate);
      follow_rotation(m, local, &model.joint_pos[3 * j], rate, true);
      break;
    case JointType::free:
      // A free joint starts over: its position is in the axes of the world.
      m = BodyMotion{};
      for (int i = 0; i < 3; ++i) {
        m.position[i] = path.q[iq + i] + shift_at(path, d + i, t);
        m.velocity[i] = rate_at(path, d + i, t);
      }

      // Its angular velocity is in the body's axes.
      rotation_at(path, path.q + iq + 3, d + 3, t, m.quaternion, rate);
      quaternion_to_matrix(m.quaternion, m.rotation);
      rotate(m.rotation, rate, m.angular);
      break;
  }
}

/// Largest |v + t a| and |a| of n entries (n = 1, 3) over the path; for rotations the rate of w_J.
struct Rates {
  double speed;
  double rate;
};

/// Of the dofs d, d + 1, ... d + n - 1.
Rates largest(const MotionPath& path, int d, int n, bool rotation) {
  double squared_start = 0;
  double squared_end = 0;
  double squared_rate = 0;

  // The speed is convex in time, so that its largest value is at one of the ends.
  for (int i = 0; i < n; ++i) {
    const double v = path.v[d + i];
    const double e = rate_at(path, d + i, path.duration);
    const double a = path.a ? path.a[d + i] : 0.0;
    squared_start += v * v;
    squared_end += e * e;
    squared_rate += a * a;
  }
  Rates r{std::sqrt(std::max(squared_start, squared_end)), std::sqrt(squared_rate)};

  // What J_r (D2) adds to the rate where the axis turns.
  if (rotation && path.a) {
    double across[3];
    cross3(path.v + d, path.a + d, across);
    r.rate += path.duration * path.duration / 12 * r.speed * norm3(across);
  }
  return r;
}

/// Bounds of a point at the distance r from the origin.
void carry_point(MotionBounds& b, double r) {
  b.speed += b.angular_speed * r;
  b.acceleration += (b.angular_acceleration + b.angular_speed * b.angular_speed) * r;
}

/// Bounds beyond a rotation about a point at the distance `arm` from the frames before and after.
void add_rotation(MotionBounds& b, const Rates& r, double arm) {
  carry_point(b, arm);
  b.angular_acceleration += r.rate + b.angular_speed * r.speed;
  b.angular_speed += r.speed;
  carry_point(b, arm);
}

/// Bounds beyond joint j from those before it.
void bound_joint(const Model& model, const MotionPath& path, int j, MotionBounds& b) {
  const int d = model.joint_v[j];
  const double arm = norm3(&model.joint_pos[3 * j]);
  switch (model.joint_type[j]) {
    case JointType::hinge: add_rotation(b, largest(path, d, 1, false), arm); break;
    case JointType::ball: add_rotation(b, largest(path, d, 3, true), arm); break;
    case JointType::slide: {
      // The farthest that the slide reaches, and the Coriolis term of moving along a turning axis.
      const Rates r = largest(path, d, 1, false);
      const int iq = model.joint_q[j];
      carry_point(b, std::abs(path.q[iq] - model.q_neutral[iq]) + path.duration * r.speed);

      b.speed += r.speed;
      b.acceleration += r.rate + 2 * b.angular_speed * r.speed;
      break;
    }
    case JointType::free: {
      const Rates translation = largest(path, d, 3, false);
      const Rates rotation = largest(path, d + 3, 3, true);

      // A free joint starts over; its acceleration is constant and known, which is better than a bound.
      b = MotionBounds{};
      b.speed = translation.speed;
      b.angular_speed = rotation.speed;
      b.angular_acceleration = rotation.rate;
      for (int i = 0; i < 3 && path.a; ++i)
        b.drift[i] = path.a[d + i];
      break;
    }
  }
}

}  // namespace

void follow_joints(const Model& model, const MotionPath& path, int body, double time, BodyMotion& m) {
  double arm[3];

  // To where the body's frame is at its neutral configuration ...
  rotate(m.rotation, &model.body_pos[3 * body], arm);
  move_origin(m, arm);
  turn(m, &model.body_quat[4 * body]);

  // ... and over its joints in order.
  const int first = model.body_first_joint[body];
  const int end = first + model.body_num_joints[body];
  for (int j = first; j < end; ++j)
    follow_joint(model, path, j, time, m);
}

void follow_joints(const Model& model, const MotionPath& path, int body, MotionBounds& b) {
  carry_point(b, norm3(&model.body_pos[3 * body]));
  const int first = model.body_first_joint[body];
  const int end = first + model.body_num_joints[body];
  for (int j = first; j < end; ++j)
    bound_joint(model, path, j, b);
}

void body_motion(const Model& model, const MotionPath& path, int body, int top, double time, BodyMotion& out) {
  if (body == top || body <= 0) {
    out = BodyMotion{};
    return;
  }
  body_motion(model, path, model.body_parent[body], top, time, out);
  follow_joints(model, path, body, time, out);
}

void motion_bounds(const Model& model, const MotionPath& path, int body, int top, MotionBounds& out) {
  if (body == top || body <= 0) {
    out = MotionBounds{};
    return;
  }
  motion_bounds(model, path, model.body_parent[body], top, out);
  follow_joints(model, path, body, out);
}

int common_ancestor(const Model& model, int a, int b) {
  // Parents have smaller numbers than their children.
  while (a != b) {
    if (a > b)
      a = model.body_parent[a];
    else
      b = model.body_parent[b];
  }

  // Bodies that nothing moves are in the world's frame.
  return a < 0 || model.body_tree[a] < 0 ? 0 : a;
}

}  // namespace coulomb
