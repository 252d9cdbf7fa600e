// Features from simplices, each choice solved exactly (feature_solution.cpp) and checked.
#include "coulomb/collision/narrow_phase/convex_witness.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"

namespace coulomb {

namespace {

/// A mesh's merged faces are flat to this much of its size.
constexpr double face_slack = 1e-6;
/// Sine; less is rounding.
constexpr double least_lean = 1e-9;

/// Feature choices of a polyhedral core from the simplex' vertices with weight above the threshold.
bool polyhedral_feature(const Shape& s, const Simplex& simplex, bool second, const double* outward, double threshold,
                        double scale, CoreFeature& f) {
  // The point, and the different vertices that carry it, by index.
  int id[4];
  int n = 0;
  f.point[0] = f.point[1] = f.point[2] = 0;
  for (int i = 0; i < simplex.count; ++i) {
    axpy3(simplex.weight[i], second ? simplex.v[i].b : simplex.v[i].a, f.point);
    if (!(simplex.weight[i] > threshold)) continue;
    const int v = second ? simplex.v[i].ib : simplex.v[i].ia;
    bool seen = false;
    for (int k = 0; k < n; ++k)
      seen |= id[k] == v;
    if (!seen) id[n++] = v;
  }
  if (n == 0) return false;

  // Sorted: the feature has one number whatever the order of the simplex.
  for (int i = 1; i < n; ++i)
    for (int k = i; k > 0 && id[k] < id[k - 1]; --k)
      std::swap(id[k], id[k - 1]);

  // One vertex.
  if (n == 1) {
    f.kind = s.type == ShapeType::sphere || s.type == ShapeType::capsule ? Feature::round : Feature::vertex;
    f.id = id[0];
    core_vertex(s, id[0], f.point);
    return true;
  }

  // Two that an edge joins: the edge, with what is left to both ends.
  if (n == 2 && are_neighbours(s, id[0], id[1])) {
    double p[3];
    double q[3];
    core_vertex(s, id[0], p);
    core_vertex(s, id[1], q);
    sub3(q, p, f.direction);
    const double length = norm3(f.direction);
    if (!(length > 0)) return false;
    for (double& c : f.direction)
      c /= length;

    double r[3];
    sub3(f.point, p, r);
    const double along = dot3(r, f.direction);
    for (int i = 0; i < 3; ++i)
      f.point[i] = p[i] + along * f.direction[i];

    f.low = -along;
    f.high = length - along;
    f.kind = s.type == ShapeType::capsule ? Feature::line : Feature::edge;
    f.id = (id[0] + 1) * 4096 + id[1];
    return true;
  }

  // More: the face towards the other shape, if all of them lie on it.
  if (!has_faces(s)) return false;
  double cosine;
  f.face = best_face(s, outward, cosine);
  f.kind = Feature::face;
  f.id = f.face;
  face_normal(s, f.face, f.normal);
  const double offset = face_offset(s, f.face);

  for (int k = 0; k < n; ++k) {
    double p[3];
    core_vertex(s, id[k], p);
    if (std::abs(dot3(p, f.normal) - offset) > (s.type == ShapeType::mesh ? face_slack : 1e-11) * scale) return false;
  }
  return true;
}

/// Up to two choices of feature for one side.
int feature_choices(const Shape& s, const Simplex& simplex, bool second, const double* outward, double threshold,
                    double scale, CoreFeature* f) {
  // Shapes with one kind of feature.
  if (s.type == ShapeType::ellipsoid) {
    f[0].kind = Feature::round;
    return 1;
  }
  if (s.type != ShapeType::cylinder)
    return polyhedral_feature(s, simplex, second, outward, threshold, scale, f[0]) ? 1 : 0;

  // A cylinder: how much of the simplex is on either cap.
  double weight[2] = {0, 0};
  double point[3] = {0, 0, 0};
  const double c[3] = {s.rotation[2], s.rotation[5], s.rotation[8]};
  const double z = dot3(c, outward);
  for (int i = 0; i < simplex.count; ++i) {
    weight[second ? simplex.v[i].ib : simplex.v[i].ia] += simplex.weight[i];
    axpy3(simplex.weight[i], second ? simplex.v[i].b : simplex.v[i].a, point);
  }

  // Both: the side.
  if (weight[0] > threshold && weight[1] > threshold) {
    f[0].kind = Feature::line;
    f[0].id = 2;
    copy3(c, f[0].direction);
    copy3(point, f[0].point);
    f[0].low = -s.size[1];
    f[0].high = s.size[1];
    return 1;
  }

  // One: its rim, and the cap itself where it faces the other shape.
  int n = 0;
  const int end = weight[0] >= weight[1] ? 0 : 1;
  if (std::abs(z) > 0.9) {
    f[n].kind = Feature::face;
    f[n].face = end;
    f[n].id = end;
    for (int i = 0; i < 3; ++i)
      f[n].normal[i] = end == 0 ? c[i] : -c[i];
    copy3(point, f[n++].point);
  }

  f[n].kind = Feature::rim;
  f[n].face = end;
  f[n].id = 3 + end;
  return n + 1;
}

/// Two lines this parallel (sine) leave the place along them open: an end of one against the other decides.
bool all_but_parallel(const CoreFeature& a, const CoreFeature& b) {
  if (!has_line(a) || !has_line(b)) return false;
  double m[3];
  cross3(a.direction, b.direction, m);
  return dot3(m, m) < 1e-12;
}

/// True if `point`, seen along the face's normal, lies inside the face.
bool inside_face(const Shape& s, int face, const double* normal, const double* point, double slack) {
  // Within the radius, or on the inner side of every edge.
  if (s.type == ShapeType::cylinder) {
    double r[3];
    double across[3];
    sub3(point, s.position, r);
    cross3(r, normal, across);
    return norm3(across) <= s.size[0] + slack;
  }

  const int n = face_size(s, face);
  double p[3];
  double q[3];
  double e[3];
  double m[3];
  double r[3];
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

/// The features' points are support points, up to `slack`.
bool supports_agree(const Shape& a, const Shape& b, const Witness& w, double slack) {
  double p[3];
  const double inward[3] = {-w.normal[0], -w.normal[1], -w.normal[2]};
  int hint = w.a.kind == Feature::vertex ? w.a.id : -1;
  core_support(a, inward, p, hint);
  if (std::abs(dot3(p, inward) - dot3(w.a.point, inward)) > slack) return false;
  hint = w.b.kind == Feature::vertex ? w.b.id : -1;
  core_support(b, w.normal, p, hint);
  return std::abs(dot3(p, w.normal) - dot3(w.b.point, w.normal)) <= slack;
}

/// A cap that leans against the other's face touches with its rim.
bool leaning_cap(const Shape& s, const CoreFeature& f, const double* n) {
  if (s.type != ShapeType::cylinder || f.kind != Feature::face) return false;
  double across[3];
  cross3(f.normal, n, across);

  // Below: points of the cap, not of the rim.
  return dot3(across, across) > 0.02 * 0.02;
}

/// Its deepest point goes round the rim as it leans otherwise; a cap that leans less is one with the face.
bool leans(const Shape& s, const CoreFeature& f, const double* n) {
  if (s.type != ShapeType::cylinder) return false;
  double across[3];
  cross3(f.normal, n, across);
  return norm3(across) > least_lean;
}

/// The line reaches as far as the witness on it.
bool within_extent(const CoreFeature& f, double slack) { return !has_line(f) || (f.low <= slack && f.high >= -slack); }

}  // namespace

bool refine_witness(const Shape& a, const Shape& b, const Simplex& simplex, const double normal[3], double doubt,
                    Witness& out) {
  const double scale = bounding_radius(a) + bounding_radius(b);
  const double slack = 1e-11 * scale;

  const double inward[3] = {-normal[0], -normal[1], -normal[2]};

  // Cores that all but touch leave the direction between them to rounding.
  const double estimate = dot3(simplex.closest, normal);
  const double least_turn = std::abs(estimate) > 1e-6 * scale ? 0.8 : 0.1;
  const double radii = core_radius(a) + core_radius(b);

  // A choice of features is taken where its witness agrees with the simplex and with the shapes; the least turned
  // one wins.
  double best_turn = -2;
  const auto offer = [&](const CoreFeature& fa, const CoreFeature& fb) {
    Witness w;
    w.a = fa;
    w.b = fb;
    if (!solve_features(a, b, normal, w)) return;

    const double turn = dot3(w.normal, normal);
    const bool merged = (w.a.kind == Feature::face && a.type == ShapeType::mesh) ||
                        (w.b.kind == Feature::face && b.type == ShapeType::mesh);
    const double rough = merged ? face_slack * scale : 0.0;

    // The distance, the direction, the supports, the extents of lines and faces.
    if (!(std::abs(w.distance + radii - estimate) <= doubt + rough)) return;
    if (!(turn > least_turn) || leaning_cap(a, w.a, w.normal) || leaning_cap(b, w.b, w.normal)) return;
    if (!supports_agree(a, b, w, slack + rough)) return;
    if (!within_extent(w.a, slack) || !within_extent(w.b, slack)) return;
    if (w.a.kind == Feature::face && !inside_face(a, w.a.face, w.a.normal, w.b.point, 1e-9 * scale)) return;
    if (w.b.kind == Feature::face && !inside_face(b, w.b.face, w.b.normal, w.a.point, 1e-9 * scale)) return;
    if (turn > best_turn) {
      best_turn = turn;
      out = w;
    }
  };

  // From all vertices of the simplex to those that carry most of it.
  for (const double threshold : {1e-10, 1e-3, 3e-2}) {
    CoreFeature fa[2];
    CoreFeature fb[2];
    const int na = feature_choices(a, simplex, false, inward, threshold, scale, fa);
    const int nb = feature_choices(b, simplex, true, normal, threshold, scale, fb);

    for (int i = 0; i < na; ++i)
      for (int j = 0; j < nb; ++j) {
        if (!all_but_parallel(fa[i], fb[j])) {
          offer(fa[i], fb[j]);
        }

        // Parallel lines: the ends of one against the other.
        if (best_turn > -2 || !has_line(fa[i]) || !has_line(fb[j])) continue;
        for (int end = 0; end < 2; ++end) {
          offer(end_of(a, fa[i], end), fb[j]);
          offer(fa[i], end_of(b, fb[j], end));
        }
      }
    if (best_turn > -2) return out.exact = true;
  }

  // No choice did: the simplex' own values.
  Witness w;
  copy3(normal, w.normal);
  for (int i = 0; i < simplex.count; ++i) {
    axpy3(simplex.weight[i], simplex.v[i].a, w.a.point);
    axpy3(simplex.weight[i], simplex.v[i].b, w.b.point);
  }

  double d[3];
  sub3(w.a.point, w.b.point, d);
  align_witnesses(normal, w);
  w.distance = dot3(d, normal) - core_radius(a) - core_radius(b);
  copy3(w.a.point, w.point_a);
  copy3(w.b.point, w.point_b);
  axpy3(-core_radius(a), normal, w.point_a);
  axpy3(core_radius(b), normal, w.point_b);

  w.a.kind = core_radius(a) > 0 || a.type == ShapeType::ellipsoid ? Feature::round : Feature::vertex;
  w.b.kind = core_radius(b) > 0 || b.type == ShapeType::ellipsoid ? Feature::round : Feature::vertex;
  out = w;
  return out.exact = false;
}

void witness_patches(const Shape& a, const Shape& b, const Witness& w, Contact& contact) {
  const double inward[3] = {-w.normal[0], -w.normal[1], -w.normal[2]};
  Feature kind_a = w.a.kind;
  Feature kind_b = w.b.kind;

  // Two flat features with dependent directions: one of them carries n, the other is held fixed on its body.
  if (kind_a == Feature::face && kind_b == Feature::face) {
    const bool on_a = face_of_a_leads(w);
    const bool turns = leans(on_a ? b : a, on_a ? w.b : w.a, w.normal);
    (on_a ? kind_b : kind_a) = turns ? Feature::rim : Feature::vertex;
  }
  if (kind_a == Feature::face && kind_b == Feature::edge) {
    kind_b = Feature::vertex;
  }
  if (kind_b == Feature::face && kind_a == Feature::edge) {
    kind_a = Feature::vertex;
  }
  if (kind_a == Feature::face && kind_b == Feature::line && b.type == ShapeType::capsule) {
    kind_b = Feature::round;
  }
  if (kind_b == Feature::face && kind_a == Feature::line && a.type == ShapeType::capsule) {
    kind_a = Feature::round;
  }
  if (kind_a == Feature::face && kind_b == Feature::line) {
    kind_b = Feature::rim;
  }
  if (kind_b == Feature::face && kind_a == Feature::line) {
    kind_a = Feature::rim;
  }

  // Lines that are all but parallel.
  if (has_line(w.a) && has_line(w.b) && kind_a == w.a.kind && kind_b == w.b.kind) {
    double m[3];
    cross3(w.a.direction, w.b.direction, m);
    if (norm3(m) < 1e-3) {
      kind_b = core_radius(b) > 0 ? Feature::round : Feature::vertex;
    }
  }
  support_patch(a, kind_a, inward, w.a.direction, contact.a);
  support_patch(b, kind_b, w.normal, w.b.direction, contact.b);
}

}  // namespace coulomb
