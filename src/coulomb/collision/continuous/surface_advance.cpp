#include "coulomb/collision/continuous/surface_advance.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/narrow_phase/surface_queries.hpp"

namespace coulomb {
namespace {

using namespace surface;

constexpr double one_plane = 1e-12;  // sines, and offsets over the size: planes that are one
constexpr double wider = 1 + 1e-9;   // of a box that holds what is within reach

}  // namespace

bool SurfaceAdvance::is_near(const Shape& a, const Shape& b, double reach) {
  const bool first = a.type == ShapeType::surface;
  const Shape& surface = first ? a : b;
  const Box box = box_of(in_frame_of(first ? b : a, surface), reach * wider);
  bool found = false;
  for_each_near(*surface.surface, box, [&](int) {
    found = true;
    return false;
  });
  return found;
}

double SurfaceAdvance::time(const MovingShape& a, const MovingShape& b, double distance, double threshold,
                            double horizon, const double turn[3]) {
  const bool first = a.shape.type == ShapeType::surface;
  const MovingShape& convex = first ? b : a;
  const MovingShape& surface = first ? a : b;
  const double room = distance - threshold;
  if (!(room > 0) || !(horizon > 0)) return 0;

  // What is fast is looked at again where it has gone by its own size: it does not meet all triangles on its way at once.
  const double size = bounding_radius(convex.shape);
  const double fastest = relative_speed_bound(convex, surface, horizon);
  double safe = fastest * horizon > size ? size / fastest : horizon;
  const Box box = box_of(in_frame_of(convex.shape, surface.shape), fastest * safe * wider);

  // Each triangle that it can reach until then. Normals point at the convex shape.
  const double sign = first ? -1 : 1;
  const double outward_turn[3] = {sign * turn[0], sign * turn[1], sign * turn[2]};
  const TriangleSurface& s = *surface.shape.surface;
  plane_ = -1;
  const auto visit = [&](int t) {
    if (!is_in_plane(s, t, size)) safe = safe_from_triangle(convex, surface, t, room, threshold, safe, outward_turn);
    return true;
  };
  const auto is_known = [&](int node) { return s.node_plane[node] >= 0 && is_in_plane(s, s.node_plane[node], size); };
  for_each_near(s, box, visit, is_known);
  return safe;
}

/// Is it in the plane that nothing comes down on?
bool SurfaceAdvance::is_in_plane(const TriangleSurface& s, int t, double size) const {
  if (plane_ < 0) return false;
  const double* n = &s.normals[3 * t];
  double turn[3];
  double arm[3];
  cross3(&s.normals[3 * plane_], n, turn);
  sub3(corner(s, t, 0), corner(s, plane_, 0), arm);
  return norm3(turn) <= one_plane && dot3(n, &s.normals[3 * plane_]) > 0 &&
         std::abs(dot3(n, arm)) <= one_plane * (size + norm3(arm));
}

/// The least of `horizon` and what is safe.
double SurfaceAdvance::safe_from_triangle(const MovingShape& a, const MovingShape& surface, int t, double room,
                                          double threshold, double horizon, const double turn[3]) {
  // In front of the plane.
  triangle_.place(surface.shape, t);
  MovingShape of_plane = surface;
  of_plane.shape = Shape{};
  of_plane.shape.type = ShapeType::half_space;
  copy3(triangle_.corners(), of_plane.shape.position);
  set_third_axis(triangle_.normal(), of_plane.shape.rotation);
  SignedDistance to_plane;
  signed_distance(a.shape, of_plane.shape, to_plane);
  const double over_plane = safe_advance(a, of_plane, to_plane, threshold, horizon).time;
  if (over_plane >= horizon) {
    plane_ = t;
    return horizon;
  }

  // Beside the triangle, behind it, on its edges and corners, where the normal may turn with the shape.
  MovingShape of_triangle = surface;
  of_triangle.shape = triangle_.shape();
  SignedDistance to_triangle;
  signed_distance(a.shape, of_triangle.shape, to_triangle);
  const double over_triangle = longest_advance(a, of_triangle, to_triangle, threshold, horizon, turn);
  if (std::max(to_plane.distance, to_triangle.distance) > threshold) return std::max(over_plane, over_triangle);

  // It is in both already, where no contact of the surface says so: it goes no deeper than contacts may.
  return std::max(safe_advance(a, of_plane, to_plane, to_plane.distance - room, horizon).time,
                  longest_advance(a, of_triangle, to_triangle, to_triangle.distance - room, horizon, turn));
}

}  // namespace coulomb
