// Joints that are coupled by an equality (mimic): the value of the first one that the second one asks for.
#pragma once

#include "coulomb/model.hpp"

namespace coulomb {

/// Of an equality of type joint, at q.
inline double coupled_value(const Model& model, const Equality& equality, const double* q) {
  const double b = equality.joint_b < 0 ? 0.0 : q[model.joint_q[equality.joint_b]] - equality.ref_b;
  double value = 0;
  for (int i = 4; i >= 0; --i)
    value = value * b + equality.poly[i];
  return equality.ref_a + value;
}

}  // namespace coulomb
