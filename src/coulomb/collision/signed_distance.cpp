// Closed forms where the narrow phase has them without approximation; else its exact convex witness with no cut-off.
#include "coulomb/collision/signed_distance.hpp"

#include <algorithm>
#include <utility>

#include "coulomb/collision/convex_convex.hpp"
#include "coulomb/collision/primitives_round.hpp"
#include "coulomb/small_math.hpp"

namespace coulomb {
namespace {

constexpr double no_margin = 1e100;

void half_space_distance(const Shape& plane, const Shape& b, SignedDistance& out) {
  double up[3], down[3], arm[3];
  shape_axis(plane, 2, up);
  for (int i = 0; i < 3; ++i) down[i] = -up[i];
  int hint = -1;
  shape_support(b, down, out.point_b, hint);
  sub3(out.point_b, plane.position, arm);
  out.distance = dot3(up, arm);
  copy3(down, out.normal);
  copy3(out.point_b, out.point_a);
  axpy3(out.distance, out.normal, out.point_a);
}

/// Pairs whose contact routine returns the true distance; null for the others.
CollidePair closed_form(ShapeType a, ShapeType b) {
  if (a != ShapeType::sphere) return nullptr;
  switch (b) {
    case ShapeType::sphere: return collide_sphere_sphere;
    case ShapeType::capsule: return collide_sphere_capsule;
    case ShapeType::box: return collide_sphere_box;
    case ShapeType::cylinder: return collide_sphere_cylinder;
    default: return nullptr;
  }
}

void convex_distance(const Shape& a, const Shape& b, SignedDistance& out) {
  double ca[3], cb[3], axis[3];
  bounding_center(a, ca), bounding_center(b, cb);
  sub3(ca, cb, axis);
  int hints[2] = {-1, -1};
  Witness w;
  convex_witness(a, b, no_margin, axis, hints, w);
  copy3(w.normal, out.normal), copy3(w.point_a, out.point_a), copy3(w.point_b, out.point_b);
  out.distance = std::min(w.distance, support_gap(a, b, w.normal));
}

void flip(SignedDistance& s) {
  for (double& x : s.normal) x = -x;
  std::swap(s.point_a, s.point_b);
}

/// a's type is not above b's.
void ordered_distance(const Shape& a, const Shape& b, SignedDistance& out) {
  if (b.type == ShapeType::half_space) {
    out = SignedDistance{};
    out.distance = 1e30;
  } else if (a.type == ShapeType::half_space) {
    half_space_distance(a, b, out);
  } else if (const CollidePair collide = closed_form(a.type, b.type)) {
    constexpr CollisionOptions options{.stateless = true, .frozen_cache = true};
    CollisionCache::Pair cache;
    Contact contact[max_contacts_per_pair];
    collide(a, b, no_margin, options, cache, contact);
    out.distance = contact[0].distance;
    copy3(contact[0].normal, out.normal);
    copy3(contact[0].point_a, out.point_a), copy3(contact[0].point_b, out.point_b);
  } else {
    convex_distance(a, b, out);
  }
}

}  // namespace

double support_gap(const Shape& a, const Shape& b, const double normal[3]) {
  const double inward[3] = {-normal[0], -normal[1], -normal[2]};
  double p[3], q[3], d[3];
  int hint_a = -1, hint_b = -1;
  core_support(a, inward, p, hint_a);
  core_support(b, normal, q, hint_b);
  sub3(p, q, d);
  return dot3(d, normal) - core_radius(a) - core_radius(b);
}

void signed_distance(const Shape& a, const Shape& b, SignedDistance& out) {
  const bool flipped = a.type > b.type;
  ordered_distance(flipped ? b : a, flipped ? a : b, out);
  if (flipped) flip(out);
}

}  // namespace coulomb
