// When a joint comes to its limit along q(t) = q (+) (t v + t^2/2 a).
#pragma once

#include <cmath>

#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/dynamics/motion_path.hpp"
#include "coulomb/model.hpp"

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

/// A joint's limit at q: the gap is row.phi, its rate row.coefficient . v.
DofRow limit_row(const Model& model, int joint, bool upper, const double* q);

/// Is test(joint, upper, gap, rate) true of some limit?
template <class Test>
bool any_limit(const Model& model, const double* q, const double* v, Test test) {
  for (int j = 0; j < model.num_joints; ++j) {
    // Balls have an upper limit only, free joints none.
    if (!model.joint_limited[j] || model.joint_type[j] == JointType::free) continue;
    for (const bool upper : {false, true}) {
      if (!upper && model.joint_type[j] == JointType::ball) continue;
      if (!std::isfinite(upper ? model.joint_upper[j] : model.joint_lower[j])) continue;

      const DofRow row = limit_row(model, j, upper, q);
      double rate = 0;
      for (int i = 0; i < row.num; ++i)
        rate += row.coefficient[i] * v[row.dof[i]];
      if (test(j, upper, row.phi, rate)) return true;
    }
  }
  return false;
}

}  // namespace coulomb
