// Everything about one pyramid block: its polygon, residual, projection, modes and ties (definitions in the header).
#include "coulomb/solvers/friction_pyramid.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace coulomb {
namespace {

constexpr double pi = 3.14159265358979323846;
constexpr int kinds = max_facets / 2 - 1;     // 4, 6, .. max_facets
constexpr double on_vertex = 1e-3;            // of the half side: an impulse this near to a vertex was there
constexpr double at_vertex = 1e-10;           // of the largest friction: rounding of an impulse there
constexpr double on_border = 1e-3;            // of the largest friction: a part this near to its border was there
constexpr int features = 2 * max_facets + 1;  // of a polygon, and none

// Features are counted around, a side and a vertex by turns; `inscribed`: vertices on the unit circle, else sides touch it.
FrictionPolygon make_polygon(int sides, bool inscribed) {
  FrictionPolygon p;
  p.sides = sides;
  p.first_side = inscribed ? 1 : 0;

  // Exact where angles are those of a square.
  const bool square = sides == 4;
  const double tangent = square ? 1.0 : std::tan(pi / sides);
  const double inner = square ? std::sqrt(0.5) : std::cos(pi / sides);
  p.apothem = inscribed ? inner : 1.0;
  p.half_side = p.apothem * tangent;

  // Sides and vertices take turns, counted around.
  constexpr double quarter[4][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
  for (int f = 0; f < 2 * sides; ++f) {
    const bool on_axis = 2 * f % sides == 0;
    if (on_axis) {  // exact where the contact frame's axes are
      const double* axis = quarter[2 * f / sides];
      std::copy_n(axis, 2, p.direction[f]);
    } else {
      const double angle = pi * f / sides;
      p.direction[f][0] = std::cos(angle);
      p.direction[f][1] = std::sin(angle);
    }
  }

  // A side's point is its foot, a vertex' itself.
  for (int f = 0; f < 2 * sides; ++f) {
    const double* n = p.direction[f];
    if (p.is_side(f)) {
      for (int i = 0; i < 2; ++i)
        p.point[f][i] = p.apothem * n[i];
    } else if (inscribed) {
      std::copy_n(n, 2, p.point[f]);
    } else {
      const double* before = p.direction[p.neighbour(f, -1)];
      p.point[f][0] = before[0] - p.half_side * before[1];
      p.point[f][1] = before[1] + p.half_side * before[0];
    }
  }
  return p;
}

/// Where (x, y) lies relative to r P, seen from its nearest side.
struct Foot {
  int side = 0;
  double outside = 0;  ///< distance from the side's line, < 0 inside
  double across = 0;   ///< along the side, from its middle
  double beyond = 0;   ///< |across| - half the side: > 0 where the nearest feature is a vertex
};

Foot foot(const FrictionPolygon& p, double r, double x, double y) {
  Foot f;
  f.side = p.nearest_side(x, y);
  const double* n = p.direction[f.side];
  const double along = n[0] * x + n[1] * y;
  f.outside = along - r * p.apothem;
  f.across = n[0] * y - n[1] * x;
  f.beyond = std::abs(f.across) - r * p.half_side;
  return f;
}

int vertex_of(const FrictionPolygon& p, const Foot& f) {
  const int step = f.across > 0 ? 1 : -1;
  return p.neighbour(f.side, step);
}

/// The side or the vertex that is nearest.
int feature_of(const FrictionPolygon& p, const Foot& f) { return f.beyond <= 0 ? f.side : vertex_of(p, f); }

/// How far an impulse or z of a further tangent is beyond the end of its interval that is nearer; < 0 inside.
double outside_interval(double r, double z) { return std::abs(z) - r; }

int sign_of(double z) { return z < 0 ? -1 : 1; }

/// The point of r P nearest to (x, y).
void project_polygon(const FrictionPolygon& p, double r, double x, double y, double* out) {
  const Foot f = foot(p, r, x, y);
  if (f.outside <= 0) {
    out[0] = x;
    out[1] = y;
  } else if (f.beyond <= 0) {
    const double* n = p.direction[f.side];
    out[0] = r * p.apothem * n[0] - f.across * n[1];
    out[1] = r * p.apothem * n[1] + f.across * n[0];
  } else {
    const double* w = p.point[vertex_of(p, f)];
    out[0] = r * w[0];
    out[1] = r * w[1];
  }
}

}  // namespace

int FrictionPolygon::nearest_side(double x, double y) const {
  int best = first_side;
  double largest = -INFINITY;
  for (int f = first_side; f < 2 * sides; f += 2) {
    const double along = direction[f][0] * x + direction[f][1] * y;
    if (along > largest) {
      largest = along;
      best = f;
    }
  }
  return best;
}

/// All polygons there are, made once.
const FrictionPolygon& friction_polygon(const Block& block) {
  static const std::array<FrictionPolygon, 2 * kinds> table = [] {
    std::array<FrictionPolygon, 2 * kinds> all;
    for (int k = 0; k < kinds; ++k) {
      all[k] = make_polygon(2 * k + 4, false);
      all[kinds + k] = make_polygon(2 * k + 4, true);
    }
    return all;
  }();
  const int of_kind = (block.facets - 4) / 2;
  const int first = block.inscribed ? kinds : 0;
  return table[static_cast<std::size_t>(first + of_kind)];
}

PyramidParts parts_of(const Block& block, int facet) {
  PyramidParts parts;
  if (block.size == 3) {
    parts.feature = facet;
    return parts;
  }

  // The feature counts from 1, and every end has a digit of its own: 0, 1, or 2 for -1.
  parts.feature = facet % features - 1;
  int digits = facet / features;
  for (int i = 3; i < block.size; ++i) {
    const int digit = digits % 3;
    parts.end[i - 3] = digit == 2 ? -1 : digit;
    digits /= 3;
  }
  return parts;
}

int facet_of(const Block& block, const PyramidParts& parts) {
  if (block.size == 3) return parts.feature;
  int digits = 0;
  for (int i = block.size - 1; i >= 3; --i) {
    const int end = parts.end[i - 3];
    digits = 3 * digits + (end < 0 ? 2 : end);
  }
  const int facet = parts.feature + 1 + features * digits;
  return facet > 0 ? facet : -1;
}

void pyramid_point(const Block& block, int facet, double* n) {
  const PyramidParts parts = parts_of(block, facet);
  n[0] = 0;
  n[1] = 0;
  if (parts.feature >= 0) {
    std::copy_n(friction_polygon(block).point[parts.feature], 2, n);
  }
  for (int i = 3; i < block.size; ++i)
    n[i - 1] = parts.end[i - 3];
}

/// The facet of the scaled pyramid that z = l - c projects to.
PyramidMode pyramid_mode(const Block& block, const double* l, const double* c) {
  const double zn = l[2] - c[2];
  if (!(zn > 0)) return {};
  const double x = l[0] - c[0];
  const double y = l[1] - c[1];
  const FrictionPolygon& p = friction_polygon(block);
  const Foot f = foot(p, block.mu * zn, x, y);

  // Inside it sticks.
  const bool inside = block.mu > 0 && f.outside <= 0;
  if (block.size == 3) {
    if (inside) return {Mode::sticking, -1};
    return {Mode::sliding, feature_of(p, f)};
  }

  // So does every part.
  PyramidParts parts;
  parts.feature = inside ? -1 : feature_of(p, f);
  for (int i = 3; i < block.size; ++i) {
    const double z = l[i] - c[i];
    parts.end[i - 3] = outside_interval(block.mu * zn, z) > 0 ? sign_of(z) : 0;
  }
  const int facet = facet_of(block, parts);
  return {facet < 0 ? Mode::sticking : Mode::sliding, facet};
}

/// Distance of z to the nearest border of its mode; ties go to the lower mode.
double pyramid_margin(const Block& block, double tie, const double* l, const double* c, PyramidMode& label) {
  const double zn = l[2] - c[2];
  label = {};
  if (zn <= tie) return std::abs(zn);

  const double x = l[0] - c[0];
  const double y = l[1] - c[1];
  const FrictionPolygon& p = friction_polygon(block);
  const Foot f = foot(p, block.mu * zn, x, y);
  if (block.mu == 0) {
    label = {Mode::sliding, feature_of(p, f)};
    return zn;
  }

  // Distances from the faces of the pyramid in three dimensions.
  const double side_slope = block.mu * p.apothem;
  const double vertex_slope = block.mu * p.half_side;
  const double outside = f.outside / std::sqrt(1 + side_slope * side_slope);
  const double beyond = f.beyond / std::sqrt(1 + vertex_slope * vertex_slope);

  const bool inside = outside <= tie;
  const int feature = beyond <= tie ? f.side : vertex_of(p, f);
  const double of_polygon =
      inside ? std::min(std::abs(outside), zn) : std::min({beyond > tie ? beyond : outside, std::abs(beyond), zn});
  if (block.size == 3) {
    label = inside ? PyramidMode{Mode::sticking, -1} : PyramidMode{Mode::sliding, feature};
    return of_polygon;
  }

  // Every part by itself.
  double nearest = of_polygon;
  PyramidParts parts;
  parts.feature = inside ? -1 : feature;
  for (int i = 3; i < block.size; ++i) {
    const double z = l[i] - c[i];
    const double out = outside_interval(block.mu * zn, z) / std::sqrt(1 + block.mu * block.mu);
    parts.end[i - 3] = out > tie ? sign_of(z) : 0;
    nearest = std::min(nearest, std::abs(out));
  }
  label.facet = facet_of(block, parts);
  label.mode = label.facet < 0 ? Mode::sticking : Mode::sliding;
  return nearest;
}

/// How far l is from the projection of z = l - c.
double pyramid_residual(const Block& block, const double* l, const double* c) {
  const double normal = std::max(0.0, l[2] - c[2]);
  double t[2] = {0, 0};
  if (block.mu > 0 && normal > 0)
    project_polygon(friction_polygon(block), block.mu * normal, l[0] - c[0], l[1] - c[1], t);

  const double x = l[0] - t[0];
  const double y = l[1] - t[1];
  const double z = l[2] - normal;
  double sum = x * x + y * y + z * z;
  const double r = block.mu * normal;
  for (int i = 3; i < block.size; ++i) {
    const double lacks = l[i] - std::clamp(l[i] - c[i], -r, r);
    sum += lacks * lacks;
  }
  return std::sqrt(sum);
}

namespace {

/// The nearest point of a pyramid with further tangents. By its normal impulse s, half the squared distance has the derivative
///   s - l_N - sum over the parts outside of (how far along the part's direction a) (|a|)
/// which grows, and ever less so: Newton's method from below ends at its zero after a step for every part that comes inside.
void project_wide_pyramid(const Block& block, double* l) {
  const FrictionPolygon& p = friction_polygon(block);
  const double mu = block.mu;
  const Foot at = foot(p, 0, l[0], l[1]);
  double normal = std::max(0.0, l[2]);
  const int most = 2 * block.size;
  for (int iteration = 0; iteration < most; ++iteration) {
    double slope = 1;
    double value = normal - l[2];

    // The polygon: its nearest side, or vertex.
    const double r = mu * normal;
    if (at.outside > r * p.apothem) {
      const bool on_side = std::abs(at.across) <= r * p.half_side;
      const double* w = p.point[on_side ? at.side : vertex_of(p, at)];
      const double squared = w[0] * w[0] + w[1] * w[1];
      value -= mu * (w[0] * l[0] + w[1] * l[1] - r * squared);
      slope += mu * mu * squared;
    }

    // The intervals.
    for (int i = 3; i < block.size; ++i) {
      const double outside = outside_interval(r, l[i]);
      if (!(outside > 0)) continue;
      value -= mu * outside;
      slope += mu * mu;
    }
    if (!(value < 0)) break;
    normal -= value / slope;
  }

  const double r = mu * normal;
  double t[2];
  project_polygon(p, r, l[0], l[1], t);
  std::copy_n(t, 2, l);
  l[2] = normal;
  for (int i = 3; i < block.size; ++i)
    l[i] = std::clamp(l[i], -r, r);
}

}  // namespace

/// The nearest point of the pyramid, in three dimensions.
void project_pyramid(const Block& block, double* l) {
  if (block.size > 3) return project_wide_pyramid(block, l);
  const FrictionPolygon& p = friction_polygon(block);
  const double mu = block.mu;
  const Foot f = foot(p, 0, l[0], l[1]);  // its sector, which is also that of the projection
  const double* n = p.direction[f.side];
  const double along = f.outside;
  const double side = mu * p.apothem;
  const double half = mu * p.half_side;
  if (l[2] >= 0 && along <= side * l[2]) return;

  // On the facet (side n + x t, 1): normal unknown and the shift along the side.
  double normal = std::max(0.0, (side * along + l[2]) / (1 + side * side));
  if (std::abs(f.across) <= half * normal) {
    l[0] = side * normal * n[0] - f.across * n[1];
    l[1] = side * normal * n[1] + f.across * n[0];
    l[2] = normal;
    return;
  }

  // On the ray (mu w, 1).
  const double* w = p.point[vertex_of(p, f)];
  normal = std::max(0.0, (mu * (w[0] * l[0] + w[1] * l[1]) + l[2]) / (1 + mu * mu * (w[0] * w[0] + w[1] * w[1])));
  l[0] = mu * normal * w[0];
  l[1] = mu * normal * w[1];
  l[2] = normal;
}

int facet_of_impulse(const Block& block, const double* l) {
  const double r = block.mu * l[2];
  if (!(r > 0)) return -1;
  const FrictionPolygon& p = friction_polygon(block);
  const Foot f = foot(p, r, l[0], l[1]);
  const int feature = f.beyond > -on_vertex * r * p.half_side ? vertex_of(p, f) : f.side;
  if (block.size == 3) return feature;

  // The parts at their borders, or the one that is nearest to its own.
  PyramidParts parts;
  PyramidParts nearest;
  parts.feature = f.outside > -on_border * r ? feature : -1;
  nearest.feature = feature;
  double least = -f.outside;
  for (int i = 3; i < block.size; ++i) {
    const double outside = outside_interval(r, l[i]);
    if (outside > -on_border * r) {
      parts.end[i - 3] = sign_of(l[i]);
    }
    if (-outside < least) {
      least = -outside;
      nearest = {};
      nearest.end[i - 3] = sign_of(l[i]);
    }
  }
  const int facet = facet_of(block, parts);
  return facet >= 0 ? facet : facet_of(block, nearest);
}

int facet_of_clear_impulse(const Block& block, const double* l, double clear, int facet) {
  const double r = block.mu * l[2];
  if (!(r > 0)) return facet;
  const FrictionPolygon& p = friction_polygon(block);
  const Foot f = foot(p, r, l[0], l[1]);
  PyramidParts parts = parts_of(block, facet);

  // On a side, or at a vertex.
  int feature = parts.feature;
  if (f.beyond < -clear)
    feature = f.side;
  else if (f.beyond > -at_vertex * r)
    feature = vertex_of(p, f);
  if (block.size == 3) return feature;

  // A part may stick beside others that slide.
  if (f.outside < -clear)
    parts.feature = -1;
  else if (parts.feature >= 0 || f.outside > -at_vertex * r)
    parts.feature = feature;
  for (int i = 3; i < block.size; ++i) {
    const double outside = outside_interval(r, l[i]);
    if (outside < -clear)
      parts.end[i - 3] = 0;
    else if (outside > -at_vertex * r)
      parts.end[i - 3] = sign_of(l[i]);
  }
  const int found = facet_of(block, parts);
  return found >= 0 ? found : facet;
}

int facet_at_border(const Block& block, double share, const double* l) {
  const double r = block.mu * l[2];
  if (!(r > 0)) return -1;
  const Foot f = foot(friction_polygon(block), r, l[0], l[1]);
  double outside = f.outside;
  for (int i = 3; i < block.size; ++i)
    outside = std::max(outside, outside_interval(r, l[i]));
  return outside < -share * r ? -1 : facet_of_impulse(block, l);
}

/// The largest d . p of the points p of the section.
double pyramid_support(const Block& block, const double* d) {
  const FrictionPolygon& p = friction_polygon(block);
  const Foot f = foot(p, 0, d[0], d[1]);
  const double* w = p.point[vertex_of(p, f)];
  double support = d[0] * w[0] + d[1] * w[1];
  for (int k = 2; k < block.tangents(); ++k)
    support += std::abs(d[k]);
  return support;
}

namespace {

/// Across the border that the polygon of a sliding contact is nearest to; distance: how far, as a velocity. -1: it sticks.
int feature_across(const Block& block, double weight, int feature, const double* l, const double* c, double& distance) {
  const FrictionPolygon& p = friction_polygon(block);
  const double r = block.mu * l[2];
  if (feature < 0) {
    const Foot f = foot(p, r, l[0], l[1]);
    distance = weight * std::abs(f.outside);
    return feature_of(p, f);
  }

  // The borders of a side: no sliding velocity; an end of the side.
  const double* n = p.direction[feature];
  if (p.is_side(feature)) {
    const double speed = std::abs(n[0] * c[0] + n[1] * c[1]);
    const double across = n[0] * l[1] - n[1] * l[0];
    const double to_end = weight * std::abs(r * p.half_side - std::abs(across));
    distance = std::min(speed, to_end);
    if (speed <= to_end) return -1;
    return p.neighbour(feature, across > 0 ? 1 : -1);
  }

  // -c_T is a combination of the two sides' normals: the border is where one of the coefficients vanishes.
  const int before = p.neighbour(feature, -1);
  const int after = p.neighbour(feature, 1);
  const double* a = p.direction[before];
  const double* b = p.direction[after];
  const double along_a = std::abs(c[0] * b[1] - c[1] * b[0]);
  const double along_b = std::abs(c[1] * a[0] - c[0] * a[1]);
  distance = std::min(along_a, along_b);
  return along_a >= along_b ? before : after;
}

}  // namespace

PyramidMode pyramid_other_side(const Block& block, double weight, PyramidMode at, const double* l, const double* c) {
  const PyramidMode inside = {block.mu > 0 ? Mode::sticking : Mode::sliding, -1};
  if (at.mode == Mode::separating) return inside;
  if (!(l[2] > 0)) return {};
  if (at.mode == Mode::sticking) return {Mode::sliding, std::max(facet_of_impulse(block, l), 0)};
  if (block.mu == 0) return {};

  // The part that is nearest to a border of its own crosses it.
  PyramidParts parts = parts_of(block, at.facet);
  double least = 0;
  const PyramidParts before = parts;
  parts.feature = feature_across(block, weight, before.feature, l, c, least);
  for (int i = 3; i < block.size; ++i) {
    const int end = before.end[i - 3];
    const double to_end = weight * std::abs(outside_interval(block.mu * l[2], l[i]));
    const double distance = end == 0 ? to_end : std::abs(c[i]);
    if (!(distance < least)) continue;
    least = distance;
    parts = before;
    parts.end[i - 3] = end == 0 ? sign_of(l[i]) : 0;
  }
  const int facet = facet_of(block, parts);
  return facet < 0 ? inside : PyramidMode{Mode::sliding, facet};
}

}  // namespace coulomb
