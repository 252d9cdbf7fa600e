// Lines (capsules, cylinder sides, edges): clipped against the reference face, and against one another when parallel.
#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/narrow_phase/clip_parts.hpp"

namespace coulomb {

namespace {

constexpr double most_tilt = 0.995;  // cosine, between the normal of the face, or of the pair, and that of one point

/// The line of a capsule or cylinder that lies lowest over the reference face goes through `base` along the axis.
void lowest_line(const Clip& c, const Shape& s, const double* axis, double* base) {
  double radial[3];
  copy3(c.reference.normal, radial);

  // A cylinder's side faces the plane radially.
  if (s.type == ShapeType::cylinder) {
    axpy3(-dot3(axis, radial), axis, radial);
    const double sine = norm3(radial);
    for (double& x : radial)
      x /= sine;
  }

  copy3(s.position, base);
  axpy3(-s.size[0], radial, base);
}

/// That line: the interval over the reference face and the side that cuts each end (-1: none).
bool clip_line(const Clip& c, const Shape& s, const double* axis, const double* base, double* range, int* cut) {
  // The whole line, unless something cuts it.
  const Flat& f = c.reference;
  range[0] = -s.size[1];
  range[1] = s.size[1];
  cut[0] = cut[1] = -1;

  // A disc: between the roots of A t^2 + 2 B t + C = 0, seen along its normal.
  if (f.disc) {
    double r[3];
    double across[3];
    double from[3];
    sub3(base, f.center, r);
    copy3(axis, across);
    copy3(r, from);
    axpy3(-dot3(axis, f.normal), f.normal, across);
    axpy3(-dot3(r, f.normal), f.normal, from);

    const double A = dot3(across, across);
    const double B = dot3(across, from);
    const double C = dot3(from, from) - f.radius * f.radius;
    if (!(B * B > A * C)) return false;
    const double root = std::sqrt(B * B - A * C);
    const double t0 = (-B - root) / A;
    const double t1 = (-B + root) / A;

    if (t0 > range[0]) {
      range[0] = t0;
      cut[0] = 0;
    }
    if (t1 < range[1]) {
      range[1] = t1;
      cut[1] = 1;
    }
    return range[0] <= range[1];
  }

  // A polygon: on the inner side of every edge; the slope says which end an edge cuts.
  for (int k = 0; k < f.count; ++k) {
    double m[3];
    const double offset = side_plane(f, k, m);
    const double slope = dot3(m, axis);
    const double rest = offset - dot3(m, base);

    if (std::abs(slope) < 1e-12) {
      if (rest < 0) return false;
      continue;
    }

    const double t = rest / slope;
    if (slope > 0 && t < range[1]) {
      range[1] = t;
      cut[1] = k;
    }
    if (slope < 0 && t > range[0]) {
      range[0] = t;
      cut[0] = k;
    }
  }
  return range[0] <= range[1];
}

/// An end of the line over the face: the reference carries n, the rounded end or the rim follows.
void add_line_end(Clip& c, const Shape& s, const double* axis, const double* base, int end) {
  double q[3];
  copy3(base, q);
  axpy3(end == 0 ? -s.size[1] : s.size[1], axis, q);
  Candidate* p = c.add(q);
  if (p == nullptr) return;
  (c.on_a ? p->kind_b : p->kind_a) = s.type == ShapeType::cylinder ? Feature::rim : Feature::round;
  p->feature = feature_id(0, c.on_a, end, 0, 0, 0);
}

/// Is the witness of the pair the contact of the line with the reference cap's rim? There the line goes down as it leaves the cap.
bool meets_rim(const Clip& c, const Witness& w, const double* axis, int side) {
  const CoreFeature& line = c.on_a ? w.b : w.a;
  const CoreFeature& rim = c.on_a ? w.a : w.b;
  if (!w.exact || line.kind != Feature::line || rim.kind != Feature::rim || rim.face != c.reference.face) return false;
  const double rise = dot3(axis, c.reference.normal);
  return (side == 0 ? rise > 0 : rise < 0) && dot3(w.normal, c.n) > most_tilt && w.distance <= c.margin;
}

/// The line leaves the face across a side: the exact contact of line and edge (or rim), with its own normal.
void add_line_crossing(Clip& c, const Shape& s, const Witness& witness, const double* axis, const double* base,
                       double t, int side) {
  // The line of the shape, and the edge or rim.
  Witness w;
  CoreFeature& line = c.on_a ? w.b : w.a;
  CoreFeature& edge = c.on_a ? w.a : w.b;
  line.kind = Feature::line;
  copy3(axis, line.direction);
  copy3(s.position, line.point);
  line.low = -s.size[1];
  line.high = s.size[1];

  const Flat& f = c.reference;
  if (f.disc) {
    edge.kind = Feature::rim;
    edge.face = f.face;
  } else {
    edge.kind = Feature::edge;
    copy3(f.point[side], edge.point);
    sub3(f.point[(side + 1) % f.count], f.point[side], edge.direction);
    edge.high = norm3(edge.direction);
    for (double& x : edge.direction)
      x /= edge.high;
  }

  // A disc is met at two places. Where the line goes down across the rim that is the deepest place of the pair, which the witness knows;
  // on the other side, where it rises, nothing is deepest, and the clipped point itself is taken.
  if (f.disc) {
    double q[3];
    double m[3];
    copy3(base, q);
    axpy3(t, axis, q);
    sub3(q, f.center, m);
    axpy3(-dot3(m, f.normal), f.normal, m);

    for (double& x : m)
      x /= f.radius;

    if (meets_rim(c, witness, axis, side)) {
      if (c.count == max_candidates) return;
      Candidate& p = c.out[c.count++];
      take_witness(witness, c.on_a, p);
      p.feature = feature_id(2, c.on_a, 9, side, 0, f.face);
      return;
    }

    // The point rolls on the line's shape as n turns.
    if (Candidate* p = c.crossing(q, axis, m, 9, side, 0))
      (c.on_a ? p->kind_b : p->kind_a) = s.type == ShapeType::cylinder ? Feature::rim : Feature::round;
    return;
  }

  // All but parallel lines have no sure common normal, but without a point here what lies on the face would tip over the edge: the face's
  // normal, at the clipped point, which rolls on the line's shape as well.
  if (std::abs(dot3(edge.direction, axis)) > std::sqrt(1 - alignment_sine * alignment_sine)) {
    double q[3];
    double m[3];
    copy3(base, q);
    axpy3(t, axis, q);
    side_plane(f, side, m);
    Candidate* p = c.crossing(q, axis, m, f.id[side], f.id[(side + 1) % f.count], 0);
    if (p == nullptr) return;
    (c.on_a ? p->kind_b : p->kind_a) = s.type == ShapeType::cylinder ? Feature::rim : Feature::round;

    // One point with the exact one that it becomes as the line turns.
    p->feature = feature_id(3, c.on_a, f.id[side], f.id[(side + 1) % f.count], 0, 0);
    return;
  }

  // The two lines, solved exactly: near the face's normal and within both extents.
  if (!solve_features(c.a, c.b, c.n, w) || dot3(w.normal, c.n) < most_tilt || !(w.distance <= c.margin)) return;
  if (line.low > c.slack || line.high < -c.slack || edge.low > c.slack || edge.high < -c.slack) return;

  if (c.count == max_candidates) return;
  Candidate& p = c.out[c.count++];
  take_witness(w, c.on_a, p);
  p.feature = feature_id(3, c.on_a, f.id[side], f.id[(side + 1) % f.count], 0, 0);
}

/// The line of s that lies along `direction` and touches the plane across n: the axis of a capsule or the side of a
/// cylinder, an edge through the support vertex of a box or mesh. `direction` null: any, for capsules and cylinders.
/// False if there is none.
bool find_line(const Shape& s, const double* outward, const double* direction, CoreFeature& f) {
  f = CoreFeature{};

  // In the plane, and along the direction.
  const auto aligned = [&](const double* e) {
    double m[3];
    if (std::abs(dot3(e, outward)) > alignment_sine) return false;
    if (direction == nullptr) return true;
    cross3(e, direction, m);
    return norm3(m) <= alignment_sine;
  };

  // The axis.
  if (s.type == ShapeType::capsule || s.type == ShapeType::cylinder) {
    const double axis[3] = {s.rotation[2], s.rotation[5], s.rotation[8]};
    if (!aligned(axis)) return false;
    f.kind = Feature::line;
    f.low = -s.size[1];
    f.high = s.size[1];
    copy3(axis, f.direction);
    copy3(s.position, f.point);
    return true;
  }

  // An edge from the support vertex.
  if (direction == nullptr || (s.type != ShapeType::box && s.type != ShapeType::mesh)) return false;
  int hint = -1;
  const int vertex = core_support(s, outward, f.point, hint);
  const int count =
      s.type == ShapeType::box ? 3 : s.mesh->neighbour_start[vertex + 1] - s.mesh->neighbour_start[vertex];

  for (int k = 0; k < count; ++k) {
    const int other =
        s.type == ShapeType::box ? vertex ^ (1 << k) : s.mesh->neighbours[s.mesh->neighbour_start[vertex] + k];
    double q[3];
    core_vertex(s, other, q);
    sub3(q, f.point, f.direction);
    f.high = norm3(f.direction);
    for (double& x : f.direction)
      x /= f.high;
    if (!aligned(f.direction)) continue;
    f.kind = Feature::edge;
    f.id = (std::min(vertex, other) + 1) * 4096 + std::max(vertex, other);
    return true;
  }
  return false;
}

}  // namespace

void clip_line_shape(Clip& c, const Shape& s, const Witness& witness) {
  // The line has to lie along the face.
  const double axis[3] = {s.rotation[2], s.rotation[5], s.rotation[8]};
  if (std::abs(dot3(axis, c.reference.normal)) > alignment_sine) return;
  double base[3];
  double range[2];
  int cut[2];

  lowest_line(c, s, axis, base);
  if (!clip_line(c, s, axis, base, range, cut)) return;

  // What is left of it has two ends: its own, or where a side cuts it.
  for (int end = 0; end < 2; ++end) {
    if (cut[end] < 0)
      add_line_end(c, s, axis, base, end);
    else
      add_line_crossing(c, s, witness, axis, base, range[end], cut[end]);
  }
}

int clip_parallel_lines(const Shape& a, const Shape& b, const Witness& w, double margin, Candidate* out) {
  const double inward[3] = {-w.normal[0], -w.normal[1], -w.normal[2]};

  // A line of either shape that the other one has as well.
  CoreFeature la;
  CoreFeature lb;
  if (find_line(a, inward, nullptr, la)) {
    if (!find_line(b, w.normal, la.direction, lb)) return 0;
  } else if (!find_line(b, w.normal, nullptr, lb) || !find_line(a, inward, lb.direction, la)) {
    return 0;
  }

  // Both intervals along A's line, from A's point; too short a common one is a point.
  double d[3];
  sub3(lb.point, la.point, d);
  const double c = dot3(la.direction, lb.direction);
  const double middle = dot3(d, la.direction);
  const double low_b = middle + std::min(c * lb.low, c * lb.high);
  const double high_b = middle + std::max(c * lb.low, c * lb.high);
  if (!(std::min(la.high, high_b) - std::max(la.low, low_b) > 1e-6 * (la.high - la.low + high_b - low_b))) return 0;

  const double slack = 1e-12 * (bounding_radius(a) + bounding_radius(b));
  int count = 0;

  // Either end of the common interval is an end of one line against the other.
  for (int end = 0; end < 2; ++end) {
    const bool of_a = end == 0 ? la.low >= low_b : la.high <= high_b;
    Witness v;
    v.a = of_a ? end_of(a, la, end) : la;
    v.b = of_a ? lb : end_of(b, lb, (end == 0) == (c > 0) ? 0 : 1);

    // Solved exactly: near the witness' normal and within the other's extent.
    if (!solve_features(a, b, w.normal, v)) continue;
    if (!(dot3(v.normal, w.normal) > most_tilt) || !(v.distance <= margin)) continue;
    const CoreFeature& line = of_a ? v.b : v.a;
    if (line.low > slack || line.high < -slack) continue;

    Candidate& p = out[count++];
    take_witness(v, !of_a, p);
    p.feature = feature_id(4, !of_a, end, 0, 0, 0);
  }
  return count;
}

}  // namespace coulomb
