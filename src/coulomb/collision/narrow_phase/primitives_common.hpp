// What every closed-form shape pair shares: its signature and how it writes a contact.
#pragma once

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/contact.hpp"
#include "coulomb/collision/detect.hpp"
#include "coulomb/collision/motion/support_patch.hpp"
#include "coulomb/collision/shape.hpp"

namespace coulomb {

inline constexpr int max_contacts_per_pair = 8;

/// The signature of a shape pair: contacts of a and b with distance <= margin into `out` (room for
/// max_contacts_per_pair, whatever they hold), their number as the result. A routine writes every field but pair,
/// geometry_*, body_* and size.
using CollidePair = int (*)(const Shape& a, const Shape& b, double margin, const CollisionOptions& options,
                            CollisionCache::Pair& cache, Contact* out);

/// Witnesses on the normal's line: point_a - point_b = distance * normal, point in the middle. `point_b` is the given
/// one.
inline void set_contact_from_b(const double* normal, const double* point_b, double distance, int feature, Contact& c) {
  c.feature = feature;
  c.reference_on_a = c.two_normals = false;
  c.distance = distance;
  for (int i = 0; i < 3; ++i) {
    c.normal[i] = normal[i];
    c.incident_normal[i] = c.edge[i] = c.side[i] = 0;
    c.point_b[i] = point_b[i];
    c.point_a[i] = point_b[i] + distance * normal[i];
    c.point[i] = point_b[i] + 0.5 * distance * normal[i];
  }
}

/// Patches of both surfaces at a contact whose normal is set.
inline void set_patches(const Shape& a, Feature feature_a, const Shape& b, Feature feature_b, Contact& c) {
  const double out_a[3] = {-c.normal[0], -c.normal[1], -c.normal[2]};
  c.rule = MotionRule::support;
  support_patch(a, feature_a, out_a, nullptr, c.a);
  support_patch(b, feature_b, c.normal, nullptr, c.b);
}

inline void shape_axis(const Shape& shape, int k, double* axis) {
  for (int i = 0; i < 3; ++i)
    axis[i] = shape.rotation[3 * i + k];
}

}  // namespace coulomb
