// GJK with closest points of segments, triangles and tetrahedra by Voronoi regions; ends when no support point makes
// progress.
#include "coulomb/collision/narrow_phase/gjk.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"

namespace coulomb {

namespace {

/// Closest point of a segment to the origin: weights of the vertices; returns the bit mask of those that carry weight.
unsigned closest_segment(const double* p, const double* q, double* weight) {
  double d[3];
  sub3(q, p, d);
  const double dd = dot3(d, d);
  const double t = dd > 0 ? -dot3(p, d) : 0.0;
  if (t <= 0) {
    weight[0] = 1;
    weight[1] = 0;
    return 1u;
  }
  if (t >= dd) {
    weight[0] = 0;
    weight[1] = 1;
    return 2u;
  }

  weight[1] = t / dd;
  weight[0] = 1 - weight[1];
  return 3u;
}

/// The same of a triangle.
unsigned closest_triangle(const double* p, const double* q, const double* r, double* weight) {
  double pq[3];
  double pr[3];
  double n[3];
  sub3(q, p, pq);
  sub3(r, p, pr);
  cross3(pq, pr, n);

  // Barycentric coordinates of the origin's projection, unless the triangle is a line.
  const double nn = dot3(n, n);
  if (nn > 1e-28 * dot3(pq, pq) * dot3(pr, pr)) {
    double m[3];
    cross3(q, r, m);
    const double u = dot3(m, n);
    cross3(r, p, m);
    const double v = dot3(m, n);
    cross3(p, q, m);
    const double w = dot3(m, n);

    if (u > 0 && v > 0 && w > 0) {
      const double s = 1.0 / (u + v + w);
      weight[0] = u * s;
      weight[1] = v * s;
      weight[2] = w * s;
      return 7u;
    }
  }

  // Outside: the best of the three sides.
  const double* point[3] = {p, q, r};
  double best = 1e300;
  unsigned mask = 0;
  for (int i = 0; i < 3; ++i) {
    const int j = (i + 1) % 3;
    double l[2];
    double x[3];
    const unsigned side = closest_segment(point[i], point[j], l);
    for (int c = 0; c < 3; ++c)
      x[c] = l[0] * point[i][c] + l[1] * point[j][c];
    const double d = dot3(x, x);

    if (d >= best) continue;
    best = d;
    weight[0] = weight[1] = weight[2] = 0;
    weight[i] = l[0];
    weight[j] = l[1];
    mask = (side & 1 ? 1u << i : 0u) | (side & 2 ? 1u << j : 0u);
  }
  return mask;
}

/// The same of a tetrahedron. Inside: all four bits.
unsigned closest_tetrahedron(const MinkowskiVertex* v, double* weight) {
  static constexpr int faces[4][4] = {{0, 1, 2, 3}, {0, 3, 1, 2}, {0, 2, 3, 1}, {1, 3, 2, 0}};
  double best = 1e300;
  double result[4] = {0, 0, 0, 0};
  unsigned mask = 15u;

  // Of the faces that have the origin on their outer side, the nearest.
  for (const auto& f : faces) {
    double pq[3];
    double pr[3];
    double ps[3];
    double n[3];
    sub3(v[f[1]].w, v[f[0]].w, pq);
    sub3(v[f[2]].w, v[f[0]].w, pr);
    sub3(v[f[3]].w, v[f[0]].w, ps);
    cross3(pq, pr, n);

    // Outside of this face? The fourth vertex tells which side is inside; a flat tetrahedron has none.
    const double height = dot3(n, ps);
    const double origin = -dot3(n, v[f[0]].w);
    const bool flat = std::abs(height) <= 1e-12 * norm3(n) * norm3(ps);
    if (!flat && height * origin >= 0) continue;

    double l[3];
    double x[3];
    const unsigned side = closest_triangle(v[f[0]].w, v[f[1]].w, v[f[2]].w, l);
    for (int c = 0; c < 3; ++c)
      x[c] = l[0] * v[f[0]].w[c] + l[1] * v[f[1]].w[c] + l[2] * v[f[2]].w[c];
    const double d = dot3(x, x);

    if (d >= best) continue;
    best = d;
    mask = 0;
    for (double& r : result)
      r = 0;
    for (int k = 0; k < 3; ++k) {
      result[f[k]] = l[k];
      if (side >> k & 1) {
        mask |= 1u << f[k];
      }
    }
  }

  if (best < 1e300)
    for (int k = 0; k < 4; ++k)
      weight[k] = result[k];
  return mask;
}

/// The closest point of a simplex to the origin and the vertices that carry it, before anything is dropped.
struct Closest {
  unsigned mask = 1u;
  double weight[4];
  double point[3] = {0, 0, 0};
};

/// True if the simplex holds the origin.
bool find_closest(const Simplex& s, Closest& c) {
  if (s.count == 1) {
    c.weight[0] = 1;
  }
  if (s.count == 2) {
    c.mask = closest_segment(s.v[0].w, s.v[1].w, c.weight);
  }
  if (s.count == 3) {
    c.mask = closest_triangle(s.v[0].w, s.v[1].w, s.v[2].w, c.weight);
  }
  if (s.count == 4) {
    c.mask = closest_tetrahedron(s.v, c.weight);
  }
  if (c.mask == 15u) return true;

  for (int i = 0; i < s.count; ++i)
    if (c.mask >> i & 1) {
      axpy3(c.weight[i], s.v[i].w, c.point);
    }
  return false;
}

/// Drops the vertices that carry nothing.
void keep_closest(const Closest& c, Simplex& s) {
  int n = 0;
  for (int i = 0; i < s.count; ++i) {
    if (!(c.mask >> i & 1)) continue;
    if (n != i) {
      s.v[n] = s.v[i];
    }
    s.weight[n++] = c.weight[i];
  }
  s.count = n;
  copy3(c.point, s.closest);
}

}  // namespace

void minkowski_support(const Shape& a, const Shape& b, const double direction[3], int hints[2], MinkowskiVertex& out) {
  const double opposite[3] = {-direction[0], -direction[1], -direction[2]};
  out.ia = core_support(a, direction, out.a, hints[0]);
  out.ib = core_support(b, opposite, out.b, hints[1]);
  sub3(out.a, out.b, out.w);
}

GjkStatus gjk(const Shape& a, const Shape& b, double reach, double tolerance, double axis[3], int hints[2],
              Simplex& simplex) {
  // Any direction starts it.
  double d[3] = {-axis[0], -axis[1], -axis[2]};
  if (!(dot3(d, d) > 0)) {
    d[0] = d[1] = 0;
    d[2] = -1;
  }

  simplex.count = 0;
  double previous = 1e300;
  double scale2 = 0;
  for (int iteration = 0; iteration < 64; ++iteration) {
    // The support point of A - B towards the origin.
    MinkowskiVertex& next = simplex.v[simplex.count];
    minkowski_support(a, b, d, hints, next);

    // n . w with n = -d is a lower bound of the distance, times |d|.
    const double bound = -dot3(d, next.w);
    if (bound > 0 && bound * bound > reach * reach * dot3(d, d)) {
      for (int i = 0; i < 3; ++i)
        axis[i] = -d[i];
      return GjkStatus::beyond;
    }

    // No progress: the bound has met the distance, or the vertex is there already.
    scale2 = std::max(scale2, dot3(next.w, next.w));
    if (iteration > 0) {
      const double vv = dot3(simplex.closest, simplex.closest);
      bool known = vv - bound <= std::max(tolerance, 1e-15) * vv;
      for (int i = 0; i < simplex.count && !known; ++i)
        known = next.w[0] == simplex.v[i].w[0] && next.w[1] == simplex.v[i].w[1] && next.w[2] == simplex.v[i].w[2];
      if (known) return GjkStatus::apart;
    }

    // The closest point of the simplex with it.
    ++simplex.count;
    Closest closest;
    if (find_closest(simplex, closest)) return GjkStatus::overlap;
    const double vv = dot3(closest.point, closest.point);
    if (vv >= previous && vv > 1e-20 * scale2) {
      // Rounding stops the descent.
      --simplex.count;
      return GjkStatus::apart;
    }

    keep_closest(closest, simplex);
    if (vv <= 1e-20 * scale2) return GjkStatus::overlap;

    // Towards the origin from there.
    previous = vv;
    copy3(simplex.closest, axis);
    for (int i = 0; i < 3; ++i)
      d[i] = -simplex.closest[i];
  }
  return GjkStatus::apart;
}

}  // namespace coulomb
