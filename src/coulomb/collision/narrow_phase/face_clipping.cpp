// Faces (polygons) and caps (discs) against the reference face.
#include "coulomb/collision/narrow_phase/face_clipping.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/narrow_phase/clip_parts.hpp"
#include "coulomb/collision/narrow_phase/face_plane.hpp"

namespace coulomb {

namespace {

constexpr double same_sine = 1e-12;  // of two faces with the normal: parallel
constexpr double same_size =
    1e-9;  // of the shapes' sizes: a face that ends so near to the other's border does not lie inside

/// What is out of a face by less lies on its border, m.
double slack_of(const Shape& a, const Shape& b) { return 1e-12 * (bounding_radius(a) + bounding_radius(b)); }

/// A face as a polygon; large ones are thinned out.
void polygon_flat(const Shape& s, int face, Flat& f) {
  f.disc = false;
  f.face = face;
  f.count = 0;
  face_normal(s, face, f.normal);

  const int n = face_size(s, face);
  const int stride = (n + max_polygon - 1) / max_polygon;
  for (int k = 0; k < n; k += stride) {
    f.id[f.count] = face_vertex(s, face, k);
    core_vertex(s, f.id[f.count], f.point[f.count]);
    ++f.count;
  }
}

/// A cap as a disc, with four points of its rim.
void disc_flat(const Shape& s, int face, Flat& f) {
  f.disc = true;
  f.face = face;
  f.count = 4;
  f.radius = s.size[0];

  const double sign = face == 0 ? 1.0 : -1.0;
  for (int i = 0; i < 3; ++i) {
    f.normal[i] = sign * s.rotation[3 * i + 2];
    f.u[i] = s.rotation[3 * i];
    f.v[i] = sign * s.rotation[3 * i + 1];
    f.center[i] = s.position[i] + s.size[1] * f.normal[i];
  }

  for (int k = 0; k < 4; ++k) {
    f.id[k] = 4 * face + k;
    const double* axis = k & 1 ? f.v : f.u;
    copy3(f.center, f.point[k]);
    axpy3(k < 2 ? f.radius : -f.radius, axis, f.point[k]);
  }
}

/// Face or cap.
void make_flat(const Shape& s, int face, Flat& f) {
  if (s.type == ShapeType::cylinder)
    disc_flat(s, face, f);
  else
    polygon_flat(s, face, f);
}

/// Inside the face, seen along its own normal.
bool inside(const Flat& f, const double* x, double slack) {
  // Within the radius, or on the inner side of every edge.
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

/// Incident vertices over the reference face, and reference vertices over the incident face.
void clip_vertices(Clip& c, const Flat& incident) {
  for (int k = 0; k < incident.count; ++k)
    if (inside(c.reference, incident.point[k], c.slack))
      if (Candidate* p = c.add(incident.point[k])) {
        p->feature = feature_id(0, c.on_a, incident.id[k], 0, 0, 0);
      }

  // Projected along the reference's normal, unless the incident face stands on it.
  if (stands_on(incident, c.reference)) return;
  const double slope = dot3(incident.normal, c.reference.normal);
  for (int k = 0; k < c.reference.count; ++k) {
    double r[3];
    double q[3];
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

/// Incident polygon's edges across the reference polygon's side planes.
void cross_polygons(Clip& c, const Flat& incident) {
  for (int k = 0; k < c.reference.count; ++k) {
    // One side plane, and the edge that it belongs to.
    double m[3];
    double side[3];
    const double offset = side_plane(c.reference, k, m);
    const double* start = c.reference.point[k];
    sub3(c.reference.point[(k + 1) % c.reference.count], start, side);
    const double length2 = dot3(side, side);
    const double end_slack = c.slack * std::sqrt(length2);

    for (int i = 0; i < incident.count; ++i) {
      const int j = (i + 1) % incident.count;

      // The edge crosses the plane ...
      const double s0 = dot3(m, incident.point[i]) - offset;
      const double s1 = dot3(m, incident.point[j]) - offset;
      if (!((s0 > c.slack && s1 < -c.slack) || (s0 < -c.slack && s1 > c.slack))) continue;

      // ... between the ends of the side.
      double edge[3];
      double q[3];
      double r[3];
      sub3(incident.point[j], incident.point[i], edge);
      copy3(incident.point[i], q);
      axpy3(s0 / (s0 - s1), edge, q);
      sub3(q, start, r);
      const double along = dot3(r, side);
      if (along < -end_slack || along > length2 + end_slack) continue;

      const int u = incident.id[i];
      const int v = incident.id[j];
      c.crossing(q, edge, m, std::min(u, v), std::max(u, v), c.reference.id[k]);
    }
  }
}

/// Incident rim across the reference polygon's side planes: m . (C + r (cos u + sin v)) = offset.
void cross_rim(Clip& c, const Flat& incident) {
  // One side plane, and the edge that it belongs to.
  for (int k = 0; k < c.reference.count; ++k) {
    double m[3];
    double side[3];
    const double offset = side_plane(c.reference, k, m);
    const double* start = c.reference.point[k];
    sub3(c.reference.point[(k + 1) % c.reference.count], start, side);
    const double length2 = dot3(side, side);

    // Two angles about the middle, unless the rim misses the plane or only touches it.
    const double p = incident.radius * dot3(m, incident.u);
    const double q = incident.radius * dot3(m, incident.v);
    const double rest = offset - dot3(m, incident.center);
    const double h = std::hypot(p, q);
    if (!(std::abs(rest) < 0.999999 * h)) continue;
    const double middle = std::atan2(q, p);
    const double spread = std::acos(rest / h);

    for (int sign = -1; sign <= 1; sign += 2) {
      // The place on the rim and its tangent there ...
      const double angle = middle + sign * spread;
      const double cosine = std::cos(angle);
      const double sine = std::sin(angle);
      double x[3];
      double tangent[3];
      for (int i = 0; i < 3; ++i) {
        x[i] = incident.center[i] + incident.radius * (cosine * incident.u[i] + sine * incident.v[i]);
        tangent[i] = -sine * incident.u[i] + cosine * incident.v[i];
      }

      // ... between the ends of the side.
      double r[3];
      sub3(x, start, r);
      const double along = dot3(r, side);
      if (along < 0 || along > length2) continue;
      c.crossing(x, tangent, m, incident.face, sign, c.reference.id[k]);
    }
  }
}

/// Incident polygon's edges across the reference disc's wall; m is radial, which moves the crossing right to first
/// order.
void cross_wall(Clip& c, const Flat& incident) {
  const Flat& f = c.reference;
  for (int i = 0; i < incident.count; ++i) {
    // The edge, seen along the disc's normal.
    const int j = (i + 1) % incident.count;
    double d[3];
    double r[3];
    double across[3];
    double from[3];
    sub3(incident.point[j], incident.point[i], d);
    sub3(incident.point[i], f.center, r);
    copy3(d, across);
    copy3(r, from);
    axpy3(-dot3(d, f.normal), f.normal, across);
    axpy3(-dot3(r, f.normal), f.normal, from);

    // A circle is crossed where A t^2 + 2 B t + C = 0.
    const double A = dot3(across, across);
    const double B = dot3(across, from);
    const double C = dot3(from, from) - f.radius * f.radius;
    const double discriminant = B * B - A * C;
    if (!(A > 0) || !(discriminant > 1e-12 * A * f.radius * f.radius)) continue;

    for (int sign = -1; sign <= 1; sign += 2) {
      const double t = (-B + sign * std::sqrt(discriminant)) / A;
      if (t <= 0 || t >= 1) continue;

      // The place on the edge and the radial direction there.
      double q[3];
      double m[3];
      copy3(incident.point[i], q);
      axpy3(t, d, q);
      for (int x = 0; x < 3; ++x)
        m[x] = (from[x] + t * across[x]) / f.radius;

      const int u = incident.id[i];
      const int v = incident.id[j];
      c.crossing(q, d, m, std::min(u, v), std::max(u, v), u < v ? sign : -sign);
    }
  }
}

/// Sine between n and the outward normal of a face: resolves what differs between nearly aligned faces, which a cosine
/// does not.
double face_sine(const Shape& s, int face, const double* n) {
  double m[3];
  double across[3];
  if (s.type == ShapeType::cylinder) {
    m[0] = s.rotation[2];
    m[1] = s.rotation[5];
    m[2] = s.rotation[8];
  } else
    face_normal(s, face, m);

  cross3(m, n, across);
  return norm3(across);
}

/// Is x inside the face by `margin`, seen along its normal, with all around it up to `radius`?
bool well_inside(const Flat& f, const double* x, double radius, double margin) {
  if (f.disc) {
    double r[3];
    sub3(x, f.center, r);
    axpy3(-dot3(r, f.normal), f.normal, r);
    return norm3(r) + radius < f.radius - margin;
  }
  for (int k = 0; k < f.count; ++k) {
    double m[3];
    const double offset = side_plane(f, k, m);
    if (!(dot3(m, x) - offset + radius < -margin)) return false;
  }
  return true;
}

/// Does one of two parallel faces hold the other one? Then, tilted, it goes on to carry the normal: the other's corners stand on it.
bool contains(const Flat& outer, const Flat& inner, double margin) {
  if (inner.disc) return well_inside(outer, inner.center, inner.radius, margin);
  for (int k = 0; k < inner.count; ++k)
    if (!well_inside(outer, inner.point[k], 0, margin)) return false;
  return true;
}

/// The reference face: most parallel to n, of two parallel ones that which holds the other, A's where neither does (two_normals); the one of the last step
/// stays unless the other is better by kept_sine.
bool choose_reference(const Shape& a, const Shape& b, const Witness& w, double kept_sine, int& reference,
                      bool& two_normals) {
  // The best face of each, and how far from parallel.
  const double inward[3] = {-w.normal[0], -w.normal[1], -w.normal[2]};
  int face_a = -1;
  int face_b = -1;
  double cosine;
  const double sin_a = face_towards(a, inward, face_a, cosine) && cosine > 0 ? face_sine(a, face_a, w.normal) : 1.0;
  const double sin_b = face_towards(b, w.normal, face_b, cosine) && cosine > 0 ? face_sine(b, face_b, w.normal) : 1.0;

  if (sin_a > alignment_sine && sin_b > alignment_sine) return false;
  bool on_a = sin_a <= sin_b + same_sine;
  two_normals = std::abs(sin_a - sin_b) <= same_sine;

  // The face of the last step stays while it is nearly as good.
  if (sin_a <= alignment_sine && sin_b <= alignment_sine && reference >= 0) {
    const bool before_on_a = (reference & 1) == 0;
    const double mine = before_on_a ? sin_a : sin_b;
    const double other = before_on_a ? sin_b : sin_a;
    if (reference / 2 == (before_on_a ? face_a : face_b) && mine <= other + kept_sine) {
      on_a = before_on_a;
      two_normals = false;
    }
  }

  // Which of two parallel ones, as they tilt?
  if (two_normals) {
    Flat of_a;
    Flat of_b;
    make_flat(a, face_a, of_a);
    make_flat(b, face_b, of_b);
    const double margin = same_size * (bounding_radius(a) + bounding_radius(b));
    const bool in_a = contains(of_a, of_b, margin);
    const bool in_b = contains(of_b, of_a, margin);
    two_normals = !in_a && !in_b;

    // A cap whose rim touches the other's border from within: its points stand on that face, and none of that face on it.
    on_a = !in_b && !(of_a.disc && !of_b.disc && contains(of_b, of_a, -slack_of(a, b)));
  }

  reference = on_a ? 2 * face_a : 2 * face_b + 1;
  return true;
}

}  // namespace

int clip_manifold(const Shape& a, const Shape& b, const Witness& w, double margin, double kept_sine, int& reference,
                  Candidate* out, FacePoints points) {
  // Shapes with one witness have no manifold; shapes without an aligned face have lines at best.
  const auto extended = [](const Shape& s) { return s.type != ShapeType::sphere && s.type != ShapeType::ellipsoid; };
  if (!extended(a) || !extended(b)) return 0;
  bool two_normals = false;
  if (!choose_reference(a, b, w, kept_sine, reference, two_normals)) {
    return clip_parallel_lines(a, b, w, margin, out);
  }

  // The reference face, and the direction that its normal gives.
  const bool on_a = (reference & 1) == 0;
  const Shape& owner = on_a ? a : b;
  const Shape& other = on_a ? b : a;
  Flat face;
  make_flat(owner, reference / 2, face);
  const double sign = on_a ? -1.0 : 1.0;
  const double towards[3] = {-face.normal[0], -face.normal[1], -face.normal[2]};
  Clip clip{
      a,  b, face, on_a, {sign * face.normal[0], sign * face.normal[1], sign * face.normal[2]}, margin, slack_of(a, b),
      out};

  // What the other shape has against it: a face, a cap, or a line.
  int incident_face;
  double cosine;
  const bool flat = face_towards(other, towards, incident_face, cosine);
  if (flat && (other.type != ShapeType::cylinder || cosine >= std::sqrt(1 - cap_sine * cap_sine))) {
    Flat incident;
    make_flat(other, incident_face, incident);
    const bool polygons = !face.disc && !incident.disc;
    if (polygons && points != FacePoints::features) {
      clip_outline(clip, incident, points == FacePoints::outline);
    } else {
      clip_vertices(clip, incident);
      if (polygons) cross_polygons(clip, incident);
    }
    if (!face.disc && incident.disc) {
      cross_rim(clip, incident);
    }
    if (face.disc && !incident.disc) {
      cross_wall(clip, incident);
    }
  } else if (other.type == ShapeType::capsule || other.type == ShapeType::cylinder) {
    clip_line_shape(clip, other, w);
  }

  for (int i = 0; i < clip.count; ++i) {
    out[i].two_normals = two_normals;
    out[i].on_border = clip.on_border;
  }
  return clip.count;
}

void fill_contact(const Shape& a, const Shape& b, const Candidate& p, Contact& c) {
  // Where it is.
  c = Contact{};
  c.distance = p.distance;
  c.feature = p.feature;
  c.rule = p.rule;
  c.reference_on_a = p.reference_on_a;
  c.two_normals = p.two_normals;
  copy3(p.normal, c.normal);
  copy3(p.point_a, c.point_a);
  copy3(p.point_b, c.point_b);
  for (int i = 0; i < 3; ++i)
    c.point[i] = 0.5 * (p.point_a[i] + p.point_b[i]);

  // How it moves: the features that carry it, by rule.
  if (p.rule == MotionRule::edge_crossing) {
    copy3(p.direction_a, c.edge);
    copy3(p.direction_b, c.side);
    const double incident_out[3] = {p.reference_on_a ? p.normal[0] : -p.normal[0],
                                    p.reference_on_a ? p.normal[1] : -p.normal[1],
                                    p.reference_on_a ? p.normal[2] : -p.normal[2]};
    const Feature kind = p.reference_on_a ? p.kind_b : p.kind_a;
    support_patch(p.reference_on_a ? b : a, kind, incident_out, nullptr, p.reference_on_a ? c.b : c.a);
  } else if (p.rule == MotionRule::reference_vertex) {
    copy3(p.direction_a, c.incident_normal);
  } else {
    const double inward[3] = {-p.normal[0], -p.normal[1], -p.normal[2]};
    support_patch(a, p.kind_a, inward, p.direction_a, c.a);
    support_patch(b, p.kind_b, p.normal, p.direction_b, c.b);
  }
}

}  // namespace coulomb
