// Everything about one pyramid block: its polygon, residual, projection, modes and ties (definitions in the header).
#include "coulomb/solvers/friction_pyramid.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace coulomb {
namespace {

constexpr double pi = 3.14159265358979323846;
constexpr int kinds = max_facets / 2 - 1;  // 4, 6, .. max_facets
constexpr double on_vertex = 1e-3;         // of the half side: an impulse this near to a vertex was there
constexpr double at_vertex = 1e-10;        // of the largest friction: rounding of an impulse there

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

/// The feature of the scaled polygon that z = l - c projects to.
PyramidMode pyramid_mode(const Block& block, const double* l, const double* c) {
  const double zn = l[2] - c[2];
  if (!(zn > 0)) return {};
  const double x = l[0] - c[0];
  const double y = l[1] - c[1];
  const FrictionPolygon& p = friction_polygon(block);
  const Foot f = foot(p, block.mu * zn, x, y);

  // Inside it sticks.
  if (block.mu > 0 && f.outside <= 0) return {Mode::sticking, -1};
  return {Mode::sliding, feature_of(p, f)};
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

  if (outside <= tie) {
    label.mode = Mode::sticking;
    return std::min(std::abs(outside), zn);
  }
  label.mode = Mode::sliding;
  label.facet = beyond <= tie ? f.side : vertex_of(p, f);
  return std::min({beyond > tie ? beyond : outside, std::abs(beyond), zn});
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
  return std::sqrt(x * x + y * y + z * z);
}

/// The nearest point of the pyramid, in three dimensions.
void project_pyramid(const Block& block, double* l) {
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
  return f.beyond > -on_vertex * r * p.half_side ? vertex_of(p, f) : f.side;
}

int facet_of_clear_impulse(const Block& block, const double* l, double clear) {
  const double r = block.mu * l[2];
  if (!(r > 0)) return -1;
  const FrictionPolygon& p = friction_polygon(block);
  const Foot f = foot(p, r, l[0], l[1]);
  if (f.beyond < -clear) return f.side;
  return f.beyond > -at_vertex * r ? vertex_of(p, f) : -1;
}

int facet_at_border(const Block& block, double share, const double* l) {
  const double r = block.mu * l[2];
  if (!(r > 0)) return -1;
  const Foot f = foot(friction_polygon(block), r, l[0], l[1]);
  return f.outside < -share * r ? -1 : facet_of_impulse(block, l);
}

/// The largest d . p of the points p of the polygon.
double pyramid_support(const Block& block, const double* d) {
  const FrictionPolygon& p = friction_polygon(block);
  const Foot f = foot(p, 0, d[0], d[1]);
  const double* w = p.point[vertex_of(p, f)];
  return d[0] * w[0] + d[1] * w[1];
}

PyramidMode pyramid_other_side(const Block& block, double weight, PyramidMode at, const double* l, const double* c) {
  const FrictionPolygon& p = friction_polygon(block);
  const PyramidMode inside = {block.mu > 0 ? Mode::sticking : Mode::sliding, -1};

  if (at.mode == Mode::separating) return inside;
  if (!(l[2] > 0)) return {};
  const double r = block.mu * l[2];
  if (at.mode == Mode::sticking) return {Mode::sliding, std::max(facet_of_impulse(block, l), 0)};
  if (block.mu == 0) return {};

  const double* n = p.direction[at.facet];

  // The borders of a side: no sliding velocity; an end of the side.
  if (p.is_side(at.facet)) {
    const double speed = std::abs(n[0] * c[0] + n[1] * c[1]);
    const double across = n[0] * l[1] - n[1] * l[0];
    if (speed <= weight * std::abs(r * p.half_side - std::abs(across))) return inside;
    return {Mode::sliding, p.neighbour(at.facet, across > 0 ? 1 : -1)};
  }

  // -c_T is a combination of the two sides' normals: the border is where one of the coefficients vanishes.
  const int before = p.neighbour(at.facet, -1);
  const int after = p.neighbour(at.facet, 1);
  const double* a = p.direction[before];
  const double* b = p.direction[after];
  const double along_a = std::abs(c[0] * b[1] - c[1] * b[0]);
  const double along_b = std::abs(c[1] * a[0] - c[0] * a[1]);
  return {Mode::sliding, along_a >= along_b ? before : after};
}

}  // namespace coulomb
