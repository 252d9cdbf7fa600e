// Three-vectors, twists and wrenches as plain values; a twist or wrench is stored as 6 doubles (linear, angular) in rows of 8.
#pragma once

#include <cmath>

#include "coulomb/base/small_math.hpp"

namespace coulomb {

struct Vector3 {
  double x = 0;
  double y = 0;
  double z = 0;
};

COULOMB_INLINE Vector3 load3(const double* p) { return {p[0], p[1], p[2]}; }
COULOMB_INLINE void store3(double* p, Vector3 a) {
  p[0] = a.x;
  p[1] = a.y;
  p[2] = a.z;
}
COULOMB_INLINE Vector3 operator+(Vector3 a, Vector3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
COULOMB_INLINE Vector3 operator-(Vector3 a, Vector3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
COULOMB_INLINE Vector3 operator-(Vector3 a) { return {-a.x, -a.y, -a.z}; }
COULOMB_INLINE Vector3 operator*(double s, Vector3 a) { return {s * a.x, s * a.y, s * a.z}; }
COULOMB_INLINE double dot(Vector3 a, Vector3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
COULOMB_INLINE Vector3 cross(Vector3 a, Vector3 b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

/// A 3 x 3 row-major matrix times a vector, and its transpose times a vector.
COULOMB_INLINE Vector3 multiply3(const double* m, Vector3 a) {
  return {m[0] * a.x + m[1] * a.y + m[2] * a.z, m[3] * a.x + m[4] * a.y + m[5] * a.z,
          m[6] * a.x + m[7] * a.y + m[8] * a.z};
}
COULOMB_INLINE Vector3 multiply3_transposed(const double* m, Vector3 a) {
  return {m[0] * a.x + m[3] * a.y + m[6] * a.z, m[1] * a.x + m[4] * a.y + m[7] * a.z,
          m[2] * a.x + m[5] * a.y + m[8] * a.z};
}

/// A twist (v, w) or a wrench (f, n).
struct Spatial {
  Vector3 linear;
  Vector3 angular;
};

COULOMB_INLINE Spatial load6(const double* p) { return {load3(p), load3(p + 3)}; }
COULOMB_INLINE void store6(double* p, Spatial a) {
  store3(p, a.linear);
  store3(p + 3, a.angular);
}
COULOMB_INLINE Spatial operator+(Spatial a, Spatial b) { return {a.linear + b.linear, a.angular + b.angular}; }
COULOMB_INLINE Spatial operator-(Spatial a, Spatial b) { return {a.linear - b.linear, a.angular - b.angular}; }
COULOMB_INLINE Spatial operator*(double s, Spatial a) { return {s * a.linear, s * a.angular}; }
COULOMB_INLINE double dot(Spatial a, Spatial b) { return dot(a.linear, b.linear) + dot(a.angular, b.angular); }

/// m1 x m2 of two twists.
COULOMB_INLINE Spatial cross_motion(Spatial a, Spatial b) {
  return {cross(a.angular, b.linear) + cross(a.linear, b.angular), cross(a.angular, b.angular)};
}
/// m x* phi of a twist and a wrench.
COULOMB_INLINE Spatial cross_force(Spatial m, Spatial phi) {
  return {cross(m.angular, phi.linear), cross(m.angular, phi.angular) + cross(m.linear, phi.linear)};
}

/// Inertia row (stride 12): mass, mass * centre (3), second moments S = int r r^T as xx xy yy xz yz zz, 2 pads.
COULOMB_INLINE Spatial inertia_times(const double* inertia, Spatial m) {
  const double* s = inertia + 4;
  const double trace = s[0] + s[2] + s[5];
  const Vector3 mc = load3(inertia + 1);
  const Vector3 v = m.linear;
  const Vector3 w = m.angular;
  const Vector3 sw{s[0] * w.x + s[1] * w.y + s[3] * w.z, s[1] * w.x + s[2] * w.y + s[4] * w.z,
                   s[3] * w.x + s[4] * w.y + s[5] * w.z};
  return {inertia[0] * v + cross(w, mc), cross(mc, v) + trace * w - sw};
}

/// Unit quaternion along q; the identity when q has no direction, so that no NaN spreads.
COULOMB_INLINE void quaternion_normalize(const double* q, double* out) {
  const double n = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  const bool fine = n > 1e-150;
  const double s = fine ? 1.0 / n : 0.0;
  out[0] = fine ? s * q[0] : 1.0;
  out[1] = s * q[1];
  out[2] = s * q[2];
  out[3] = s * q[3];
}
}  // namespace coulomb
