// The exact solution of a pair of features: closed forms for vertices, edges and faces, Newton's method for curved
// ones.
#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/narrow_phase/convex_witness.hpp"

namespace coulomb {

namespace {

/// The curved features' witness for the outward unit direction w, and their curvature F (full 3x3).
void evaluate(const Shape& s, CoreFeature& f, const double* w, double* F) {
  std::fill(F, F + 9, 0.0);
  if (f.kind == Feature::round && s.type == ShapeType::ellipsoid) {
    // Of an ellipsoid: p = Q w / h, h^2 = w . Q w, Q = R diag(a^2) R^T.
    double local[3];
    double q[3];
    double Qw[3];
    rotate_transposed(s.rotation, w, local);
    for (int i = 0; i < 3; ++i)
      q[i] = s.size[i] * s.size[i] * local[i];
    const double h = std::sqrt(dot3(q, local));
    if (!(h > 0)) {
      // No extent along w.
      copy3(s.position, f.point);
      return;
    }

    rotate(s.rotation, q, Qw);
    for (int i = 0; i < 3; ++i)
      f.point[i] = s.position[i] + Qw[i] / h;

    // F is the Hessian of h.
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) {
        double Q = 0;
        for (int k = 0; k < 3; ++k)
          Q += s.rotation[3 * i + k] * s.size[k] * s.size[k] * s.rotation[3 * j + k];
        F[3 * i + j] = (Q - Qw[i] * Qw[j] / (h * h)) / h;
      }
  } else if (s.type == ShapeType::cylinder && (f.kind == Feature::rim || f.kind == Feature::line)) {
    // Of a cylinder's rim or side: the radial direction of w, at a cap or on the axis.
    const double c[3] = {s.rotation[2], s.rotation[5], s.rotation[8]};
    double t[3];
    double radial[3];
    const double z = dot3(c, w);
    const double sine = std::sqrt(std::max(1 - z * z, 1e-30));
    cross3(c, w, t);

    for (int i = 0; i < 3; ++i)
      radial[i] = (w[i] - z * c[i]) / sine;
    const double offset = f.kind == Feature::line ? 0.0 : (f.face == 0 ? s.size[1] : -s.size[1]);

    for (int i = 0; i < 3; ++i)
      f.point[i] = s.position[i] + s.size[0] * radial[i] + offset * c[i];

    // It only turns about the axis.
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j)
        F[3 * i + j] = s.size[0] / (sine * sine * sine) * t[i] * t[j];
  }
}

/// Brings the point of a cylinder's side to the direction `outward`, at the height on the axis it has, with what is left
/// to both ends.
void line_point(const Shape& s, const double* outward, CoreFeature& f) {
  // The radial part of the direction, and the height.
  double radial[3];
  double r[3];
  copy3(outward, radial);
  axpy3(-dot3(outward, f.direction), f.direction, radial);
  sub3(f.point, s.position, r);

  const double length = norm3(radial);
  const double along = std::clamp(dot3(r, f.direction), -s.size[1], s.size[1]);
  copy3(s.position, f.point);
  axpy3(along, f.direction, f.point);
  if (length > 0) {
    axpy3(s.size[0] / length, radial, f.point);
  }
  f.low = -s.size[1] - along;
  f.high = s.size[1] - along;
}

/// Follows n as it turns.
bool is_curved(const Shape& s, const CoreFeature& f) {
  return s.type == ShapeType::ellipsoid ||
         (s.type == ShapeType::cylinder && f.kind != Feature::face && f.kind != Feature::vertex);
}

/// Dense solve, n <= 4, partial pivoting.
bool solve_small(int n, double A[4][4], double* b) {
  for (int k = 0; k < n; ++k) {
    // The largest pivot of column k.
    int pivot = k;
    for (int i = k + 1; i < n; ++i)
      if (std::abs(A[i][k]) > std::abs(A[pivot][k])) {
        pivot = i;
      }
    if (!(std::abs(A[pivot][k]) > 1e-14)) return false;

    std::swap(b[k], b[pivot]);
    for (int j = 0; j < n; ++j)
      std::swap(A[k][j], A[pivot][j]);

    // Eliminate below it.
    for (int i = k + 1; i < n; ++i) {
      const double m = A[i][k] / A[k][k];
      for (int j = k; j < n; ++j)
        A[i][j] -= m * A[k][j];
      b[i] -= m * b[k];
    }
  }

  // Back substitution.
  for (int k = n - 1; k >= 0; --k) {
    for (int j = k + 1; j < n; ++j)
      b[k] -= A[k][j] * b[j];
    b[k] /= A[k][k];
  }
  return true;
}

/// Newton on (n, position along edges). Base points of edges are fixed, those of curved features follow n.
bool newton(const Shape& a, const Shape& b, double* n, CoreFeature& fa, CoreFeature& fb, double scale) {
  // Positions along the edges, from the points that the features have.
  double la = 0;
  double lb = 0;
  const double base_a[3] = {fa.point[0], fa.point[1], fa.point[2]};
  const double base_b[3] = {fb.point[0], fb.point[1], fb.point[2]};

  for (int iteration = 0;; ++iteration) {
    // The witnesses at this n.
    const double inward[3] = {-n[0], -n[1], -n[2]};
    copy3(base_a, fa.point);
    copy3(base_b, fb.point);
    double FA[9];
    double FB[9];
    evaluate(a, fa, inward, FA);
    evaluate(b, fb, n, FB);
    axpy3(la, fa.direction, fa.point);
    axpy3(lb, fb.direction, fb.point);

    // In the tangent plane p_A - p_B = Phi n: its residual, and its slope by n.
    double t[2][3];
    double d[3];
    double A[4][4] = {};
    double x[4];
    contact_frame(n, t[0], t[1]);
    sub3(fa.point, fb.point, d);
    const double phi = dot3(n, d);
    for (int i = 0; i < 2; ++i) {
      x[i] = dot3(t[i], d);
      for (int j = 0; j < 2; ++j) {
        double Ft[3];
        double Gt[3];
        rotate(FA, t[j], Ft);
        rotate(FB, t[j], Gt);
        A[i][j] = (dot3(t[i], Ft) + dot3(t[i], Gt) + (i == j ? phi : 0.0)) / scale;
      }
      x[i] /= scale;
    }

    // An edge adds its position as an unknown and asks n to be across it.
    int size = 2;
    int row_a = -1;
    int row_b = -1;
    if (has_line(fa)) {
      row_a = size++;
      for (int i = 0; i < 2; ++i) {
        A[i][row_a] = -dot3(t[i], fa.direction);
        A[row_a][i] = dot3(t[i], fa.direction);
      }
      x[row_a] = -dot3(n, fa.direction);
    }
    if (has_line(fb)) {
      row_b = size++;
      for (int i = 0; i < 2; ++i) {
        A[i][row_b] = dot3(t[i], fb.direction);
        A[row_b][i] = dot3(t[i], fb.direction);
      }
      x[row_b] = -dot3(n, fb.direction);
    }

    // The largest residual; a NaN stays.
    double residual = 0;
    for (int i = 0; i < size; ++i)
      residual = std::abs(x[i]) < residual ? residual : std::abs(x[i]);
    if (!(residual < 1e30)) return false;

    // Solved to rounding, or nearly so after all iterations.
    if (residual < 2e-16) break;
    if (iteration == 16) {
      if (!(residual < 1e-13)) return false;
      break;
    }

    // A step of at most 0.3 rad.
    if (!solve_small(size, A, x)) return residual < 1e-13;
    const double length = std::hypot(x[0], x[1]);
    const double limit = length > 0.3 ? 0.3 / length : 1.0;
    if (!(length < 1e30)) return false;

    for (int i = 0; i < 3; ++i)
      n[i] += limit * (x[0] * t[0][i] + x[1] * t[1][i]);
    const double norm = norm3(n);
    for (int i = 0; i < 3; ++i)
      n[i] /= norm;

    if (row_a >= 0) {
      la += limit * scale * x[row_a];
    }
    if (row_b >= 0) {
      lb += limit * scale * x[row_b];
    }

    // Not on the way to a solution, or as near as rounding lets it come.
    if (iteration > 4 && residual > 0.1) return false;
    if (iteration > 10 && residual < 1e-13) break;
  }

  // What is left to the ends of the edges.
  fa.low -= la;
  fa.high -= la;
  fb.low -= lb;
  fb.high -= lb;
  return true;
}

/// Moves an edge feature's point by s along it.
void slide(CoreFeature& f, double s) {
  axpy3(s, f.direction, f.point);
  f.low -= s;
  f.high -= s;
}

/// Vertices and edges: n along the shortest connection; two edges: n across both.
bool closed_form(double* n, CoreFeature& fa, CoreFeature& fb, double scale) {
  double d[3];
  sub3(fa.point, fb.point, d);

  // Points of the features that are opposite.
  if (has_line(fa) && has_line(fb)) {
    // Lines that cross: n is across both, and so is the shortest connection.
    double m[3];
    cross3(fa.direction, fb.direction, m);
    const double sine = norm3(m);
    if (sine > 1e-8) {
      const double sign = dot3(m, n) >= 0 ? 1.0 / sine : -1.0 / sine;
      const double c = dot3(fa.direction, fb.direction);
      for (int i = 0; i < 3; ++i)
        n[i] = sign * m[i];

      const double da = dot3(fa.direction, d);
      const double db = dot3(fb.direction, d);
      slide(fa, (c * db - da) / (sine * sine));
      slide(fb, (db - c * da) / (sine * sine));
      return true;
    }

    // Parallel: keep B's point, bring A's opposite to it.
    const double along = dot3(fa.direction, d);
    slide(fa, std::clamp(-along, fa.low, fa.high));
    sub3(fa.point, fb.point, d);
    const double rest = dot3(fb.direction, d);
    slide(fb, std::clamp(rest, fb.low, fb.high));
  } else if (has_line(fa)) {
    slide(fa, -dot3(fa.direction, d));
  } else if (has_line(fb)) {
    slide(fb, dot3(fb.direction, d));
  }

  // The connection; what rounding left along an edge would tilt n when they all but touch.
  sub3(fa.point, fb.point, d);
  for (const CoreFeature* f : {&fa, &fb})
    if (has_line(*f)) {
      axpy3(-dot3(d, f->direction), f->direction, d);
    }

  const double length = norm3(d);
  if (length > 1e-11 * scale) {
    const double sign = dot3(d, n) >= 0 ? 1.0 / length : -1.0 / length;
    for (int i = 0; i < 3; ++i)
      n[i] = sign * d[i];
  } else {
    // They touch: the guess, across the edges.
    for (const CoreFeature* f : {&fa, &fb})
      if (has_line(*f)) {
        axpy3(-dot3(n, f->direction), f->direction, n);
      }
    const double rest = norm3(n);
    if (!(rest > 1e-3)) return false;
    for (int i = 0; i < 3; ++i)
      n[i] /= rest;
  }
  return true;
}

}  // namespace

bool has_line(const CoreFeature& f) { return f.kind == Feature::edge || f.kind == Feature::line; }

/// Removes what rounding left of p_A - p_B across n (corners that all but touch), half from each side.
void align_witnesses(const double* n, Witness& w) {
  double d[3];
  sub3(w.a.point, w.b.point, d);
  axpy3(-dot3(d, n), n, d);
  axpy3(-0.5, d, w.a.point);
  axpy3(0.5, d, w.b.point);
}

/// Of two faces the one along n carries it; true when that is A's.
bool face_of_a_leads(const Witness& w) { return dot3(w.a.normal, w.normal) <= -dot3(w.b.normal, w.normal); }

CoreFeature end_of(const Shape& s, const CoreFeature& line, int end) {
  CoreFeature f;
  copy3(line.point, f.point);
  axpy3(end == 0 ? line.low : line.high, line.direction, f.point);
  f.kind = s.type == ShapeType::cylinder  ? Feature::rim
           : s.type == ShapeType::capsule ? Feature::round
                                          : Feature::vertex;
  f.face = s.type == ShapeType::cylinder ? 1 - end : -1;
  f.id = 8192 * 4096 + 2 * line.id + end;
  return f;
}

bool solve_features(const Shape& a, const Shape& b, const double normal[3], Witness& w) {
  const double scale = bounding_radius(a) + bounding_radius(b);
  double* n = w.normal;
  copy3(normal, n);
  if (w.a.kind == Feature::face || w.b.kind == Feature::face) {
    // A face carries n.
    const bool on_a = w.a.kind == Feature::face && (w.b.kind != Feature::face || face_of_a_leads(w));
    const CoreFeature& reference = on_a ? w.a : w.b;
    CoreFeature& other = on_a ? w.b : w.a;
    const double sign = on_a ? -1.0 : 1.0;

    for (int i = 0; i < 3; ++i)
      n[i] = sign * reference.normal[i];

    // The other shape's point: where it is deepest below the plane.
    const double opposite[3] = {-reference.normal[0], -reference.normal[1], -reference.normal[2]};
    const Shape& shape = on_a ? b : a;
    if (is_curved(shape, other) && other.kind != Feature::line) {
      double F[9];
      evaluate(shape, other, opposite, F);
    } else if (other.kind != Feature::vertex && other.kind != Feature::round) {
      // An edge, side or face in the plane: near the simplex' own.
      double p[3];
      int hint = -1;
      if (is_curved(shape, other)) {
        line_point(shape, opposite, other);
      }
      core_support(shape, opposite, p, hint);
      const double lift = dot3(p, opposite) - dot3(other.point, opposite);
      if (lift > 1e-13 * scale) {
        copy3(p, other.point);
      }
    }

    // Its projection on the face is the other witness.
    const Shape& owner = on_a ? a : b;
    double p[3];
    if (owner.type == ShapeType::cylinder) {
      copy3(owner.position, p);
      axpy3(owner.size[1], reference.normal, p);
    } else {
      core_vertex(owner, face_vertex(owner, reference.face, 0), p);
    }

    double r[3];
    sub3(other.point, p, r);
    const double height = dot3(r, reference.normal);
    CoreFeature& mine = on_a ? w.a : w.b;
    copy3(other.point, mine.point);
    axpy3(-height, mine.normal, mine.point);

    // Something curved: Newton's method.
  } else if (is_curved(a, w.a) || is_curved(b, w.b)) {
    if (!newton(a, b, n, w.a, w.b, scale)) return false;

    // Vertices and edges: closed forms.
  } else if (!closed_form(n, w.a, w.b, scale)) {
    return false;
  }

  // Offsets of rounded shapes.
  double d[3];
  sub3(w.a.point, w.b.point, d);
  align_witnesses(n, w);
  w.distance = dot3(d, n) - core_radius(a) - core_radius(b);
  copy3(w.a.point, w.point_a);
  copy3(w.b.point, w.point_b);
  axpy3(-core_radius(a), n, w.point_a);
  axpy3(core_radius(b), n, w.point_b);
  return true;
}

}  // namespace coulomb
