// One body along a MotionPath: where it is at a time, how it moves there, and bounds of its motion over the whole path.
//
// The bounds go down the chain of joints. A frame with speed V of its origin, turning speed W, and bounds A, L of their rates
// carries a point at distance r with speed <= V + W r and acceleration <= A + (L + W^2) r. A rotation of speed w and rate l behind
// it adds them: W + w, L + l + W w. A translation by s adds V: w_s + W s, A: l_s + 2 W w_s + (L + W^2) s.
// Everything may be relative to an ancestor `top` of the body (0: the world): two bodies of one chain then see each other's motion
// only. For a ball or free joint, w(t) = t v + t^2/2 a turns with w_J = J_r(w) w', |J_r| <= 1, and
//   |w_J'| <= |a| + |w'| |w x w'| / 6,   w x w' = t^2/2 v x a.
#pragma once

#include "coulomb/dynamics/motion_path.hpp"
#include "coulomb/model.hpp"

namespace coulomb {

/// Pose of a body's frame and the twist of the body, in the axes of `top`.
struct BodyMotion {
  double position[3] = {0, 0, 0};
  double quaternion[4] = {1, 0, 0, 0};
  double rotation[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};

  double velocity[3] = {0, 0, 0};  ///< m/s, of the frame's origin
  double angular[3] = {0, 0, 0};   ///< rad/s
};

/// Holds from 0 to the path's duration. The origin's acceleration is `drift` (constant; of the free joint) and a rest.
struct MotionBounds {
  double speed = 0;
  double angular_speed = 0;
  double acceleration = 0;
  double angular_acceleration = 0;
  double drift[3] = {0, 0, 0};
};

/// top: an ancestor of body or itself; fixed to the world: 0.
void body_motion(const Model& model, const MotionPath& path, int body, int top, double time, BodyMotion& out);
void motion_bounds(const Model& model, const MotionPath& path, int body, int top, MotionBounds& out);

/// From the values of the body's parent to its own, in place.
void follow_joints(const Model& model, const MotionPath& path, int body, double time, BodyMotion& motion);
void follow_joints(const Model& model, const MotionPath& path, int body, MotionBounds& bounds);

/// The last body that the paths from the root to a and to b share; 0 when it is fixed to the world.
int common_ancestor(const Model& model, int a, int b);

}  // namespace coulomb
