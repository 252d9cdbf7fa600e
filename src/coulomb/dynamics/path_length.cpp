// Around a circle of radius r the path from a to b is two tangents and an arc,
//   l = s_a + s_b + r (psi - alpha_a - alpha_b),   s = sqrt(rho^2 - r^2),   alpha = acos(r / rho),   rho = |a| or |b|,
// with the angle psi from a to b in the sense in which the path runs. d(s - r alpha) / drho = s / rho. The path on a sphere lies in the plane
// of a, b and the middle; that on a cylinder is straight on the unrolled surface, L = sqrt(l^2 + (b_z - a_z)^2). A path that touches from
// within has one corner x on the circle, where |a - x| + |x - b| is least.
#include "coulomb/dynamics/path_length.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"

namespace coulomb {
namespace {

constexpr double no_length = 1e-12;  // m: points closer to each other, or to the middle, have no direction
constexpr double on_surface = 1e-9;  // relative to the radius: a point that is on the obstacle

// So close to the other side of a kink, its derivatives are not this state's.
constexpr double shortest_arc = 1e-6;      // rad; the path then is within the circle by a share of 1e-13 of its radius,
constexpr double closest_pass = 1e-12;     // or outside by this share
constexpr double shortest_tangent = 1e-9;  // relative to the radius
constexpr double narrowest_plane = 1e-9;   // rad: two ends that are almost opposite, or in one line, have no plane

/// Points and directions in the plane of a circle; on a sphere the plane is that of a, b and the middle.
struct CirclePlane {
  double x[3];
  double y[3];
  bool tilts;  ///< with a and b: on a sphere
};

void scale3(double s, const double* p, double* out) {
  for (int i = 0; i < 3; ++i)
    out[i] = s * p[i];
}
double norm2(const double* p) { return std::hypot(p[0], p[1]); }
double dot2(const double* p, const double* q) { return p[0] * q[0] + p[1] * q[1]; }

void project(const CirclePlane& plane, const double* p, double* out) {
  out[0] = dot3(plane.x, p);
  out[1] = dot3(plane.y, p);
}

/// Any unit vector across n.
void across(const double* n, double* out) {
  int least = 0;
  for (int i = 1; i < 3; ++i)
    if (std::abs(n[i]) < std::abs(n[least])) least = i;
  double unit[3] = {0, 0, 0};
  unit[least] = 1;
  cross3(n, unit, out);
  scale3(1 / norm3(out), out, out);
}

CirclePlane circle_plane(WrapShape shape, const double* a, const double* b) {
  if (shape == WrapShape::cylinder) return {{1, 0, 0}, {0, 1, 0}, false};
  CirclePlane plane{{0}, {0}, true};
  scale3(1 / norm3(a), a, plane.x);
  double normal[3];
  cross3(a, b, normal);

  // Opposite points: every plane is as good.
  if (norm3(normal) < no_length * norm3(a) * norm3(b)) {
    across(plane.x, plane.y);
    return plane;
  }
  scale3(1 / norm3(normal), normal, normal);
  cross3(normal, plane.x, plane.y);
  return plane;
}

/// Do the segments p p1 and q q1 cross?
bool segments_cross(const double* p, const double* p1, const double* q, const double* q1) {
  const double u[2] = {p1[0] - p[0], p1[1] - p[1]};
  const double w[2] = {q1[0] - q[0], q1[1] - q[1]};
  const double det = w[1] * u[0] - w[0] * u[1];
  if (det == 0) return false;
  const double d[2] = {p[0] - q[0], p[1] - q[1]};
  const double on_p = (w[0] * d[1] - w[1] * d[0]) / det;
  const double on_q = (u[0] * d[1] - u[1] * d[0]) / det;
  return on_p >= 0 && on_p <= 1 && on_q >= 0 && on_q <= 1;
}

/// How close the segment comes to the middle: its nearest point.
void nearest_on_segment(const double* a, const double* b, double* out) {
  const double d[2] = {b[0] - a[0], b[1] - a[1]};
  const double square = dot2(d, d);
  const double t = square > 0 ? std::clamp(-dot2(d, a) / square, 0.0, 1.0) : 0.0;
  out[0] = a[0] + t * d[0];
  out[1] = a[1] + t * d[1];
}

/// The points where tangents from a and b touch, of a path that runs in the sense `sign`.
void tangent_points(const double* a, const double* b, double r, double sign, double* at_a, double* at_b) {
  const auto touch = [r](const double* p, double turn, double* out) {
    const double square = dot2(p, p);
    const double s = std::sqrt(std::max(0.0, square - r * r));
    out[0] = (p[0] * r * r - turn * r * p[1] * s) / square;
    out[1] = (p[1] * r * r + turn * r * p[0] * s) / square;
  };
  touch(a, sign, at_a);
  touch(b, -sign, at_b);
}

/// The angle from p to q as seen from the middle, in (-pi, pi].
double winding(const double* p, const double* q) { return std::atan2(p[0] * q[1] - p[1] * q[0], dot2(p, q)); }

/// In which sense the path runs round the circle, +1 or -1; 0: not at all. side: in the plane, null: none.
double sense_of_path(const double* a, const double* b, double r, const double* side, bool& at_kink) {
  double nearest[2];
  nearest_on_segment(a, b, nearest);
  const bool passes = dot2(nearest, nearest) > r * r;
  at_kink = passes && norm2(nearest) < (1 + closest_pass) * r;

  // On the given side as if it went by that point first; a straight line that winds the same way is there by itself.
  const double direct = winding(a, b);
  double sense = direct < 0 ? -1 : 1;
  if (side) {
    const double by_side = winding(a, side) + winding(side, b);
    if (passes && std::abs(by_side - direct) < M_PI) return 0;
    sense = by_side > 0 ? 1 : -1;
  } else if (passes) {
    return 0;
  }

  // Tangents that cross are no path.
  double at_a[2];
  double at_b[2];
  tangent_points(a, b, r, sense, at_a, at_b);
  return segments_cross(a, at_a, b, at_b) ? 0 : sense;
}

/// hessian += scale u w^T at the rows of one point and the columns of another (0: a, 3: b).
void add_outer(double scale, const double* u, const double* w, int row, int column, PathLength& out) {
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      out.hessian[row + i][column + j] += scale * u[i] * w[j];
}

/// One end of the path round a circle: its tangent, and its share of the angle psi.
struct End {
  int first;          // 0 of a, 3 of b
  double rho;         // of its projection
  double tangent;     // s
  double radial[3];   // e
  double towards[3];  // e', a quarter turn further towards the other end
};

End make_end(const CirclePlane& plane, const double* p, int first, double sense, double r) {
  End end;
  end.first = first;
  end.rho = norm2(p);
  end.tangent = std::sqrt(std::max(0.0, end.rho * end.rho - r * r));
  for (int i = 0; i < 3; ++i) {
    end.radial[i] = (p[0] * plane.x[i] + p[1] * plane.y[i]) / end.rho;
    end.towards[i] = sense * (p[0] * plane.y[i] - p[1] * plane.x[i]) / end.rho;
  }
  return end;
}

/// s - r alpha and its share r psi, of an end: d psi = -towards / rho.
void add_end(const End& end, double r, PathLength& out) {
  const double rho = end.rho;
  const double* e = end.radial;
  const double* t = end.towards;
  out.length += end.tangent - r * std::acos(std::min(1.0, r / rho));
  for (int i = 0; i < 3; ++i)
    out.gradient[end.first + i] += end.tangent / rho * e[i] - r / rho * t[i];

  // A tangent of no length has no curvature that could be told.
  const double least = shortest_tangent * r;
  if (end.tangent < least) out.at_kink = true;
  const double s = std::max(end.tangent, least);
  const int k = end.first;
  add_outer(r * r / (s * rho * rho), e, e, k, k, out);
  add_outer(end.tangent / (rho * rho), t, t, k, k, out);
  add_outer(r / (rho * rho), t, e, k, k, out);
  add_outer(r / (rho * rho), e, t, k, k, out);
}

/// On a sphere: the plane tilts with either end.
void add_tilt(const End& a, const End& b, const CirclePlane& plane, double psi, double r, PathLength& out) {
  double normal[3];
  cross3(plane.x, plane.y, normal);
  const double sine = std::sin(psi);
  if (std::abs(sine) < narrowest_plane) {
    out.at_kink = true;
    return;
  }
  const double cotangent = std::cos(psi) / sine;
  for (const End* end : {&a, &b})
    add_outer((end->tangent + r * cotangent) / (end->rho * end->rho), normal, normal, end->first, end->first, out);
  add_outer(-r / (a.rho * b.rho * sine), normal, normal, a.first, b.first, out);
  add_outer(-r / (a.rho * b.rho * sine), normal, normal, b.first, a.first, out);
}

/// Tangents and the arc between them. False: none.
bool around(const CirclePlane& plane, const double* a, const double* b, double r, double sense, PathLength& out) {
  double psi = sense * (std::atan2(b[1], b[0]) - std::atan2(a[1], a[0]));
  if (psi < 0) psi += 2 * M_PI;
  const End at_a = make_end(plane, a, 0, sense, r);
  const End at_b = make_end(plane, b, 3, -sense, r);
  const double arc = psi - std::acos(std::min(1.0, r / at_a.rho)) - std::acos(std::min(1.0, r / at_b.rho));
  if (arc < -shortest_arc) return false;
  out = {};
  out.at_kink = arc < shortest_arc;
  out.length = r * psi;
  add_end(at_a, r, out);
  add_end(at_b, r, out);
  if (plane.tilts) add_tilt(at_a, at_b, plane, psi, r, out);
  return true;
}

/// The angle of the corner on the circle: where |a - x| + |x - b| is least.
double corner_angle(const double* a, const double* b, double r) {
  // Between the two ends the derivative grows from below zero to above zero; bisection never leaves them, Newton's method ends it.
  const double first = std::atan2(a[1], a[0]);
  const double turn = std::remainder(std::atan2(b[1], b[0]) - first, 2 * M_PI);
  const auto slope = [&](double share) {
    const double angle = first + share * turn;
    const double x[2] = {r * std::cos(angle), r * std::sin(angle)};
    const double dx[2] = {-x[1], x[0]};
    double sum = 0;
    for (const double* p : {a, b}) {
      const double to[2] = {x[0] - p[0], x[1] - p[1]};
      sum += dot2(to, dx) / norm2(to);
    }
    return sum * turn;
  };
  double low = 0;
  double high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (slope(middle) < 0 ? low : high) = middle;
  }
  return first + 0.5 * (low + high) * turn;
}

/// A path that touches the circle from within. False: the straight line passes within the circle by itself.
bool within(const CirclePlane& plane, const double* a, const double* b, double r, PathLength& out) {
  double nearest[2];
  nearest_on_segment(a, b, nearest);
  out.at_kink = std::abs(norm2(nearest) - r) < closest_pass * r;
  if (norm2(nearest) <= r) return false;

  const double angle = corner_angle(a, b, r);
  double x[3];
  double along[3];
  double normal[3];
  for (int i = 0; i < 3; ++i) {
    x[i] = r * (std::cos(angle) * plane.x[i] + std::sin(angle) * plane.y[i]);
    along[i] = -std::sin(angle) * plane.x[i] + std::cos(angle) * plane.y[i];
  }
  cross3(plane.x, plane.y, normal);

  // Two straight pieces. By the corner they have no slope along the circle, and the curvature of all their terms.
  const bool at_kink = out.at_kink;
  out = {};
  out.at_kink = at_kink;
  double pull = 0;  // -(u_a + u_b) . x: how the constraint |x| = r pulls
  double S[2] = {0, 0};
  double by_corner[2][6] = {{0}};
  for (int k = 0; k < 2; ++k) {
    const double* p = k == 0 ? a : b;
    double d[3];
    for (int i = 0; i < 3; ++i)
      d[i] = p[0] * plane.x[i] + p[1] * plane.y[i] - x[i];
    const double l = norm3(d);
    scale3(1 / l, d, d);
    out.length += l;
    pull += dot3(d, x) / (r * r);
    const double* directions[2] = {along, normal};
    for (int i = 0; i < 3; ++i) {
      out.gradient[3 * k + i] = d[i];
      for (int j = 0; j < 3; ++j) {
        const double in_plane = (i == j) - (plane.tilts ? 0.0 : normal[i] * normal[j]);
        out.hessian[3 * k + i][3 * k + j] = (in_plane - d[i] * d[j]) / l;
      }
      for (int m = 0; m < 2; ++m)
        by_corner[m][3 * k + i] = -(directions[m][i] - d[i] * dot3(d, directions[m])) / l;
    }
    for (int m = 0; m < 2; ++m)
      S[m] += (1 - dot3(d, directions[m]) * dot3(d, directions[m])) / l;
  }

  // The corner moves so that the sum stays least: on a sphere out of the plane, too.
  for (int m = 0; m < (plane.tilts ? 2 : 1); ++m) {
    const double curvature = S[m] + pull;
    if (!(curvature > no_length)) {
      out.at_kink = true;
      continue;
    }
    for (int i = 0; i < 6; ++i)
      for (int j = 0; j < 6; ++j)
        out.hessian[i][j] -= by_corner[m][i] * by_corner[m][j] / curvature;
  }
  return true;
}

/// From the length l in the plane across a cylinder to that on its unrolled surface.
void add_height(double height, PathLength& out) {
  const double l = out.length;
  const double L = std::hypot(l, height);
  double dh[6] = {0, 0, -1, 0, 0, 1};
  double gradient[6];
  for (int i = 0; i < 6; ++i)
    gradient[i] = (l * out.gradient[i] + height * dh[i]) / L;
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 6; ++j)
      out.hessian[i][j] =
          (l * out.hessian[i][j] + out.gradient[i] * out.gradient[j] + dh[i] * dh[j] - gradient[i] * gradient[j]) / L;
  std::copy_n(gradient, 6, out.gradient);
  out.length = L;
}

}  // namespace

PathLength slider_path(double rod, const double* a) {
  PathLength out;
  out.length = a[2];
  out.gradient[2] = 1;
  const double square = rod * rod - a[0] * a[0] - a[1] * a[1];
  out.at_kink = std::abs(square) <= 1e-12 * rod * rod;
  if (!(square > 0)) return out;

  // -s with s = sqrt(square), ds/dx = -x / s
  const double s = std::sqrt(square);
  out.length -= s;
  for (int i = 0; i < 2; ++i) {
    out.gradient[i] = a[i] / s;
    for (int j = 0; j < 2; ++j)
      out.hessian[i][j] = ((i == j ? 1.0 : 0.0) + a[i] * a[j] / square) / s;
  }
  return out;
}

PathLength straight_path(const double* a, const double* b) {
  PathLength out;
  double d[3];
  sub3(b, a, d);
  const double l = norm3(d);
  out.length = l;
  if (l < no_length) {
    out.at_kink = true;
    return out;
  }
  scale3(1 / l, d, d);
  for (int i = 0; i < 3; ++i) {
    out.gradient[i] = -d[i];
    out.gradient[3 + i] = d[i];
    for (int j = 0; j < 3; ++j) {
      const double across = ((i == j) - d[i] * d[j]) / l;
      out.hessian[i][j] = out.hessian[3 + i][3 + j] = across;
      out.hessian[i][3 + j] = out.hessian[3 + i][j] = -across;
    }
  }
  return out;
}

bool wrapped_path(WrapShape shape, double radius, const double* a, const double* b, const double* side,
                  PathLength& out) {
  out.at_kink = false;
  if (norm3(a) < no_length || norm3(b) < no_length) return false;
  const CirclePlane plane = circle_plane(shape, a, b);
  double in_a[2];
  double in_b[2];
  project(plane, a, in_a);
  project(plane, b, in_b);

  // A path that begins within the obstacle does not wrap; one that begins on it does, whatever rounding says.
  const double within_it = (1 - on_surface) * radius;
  if (norm2(in_a) < within_it || norm2(in_b) < within_it || radius < no_length) return false;
  if (std::hypot(in_b[0] - in_a[0], in_b[1] - in_a[1]) < no_length) return false;

  bool wraps = false;
  if (side && norm3(side) < radius) {
    wraps = within(plane, in_a, in_b, radius, out);
  } else {
    double in_side[2] = {1, 0};
    if (side) project(plane, side, in_side);
    if (norm2(in_side) == 0) in_side[0] = 1;
    const double sense = sense_of_path(in_a, in_b, radius, side ? in_side : nullptr, out.at_kink);
    wraps = sense != 0 && around(plane, in_a, in_b, radius, sense, out);
  }
  if (wraps && shape == WrapShape::cylinder) add_height(b[2] - a[2], out);
  return wraps;
}

}  // namespace coulomb
