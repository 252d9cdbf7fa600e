// On the tangent plane, n(u) = n + u_1 t_1 + u_2 t_2: G(n(u)) is concave, with the supergradient t.(p_A - p_B) of the support points.
// Where G(n(u)) >= c |n(u)|, c the best so far, lies in the half-plane of the gradient of G - c |n|; a polygon that holds the optimum
// is cut through its centroid, and loses at least 37 % of its area each time, whatever the shapes.
#include "coulomb/collision/continuous/separating_normal.hpp"

#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/contact.hpp"

namespace coulomb {
namespace {

constexpr int max_corners = 16;
constexpr int max_cuts = 160;
constexpr double opening = 0.1;  // rad

/// A convex polygon on the tangent plane, counter-clockwise.
struct Polygon {
  double corner[max_corners][2];
  int count;
};

/// False when hardly anything is left.
// A fan of triangles from the first corner.
bool centroid(const Polygon& p, double* out) {
  double area = 0;
  double x = 0;
  double y = 0;
  const double* o = p.corner[0];
  for (int i = 1; i + 1 < p.count; ++i) {
    const double ax = p.corner[i][0] - o[0];
    const double ay = p.corner[i][1] - o[1];
    const double bx = p.corner[i + 1][0] - o[0];
    const double by = p.corner[i + 1][1] - o[1];
    const double twice = ax * by - ay * bx;
    area += twice;
    x += twice * (ax + bx);
    y += twice * (ay + by);
  }

  if (!(area > 1e-30)) return false;
  out[0] = o[0] + x / (3 * area);
  out[1] = o[1] + y / (3 * area);
  return true;
}

/// Keeps the side of the line through `at` into which g points.
bool cut(Polygon& p, const double* at, const double* g) {
  Polygon kept;
  kept.count = 0;
  for (int i = 0; i < p.count; ++i) {
    // How far the corners of one side are on the side of g.
    const double* u = p.corner[i];
    const double* v = p.corner[(i + 1) % p.count];
    const double su = g[0] * (u[0] - at[0]) + g[1] * (u[1] - at[1]);
    const double sv = g[0] * (v[0] - at[0]) + g[1] * (v[1] - at[1]);

    if (kept.count + 2 > max_corners) return false;
    if (su >= 0) {
      kept.corner[kept.count][0] = u[0];
      kept.corner[kept.count++][1] = u[1];
    }

    // The line crosses this side.
    if ((su >= 0) == (sv >= 0)) continue;
    const double s = su / (su - sv);
    for (int c = 0; c < 2; ++c)
      kept.corner[kept.count][c] = u[c] + s * (v[c] - u[c]);
    ++kept.count;
  }
  p = kept;
  return p.count >= 3;
}

}  // namespace

void improve_separating_normal(const Shape& a, const Shape& b, double normal[3], double& separation) {
  // A square on the tangent plane at the normal so far.
  double t[2][3];
  double start[3];
  copy3(normal, start);
  contact_frame(start, t[0], t[1]);
  Polygon polygon{{{-opening, -opening}, {opening, -opening}, {opening, opening}, {-opening, opening}}, 4};

  const double radii = core_radius(a) + core_radius(b);
  int hint_a = -1;
  int hint_b = -1;

  for (int k = 0; k < max_cuts; ++k) {
    // The normal at the polygon's centroid.
    double u[2];
    if (!centroid(polygon, u)) return;
    double n[3];
    copy3(start, n);
    axpy3(u[0], t[0], n);
    axpy3(u[1], t[1], n);
    const double length = norm3(n);
    for (double& x : n)
      x /= length;

    // How far it separates.
    const double inward[3] = {-n[0], -n[1], -n[2]};
    double p[3];
    double q[3];
    core_support(a, inward, p, hint_a);
    core_support(b, n, q, hint_b);
    sub3(p, q, p);
    const double value = dot3(p, n) - radii;

    if (value > separation) {
      separation = value;
      copy3(n, normal);
    }

    // The half-plane of the gradient holds everything better.
    axpy3(-radii - separation, n, p);
    const double g[2] = {dot3(t[0], p), dot3(t[1], p)};
    if (!(std::abs(g[0]) + std::abs(g[1]) > 0) || !cut(polygon, u, g)) return;
  }
}

}  // namespace coulomb
