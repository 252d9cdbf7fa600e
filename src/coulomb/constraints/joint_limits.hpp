// Limits of joints and tendons as gaps. Only this file decides which limits exist, how far a joint or tendon is from each,
// and how that distance changes.
#pragma once

#include <cmath>

#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/dynamics/tendon_state.hpp"
#include "coulomb/model.hpp"

namespace coulomb {

/// Calls visit(joint, upper) for every limit, the lower one of a joint first.
template <class Visit>
void for_each_limit(const Model& model, Visit visit) {
  for (int j = 0; j < model.num_joints; ++j) {
    // Balls have an upper limit only, free joints none.
    if (!model.joint_limited[j] || model.joint_type[j] == JointType::free) continue;
    for (const bool upper : {false, true}) {
      if (!upper && model.joint_type[j] == JointType::ball) continue;
      if (std::isfinite(upper ? model.joint_upper[j] : model.joint_lower[j])) visit(j, upper);
    }
  }
}

/// A limit at some q: the gap, and its rate coefficient . v on the joint's dofs. Of a ball next to no rotation the coefficients are zero.
struct JointLimit {
  double phi = 0;  ///< m, rad
  int first_dof = 0;
  int num = 1;
  double coefficient[3] = {0, 0, 0};

  double rate(const double* v) const {
    double sum = 0;
    for (int i = 0; i < num; ++i)
      sum += coefficient[i] * v[first_dof + i];
    return sum;
  }
  DofRow row() const;  ///< without its derivative
};

JointLimit ball_limit(const Model& model, int joint, const double* q);

inline JointLimit joint_limit(const Model& model, int joint, bool upper, const double* q) {
  if (model.joint_type[joint] == JointType::ball) return ball_limit(model, joint, q);

  // Of a hinge or slide a difference of positions.
  const double bound = upper ? model.joint_upper[joint] : model.joint_lower[joint];
  JointLimit out;
  out.first_dof = model.joint_v[joint];
  out.coefficient[0] = upper ? -1 : 1;
  out.phi = out.coefficient[0] * (q[model.joint_q[joint]] - bound);
  return out;
}

/// Calls visit(tendon, upper) for every limit of a tendon, the lower one first.
template <class Visit>
void for_each_tendon_limit(const Model& model, Visit visit) {
  for (int t = 0; t < int(model.tendons.size()); ++t) {
    if (!model.tendons[t].limited) continue;
    if (std::isfinite(model.tendons[t].lower)) visit(t, false);
    if (std::isfinite(model.tendons[t].upper)) visit(t, true);
  }
}

/// The gap of a tendon's length to a bound, and its row, without how it turns.
DofRow tendon_row(const TendonState& state, bool upper, double bound);
DofRow tendon_limit_row(const Model& model, int tendon, bool upper, const TendonState& state);
/// row . v
inline double rate_of(const DofRow& row, const double* v) {
  double sum = 0;
  for (int i = 0; i < row.num; ++i)
    sum += row.coefficient[i] * v[row.dof[i]];
  return sum;
}

/// How the axis of a ball turns with the joint, into rows.turning. Others do not turn.
void turn_limit_row(const Model& model, int joint, const double* q, DofRow& row, ConstraintRows& rows);
/// The same of a tendon's row. state: with its turning.
void turn_tendon_row(const TendonState& state, bool upper, DofRow& row, ConstraintRows& rows);

/// A quaternion, of any length, as a rotation vector; returns the angle.
double rotation_vector(const double* quaternion, double* vector);

}  // namespace coulomb
