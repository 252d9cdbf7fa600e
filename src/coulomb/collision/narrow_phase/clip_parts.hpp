// What the clipping of faces and of lines share (face_clipping.cpp, line_clipping.cpp): the reference face, and how a
// point that was found becomes a candidate with its own depth over it.
#pragma once

#include <cmath>
#include <cstdint>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/narrow_phase/face_clipping.hpp"

namespace coulomb {

inline constexpr int max_polygon = 64;

struct Flat {
  bool disc;
  int face;
  int count;
  double normal[3];
  double point[max_polygon][3];  // disc: four points of the rim, fixed on the body
  int id[max_polygon];
  double center[3];
  double radius;
  double u[3];
  double v[3];
};

// Outward side plane k of a polygon: unit normal m across the edge from point k; returns m·x of the plane.
inline double side_plane(const Flat& f, int k, double* m) {
  double e[3];
  sub3(f.point[(k + 1) % f.count], f.point[k], e);
  cross3(e, f.normal, m);
  const double length = norm3(m);
  for (int i = 0; i < 3; ++i)
    m[i] /= length;
  return dot3(m, f.point[k]);
}

// Too steep to be seen along the reference's normal.
inline bool stands_on(const Flat& incident, const Flat& reference) {
  return std::abs(dot3(incident.normal, reference.normal)) < 0.1;
}

inline int feature_id(int kind, bool reference_on_a, int i, int j, int k, int l) {
  std::uint32_t h = 2166136261u;
  for (const int v : {i, j, k, l}) {
    h = (h ^ static_cast<std::uint32_t>(v + 1)) * 16777619u;
    h ^= h >> 15;
  }
  return (kind << 27) | (reference_on_a ? 1 << 26 : 0) | static_cast<int>(h & 0x3ffffffu);
}

struct Clip {
  const Shape& a;
  const Shape& b;
  const Flat& reference;
  bool on_a;  // the reference face is on A
  double n[3];
  double margin;
  double slack;
  Candidate* out;
  int count = 0;
  bool on_border = false;  // as of Candidate

  // Incident point q with its own depth over the reference plane.
  Candidate* add(const double* q) {
    double r[3];
    sub3(q, reference.point[0], r);
    const double h = dot3(r, reference.normal);
    if (!(h <= margin) || count == max_candidates) return nullptr;
    Candidate& c = out[count++];
    c.distance = h;
    c.reference_on_a = on_a;
    c.edge = c.side = -1;
    c.rule = MotionRule::support;
    c.kind_a = c.kind_b = Feature::vertex;
    (on_a ? c.kind_a : c.kind_b) = Feature::face;
    copy3(n, c.normal);
    double* incident = on_a ? c.point_b : c.point_a;
    double* mine = on_a ? c.point_a : c.point_b;
    copy3(q, incident);
    copy3(q, mine);
    axpy3(-h, reference.normal, mine);
    for (int i = 0; i < 3; ++i)
      c.direction_a[i] = c.direction_b[i] = 0;
    return &c;
  }

  Candidate* crossing(const double* q, const double* edge, const double* m, int i, int j, int k) {
    const double length = norm3(edge);
    if (std::abs(dot3(m, edge)) < 1e-6 * length) return nullptr;
    Candidate* c = add(q);
    if (c == nullptr) return nullptr;
    c->rule = MotionRule::edge_crossing;
    for (int x = 0; x < 3; ++x) {
      c->direction_a[x] = edge[x] / length;
      c->direction_b[x] = m[x];
    }
    c->feature = feature_id(2, on_a, i, j, k, reference.face);
    return c;
  }
};

/// A pair of features that was solved exactly, with its own normal.
inline void take_witness(const Witness& w, bool reference_on_a, Candidate& p) {
  p.distance = w.distance;
  p.rule = MotionRule::support;
  p.reference_on_a = reference_on_a;
  copy3(w.normal, p.normal);
  copy3(w.point_a, p.point_a);
  copy3(w.point_b, p.point_b);
  copy3(w.a.direction, p.direction_a);
  copy3(w.b.direction, p.direction_b);
  p.kind_a = w.a.kind;
  p.kind_b = w.b.kind;
}

/// Two polygons: the corners of the outline that they have in common (outline_clipping.cpp). is_wider: with those on a side.
void clip_outline(Clip& clip, const Flat& incident, bool is_wider);

/// Capsule or cylinder `s` lying along the reference face; `witness`: of the pair, where its line may leave a cap across the rim.
void clip_line_shape(Clip& clip, const Shape& s, const Witness& witness);

/// Two lines that are all but parallel, one at least of a capsule or cylinder: both ends of what they have in common,
/// each an end of one against the other, with its own normal. Returns the number of candidates written.
int clip_parallel_lines(const Shape& a, const Shape& b, const Witness& w, double margin, Candidate* out);

}  // namespace coulomb
