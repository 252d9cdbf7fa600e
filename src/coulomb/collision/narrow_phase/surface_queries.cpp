// Walks of the tree of boxes, and the geometry of single triangles.
#include "coulomb/collision/narrow_phase/surface_queries.hpp"

#include <cmath>

#include "coulomb/collision/narrow_phase/primitives_common.hpp"

namespace coulomb {
namespace surface {
namespace {

constexpr double most_beyond = 2;  // depths: a foot so far beyond a valley still belongs to the face
constexpr double nowhere = 1e300;

/// Twice the area between side k of the triangle and x, a point of its plane: positive outside.
double area_outside(const TriangleSurface& s, int t, int k, const double* x, double* side) {
  double arm[3];
  double across[3];
  sub3(corner(s, t, k + 1), corner(s, t, k), side);
  sub3(x, corner(s, t, k), arm);
  cross3(side, arm, across);
  return -dot3(across, &s.normals[3 * t]);
}

/// The point of the triangle nearest to x, of which `foot` is the projection on its plane.
void nearest_on_triangle(const TriangleSurface& s, int t, const double* x, const double* foot, double* nearest) {
  if (is_over(s, t, foot)) {
    copy3(foot, nearest);
    return;
  }
  double least = nowhere;
  for (int k = 0; k < 3; ++k) {
    double side[3];
    double arm[3];
    double y[3];
    sub3(corner(s, t, k + 1), corner(s, t, k), side);
    sub3(x, corner(s, t, k), arm);
    copy3(corner(s, t, k), y);
    axpy3(std::clamp(dot3(arm, side) / dot3(side, side), 0.0, 1.0), side, y);
    sub3(x, y, arm);
    if (dot3(arm, arm) >= least) continue;
    least = dot3(arm, arm);
    copy3(y, nearest);
  }
}

}  // namespace

Box box_of(const Shape& a, double margin) {
  Box out;
  for (int i = 0; i < 3; ++i) {
    double d[3] = {0, 0, 0};
    double p[3];
    int hint = -1;
    d[i] = 1;
    shape_support(a, d, p, hint);
    out.high[i] = p[i] + margin;
    d[i] = -1;
    hint = -1;
    shape_support(a, d, p, hint);
    out.low[i] = p[i] - margin;
  }
  return out;
}

Shape in_frame_of(const Shape& a, const Shape& b) {
  Shape out = a;
  double apart[3];
  sub3(a.position, b.position, apart);
  rotate_transposed(b.rotation, apart, out.position);
  for (int k = 0; k < 3; ++k) {
    double axis[3];
    shape_axis(a, k, axis);
    rotate_transposed(b.rotation, axis, axis);
    for (int i = 0; i < 3; ++i)
      out.rotation[3 * i + k] = axis[i];
  }
  return out;
}

void set_third_axis(const double* direction, double* rotation) {
  double axes[3][3];
  copy3(direction, axes[2]);
  contact_frame(axes[2], axes[0], axes[1]);
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 3; ++k)
      rotation[3 * i + k] = axes[k][i];
}

bool is_over(const TriangleSurface& s, int t, const double* x) {
  for (int k = 0; k < 3; ++k) {
    double side[3];
    if (area_outside(s, t, k, x, side) > on_border * dot3(side, side)) return false;
  }
  return true;
}

double depth_in_solid(const TriangleSurface& s, const double* x, double depth) {
  Box box;
  const double reach = depth * (1 + on_border) + 1e-12;
  for (int i = 0; i < 3; ++i) {
    box.low[i] = x[i] - reach;
    box.high[i] = x[i] + reach;
  }
  double least = nowhere;
  double best_height = 1;
  for_each_near(s, box, [&](int t) {
    double arm[3];
    double foot[3];
    double y[3] = {};
    sub3(x, corner(s, t, 0), arm);
    const double height = dot3(&s.normals[3 * t], arm);
    copy3(x, foot);
    axpy3(-height, &s.normals[3 * t], foot);
    nearest_on_triangle(s, t, x, foot, y);
    sub3(x, y, arm);
    const double distance = norm3(arm);
    const bool is_nearer = distance < least * (1 - on_border);
    const bool as_near = distance <= least * (1 + on_border);
    if (is_nearer || (as_near && std::abs(height) > std::abs(best_height))) best_height = height;
    least = std::min(least, distance);
    return true;
  });
  return best_height < 0 ? least : 0;
}

bool is_beyond_valley(const TriangleSurface& s, int t, const double* foot, double height) {
  for (int k = 0; k < 3; ++k) {
    double side[3];
    const double area = area_outside(s, t, k, foot, side);
    const double length = norm3(side);
    const double beyond = area / length;
    if (beyond <= on_border * length) continue;
    const int other = s.across[3 * t + k];
    if (other < 0 || beyond > -most_beyond * height) return false;
    double arm[3];
    sub3(foot, corner(s, t, k), arm);
    if (!(dot3(arm, &s.normals[3 * other]) < 0)) return false;
  }
  return true;
}

}  // namespace surface

using surface::Box;
using surface::corner;
using surface::for_each_near;
using surface::is_over;

bool point_over_surface(const TriangleSurface& surface, const double point[3], double reach, PointOverSurface& out) {
  Box box;
  for (int i = 0; i < 3; ++i) {
    box.low[i] = point[i] - reach;
    box.high[i] = point[i] + reach;
  }
  double nearest = reach;
  out.triangle = -1;
  for_each_near(surface, box, [&](int t) {
    const double* n = &surface.normals[3 * t];
    double arm[3];
    double foot[3];
    sub3(point, corner(surface, t, 0), arm);
    const double height = dot3(n, arm);
    if (!(std::abs(height) < nearest)) return true;
    copy3(point, foot);
    axpy3(-height, n, foot);
    if (!is_over(surface, t, foot)) return true;
    nearest = std::abs(height);
    out.triangle = t;
    out.height = height;
    return true;
  });
  return out.triangle >= 0;
}

bool feature_at(const TriangleSurface& surface, const double point[3], const double normal[3], double tolerance,
                double sine, SurfaceFeature& out) {
  Box box;
  for (int i = 0; i < 3; ++i) {
    const double reach = tolerance * (1 + std::abs(point[i]));
    box.low[i] = point[i] - reach;
    box.high[i] = point[i] + reach;
  }

  // The face with that normal comes first, then the fewest vertices that the point is between.
  out = SurfaceFeature{};
  for_each_near(surface, box, [&](int t) {
    double turn[3];
    cross3(&surface.normals[3 * t], normal, turn);
    if (norm3(turn) <= sine && dot3(&surface.normals[3 * t], normal) > 0 && is_over(surface, t, point)) {
      out.num = 3;
      out.triangle = t;
      for (int k = 0; k < 3; ++k)
        out.vertices[k] = surface.triangles[3 * t + k];
      return false;
    }
    for (int k = 0; k < 3; ++k) {
      double along[3];
      double arm[3];
      double across[3];
      sub3(corner(surface, t, k + 1), corner(surface, t, k), along);
      sub3(point, corner(surface, t, k), arm);
      const double length = norm3(along);
      const bool at_corner = norm3(arm) <= tolerance * length;
      cross3(along, arm, across);
      const double place = dot3(arm, along);
      const bool on_edge = norm3(across) <= tolerance * length * length && place > 0 && place < length * length;
      if (at_corner) {
        out.num = 1;
        out.triangle = t;
        out.vertices[0] = surface.triangles[3 * t + k];
      } else if (on_edge && out.num != 1) {
        out.num = 2;
        out.triangle = t;
        out.vertices[0] = surface.triangles[3 * t + k];
        out.vertices[1] = surface.triangles[3 * t + (k + 1) % 3];
      }
    }
    return true;
  });
  return out.num > 0;
}

}  // namespace coulomb
