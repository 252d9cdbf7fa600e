// Features from simplices, and their exact solution.
#include "coulomb/collision/convex_witness.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/small_math.hpp"

namespace coulomb {

namespace {

// The curved features' witness for the outward unit direction w, and their curvature F (full 3x3).
void evaluate(const Shape& s, CoreFeature& f, const double* w, double* F) {
  std::fill(F, F + 9, 0.0);
  if (f.kind == Feature::round && s.type == ShapeType::ellipsoid) {
    double local[3], q[3], Qw[3];
    rotate_transposed(s.rotation, w, local);
    for (int i = 0; i < 3; ++i) q[i] = s.size[i] * s.size[i] * local[i];
    const double h = std::sqrt(dot3(q, local));
    if (!(h > 0)) {  // no extent along w
      copy3(s.position, f.point);
      return;
    }
    rotate(s.rotation, q, Qw);
    for (int i = 0; i < 3; ++i) f.point[i] = s.position[i] + Qw[i] / h;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) {
        double Q = 0;
        for (int k = 0; k < 3; ++k) Q += s.rotation[3 * i + k] * s.size[k] * s.size[k] * s.rotation[3 * j + k];
        F[3 * i + j] = (Q - Qw[i] * Qw[j] / (h * h)) / h;
      }
  } else if (s.type == ShapeType::cylinder && (f.kind == Feature::rim || f.kind == Feature::line)) {
    const double c[3] = {s.rotation[2], s.rotation[5], s.rotation[8]};
    double t[3], radial[3];
    const double z = dot3(c, w), sine = std::sqrt(std::max(1 - z * z, 1e-30));
    cross3(c, w, t);
    for (int i = 0; i < 3; ++i) radial[i] = (w[i] - z * c[i]) / sine;
    const double offset = f.kind == Feature::line ? 0.0 : (f.face == 0 ? s.size[1] : -s.size[1]);
    for (int i = 0; i < 3; ++i) f.point[i] = s.position[i] + s.size[0] * radial[i] + offset * c[i];
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) F[3 * i + j] = s.size[0] / (sine * sine * sine) * t[i] * t[j];
  }
}

bool has_line(const CoreFeature& f) { return f.kind == Feature::edge || f.kind == Feature::line; }
bool is_curved(const Shape& s, const CoreFeature& f) {
  return s.type == ShapeType::ellipsoid || (s.type == ShapeType::cylinder && f.kind != Feature::face && f.kind != Feature::vertex);
}

// Dense solve, n <= 4, partial pivoting.
bool solve_small(int n, double A[4][4], double* b) {
  for (int k = 0; k < n; ++k) {
    int pivot = k;
    for (int i = k + 1; i < n; ++i)
      if (std::abs(A[i][k]) > std::abs(A[pivot][k])) pivot = i;
    if (!(std::abs(A[pivot][k]) > 1e-14)) return false;
    std::swap(b[k], b[pivot]);
    for (int j = 0; j < n; ++j) std::swap(A[k][j], A[pivot][j]);
    for (int i = k + 1; i < n; ++i) {
      const double m = A[i][k] / A[k][k];
      for (int j = k; j < n; ++j) A[i][j] -= m * A[k][j];
      b[i] -= m * b[k];
    }
  }
  for (int k = n - 1; k >= 0; --k) {
    for (int j = k + 1; j < n; ++j) b[k] -= A[k][j] * b[j];
    b[k] /= A[k][k];
  }
  return true;
}

// Newton on (n, position along edges). Base points of edges are fixed, those of curved features follow n.
bool newton(const Shape& a, const Shape& b, double* n, CoreFeature& fa, CoreFeature& fb, double scale) {
  double la = 0, lb = 0, FA[9], FB[9];
  const double base_a[3] = {fa.point[0], fa.point[1], fa.point[2]}, base_b[3] = {fb.point[0], fb.point[1], fb.point[2]};
  for (int iteration = 0;; ++iteration) {
    const double inward[3] = {-n[0], -n[1], -n[2]};
    copy3(base_a, fa.point), copy3(base_b, fb.point);
    evaluate(a, fa, inward, FA), evaluate(b, fb, n, FB);
    axpy3(la, fa.direction, fa.point), axpy3(lb, fb.direction, fb.point);
    double t[2][3], d[3], A[4][4] = {}, x[4];
    contact_frame(n, t[0], t[1]);
    sub3(fa.point, fb.point, d);
    const double phi = dot3(n, d);
    for (int i = 0; i < 2; ++i) {
      x[i] = dot3(t[i], d);
      for (int j = 0; j < 2; ++j) {
        double Ft[3], Gt[3];
        rotate(FA, t[j], Ft), rotate(FB, t[j], Gt);
        A[i][j] = (dot3(t[i], Ft) + dot3(t[i], Gt) + (i == j ? phi : 0.0)) / scale;
      }
      x[i] /= scale;
    }
    int size = 2, row_a = -1, row_b = -1;
    if (has_line(fa)) {
      row_a = size++;
      for (int i = 0; i < 2; ++i) A[i][row_a] = -dot3(t[i], fa.direction), A[row_a][i] = dot3(t[i], fa.direction);
      x[row_a] = -dot3(n, fa.direction);
    }
    if (has_line(fb)) {
      row_b = size++;
      for (int i = 0; i < 2; ++i) A[i][row_b] = dot3(t[i], fb.direction), A[row_b][i] = dot3(t[i], fb.direction);
      x[row_b] = -dot3(n, fb.direction);
    }
    double residual = 0;
    for (int i = 0; i < size; ++i) residual = std::abs(x[i]) < residual ? residual : std::abs(x[i]);  // keeps a NaN
    if (!(residual < 1e30)) return false;
    if (residual < 2e-16 || iteration == 16) break;
    if (!solve_small(size, A, x)) return residual < 1e-13;
    const double length = std::hypot(x[0], x[1]), limit = length > 0.3 ? 0.3 / length : 1.0;
    if (!(length < 1e30)) return false;
    for (int i = 0; i < 3; ++i) n[i] += limit * (x[0] * t[0][i] + x[1] * t[1][i]);
    const double norm = norm3(n);
    for (int i = 0; i < 3; ++i) n[i] /= norm;
    if (row_a >= 0) la += limit * scale * x[row_a];
    if (row_b >= 0) lb += limit * scale * x[row_b];
    if (iteration > 4 && residual > 0.1) return false;
    if (iteration > 10 && residual < 1e-13) break;
  }
  fa.low -= la, fa.high -= la, fb.low -= lb, fb.high -= lb;
  return true;
}

// Moves an edge feature's point by s along it.
void slide(CoreFeature& f, double s) {
  axpy3(s, f.direction, f.point);
  f.low -= s, f.high -= s;
}

// Vertices and edges: n along the shortest connection; two edges: n across both.
bool closed_form(double* n, CoreFeature& fa, CoreFeature& fb, double scale) {
  double d[3];
  sub3(fa.point, fb.point, d);
  if (has_line(fa) && has_line(fb)) {
    double m[3];
    cross3(fa.direction, fb.direction, m);
    const double sine = norm3(m);
    if (sine > 1e-8) {
      const double sign = dot3(m, n) >= 0 ? 1.0 / sine : -1.0 / sine, c = dot3(fa.direction, fb.direction);
      for (int i = 0; i < 3; ++i) n[i] = sign * m[i];
      const double da = dot3(fa.direction, d), db = dot3(fb.direction, d);
      slide(fa, (c * db - da) / (sine * sine)), slide(fb, (db - c * da) / (sine * sine));
      return true;
    }
    const double along = dot3(fa.direction, d);  // parallel: keep B's point, bring A's opposite to it
    slide(fa, std::clamp(-along, fa.low, fa.high));
    sub3(fa.point, fb.point, d);
    const double rest = dot3(fb.direction, d);
    slide(fb, std::clamp(rest, fb.low, fb.high));
  } else if (has_line(fa)) {
    slide(fa, -dot3(fa.direction, d));
  } else if (has_line(fb)) {
    slide(fb, dot3(fb.direction, d));
  }
  sub3(fa.point, fb.point, d);
  const double length = norm3(d);
  if (length > 1e-11 * scale) {
    const double sign = dot3(d, n) >= 0 ? 1.0 / length : -1.0 / length;
    for (int i = 0; i < 3; ++i) n[i] = sign * d[i];
  }
  return true;
}

// Feature choices of a polyhedral core from the simplex' vertices with weight above the threshold.
bool polyhedral_feature(const Shape& s, const Simplex& simplex, bool second, const double* outward, double threshold,
                        double scale, CoreFeature& f) {
  int id[4], n = 0;
  f.point[0] = f.point[1] = f.point[2] = 0;
  for (int i = 0; i < simplex.count; ++i) {
    axpy3(simplex.weight[i], second ? simplex.v[i].b : simplex.v[i].a, f.point);
    if (!(simplex.weight[i] > threshold)) continue;
    const int v = second ? simplex.v[i].ib : simplex.v[i].ia;
    bool seen = false;
    for (int k = 0; k < n; ++k) seen |= id[k] == v;
    if (!seen) id[n++] = v;
  }
  if (n == 0) return false;
  for (int i = 1; i < n; ++i)
    for (int k = i; k > 0 && id[k] < id[k - 1]; --k) std::swap(id[k], id[k - 1]);
  if (n == 1) {
    f.kind = s.type == ShapeType::sphere || s.type == ShapeType::capsule ? Feature::round : Feature::vertex;
    f.id = id[0];
    core_vertex(s, id[0], f.point);
    return true;
  }
  if (n == 2 && are_neighbours(s, id[0], id[1])) {
    double p[3], q[3];
    core_vertex(s, id[0], p), core_vertex(s, id[1], q);
    sub3(q, p, f.direction);
    const double length = norm3(f.direction);
    if (!(length > 0)) return false;
    for (double& c : f.direction) c /= length;
    double r[3];
    sub3(f.point, p, r);
    const double along = dot3(r, f.direction);
    for (int i = 0; i < 3; ++i) f.point[i] = p[i] + along * f.direction[i];
    f.low = -along, f.high = length - along;
    f.kind = s.type == ShapeType::capsule ? Feature::line : Feature::edge;
    f.id = (id[0] + 1) * 4096 + id[1];
    return true;
  }
  if (!has_faces(s)) return false;
  double cosine;
  f.face = best_face(s, outward, cosine);
  f.kind = Feature::face, f.id = f.face;
  face_normal(s, f.face, f.normal);
  const double offset = face_offset(s, f.face);
  for (int k = 0; k < n; ++k) {
    double p[3];
    core_vertex(s, id[k], p);
    if (std::abs(dot3(p, f.normal) - offset) > 1e-7 * scale) return false;
  }
  return true;
}

// Up to two choices of feature for one side.
int feature_choices(const Shape& s, const Simplex& simplex, bool second, const double* outward, double threshold, double scale,
                    CoreFeature* f) {
  if (s.type == ShapeType::ellipsoid) {
    f[0].kind = Feature::round;
    return 1;
  }
  if (s.type != ShapeType::cylinder) return polyhedral_feature(s, simplex, second, outward, threshold, scale, f[0]) ? 1 : 0;
  double weight[2] = {0, 0}, point[3] = {0, 0, 0};
  const double c[3] = {s.rotation[2], s.rotation[5], s.rotation[8]}, z = dot3(c, outward);
  for (int i = 0; i < simplex.count; ++i) {
    weight[second ? simplex.v[i].ib : simplex.v[i].ia] += simplex.weight[i];
    axpy3(simplex.weight[i], second ? simplex.v[i].b : simplex.v[i].a, point);
  }
  if (weight[0] > threshold && weight[1] > threshold) {
    f[0].kind = Feature::line, f[0].id = 2;
    copy3(c, f[0].direction);
    f[0].low = -s.size[1], f[0].high = s.size[1];
    return 1;
  }
  int n = 0;
  const int end = weight[0] >= weight[1] ? 0 : 1;
  if (std::abs(z) > 0.9) {
    f[n].kind = Feature::face, f[n].face = end, f[n].id = end;
    for (int i = 0; i < 3; ++i) f[n].normal[i] = end == 0 ? c[i] : -c[i];
    copy3(point, f[n++].point);
  }
  f[n].kind = Feature::rim, f[n].face = end, f[n].id = 3 + end;
  return n + 1;
}

// True if `point`, seen along the face's normal, lies inside the face.
bool inside_face(const Shape& s, int face, const double* normal, const double* point, double slack) {
  if (s.type == ShapeType::cylinder) {
    double r[3], across[3];
    sub3(point, s.position, r);
    cross3(r, normal, across);
    return norm3(across) <= s.size[0] + slack;
  }
  const int n = face_size(s, face);
  double p[3], q[3], e[3], m[3], r[3];
  core_vertex(s, face_vertex(s, face, n - 1), p);
  for (int k = 0; k < n; ++k, copy3(q, p)) {
    core_vertex(s, face_vertex(s, face, k), q);
    sub3(q, p, e);
    cross3(e, normal, m);
    sub3(point, p, r);
    if (dot3(r, m) > slack * norm3(m)) return false;
  }
  return true;
}

bool supports_agree(const Shape& a, const Shape& b, const Witness& w, double slack) {
  double p[3];
  const double inward[3] = {-w.normal[0], -w.normal[1], -w.normal[2]};
  int hint = w.a.kind == Feature::vertex ? w.a.id : -1;
  core_support(a, inward, p, hint);
  if (dot3(p, inward) > dot3(w.a.point, inward) + slack) return false;
  hint = w.b.kind == Feature::vertex ? w.b.id : -1;
  core_support(b, w.normal, p, hint);
  return dot3(p, w.normal) <= dot3(w.b.point, w.normal) + slack;
}

// Removes what rounding left of p_A - p_B across n (corners that all but touch), half from each side.
void align_witnesses(const double* n, Witness& w) {
  double d[3];
  sub3(w.a.point, w.b.point, d);
  axpy3(-dot3(d, n), n, d);
  axpy3(-0.5, d, w.a.point), axpy3(0.5, d, w.b.point);
}

// Of two faces the one along n carries it; true when that is A's.
bool face_of_a_leads(const Witness& w) { return dot3(w.a.normal, w.normal) <= -dot3(w.b.normal, w.normal); }

// A cap that leans against the other's face touches with its rim.
bool leaning_cap(const Shape& s, const CoreFeature& f, const double* n) {
  if (s.type != ShapeType::cylinder || f.kind != Feature::face) return false;
  double across[3];
  cross3(f.normal, n, across);
  return dot3(across, across) > 0.02 * 0.02;  // below: COLLISION choice 5
}

bool within_extent(const CoreFeature& f, double slack) {
  return !has_line(f) || (f.low <= slack && f.high >= -slack);
}

}  // namespace

bool solve_features(const Shape& a, const Shape& b, const double normal[3], Witness& w) {
  const double scale = bounding_radius(a) + bounding_radius(b);
  double* n = w.normal;
  copy3(normal, n);
  double F[9];
  if (w.a.kind == Feature::face || w.b.kind == Feature::face) {
    const bool on_a = w.a.kind == Feature::face && (w.b.kind != Feature::face || face_of_a_leads(w));
    const CoreFeature& reference = on_a ? w.a : w.b;
    CoreFeature& other = on_a ? w.b : w.a;
    const double sign = on_a ? -1.0 : 1.0;
    for (int i = 0; i < 3; ++i) n[i] = sign * reference.normal[i];
    const double opposite[3] = {-reference.normal[0], -reference.normal[1], -reference.normal[2]};
    const Shape& shape = on_a ? b : a;
    if (is_curved(shape, other) && other.kind != Feature::line) evaluate(shape, other, opposite, F);
    else if (other.kind != Feature::vertex && other.kind != Feature::round) {
      double p[3];  // edge or face in the plane: its deepest point, near the simplex' own
      int hint = -1;
      core_support(shape, opposite, p, hint);
      const double lift = dot3(p, opposite) - dot3(other.point, opposite);
      if (lift > 1e-9 * scale) copy3(p, other.point);
    }
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
  } else if (is_curved(a, w.a) || is_curved(b, w.b)) {
    if (!newton(a, b, n, w.a, w.b, scale)) return false;
  } else if (!closed_form(n, w.a, w.b, scale)) {
    return false;
  }
  double d[3];
  sub3(w.a.point, w.b.point, d);
  align_witnesses(n, w);
  w.distance = dot3(d, n) - core_radius(a) - core_radius(b);
  copy3(w.a.point, w.point_a), copy3(w.b.point, w.point_b);
  axpy3(-core_radius(a), n, w.point_a), axpy3(core_radius(b), n, w.point_b);
  return true;
}

bool refine_witness(const Shape& a, const Shape& b, const Simplex& simplex, const double normal[3], Witness& out) {
  const double scale = bounding_radius(a) + bounding_radius(b), slack = 1e-11 * scale;
  const double inward[3] = {-normal[0], -normal[1], -normal[2]};
  double best_turn = -2;
  for (const double threshold : {1e-10, 1e-3, 3e-2}) {
    CoreFeature fa[2], fb[2];
    const int na = feature_choices(a, simplex, false, inward, threshold, scale, fa);
    const int nb = feature_choices(b, simplex, true, normal, threshold, scale, fb);
    for (int i = 0; i < na; ++i)
      for (int j = 0; j < nb; ++j) {
        Witness w;
        w.a = fa[i], w.b = fb[j];
        if (!solve_features(a, b, normal, w)) continue;
        const double turn = dot3(w.normal, normal);
        if (!(turn > 0.8) || leaning_cap(a, w.a, w.normal) || leaning_cap(b, w.b, w.normal)) continue;
        if (!supports_agree(a, b, w, slack)) continue;
        if (!within_extent(w.a, slack) || !within_extent(w.b, slack)) continue;
        if (w.a.kind == Feature::face && !inside_face(a, w.a.face, w.a.normal, w.b.point, 1e-9 * scale)) continue;
        if (w.b.kind == Feature::face && !inside_face(b, w.b.face, w.b.normal, w.a.point, 1e-9 * scale)) continue;
        if (turn > best_turn) best_turn = turn, out = w;
      }
    if (best_turn > -2) return true;
  }
  // The simplex' own values.
  Witness w;
  copy3(normal, w.normal);
  for (int i = 0; i < simplex.count; ++i)
    axpy3(simplex.weight[i], simplex.v[i].a, w.a.point), axpy3(simplex.weight[i], simplex.v[i].b, w.b.point);
  double d[3];
  sub3(w.a.point, w.b.point, d);
  align_witnesses(normal, w);
  w.distance = dot3(d, normal) - core_radius(a) - core_radius(b);
  copy3(w.a.point, w.point_a), copy3(w.b.point, w.point_b);
  axpy3(-core_radius(a), normal, w.point_a), axpy3(core_radius(b), normal, w.point_b);
  w.a.kind = core_radius(a) > 0 || a.type == ShapeType::ellipsoid ? Feature::round : Feature::vertex;
  w.b.kind = core_radius(b) > 0 || b.type == ShapeType::ellipsoid ? Feature::round : Feature::vertex;
  out = w;
  return false;
}

void witness_patches(const Shape& a, const Shape& b, const Witness& w, Contact& contact) {
  const double inward[3] = {-w.normal[0], -w.normal[1], -w.normal[2]};
  Feature kind_a = w.a.kind, kind_b = w.b.kind;
  // Two flat features with dependent directions: one of them carries n, the other is held fixed on its body (COLLISION, choice 1).
  if (kind_a == Feature::face && kind_b == Feature::face) (face_of_a_leads(w) ? kind_b : kind_a) = Feature::vertex;
  if (kind_a == Feature::face && kind_b == Feature::edge) kind_b = Feature::vertex;
  if (kind_b == Feature::face && kind_a == Feature::edge) kind_a = Feature::vertex;
  if (kind_a == Feature::face && kind_b == Feature::line && b.type == ShapeType::capsule) kind_b = Feature::round;
  if (kind_b == Feature::face && kind_a == Feature::line && a.type == ShapeType::capsule) kind_a = Feature::round;
  if (kind_a == Feature::face && kind_b == Feature::line) kind_b = Feature::vertex;
  if (kind_b == Feature::face && kind_a == Feature::line) kind_a = Feature::vertex;
  if (has_line(w.a) && has_line(w.b) && kind_a == w.a.kind && kind_b == w.b.kind) {
    double m[3];
    cross3(w.a.direction, w.b.direction, m);
    if (norm3(m) < 0.05) kind_b = core_radius(b) > 0 ? Feature::round : Feature::vertex;
  }
  support_patch(a, kind_a, inward, w.a.direction, contact.a);
  support_patch(b, kind_b, w.normal, w.b.direction, contact.b);
}

}  // namespace coulomb
