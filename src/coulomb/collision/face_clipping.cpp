// Faces (polygons), caps (discs) and lines (capsules, cylinder sides) against the reference face.
#include "coulomb/collision/face_clipping.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "coulomb/small_math.hpp"

namespace coulomb {

namespace {

constexpr int max_polygon = 64;

struct Flat {
  bool disc;
  int face, count;
  double normal[3], point[max_polygon][3];  // disc: four points of the rim, fixed on the body
  int id[max_polygon];
  double center[3], radius, u[3], v[3];
};

void polygon_flat(const Shape& s, int face, Flat& f) {
  f.disc = false, f.face = face, f.count = 0;
  face_normal(s, face, f.normal);
  const int n = face_size(s, face), stride = (n + max_polygon - 1) / max_polygon;
  for (int k = 0; k < n; k += stride) {
    f.id[f.count] = face_vertex(s, face, k);
    core_vertex(s, f.id[f.count], f.point[f.count]);
    ++f.count;
  }
}

void disc_flat(const Shape& s, int face, Flat& f) {
  f.disc = true, f.face = face, f.count = 4, f.radius = s.size[0];
  const double sign = face == 0 ? 1.0 : -1.0;
  for (int i = 0; i < 3; ++i) {
    f.normal[i] = sign * s.rotation[3 * i + 2];
    f.u[i] = s.rotation[3 * i], f.v[i] = sign * s.rotation[3 * i + 1];
    f.center[i] = s.position[i] + s.size[1] * f.normal[i];
  }
  for (int k = 0; k < 4; ++k) {
    f.id[k] = 4 * face + k;
    const double* axis = k & 1 ? f.v : f.u;
    copy3(f.center, f.point[k]);
    axpy3(k < 2 ? f.radius : -f.radius, axis, f.point[k]);
  }
}

// The face of s most along `direction`, with its cosine; false if it has none. For cylinders the caps.
bool flat_towards(const Shape& s, const double* direction, int& face, double& cosine) {
  if (has_faces(s)) {
    face = best_face(s, direction, cosine);
    return true;
  }
  if (s.type != ShapeType::cylinder) return false;
  const double z = s.rotation[2] * direction[0] + s.rotation[5] * direction[1] + s.rotation[8] * direction[2];
  face = z >= 0 ? 0 : 1, cosine = std::abs(z);
  return true;
}

void make_flat(const Shape& s, int face, Flat& f) {
  if (s.type == ShapeType::cylinder) disc_flat(s, face, f);
  else polygon_flat(s, face, f);
}

// Outward side plane k of a polygon: unit normal m across the edge from point k; returns m·x of the plane.
double side_plane(const Flat& f, int k, double* m) {
  double e[3];
  sub3(f.point[(k + 1) % f.count], f.point[k], e);
  cross3(e, f.normal, m);
  const double length = norm3(m);
  for (int i = 0; i < 3; ++i) m[i] /= length;
  return dot3(m, f.point[k]);
}

// Inside the face, seen along its own normal.
bool inside(const Flat& f, const double* x, double slack) {
  if (f.disc) {
    double r[3];
    sub3(x, f.center, r);
    axpy3(-dot3(r, f.normal), f.normal, r);
    return norm3(r) <= f.radius + slack;
  }
  for (int k = 0; k < f.count; ++k) {
    double m[3];
    const double offset = side_plane(f, k, m);
    if (dot3(m, x) - offset > slack) return false;
  }
  return true;
}

int feature_id(int kind, bool reference_on_a, int i, int j, int k, int l) {
  std::uint32_t h = 2166136261u;
  for (const int v : {i, j, k, l}) h = (h ^ static_cast<std::uint32_t>(v + 1)) * 16777619u, h ^= h >> 15;
  return (kind << 27) | (reference_on_a ? 1 << 26 : 0) | static_cast<int>(h & 0x3ffffffu);
}

struct Clip {
  const Shape &a, &b;
  const Flat& reference;
  bool on_a;  // the reference face is on A
  double n[3], margin, slack;
  Candidate* out;
  int count = 0;

  // Incident point q with its own depth over the reference plane.
  Candidate* add(const double* q) {
    double r[3];
    sub3(q, reference.point[0], r);
    const double h = dot3(r, reference.normal);
    if (!(h <= margin) || count == max_candidates) return nullptr;
    Candidate& c = out[count++];
    c.distance = h, c.reference_on_a = on_a, c.rule = MotionRule::support;
    c.kind_a = c.kind_b = Feature::vertex;
    (on_a ? c.kind_a : c.kind_b) = Feature::face;
    copy3(n, c.normal);
    double* incident = on_a ? c.point_b : c.point_a;
    double* mine = on_a ? c.point_a : c.point_b;
    copy3(q, incident), copy3(q, mine);
    axpy3(-h, reference.normal, mine);
    for (int i = 0; i < 3; ++i) c.direction_a[i] = c.direction_b[i] = 0;
    return &c;
  }

  void crossing(const double* q, const double* edge, const double* m, int i, int j, int k) {
    const double length = norm3(edge);
    if (std::abs(dot3(m, edge)) < 1e-6 * length) return;
    Candidate* c = add(q);
    if (c == nullptr) return;
    c->rule = MotionRule::edge_crossing;
    for (int x = 0; x < 3; ++x) c->direction_a[x] = edge[x] / length, c->direction_b[x] = m[x];
    c->feature = feature_id(2, on_a, i, j, k, reference.face);
  }
};

// Incident vertices over the reference face, and reference vertices over the incident face.
void clip_vertices(Clip& c, const Flat& incident) {
  for (int k = 0; k < incident.count; ++k)
    if (inside(c.reference, incident.point[k], c.slack))
      if (Candidate* p = c.add(incident.point[k])) p->feature = feature_id(0, c.on_a, incident.id[k], 0, 0, 0);
  const double slope = dot3(incident.normal, c.reference.normal);
  if (std::abs(slope) < 0.1) return;
  for (int k = 0; k < c.reference.count; ++k) {
    double r[3], q[3];
    sub3(incident.point[0], c.reference.point[k], r);
    copy3(c.reference.point[k], q);
    axpy3(dot3(r, incident.normal) / slope, c.reference.normal, q);
    if (!inside(incident, q, -1e3 * c.slack)) continue;
    Candidate* p = c.add(q);
    if (p == nullptr) continue;
    p->rule = MotionRule::reference_vertex;
    copy3(incident.normal, p->direction_a);
    p->feature = feature_id(1, c.on_a, c.reference.id[k], 0, 0, 0);
  }
}

// Incident polygon's edges across the reference polygon's side planes.
void cross_polygons(Clip& c, const Flat& incident) {
  for (int k = 0; k < c.reference.count; ++k) {
    double m[3], side[3];
    const double offset = side_plane(c.reference, k, m);
    const double* start = c.reference.point[k];
    sub3(c.reference.point[(k + 1) % c.reference.count], start, side);
    const double length2 = dot3(side, side), end_slack = c.slack * std::sqrt(length2);
    for (int i = 0; i < incident.count; ++i) {
      const int j = (i + 1) % incident.count;
      const double s0 = dot3(m, incident.point[i]) - offset, s1 = dot3(m, incident.point[j]) - offset;
      if (!((s0 > c.slack && s1 < -c.slack) || (s0 < -c.slack && s1 > c.slack))) continue;
      double edge[3], q[3], r[3];
      sub3(incident.point[j], incident.point[i], edge);
      copy3(incident.point[i], q);
      axpy3(s0 / (s0 - s1), edge, q);
      sub3(q, start, r);
      const double along = dot3(r, side);
      if (along < -end_slack || along > length2 + end_slack) continue;
      const int u = incident.id[i], v = incident.id[j];
      c.crossing(q, edge, m, std::min(u, v), std::max(u, v), c.reference.id[k]);
    }
  }
}

// Incident rim across the reference polygon's side planes: m·(C + r (cos u + sin v)) = offset.
void cross_rim(Clip& c, const Flat& incident) {
  for (int k = 0; k < c.reference.count; ++k) {
    double m[3], side[3];
    const double offset = side_plane(c.reference, k, m);
    const double* start = c.reference.point[k];
    sub3(c.reference.point[(k + 1) % c.reference.count], start, side);
    const double length2 = dot3(side, side);
    const double p = incident.radius * dot3(m, incident.u), q = incident.radius * dot3(m, incident.v);
    const double rest = offset - dot3(m, incident.center), h = std::hypot(p, q);
    if (!(std::abs(rest) < 0.999999 * h)) continue;
    const double middle = std::atan2(q, p), spread = std::acos(rest / h);
    for (int sign = -1; sign <= 1; sign += 2) {
      const double angle = middle + sign * spread, cosine = std::cos(angle), sine = std::sin(angle);
      double x[3], tangent[3], r[3];
      for (int i = 0; i < 3; ++i) {
        x[i] = incident.center[i] + incident.radius * (cosine * incident.u[i] + sine * incident.v[i]);
        tangent[i] = -sine * incident.u[i] + cosine * incident.v[i];
      }
      sub3(x, start, r);
      const double along = dot3(r, side);
      if (along < 0 || along > length2) continue;
      c.crossing(x, tangent, m, incident.face, sign, c.reference.id[k]);
    }
  }
}

// Incident polygon's edges across the reference disc's wall; m is radial, which moves the crossing right to first order.
void cross_wall(Clip& c, const Flat& incident) {
  const Flat& f = c.reference;
  for (int i = 0; i < incident.count; ++i) {
    const int j = (i + 1) % incident.count;
    double d[3], r[3], across[3], from[3];
    sub3(incident.point[j], incident.point[i], d);
    sub3(incident.point[i], f.center, r);
    copy3(d, across), copy3(r, from);
    axpy3(-dot3(d, f.normal), f.normal, across), axpy3(-dot3(r, f.normal), f.normal, from);
    const double A = dot3(across, across), B = dot3(across, from), C = dot3(from, from) - f.radius * f.radius;
    const double discriminant = B * B - A * C;
    if (!(A > 0) || !(discriminant > 1e-12 * A * f.radius * f.radius)) continue;
    for (int sign = -1; sign <= 1; sign += 2) {
      const double t = (-B + sign * std::sqrt(discriminant)) / A;
      if (t <= 0 || t >= 1) continue;
      double q[3], m[3];
      copy3(incident.point[i], q);
      axpy3(t, d, q);
      for (int x = 0; x < 3; ++x) m[x] = (from[x] + t * across[x]) / f.radius;
      const int u = incident.id[i], v = incident.id[j];
      c.crossing(q, d, m, std::min(u, v), std::max(u, v), u < v ? sign : -sign);
    }
  }
}

// The core line of a capsule or cylinder: unit axis, the interval over the reference face and the side that cuts each end (-1: none).
bool clip_line(const Clip& c, const Shape& s, const double* axis, double* range, int* cut) {
  const Flat& f = c.reference;
  range[0] = -s.size[1], range[1] = s.size[1], cut[0] = cut[1] = -1;
  if (f.disc) {
    double r[3], across[3], from[3];
    sub3(s.position, f.center, r);
    copy3(axis, across), copy3(r, from);
    axpy3(-dot3(axis, f.normal), f.normal, across), axpy3(-dot3(r, f.normal), f.normal, from);
    const double A = dot3(across, across), B = dot3(across, from), C = dot3(from, from) - f.radius * f.radius;
    if (!(B * B > A * C)) return false;
    const double root = std::sqrt(B * B - A * C), t0 = (-B - root) / A, t1 = (-B + root) / A;
    if (t0 > range[0]) range[0] = t0, cut[0] = 0;
    if (t1 < range[1]) range[1] = t1, cut[1] = 1;
    return range[0] <= range[1];
  }
  for (int k = 0; k < f.count; ++k) {
    double m[3];
    const double offset = side_plane(f, k, m), slope = dot3(m, axis), rest = offset - dot3(m, s.position);
    if (std::abs(slope) < 1e-12) {
      if (rest < 0) return false;
      continue;
    }
    const double t = rest / slope;
    if (slope > 0 && t < range[1]) range[1] = t, cut[1] = k;
    if (slope < 0 && t > range[0]) range[0] = t, cut[0] = k;
  }
  return range[0] <= range[1];
}

// An end of the line over the face: the reference carries n, the rounded end or the rim follows.
void add_line_end(Clip& c, const Shape& s, const double* axis, int end) {
  double q[3], radial[3];
  const double z = dot3(axis, c.reference.normal), t = end == 0 ? -s.size[1] : s.size[1];
  copy3(c.reference.normal, radial);
  const bool cylinder = s.type == ShapeType::cylinder;
  if (cylinder) {
    axpy3(-z, axis, radial);
    const double sine = norm3(radial);
    for (double& x : radial) x /= sine;
  }
  copy3(s.position, q);
  axpy3(t, axis, q), axpy3(-s.size[0], radial, q);
  Candidate* p = c.add(q);
  if (p == nullptr) return;
  (c.on_a ? p->kind_b : p->kind_a) = cylinder ? Feature::rim : Feature::round;
  p->feature = feature_id(0, c.on_a, end, 0, 0, 0);
}

// The line leaves the face across a side: the exact contact of line and edge (or rim), with its own normal.
void add_line_crossing(Clip& c, const Shape& s, const double* axis, double t, int side) {
  Witness w;
  CoreFeature &line = c.on_a ? w.b : w.a, &edge = c.on_a ? w.a : w.b;
  line.kind = Feature::line;
  copy3(axis, line.direction), copy3(s.position, line.point);
  line.low = -s.size[1], line.high = s.size[1];
  const Flat& f = c.reference;
  if (f.disc) {
    edge.kind = Feature::rim, edge.face = f.face;
  } else {
    edge.kind = Feature::edge;
    copy3(f.point[side], edge.point);
    sub3(f.point[(side + 1) % f.count], f.point[side], edge.direction);
    edge.high = norm3(edge.direction);
    for (double& x : edge.direction) x /= edge.high;
    if (std::abs(dot3(edge.direction, axis)) > std::sqrt(1 - alignment_sine * alignment_sine)) return;
  }
  // A disc is met at two places; the guess of n must lean to the right one, which Newton finds from the tilted normal only for
  // edges. For discs the crossing is left to the clipped point itself.
  if (f.disc) {
    double q[3], m[3];
    copy3(s.position, q);
    axpy3(t, axis, q), axpy3(-s.size[0], f.normal, q);
    sub3(q, f.center, m);
    axpy3(-dot3(m, f.normal), f.normal, m);
    for (double& x : m) x /= f.radius;
    c.crossing(q, axis, m, 9, side, 0);
    return;
  }
  if (!solve_features(c.a, c.b, c.n, w) || dot3(w.normal, c.n) < 0.995 || !(w.distance <= c.margin)) return;
  if (line.low > c.slack || line.high < -c.slack || edge.low > c.slack || edge.high < -c.slack) return;
  if (c.count == max_candidates) return;
  Candidate& p = c.out[c.count++];
  p.distance = w.distance, p.rule = MotionRule::support, p.reference_on_a = c.on_a;
  copy3(w.normal, p.normal), copy3(w.point_a, p.point_a), copy3(w.point_b, p.point_b);
  copy3(w.a.direction, p.direction_a), copy3(w.b.direction, p.direction_b);
  p.kind_a = w.a.kind, p.kind_b = w.b.kind;
  p.feature = feature_id(3, c.on_a, f.id[side], f.id[(side + 1) % f.count], 0, 0);
}

void clip_line_shape(Clip& c, const Shape& s) {
  const double axis[3] = {s.rotation[2], s.rotation[5], s.rotation[8]};
  if (std::abs(dot3(axis, c.reference.normal)) > alignment_sine) return;
  double range[2];
  int cut[2];
  if (!clip_line(c, s, axis, range, cut)) return;
  for (int end = 0; end < 2; ++end) {
    if (cut[end] < 0) add_line_end(c, s, axis, end);
    else add_line_crossing(c, s, axis, range[end], cut[end]);
  }
}

// Sine between n and the outward normal of a face: resolves what differs between nearly aligned faces, which a cosine does not.
double face_sine(const Shape& s, int face, const double* n) {
  double m[3], across[3];
  if (s.type == ShapeType::cylinder) m[0] = s.rotation[2], m[1] = s.rotation[5], m[2] = s.rotation[8];
  else face_normal(s, face, m);
  cross3(m, n, across);
  return norm3(across);
}

// The reference face: most parallel to n, A's on ties; the one of the last step stays unless the other is better by 0.02 (sine).
bool choose_reference(const Shape& a, const Shape& b, const Witness& w, int& reference) {
  const double inward[3] = {-w.normal[0], -w.normal[1], -w.normal[2]};
  int face_a = -1, face_b = -1;
  double cosine;
  const double sin_a = flat_towards(a, inward, face_a, cosine) && cosine > 0 ? face_sine(a, face_a, w.normal) : 1.0;
  const double sin_b = flat_towards(b, w.normal, face_b, cosine) && cosine > 0 ? face_sine(b, face_b, w.normal) : 1.0;
  if (sin_a > alignment_sine && sin_b > alignment_sine) return false;
  bool on_a = sin_a <= sin_b + 1e-12;
  if (sin_a <= alignment_sine && sin_b <= alignment_sine && reference >= 0) {
    const bool before_on_a = (reference & 1) == 0;
    const double mine = before_on_a ? sin_a : sin_b, other = before_on_a ? sin_b : sin_a;
    if (reference / 2 == (before_on_a ? face_a : face_b) && mine <= other + 0.02) on_a = before_on_a;
  }
  reference = on_a ? 2 * face_a : 2 * face_b + 1;
  return true;
}

}  // namespace

int clip_manifold(const Shape& a, const Shape& b, const Witness& w, double margin, int& reference, Candidate* out) {
  const auto extended = [](const Shape& s) { return s.type != ShapeType::sphere && s.type != ShapeType::ellipsoid; };
  if (!extended(a) || !extended(b) || !choose_reference(a, b, w, reference)) return 0;
  const bool on_a = (reference & 1) == 0;
  const Shape &owner = on_a ? a : b, &other = on_a ? b : a;
  Flat face, incident;
  make_flat(owner, reference / 2, face);
  const double sign = on_a ? -1.0 : 1.0, towards[3] = {-face.normal[0], -face.normal[1], -face.normal[2]};
  Clip clip{a, b, face, on_a, {sign * face.normal[0], sign * face.normal[1], sign * face.normal[2]}, margin,
            1e-12 * (bounding_radius(a) + bounding_radius(b)), out};
  int incident_face;
  double cosine;
  const bool flat = flat_towards(other, towards, incident_face, cosine);
  if (flat && (other.type != ShapeType::cylinder || cosine >= std::sqrt(1 - cap_sine * cap_sine))) {
    make_flat(other, incident_face, incident);
    clip_vertices(clip, incident);
    if (!face.disc && !incident.disc) cross_polygons(clip, incident);
    if (!face.disc && incident.disc) cross_rim(clip, incident);
    if (face.disc && !incident.disc) cross_wall(clip, incident);
  } else if (other.type == ShapeType::capsule || other.type == ShapeType::cylinder) {
    clip_line_shape(clip, other);
  }
  return clip.count;
}

void fill_contact(const Shape& a, const Shape& b, const Candidate& p, Contact& c) {
  c = Contact{};
  c.distance = p.distance, c.feature = p.feature, c.rule = p.rule, c.reference_on_a = p.reference_on_a;
  copy3(p.normal, c.normal), copy3(p.point_a, c.point_a), copy3(p.point_b, c.point_b);
  for (int i = 0; i < 3; ++i) c.point[i] = 0.5 * (p.point_a[i] + p.point_b[i]);
  if (p.rule == MotionRule::edge_crossing) {
    copy3(p.direction_a, c.edge), copy3(p.direction_b, c.side);
  } else if (p.rule == MotionRule::reference_vertex) {
    copy3(p.direction_a, c.incident_normal);
  } else {
    const double inward[3] = {-p.normal[0], -p.normal[1], -p.normal[2]};
    support_patch(a, p.kind_a, inward, p.direction_a, c.a);
    support_patch(b, p.kind_b, p.normal, p.direction_b, c.b);
  }
}

}  // namespace coulomb
