// Closed forms where they are exact; else the narrow phase's convex witness with no cut-off.
#include "coulomb/collision/continuous/signed_distance.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/continuous/separating_normal.hpp"
#include "coulomb/collision/narrow_phase/convex_convex.hpp"
#include "coulomb/collision/narrow_phase/primitives_round.hpp"
#include "coulomb/collision/narrow_phase/surface_contacts.hpp"

namespace coulomb {
namespace {

constexpr double no_margin = 1e100;
/// Of the sizes: a normal that separates less than its features promise.
constexpr double inexact = 1e-12;
/// Of the shape's size: how far surfaces are looked for first, and how much farther every next time.
constexpr double first_look = 0.05;
constexpr double next_look = 4;

/// The lowest point of b over the plane.
void half_space_distance(const Shape& plane, const Shape& b, SignedDistance& out) {
  double up[3];
  double down[3];
  double arm[3];
  shape_axis(plane, 2, up);
  for (int i = 0; i < 3; ++i)
    down[i] = -up[i];

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

/// By the witness of the cores, or by the normal that separates most.
void convex_distance(const Shape& a, const Shape& b, SignedDistance& out) {
  // The witness, from the line between the centres.
  double ca[3];
  double cb[3];
  double axis[3];
  bounding_center(a, ca);
  bounding_center(b, cb);
  sub3(ca, cb, axis);
  int hints[2] = {-1, -1};
  Witness w;
  convex_witness(a, b, no_margin, axis, hints, w);

  copy3(w.normal, out.normal);
  copy3(w.point_a, out.point_a);
  copy3(w.point_b, out.point_b);

  // It is the distance if its normal separates the shapes by as much.
  const double separation = separation_along(a, b, w.normal);
  const double scale = bounding_radius(a) + bounding_radius(b);
  out.distance = std::min(w.distance, separation);
  if (w.exact && w.distance - separation <= inexact * scale) return;

  // Else the best normal that is found.
  out.distance = separation;
  improve_separating_normal(a, b, out.normal, out.distance);

  // The witnesses stay where they are across the normal.
  for (int i = 0; i < 3; ++i) {
    const double middle = 0.5 * (w.point_a[i] + w.point_b[i]);
    const double half = 0.5 * out.distance * out.normal[i];
    out.point_a[i] = middle + half;
    out.point_b[i] = middle - half;
  }
}

/// A capsule's axis.
struct Segment {
  const double* centre;
  double axis[3];
  double half;
  explicit Segment(const Shape& capsule) : centre(capsule.position), half(capsule.size[1]) {
    shape_axis(capsule, 2, axis);
  }
  void point(double s, double* out) const {
    for (int i = 0; i < 3; ++i)
      out[i] = centre[i] + s * axis[i];
  }

  /// Place on the segment nearest to p.
  double nearest(const double* p) const {
    double d[3];
    sub3(p, centre, d);
    return std::clamp(dot3(d, axis), -half, half);
  }
};

/// From b's closest point to a's. Lines within 1e-7 rad: the four ends decide, as the crossing gains no digit.
void closest_points(const Segment& a, const Segment& b, double* qa, double* d) {
  double best = 1e300;

  // The lines: their angle, and the vector between the centres across them.
  double w[3];
  sub3(a.centre, b.centre, w);
  const double c = dot3(a.axis, b.axis);
  const double wa = dot3(w, a.axis);
  const double wb = dot3(w, b.axis);
  const double sine2 = 1 - c * c;

  // The nearest pair of points offered so far.
  const auto offer = [&](double s, double t) {
    double qb[3];
    double p[3];
    double r[3];
    a.point(s, p);
    b.point(t, qb);
    sub3(p, qb, r);
    if (dot3(r, r) < best) {
      best = dot3(r, r);
      copy3(p, qa);
      copy3(r, d);
    }
  };

  // Lines that cross: the closest points, with b's at an end of its segment or not.
  if (sine2 > 1e-14) {
    double s = std::clamp((c * wb - wa) / sine2, -a.half, a.half);
    double t = c * s + wb;
    if (std::abs(t) > b.half) {
      t = std::clamp(t, -b.half, b.half);
      s = std::clamp(c * t - wa, -a.half, a.half);
    }
    offer(s, t);
    return;
  }

  // All but parallel: every end against the other segment.
  for (const double sign : {-1.0, 1.0}) {
    double p[3];
    a.point(sign * a.half, p);
    offer(sign * a.half, b.nearest(p));
    b.point(sign * b.half, p);
    offer(a.nearest(p), sign * b.half);
  }
}

/// The distance of the axes, less both radii.
void capsule_distance(const Shape& a, const Shape& b, SignedDistance& out) {
  const Segment sa(a);
  const Segment sb(b);

  // No pair of points is the closest where a number is NaN.
  double qa[3] = {0, 0, 0};
  double d[3] = {0, 0, 0};
  closest_points(sa, sb, qa, d);

  double length = norm3(d);
  out.distance = length - a.size[0] - b.size[0];
  if (!(length > 1e-12 * (a.size[0] + b.size[0]))) {
    // Crossing axes: out along their common normal.
    cross3(sa.axis, sb.axis, d);
    length = norm3(d);
  }

  // One axis on the other: any normal across it.
  if (!(length > 0)) {
    double other[3];
    contact_frame(sa.axis, d, other);
    length = 1;
  }

  for (int i = 0; i < 3; ++i)
    out.normal[i] = d[i] / length;
  copy3(qa, out.point_a);
  axpy3(-a.size[0], out.normal, out.point_a);
  copy3(out.point_a, out.point_b);
  axpy3(-out.distance, out.normal, out.point_b);
}

/// The nearest contact, looked for ever farther away. A shape beyond the border, or behind all faces, has none.
void surface_distance(const Shape& a, const Shape& surface, SignedDistance& out) {
  constexpr CollisionOptions options{.stateless = true, .frozen_cache = true};
  double ca[3];
  double cb[3];
  bounding_center(a, ca);
  bounding_center(surface, cb);
  sub3(ca, cb, ca);
  const double size = bounding_radius(a);
  const double farthest = norm3(ca) + size + bounding_radius(surface);
  for (double margin = first_look * size;; margin *= next_look) {
    CollisionCache::Pair cache;
    Contact contact[max_contacts_per_pair];
    const int count = collide_convex_surface(a, surface, margin, options, cache, contact);
    if (count > 0) {
      const Contact& c = *std::min_element(contact, contact + count,
                                           [](const Contact& x, const Contact& y) { return x.distance < y.distance; });
      out.distance = c.distance;
      copy3(c.normal, out.normal);
      copy3(c.point_a, out.point_a);
      copy3(c.point_b, out.point_b);
      return;
    }
    if (margin > farthest) break;
  }
  out = SignedDistance{};
  out.distance = 1e30;
}

/// The same, seen from the other shape.
void flip(SignedDistance& s) {
  for (double& x : s.normal)
    x = -x;
  std::swap(s.point_a, s.point_b);
}

/// a's type is not above b's.
void ordered_distance(const Shape& a, const Shape& b, SignedDistance& out) {
  // Two half-spaces are never near.
  if (b.type == ShapeType::half_space) {
    out = SignedDistance{};
    out.distance = 1e30;
  } else if (b.type == ShapeType::surface) {
    surface_distance(a, b, out);
  } else if (a.type == ShapeType::half_space) {
    half_space_distance(a, b, out);
  } else if (a.type == ShapeType::capsule && b.type == ShapeType::capsule) {
    capsule_distance(a, b, out);
  } else if (const CollidePair collide = closed_form(a.type, b.type)) {
    // Contact routines that are exact at any distance.
    constexpr CollisionOptions options{.stateless = true, .frozen_cache = true};
    CollisionCache::Pair cache;
    Contact contact[max_contacts_per_pair];
    collide(a, b, no_margin, options, cache, contact);
    out.distance = contact[0].distance;
    copy3(contact[0].normal, out.normal);
    copy3(contact[0].point_a, out.point_a);
    copy3(contact[0].point_b, out.point_b);
  } else {
    convex_distance(a, b, out);
  }
}

}  // namespace

double separation_along(const Shape& a, const Shape& b, const double normal[3]) {
  // The support points of the cores along the normal.
  const double inward[3] = {-normal[0], -normal[1], -normal[2]};
  double p[3];
  double q[3];
  double d[3];
  int hint_a = -1;
  int hint_b = -1;
  core_support(a, inward, p, hint_a);
  core_support(b, normal, q, hint_b);
  sub3(p, q, d);
  return dot3(d, normal) - core_radius(a) - core_radius(b);
}

bool is_farther(const Shape& a, const Shape& b, double distance) {
  double axis[3] = {0, 0, 0};
  return is_farther(a, b, distance, axis);
}

bool is_farther(const Shape& a, const Shape& b, double distance, double axis[3]) {
  // The line between the centres starts the search.
  if (dot3(axis, axis) == 0) {
    double ca[3];
    double cb[3];
    bounding_center(a, ca);
    bounding_center(b, cb);
    sub3(ca, cb, axis);
  }

  int hints[2] = {-1, -1};
  Simplex simplex;
  const double reach = std::max(0.0, distance + core_radius(a) + core_radius(b));
  return gjk(a, b, reach, 1e-3, axis, hints, simplex) == GjkStatus::beyond;
}

void signed_distance(const Shape& a, const Shape& b, SignedDistance& out) {
  const bool flipped = a.type > b.type;
  ordered_distance(flipped ? b : a, flipped ? a : b, out);
  if (flipped) flip(out);
}

}  // namespace coulomb
