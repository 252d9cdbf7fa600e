// Three-vectors, 3x3 matrices (row major) and unit quaternions (w, x, y, z) on raw arrays: the few routines that every folder uses.
#pragma once

#include <cmath>

#include "coulomb/base/simd.hpp"

namespace coulomb {

COULOMB_INLINE double dot3(const double* a, const double* b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
COULOMB_INLINE double dot6(const double* a, const double* b) { return dot3(a, b) + dot3(a + 3, b + 3); }
COULOMB_INLINE double norm3(const double* a) { return std::sqrt(dot3(a, a)); }
COULOMB_INLINE void copy3(const double* a, double* out) { out[0] = a[0], out[1] = a[1], out[2] = a[2]; }
COULOMB_INLINE void sub3(const double* a, const double* b, double* out) {
  for (int i = 0; i < 3; ++i)
    out[i] = a[i] - b[i];
}
COULOMB_INLINE void add3(const double* a, const double* b, double* out) {
  for (int i = 0; i < 3; ++i)
    out[i] = a[i] + b[i];
}
COULOMB_INLINE void axpy3(double s, const double* a, double* out) {
  for (int i = 0; i < 3; ++i)
    out[i] += s * a[i];
}
COULOMB_INLINE void cross3(const double* a, const double* b, double* out) {
  const double x = a[1] * b[2] - a[2] * b[1], y = a[2] * b[0] - a[0] * b[2], z = a[0] * b[1] - a[1] * b[0];
  out[0] = x, out[1] = y, out[2] = z;
}
COULOMB_INLINE void add_cross3(const double* a, const double* b, double* out) {
  out[0] += a[1] * b[2] - a[2] * b[1];
  out[1] += a[2] * b[0] - a[0] * b[2];
  out[2] += a[0] * b[1] - a[1] * b[0];
}

/// out = R a
COULOMB_INLINE void rotate(const double* R, const double* a, double* out) {
  const double x = dot3(R, a), y = dot3(R + 3, a), z = dot3(R + 6, a);
  out[0] = x, out[1] = y, out[2] = z;
}
/// out = R^T a
COULOMB_INLINE void rotate_transposed(const double* R, const double* a, double* out) {
  const double x = R[0] * a[0] + R[3] * a[1] + R[6] * a[2], y = R[1] * a[0] + R[4] * a[1] + R[7] * a[2],
               z = R[2] * a[0] + R[5] * a[1] + R[8] * a[2];
  out[0] = x, out[1] = y, out[2] = z;
}
/// out = A B
COULOMB_INLINE void multiply3(const double* A, const double* B, double* out) {
  double t[9];
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      t[3 * i + j] = A[3 * i] * B[j] + A[3 * i + 1] * B[3 + j] + A[3 * i + 2] * B[6 + j];
  for (int i = 0; i < 9; ++i)
    out[i] = t[i];
}

/// Rotation vector of a unit quaternion, angle in [0, pi].
inline void quaternion_log(const double* q, double* out) {
  const double n = norm3(q + 1);
  double scale = 2.0 / (q[0] == 0 ? 1.0 : q[0]);
  if (n > 1e-8) scale = 2.0 * std::atan2(q[0] < 0 ? -n : n, std::abs(q[0])) / n;
  for (int i = 0; i < 3; ++i)
    out[i] = scale * q[1 + i];
}
/// out = conj(a) b
COULOMB_INLINE void quaternion_conjugate_multiply(const double* a, const double* b, double* out) {
  const double w = a[0] * b[0] + dot3(a + 1, b + 1);
  double t[3];
  cross3(a + 1, b + 1, t);
  for (int i = 0; i < 3; ++i)
    t[i] = a[0] * b[1 + i] - b[0] * a[1 + i] - t[i];
  out[0] = w, out[1] = t[0], out[2] = t[1], out[3] = t[2];
}
/// Quaternion (w, x, y, z) product, out may not alias.
COULOMB_INLINE void quaternion_multiply(const double* a, const double* b, double* out) {
  out[0] = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
  out[1] = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
  out[2] = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
  out[3] = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0];
}
COULOMB_INLINE void quaternion_to_matrix(const double* q, double* R) {
  const double w = q[0], x = q[1], y = q[2], z = q[3];
  R[0] = 1 - 2 * (y * y + z * z), R[1] = 2 * (x * y - w * z), R[2] = 2 * (x * z + w * y);
  R[3] = 2 * (x * y + w * z), R[4] = 1 - 2 * (x * x + z * z), R[5] = 2 * (y * z - w * x);
  R[6] = 2 * (x * z - w * y), R[7] = 2 * (y * z + w * x), R[8] = 1 - 2 * (x * x + y * y);
}
/// Inverse right Jacobian of SO(3): log(R exp(d)) = phi + Jr^-1(phi) d + ..., row major.
inline void inverse_right_jacobian(const double* phi, double* out) {
  const double t2 = dot3(phi, phi), t = std::sqrt(t2);
  double c = 1.0 / 12 + t2 / 720;
  if (t > 1e-3) c = 1.0 / t2 - (1.0 + std::cos(t)) / (2.0 * t * std::sin(t));
  if (t > 3.14159265) c = 1.0 / t2;  // limit at pi, where the rotation vector itself jumps
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      out[3 * i + j] = c * phi[i] * phi[j] + (i == j ? 1.0 - c * t2 : 0.0);
  out[1] -= 0.5 * phi[2], out[2] += 0.5 * phi[1];
  out[3] += 0.5 * phi[2], out[5] -= 0.5 * phi[0];
  out[6] -= 0.5 * phi[1], out[7] += 0.5 * phi[0];
}

/// m x* phi for a twist m = (v, w) and a wrench phi = (f, n): (w x f, w x n + v x f).
COULOMB_INLINE void cross_force(const double* m, const double* phi, double* out) {
  double t[6];
  cross3(m + 3, phi, t);
  cross3(m + 3, phi + 3, t + 3);
  add_cross3(m, phi, t + 3);
  for (int i = 0; i < 6; ++i)
    out[i] = t[i];
}

}  // namespace coulomb
