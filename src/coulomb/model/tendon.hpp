// Fixed tendons: sums of joints.
#pragma once

#include "coulomb/model.hpp"

namespace coulomb {

inline double tendon_length(const Model& model, const Tendon& tendon, const double* q) {
  double sum = 0;
  for (std::size_t i = 0; i < tendon.joints.size(); ++i)
    sum += tendon.coefficients[i] * q[model.joint_q[tendon.joints[i]]];
  return sum;
}

inline double tendon_rate(const Model& model, const Tendon& tendon, const double* v) {
  double sum = 0;
  for (std::size_t i = 0; i < tendon.joints.size(); ++i)
    sum += tendon.coefficients[i] * v[model.joint_v[tendon.joints[i]]];
  return sum;
}

/// How far a length is beyond the lengths of the tendon's spring: negative where it is too short.
inline double tendon_stretch(const Tendon& tendon, double length) {
  if (length < tendon.spring_lower) return length - tendon.spring_lower;
  return length > tendon.spring_upper ? length - tendon.spring_upper : 0;
}

}  // namespace coulomb
