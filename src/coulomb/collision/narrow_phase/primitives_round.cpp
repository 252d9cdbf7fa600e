// Spheres and capsules are points and segments with an offset radius: find the closest points of the cores, then step
// outwards. Coincident cores have no direction of their own; a fixed perpendicular one is returned, so that nothing is
// ever NaN.
#include "coulomb/collision/narrow_phase/primitives_round.hpp"

#include <algorithm>
#include <cmath>

namespace coulomb {
namespace {

constexpr double parallel_sine = 0.02;

/// Of the radii: below it the direction between the cores is noise.
constexpr double coincident = 1e-12;

/// A point of the core of a rounded shape: the centre of a ball, a point of a capsule's segment.
struct CorePoint {
  const Shape& shape;
  Feature feature;      ///< of the surface above it
  const double* point;  ///< 3, world
};

/// A contact of two rounded cores; `fallback` is the normal of coincident ones.
int rounded_contact(const CorePoint& a, const CorePoint& b, const double* fallback, double margin, int feature,
                    Contact& out) {
  // The distance of the cores, less both radii.
  const double ra = a.shape.size[0];
  const double rb = b.shape.size[0];
  double n[3];
  sub3(a.point, b.point, n);
  const double d = norm3(n);
  const double distance = d - ra - rb;
  if (!(distance <= margin)) return 0;

  // From b's core out to b's surface.
  if (d > coincident * (ra + rb))
    for (double& x : n)
      x /= d;
  else
    copy3(fallback, n);
  double pb[3];
  for (int i = 0; i < 3; ++i)
    pb[i] = b.point[i] + rb * n[i];
  set_contact_from_b(n, pb, distance, feature, out);
  set_patches(a.shape, a.feature, b.shape, b.feature, out);
  return 1;
}

/// A unit vector perpendicular to the unit vector `axis`.
void perpendicular(const double* axis, double* out) {
  double other[3];
  contact_frame(axis, out, other);
}

double clamp_unit(double t, double half) { return std::min(std::max(t, -half), half); }

/// Witness on a capsule's segment at parameter t: an end is round, the inside straight.
Feature segment_feature(double t, double half) { return std::abs(t) < half ? Feature::line : Feature::round; }

/// origin + t axis
void along(const double* origin, const double* axis, double t, double* out) {
  for (int i = 0; i < 3; ++i)
    out[i] = origin[i] + t * axis[i];
}

/// Parameters of the closest points of two segments (centre, unit axis, half length); w = centre a - centre b.
void closest_on_segments(const double* w, const double* ea, double ha, const double* eb, double hb, double& s,
                         double& t) {
  // The closest points of the lines ...
  const double c = dot3(ea, eb);
  const double wa = dot3(w, ea);
  const double wb = dot3(w, eb);
  const double sine2 = 1 - c * c;
  s = sine2 > 1e-12 ? clamp_unit((c * wb - wa) / sine2, ha) : 0.0;
  t = c * s + wb;

  // ... with b's at an end of the segment.
  if (std::abs(t) > hb) {
    t = clamp_unit(t, hb);
    s = clamp_unit(c * t - wa, ha);
  }
}

/// Two points for parallel capsules: each end of the common interval is an end of one of them against the other's line.
int parallel_capsules(const Shape& a, const Shape& b, const double* ea, const double* eb, const double* w,
                      double margin, Contact* out) {
  // b's interval on a's axis; too short a common interval is a point.
  const double ha = a.size[1];
  const double hb = b.size[1];
  const double c = dot3(ea, eb);
  const double centre = -dot3(w, ea);
  const double reach = hb * std::abs(c);
  const double low_b = centre - reach;
  const double high_b = centre + reach;
  if (std::min(ha, high_b) - std::max(-ha, low_b) < 1e-6 * (ha + hb)) return -1;

  double fallback[3];
  perpendicular(ea, fallback);
  int count = 0;
  for (int end = 0; end < 2; ++end) {
    // An end of a against b's line, or an end of b against a's.
    const bool end_of_a = end == 0 ? -ha >= low_b : ha <= high_b;
    double s;
    double t;
    if (end_of_a) {
      s = end == 0 ? -ha : ha;
      t = clamp_unit(c * s + dot3(w, eb), hb);
    } else {
      t = (end == 0) == (c > 0) ? -hb : hb;
      s = clamp_unit(c * t - dot3(w, ea), ha);
    }

    double qa[3];
    double qb[3];
    along(a.position, ea, s, qa);
    along(b.position, eb, t, qb);
    const Feature feature_a = end_of_a ? Feature::round : segment_feature(s, ha);
    const Feature feature_b = end_of_a ? segment_feature(t, hb) : Feature::round;
    count += rounded_contact({a, feature_a, qa}, {b, feature_b, qb}, fallback, margin, end, out[count]);
  }
  return count;
}

/// The point of a polyhedral or cylindrical surface nearest to a ball, in the shape's frame.
struct NearestPoint {
  Feature feature;       ///< on which it lies
  const double* normal;  ///< 3, outward
  const double* point;   ///< 3
  double gap;            ///< from the surface to the ball's centre
  const double* edge;    ///< 3: along the edge, where it lies on one
};

/// Finishes a sphere against a point of b's surface.
int sphere_surface(const Shape& sphere, const Shape& b, const NearestPoint& at, double margin, Contact& out) {
  // The ball's surface.
  const double distance = at.gap - sphere.size[0];
  if (!(distance <= margin)) return 0;

  // To the world.
  double n[3];
  double p[3];
  double edge[3] = {0, 0, 0};
  rotate(b.rotation, at.normal, n);
  rotate(b.rotation, at.point, p);
  rotate(b.rotation, at.edge, edge);
  add3(p, b.position, p);

  set_contact_from_b(n, p, distance, 0, out);
  set_patches(sphere, Feature::round, b, at.feature, out);
  if (at.feature == Feature::edge) {
    support_patch(b, at.feature, n, edge, out.b);
  }
  return 1;
}

}  // namespace

int collide_sphere_sphere(const Shape& a, const Shape& b, double margin, const CollisionOptions&, CollisionCache::Pair&,
                          Contact* out) {
  const double up[3] = {0, 0, 1};
  const CorePoint centre_a = {a, Feature::round, a.position};
  const CorePoint centre_b = {b, Feature::round, b.position};
  return rounded_contact(centre_a, centre_b, up, margin, 0, out[0]);
}

int collide_sphere_capsule(const Shape& a, const Shape& b, double margin, const CollisionOptions&,
                           CollisionCache::Pair&, Contact* out) {
  double axis[3];
  double w[3];
  double q[3];
  double fallback[3];
  shape_axis(b, 2, axis);
  sub3(a.position, b.position, w);

  // The nearest point of the axis.
  const double t = clamp_unit(dot3(w, axis), b.size[1]);
  along(b.position, axis, t, q);
  perpendicular(axis, fallback);
  const CorePoint centre = {a, Feature::round, a.position};
  const CorePoint nearest = {b, segment_feature(t, b.size[1]), q};
  return rounded_contact(centre, nearest, fallback, margin, 0, out[0]);
}

int collide_capsule_capsule(const Shape& a, const Shape& b, double margin, const CollisionOptions&,
                            CollisionCache::Pair&, Contact* out) {
  double ea[3];
  double eb[3];
  double w[3];
  double across[3];

  // All but parallel capsules have two points.
  shape_axis(a, 2, ea);
  shape_axis(b, 2, eb);
  sub3(a.position, b.position, w);
  cross3(ea, eb, across);
  const double sine = norm3(across);
  if (sine < parallel_sine) {
    const int count = parallel_capsules(a, b, ea, eb, w, margin, out);
    if (count >= 0) return count;
  }

  // The closest points of the axes; crossing ones have their common normal.
  double s;
  double t;
  double qa[3];
  double qb[3];

  closest_on_segments(w, ea, a.size[1], eb, b.size[1], s, t);
  along(a.position, ea, s, qa);
  along(b.position, eb, t, qb);

  double fallback[3];
  perpendicular(ea, fallback);
  if (sine > 1e-6)
    for (int i = 0; i < 3; ++i)
      fallback[i] = across[i] / sine;
  const CorePoint nearest_a = {a, segment_feature(s, a.size[1]), qa};
  const CorePoint nearest_b = {b, segment_feature(t, b.size[1]), qb};
  return rounded_contact(nearest_a, nearest_b, fallback, margin, 2, out[0]);
}

int collide_sphere_box(const Shape& a, const Shape& b, double margin, const CollisionOptions&, CollisionCache::Pair&,
                       Contact* out) {
  // The centre in the box's frame.
  double w[3];
  double q[3];
  sub3(a.position, b.position, w);
  rotate_transposed(b.rotation, w, q);

  // The nearest point of the box: clamped along the axes on which the centre is outside.
  double p[3];
  double edge[3] = {0, 0, 0};
  int free = 0;
  for (int i = 0; i < 3; ++i) {
    p[i] = clamp_unit(q[i], b.size[i]);
    if (std::abs(q[i]) < b.size[i]) {
      ++free;
      edge[i] = 1;
    }
  }

  // Outside: that point is on a vertex, an edge or a face.
  double n[3];
  sub3(q, p, n);
  const double d = norm3(n);
  if (d > coincident * a.size[0]) {
    for (double& x : n)
      x /= d;
    const Feature feature = free == 0 ? Feature::vertex : free == 1 ? Feature::edge : Feature::face;
    return sphere_surface(a, b, {feature, n, p, d, edge}, margin, out[0]);
  }

  // Centre inside: leave through the nearest face, the first of equals.
  int nearest = 0;
  for (int i = 1; i < 3; ++i)
    if (b.size[i] - std::abs(q[i]) < b.size[nearest] - std::abs(q[nearest])) {
      nearest = i;
    }

  const double sign = q[nearest] < 0 ? -1.0 : 1.0;
  const double depth = b.size[nearest] - std::abs(q[nearest]);
  n[0] = n[1] = n[2] = 0;
  n[nearest] = sign;
  p[nearest] = sign * b.size[nearest];
  return sphere_surface(a, b, {Feature::face, n, p, -depth, edge}, margin, out[0]);
}

int collide_sphere_cylinder(const Shape& a, const Shape& b, double margin, const CollisionOptions&,
                            CollisionCache::Pair&, Contact* out) {
  // The centre in the cylinder's frame, radially and along the axis.
  double w[3];
  double q[3];
  sub3(a.position, b.position, w);
  rotate_transposed(b.rotation, w, q);

  const double R = b.size[0];
  const double h = b.size[1];
  const double radius = std::hypot(q[0], q[1]);
  const double sign = q[2] < 0 ? -1.0 : 1.0;
  const bool centred = radius < coincident * R;
  const double e[3] = {centred ? 1.0 : q[0] / radius, centred ? 0.0 : q[1] / radius, 0};

  // Beyond both the side and a cap: the rim. Else through the nearer of the two.
  const double none[3] = {0, 0, 0};
  const double side = radius - R;
  const double cap = std::abs(q[2]) - h;
  if (side > 0 && cap > 0) {
    const double gap = std::hypot(side, cap);
    const double n[3] = {e[0] * side / gap, e[1] * side / gap, sign * cap / gap};
    const double p[3] = {R * e[0], R * e[1], sign * h};
    return sphere_surface(a, b, {Feature::rim, n, p, gap, none}, margin, out[0]);
  }
  if (cap >= side) {
    const double n[3] = {0, 0, sign};
    const double p[3] = {q[0], q[1], sign * h};
    return sphere_surface(a, b, {Feature::face, n, p, cap, none}, margin, out[0]);
  }
  const double p[3] = {R * e[0], R * e[1], q[2]};
  return sphere_surface(a, b, {Feature::line, e, p, side, none}, margin, out[0]);
}

}  // namespace coulomb
