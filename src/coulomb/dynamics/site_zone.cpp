#include "coulomb/dynamics/site_zone.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "coulomb/base/small_math.hpp"

namespace coulomb {
namespace {

/// Values of t in which the ray is inside; empty when first > last.
struct Interval {
  double first = 0;
  double last = std::numeric_limits<double>::infinity();
  bool empty() const { return first > last; }
};

/// |p + t d| <= half
void clip_slab(double p, double d, double half, Interval& t) {
  // A ray along the slab is inside always or never.
  if (d == 0) {
    if (std::abs(p) > half) t.last = -1;
    return;
  }

  // Otherwise it crosses both faces.
  const double a = (-half - p) / d;
  const double b = (half - p) / d;
  t.first = std::max(t.first, std::min(a, b));
  t.last = std::min(t.last, std::max(a, b));
}

/// a t^2 + 2 b t + c <= 0, a >= 0
void clip_quadratic(double a, double b, double c, Interval& t) {
  // A ray along a cylinder's axis is inside always or never.
  const double discriminant = b * b - a * c;
  if (a == 0) {
    if (c > 0) t.last = -1;
    return;
  }

  // A line that misses the surface is never inside, one that meets it between the roots.
  if (discriminant < 0) {
    t.last = -1;
    return;
  }
  const double root = std::sqrt(discriminant);
  t.first = std::max(t.first, (-b - root) / a);
  t.last = std::min(t.last, (-b + root) / a);
}

/// An ellipsoid of these radii about (0, 0, z).
bool meets_ball(const double* p, const double* d, const double* radii, double z) {
  // In units of the radii the ellipsoid is a ball.
  const double x[3] = {p[0] / radii[0], p[1] / radii[1], (p[2] - z) / radii[2]};
  const double y[3] = {d[0] / radii[0], d[1] / radii[1], d[2] / radii[2]};
  Interval t;
  clip_quadratic(dot3(y, y), dot3(x, y), dot3(x, x) - 1, t);
  return !t.empty();
}

/// A cylinder about the z axis, |z| <= half.
bool meets_cylinder(const double* p, const double* d, double radius, double half) {
  Interval t;
  clip_quadratic(d[0] * d[0] + d[1] * d[1], p[0] * d[0] + p[1] * d[1], p[0] * p[0] + p[1] * p[1] - radius * radius, t);
  clip_slab(p[2], d[2], half, t);
  return !t.empty();
}

}  // namespace

bool ray_meets_zone(const Site& site, const double* p, const double* d) {
  const double* size = site.size.data();
  const double round[3] = {size[0], size[0], size[0]};
  switch (site.zone) {
    case ZoneType::sphere: return meets_ball(p, d, round, 0);
    case ZoneType::ellipsoid: return meets_ball(p, d, size, 0);
    case ZoneType::cylinder: return meets_cylinder(p, d, size[0], size[1]);
    case ZoneType::capsule:
      return meets_cylinder(p, d, size[0], size[1]) || meets_ball(p, d, round, size[1]) ||
             meets_ball(p, d, round, -size[1]);
    case ZoneType::box: {
      Interval t;
      for (int i = 0; i < 3; ++i)
        clip_slab(p[i], d[i], size[i], t);
      return !t.empty();
    }
  }
  return false;
}

bool is_in_zone(const Site& site, const double* p) {
  const double* size = site.size.data();
  const double across = p[0] * p[0] + p[1] * p[1];
  switch (site.zone) {
    case ZoneType::sphere: return dot3(p, p) <= size[0] * size[0];
    case ZoneType::cylinder: return across <= size[0] * size[0] && std::abs(p[2]) <= size[1];
    case ZoneType::box: return std::abs(p[0]) <= size[0] && std::abs(p[1]) <= size[1] && std::abs(p[2]) <= size[2];
    case ZoneType::capsule: {
      // The segment along z, inflated.
      const double beyond = std::max(0.0, std::abs(p[2]) - size[1]);
      return across + beyond * beyond <= size[0] * size[0];
    }
    case ZoneType::ellipsoid: {
      double sum = 0;
      for (int i = 0; i < 3; ++i)
        sum += p[i] * p[i] / (size[i] * size[i]);
      return sum <= 1;
    }
  }
  return false;
}

}  // namespace coulomb
