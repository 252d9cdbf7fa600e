#include "coulomb/collision/penalty/contact_share.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/collision/narrow_phase/clip_parts.hpp"
#include "coulomb/collision/narrow_phase/convex_convex.hpp"

namespace coulomb {
namespace {

constexpr double pi = 3.14159265358979323846;
constexpr double same_size = 1e-9;  // of two faces or shapes, relative: rounding does not choose

/// A number and its derivative along three directions.
struct Dual {
  double v = 0;
  double d[3] = {0, 0, 0};
};

/// A function of two numbers, by its slopes.
Dual chain(double value, double slope_x, const Dual& x, double slope_y, const Dual& y) {
  Dual out{value};
  for (int i = 0; i < 3; ++i)
    out.d[i] = slope_x * x.d[i] + slope_y * y.d[i];
  return out;
}
Dual operator+(const Dual& x, const Dual& y) { return chain(x.v + y.v, 1, x, 1, y); }
Dual operator-(const Dual& x, const Dual& y) { return chain(x.v - y.v, 1, x, -1, y); }
Dual operator*(const Dual& x, const Dual& y) { return chain(x.v * y.v, y.v, x, x.v, y); }
Dual operator/(const Dual& x, const Dual& y) { return chain(x.v / y.v, 1 / y.v, x, -x.v / (y.v * y.v), y); }

/// A vector of such numbers.
struct Dual3 {
  Dual x[3];
};

Dual3 operator-(const Dual3& a, const Dual3& b) { return {{a.x[0] - b.x[0], a.x[1] - b.x[1], a.x[2] - b.x[2]}}; }
Dual3 operator+(const Dual3& a, const Dual3& b) { return {{a.x[0] + b.x[0], a.x[1] + b.x[1], a.x[2] + b.x[2]}}; }
Dual dot(const Dual3& a, const Dual3& b) { return a.x[0] * b.x[0] + a.x[1] * b.x[1] + a.x[2] * b.x[2]; }
Dual3 cross(const Dual3& a, const Dual3& b) {
  return {{a.x[1] * b.x[2] - a.x[2] * b.x[1], a.x[2] * b.x[0] - a.x[0] * b.x[2], a.x[0] * b.x[1] - a.x[1] * b.x[0]}};
}

/// A face with its corners, counter-clockwise from outside, and what moves them.
struct Outline {
  int count = 0;

  /// normal: of any length
  Dual3 corner[max_polygon];
  Dual3 normal;
};

/// A face of a shape.
struct Side {
  const Shape& shape;
  int face;
};

/// The corners as clipping sees them (face_clipping.cpp).
void make_outline(const Side& s, Outline& out) {
  // Large faces are thinned out.
  const int n = face_size(s.shape, s.face);
  const int stride = (n + max_polygon - 1) / max_polygon;
  out.count = 0;
  for (int k = 0; k < n; k += stride) {
    double p[3];
    core_vertex(s.shape, face_vertex(s.shape, s.face, k), p);
    Dual3& corner = out.corner[out.count++];
    for (int i = 0; i < 3; ++i)
      corner.x[i] = Dual{p[i]};
  }
}

/// Of the moved corners: the sum over a fan, as the normals of moved meshes are (parameters/kinds/moved_mesh.cpp).
void find_normal(Outline& out) {
  out.normal = Dual3{};
  for (int k = 1; k + 1 < out.count; ++k)
    out.normal = out.normal + cross(out.corner[k] - out.corner[0], out.corner[k + 1] - out.corner[0]);
}

/// The corner after k, and the edge from k to it.
int next(const Outline& o, int k) { return k + 1 < o.count ? k + 1 : 0; }
Dual3 edge(const Outline& o, int k) { return o.corner[next(o, k)] - o.corner[k]; }

/// Along side k of the reference face in the incident plane, turning as the incident outline does: p x m, m = e x n.
Dual3 along(const Outline& incident, const Outline& reference, int k) {
  return cross(incident.normal, cross(edge(reference, k), reference.normal));
}

/// Angle about p from x to y, in (-pi, pi].
Dual angle(const Dual3& p, const Dual3& x, const Dual3& y) {
  // The sine has the length of p, the cosine has not.
  const Dual3 c = cross(x, y);
  const Dual pp = dot(p, p);
  const Dual length = chain(std::sqrt(pp.v), 0.5 / std::sqrt(pp.v), pp, 0, pp);
  const Dual sine = dot(p, c) / length;
  const Dual cosine = dot(x, y);

  // atan2 and its slopes.
  const double r2 = sine.v * sine.v + cosine.v * cosine.v;
  if (!(r2 > 0)) return Dual{};
  return chain(std::atan2(sine.v, cosine.v), cosine.v / r2, sine, -sine.v / r2, cosine);
}

/// Springs turned through from edge `first` to `direction`, forwards (sign 1) or backwards (-1), for turns up to `most`.
Dual springs(const Outline& o, int first, const Dual3& direction, int sign, double most) {
  // The whole turn, counted from below `most`.
  Dual turn = sign > 0 ? angle(o.normal, edge(o, first), direction) : angle(o.normal, direction, edge(o, first));
  if (turn.v < most - 2 * pi) {
    turn.v += 2 * pi;
  }

  // Every corner that it passes adds a spring, the last one a part.
  Dual sum;
  for (int k = first, left = o.count; left > 0; --left) {
    const int other = sign > 0 ? next(o, k) : (k > 0 ? k - 1 : o.count - 1);
    const Dual corner =
        sign > 0 ? angle(o.normal, edge(o, k), edge(o, other)) : angle(o.normal, edge(o, other), edge(o, k));
    if (corner.v > 0) {
      if (turn.v <= corner.v || left == 1) return sum + turn / corner;
      sum = sum + Dual{1.0};
      turn = turn - corner;
    }

    k = other;
  }
  return sum;
}

/// Springs of the incident face that belong to the contact: those between two sides of the reference face.
Dual share_of(const ContactShare& s, const Outline& incident, const Outline& reference) {
  // From the edge that enters or leaves, to the side that it crosses.
  const Dual3 direction = along(incident, reference, s.side);
  if (s.kind == ContactShare::Kind::leaving) {
    return springs(incident, s.edge, direction, 1, 1.5 * pi);
  }
  if (s.kind == ContactShare::Kind::entering) {
    return springs(incident, s.edge, direction, -1, 1.5 * pi);
  }

  // A corner of the reference: its sides run backwards here, this one ends at the corner, the one before it begins there.
  const int before = s.side > 0 ? s.side - 1 : reference.count - 1;
  Dual out =
      springs(incident, 0, along(incident, reference, before), 1, 2 * pi) - springs(incident, 0, direction, 1, 2 * pi);
  if (out.v < 0) out.v += incident.count;
  return out;
}

/// value and turn, of a share whose features are known.
void evaluate(const Shape& a, const Shape& b, ContactShare& s) {
  Outline incident;
  Outline reference;
  make_outline({s.reference_on_a ? b : a, s.incident}, incident);
  make_outline({s.reference_on_a ? a : b, s.reference}, reference);

  // Turned about the three axes: w x r.
  for (int k = 0; k < incident.count; ++k) {
    Dual3& c = incident.corner[k];
    const double x = c.x[0].v;
    const double y = c.x[1].v;
    const double z = c.x[2].v;
    c.x[0].d[1] = z;
    c.x[0].d[2] = -y;
    c.x[1].d[0] = -z;
    c.x[1].d[2] = x;
    c.x[2].d[0] = y;
    c.x[2].d[1] = -x;
  }

  // The share depends on the turn of one face against the other.
  find_normal(incident);
  find_normal(reference);
  const Dual value = share_of(s, incident, reference);
  s.value = s.part * std::max(value.v, 0.0);
  for (int i = 0; i < 3; ++i)
    s.turn[i] = s.part * (s.reference_on_a ? -value.d[i] : value.d[i]);
}

/// m^2, of a box or mesh.
double face_area(const Shape& s, int face) {
  double first[3];
  double before[3];
  double sum[3] = {0, 0, 0};
  core_vertex(s, face_vertex(s, face, 0), first);
  for (int k = 1; k < face_size(s, face); ++k) {
    double to[3];
    core_vertex(s, face_vertex(s, face, k), to);
    sub3(to, first, to);
    if (k > 1) {
      double turn[3];
      cross3(before, to, turn);
      add3(sum, turn, sum);
    }
    copy3(to, before);
  }
  return norm3(sum) / 2;
}

/// The share of a clipped candidate between these faces. part: as of ContactShare.
ContactShare share_of_candidate(const Shape& a, const Shape& b, const Candidate& c, int reference, int incident,
                                double part) {
  ContactShare s;
  s.value = s.part = part;

  // A corner of the incident face inside of the reference has a whole spring.
  if (c.side < 0) return s;
  s.reference_on_a = c.reference_on_a;
  s.reference = reference;
  s.incident = incident;
  s.side = c.side;
  s.edge = c.edge;
  s.kind = c.edge < 0     ? ContactShare::Kind::corner
           : c.is_leaving ? ContactShare::Kind::leaving
                          : ContactShare::Kind::entering;
  evaluate(a, b, s);
  return s;
}
}  // namespace

void collide_flat_sides(const Shape& a, const Shape& b, double size, std::vector<Contact>& contacts,
                        std::vector<ContactShare>& shares) {
  // The witness, from the line between the centres.
  double axis[3];
  double from[3];
  bounding_center(a, axis);
  bounding_center(b, from);
  sub3(axis, from, axis);
  int hints[2] = {-1, -1};
  Witness w;
  if (!convex_witness(a, b, 0.0, axis, hints, w)) return;

  // The reference is the larger face, of equal faces that of the larger shape, while it is all but as good: a choice that depends on
  // neither tilt nor order. Of equal shapes it is A's.
  const double inward[3] = {-w.normal[0], -w.normal[1], -w.normal[2]};
  double cosine;
  const int face_a = best_face(a, inward, cosine);
  const int face_b = best_face(b, w.normal, cosine);
  const double ratio = face_area(b, face_b) / face_area(a, face_a);
  const bool same = std::abs(ratio - 1) <= same_size;
  const bool on_b = same ? bounding_radius(b) > (1 + same_size) * bounding_radius(a) : ratio > 1;
  int reference = on_b ? 2 * face_b + 1 : 2 * face_a;
  Candidate candidates[max_candidates];
  int count = clip_manifold(a, b, w, 0.0, most_kept_sine, reference, candidates, FacePoints::outline);

  // Faces that miss the deepest place do not stand for the contact: the witness alone does.
  double deepest = 1e300;
  for (int i = 0; i < count; ++i)
    deepest = std::min(deepest, candidates[i].distance);
  const std::size_t first = contacts.size();
  if (count == 0 || deepest > w.distance + 2e-3 * size + 0.1 * std::abs(w.distance)) {
    contacts.emplace_back();

    // Each corner of the outline has its share of a spring.
    single_contact(a, b, w, contacts.back());
  } else {
    const bool on_a = (reference & 1) == 0;
    double towards[3];
    face_normal(on_a ? a : b, reference / 2, towards);
    for (double& x : towards)
      x = -x;
    const int incident = best_face(on_a ? b : a, towards, cosine);
    const auto append = [&](double part) {
      for (int i = 0; i < count; ++i) {
        contacts.emplace_back();
        fill_contact(a, b, candidates[i], contacts.back());
        shares.push_back(share_of_candidate(a, b, candidates[i], reference / 2, incident, part));
      }
    };

    // Corners on a border: half of the springs for each of two outlines.
    const bool two_outlines = candidates[0].on_border;
    append(two_outlines ? 0.5 : 1.0);
    if (two_outlines) {
      count = clip_manifold(a, b, w, 0.0, most_kept_sine, reference, candidates, FacePoints::narrower_outline);
      append(0.5);
    }
  }

  shares.resize(contacts.size());
  for (std::size_t i = first; i < contacts.size(); ++i)
    contacts[i].size = size;
}

void share_by_vertex(const Shape& a, const Shape& b, const ContactShare& s, bool of_a, int vertex, double out[3]) {
  out[0] = out[1] = out[2] = 0;
  if (s.kind == ContactShare::Kind::whole) return;

  // Both outlines, at rest.
  const Shape& moved = of_a ? a : b;
  const bool of_reference = of_a == s.reference_on_a;
  Outline incident;
  Outline reference;
  make_outline({s.reference_on_a ? b : a, s.incident}, incident);
  make_outline({s.reference_on_a ? a : b, s.reference}, reference);

  // The vertex moves along the axes of its geometry.
  Outline& own = of_reference ? reference : incident;
  const int face = of_reference ? s.reference : s.incident;
  const int n = face_size(moved, face);
  const int stride = (n + max_polygon - 1) / max_polygon;
  for (int k = 0; k < own.count; ++k)
    if (face_vertex(moved, face, k * stride) == vertex)
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
          own.corner[k].x[i].d[j] = moved.rotation[3 * i + j];

  find_normal(incident);
  find_normal(reference);
  const Dual value = share_of(s, incident, reference);
  for (int j = 0; j < 3; ++j)
    out[j] = s.part * value.d[j];
}
}  // namespace coulomb
