// Placements as (position, unit quaternion wxyz) for the loaders: composition, inverse, conversion to and from matrices.
#pragma once

#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/scene_parts.hpp"

namespace coulomb {

inline Quat multiply(const Quat& a, const Quat& b) {
  return {a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3], a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
          a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1], a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]};
}
inline Quat conjugate(const Quat& q) { return {q[0], -q[1], -q[2], -q[3]}; }

inline Vec3 rotate(const Quat& q, const Vec3& v) {
  double R[9];
  quaternion_to_matrix(q.data(), R);
  Vec3 out;
  rotate(R, v.data(), out.data());
  return out;
}

inline Placement compose(const Placement& a, const Placement& b) {
  Placement out{rotate(a.quat, b.pos), multiply(a.quat, b.quat)};
  add3(out.pos.data(), a.pos.data(), out.pos.data());
  return out;
}
inline Placement inverse(const Placement& a) {
  Placement out{{}, conjugate(a.quat)};
  out.pos = rotate(out.quat, {-a.pos[0], -a.pos[1], -a.pos[2]});
  return out;
}

/// Quaternion of a rotation matrix (row major); the largest component decides the branch, so no precision is lost.
inline Quat quaternion_from_matrix(const double* R) {
  const double trace = R[0] + R[4] + R[8];
  Quat q;
  if (trace > 0) {
    const double s = 2 * std::sqrt(1 + trace);
    q = {s / 4, (R[7] - R[5]) / s, (R[2] - R[6]) / s, (R[3] - R[1]) / s};
  } else {
    const int i = R[0] >= R[4] && R[0] >= R[8] ? 0 : R[4] >= R[8] ? 1 : 2;
    const int j = (i + 1) % 3;
    const int k = (i + 2) % 3;
    const double s = 2 * std::sqrt(1 + R[4 * i] - R[4 * j] - R[4 * k]);
    q[0] = (R[3 * k + j] - R[3 * j + k]) / s;
    q[1 + i] = s / 4;
    q[1 + j] = (R[3 * j + i] + R[3 * i + j]) / s;
    q[1 + k] = (R[3 * k + i] + R[3 * i + k]) / s;
  }
  double n = 0;
  for (double c : q)
    n += c * c;
  for (double& c : q)
    c /= std::sqrt(n);
  return q;
}

/// Rotation that takes +z to the unit vector n.
inline Quat quaternion_z_to(const Vec3& n) {
  if (n[2] < -1 + 1e-12) return {0, 1, 0, 0};
  Quat q{1 + n[2], -n[1], n[0], 0};
  const double s = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2]);
  for (double& c : q)
    c /= s;
  return q;
}

}  // namespace coulomb
