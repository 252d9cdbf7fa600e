// The time at which a joint reaches its limit along q(t) = q (+) (t v + t^2/2 a).
#pragma once

#include "coulomb/constraints/joint_limits.hpp"
#include "coulomb/dynamics/motion_path.hpp"

namespace coulomb {

/// m, rad: an impact that would not be, were the path this much farther away, is a grazing one: its time has no useful derivative.
inline constexpr double grazing_depth = 1e-12;

struct LimitHit {
  bool found = false;
  bool complete = true;  ///< else: nothing happens before `time`, the rest was not looked at
  double time = 0;
  int joint = -1;
  bool upper = false;
  double closing_speed = 0;
  bool grazing = false;
};

/// The first limit reached within path.duration. Limits that touch at the start are held by rows: they count when they lift off and
/// come back.
LimitHit first_limit(const Model& model, const ConstraintOptions& options, const MotionPath& path);

/// When a limit that is exceeded at the start of the path was reached on its way: at a time <= 0. Not found: not at `earliest` or
/// later.
LimitHit limit_touch(const Model& model, const MotionPath& path, int joint, bool upper, double earliest);

/// Is test(joint, upper, gap, rate) true of some limit?
template <class Test>
bool any_limit(const Model& model, const double* q, const double* v, Test test) {
  bool any = false;
  for_each_limit(model, [&](int joint, bool upper) {
    if (any) return;
    const JointLimit limit = joint_limit(model, joint, upper, q);
    any = test(joint, upper, limit.phi, limit.rate(v));
  });
  return any;
}

}  // namespace coulomb
