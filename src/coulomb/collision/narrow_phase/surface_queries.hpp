// Questions about a surface of triangles: which triangles are near a box, where a point is over, behind or inside, what touches at a point.
// Points are in the surface's frame.
#pragma once

#include <algorithm>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/shape.hpp"
#include "coulomb/model.hpp"

namespace coulomb {

/// The triangle nearest to a point of the surface's frame, by its distance along the triangle's normal: negative behind it. False: none of
/// the triangles that the point lies over or under is nearer than `reach`.
struct PointOverSurface {
  int triangle = -1;
  double height = 0;
};
bool point_over_surface(const TriangleSurface& surface, const double point[3], double reach, PointOverSurface& out);

/// What of the surface touches at one of its points with this outward normal: a face (num = 3), else an edge or a corner.
struct SurfaceFeature {
  int num = 0;
  int triangle = -1;
  int vertices[3];
};
/// tolerance: of the triangle's size; sine: between normals. False: there is none.
bool feature_at(const TriangleSurface& surface, const double point[3], const double normal[3], double tolerance,
                double sine, SurfaceFeature& out);

namespace surface {

constexpr double on_border = 1e-9;  ///< of the side: a foot so far outside belongs to the face

/// An axis-aligned box in the surface's frame.
struct Box {
  double low[3];
  double high[3];

  bool meets(const double* node) const {
    for (int i = 0; i < 3; ++i)
      if (node[i] > high[i] || node[3 + i] < low[i]) return false;
    return true;
  }
  bool holds(const double* x) const {
    for (int i = 0; i < 3; ++i)
      if (x[i] > high[i] || x[i] < low[i]) return false;
    return true;
  }
  bool meets(const double* x, const double* y) const {
    for (int i = 0; i < 3; ++i)
      if (std::min(x[i], y[i]) > high[i] || std::max(x[i], y[i]) < low[i]) return false;
    return true;
  }
};

/// A shape's box in its frame of reference, wider by `margin` on every side.
Box box_of(const Shape& a, double margin);

/// A as the frame of B sees it.
Shape in_frame_of(const Shape& a, const Shape& b);

/// The shape's third axis becomes the direction.
void set_third_axis(const double* direction, double* rotation);

/// Visits the triangles whose boxes meet `box` until `visit` returns false; not those below nodes that `skip` names.
template <class Visit, class Skip>
void for_each_near(const TriangleSurface& s, const Box& box, Visit visit, Skip skip) {
  constexpr int most_levels = 64;  // a tree of halves has fewer
  int stack[most_levels];
  int depth = 0;
  stack[depth++] = 0;
  while (depth > 0) {
    const int node = stack[--depth];
    if (!box.meets(&s.node_box[6 * node]) || skip(node)) continue;
    if (s.node_count[node] == 0) {
      stack[depth++] = s.node_second[node];
      stack[depth++] = node + 1;
      continue;
    }
    const int first = -1 - s.node_second[node];
    for (int k = first; k < first + s.node_count[node]; ++k) {
      const int t = s.leaf_triangles[k];
      double own[6];
      for (int i = 0; i < 3; ++i) {
        const double x[3] = {s.vertices[3 * s.triangles[3 * t] + i], s.vertices[3 * s.triangles[3 * t + 1] + i],
                             s.vertices[3 * s.triangles[3 * t + 2] + i]};
        own[i] = std::min({x[0], x[1], x[2]});
        own[3 + i] = std::max({x[0], x[1], x[2]});
      }
      if (box.meets(own) && !visit(t)) return;
    }
  }
}

template <class Visit>
void for_each_near(const TriangleSurface& s, const Box& box, Visit visit) {
  for_each_near(s, box, visit, [](int) { return false; });
}

inline const double* corner(const TriangleSurface& s, int t, int k) {
  return &s.vertices[3 * s.triangles[3 * t + k % 3]];
}

/// Is x, a point of the triangle's plane, on the triangle?
bool is_over(const TriangleSurface& s, int t, const double* x);

/// How deep x lies in the solid, by the nearest place of the surface; 0: in front of it, although `depth` behind some face, as on the other
/// side of a ridge. Of faces that are equally near, that counts which sees x the least aslant.
double depth_in_solid(const TriangleSurface& s, const double* x, double depth);

/// Is the foot of a point at `height` < 0 behind triangle t, which is not on it, inside of the solid beyond a valley, where the point has to
/// get out of both faces?
bool is_beyond_valley(const TriangleSurface& s, int t, const double* foot, double height);

}  // namespace surface
}  // namespace coulomb
