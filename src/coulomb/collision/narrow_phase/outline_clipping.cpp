// The outline that two polygons have in common, by cutting the incident one by one side of the reference after the other
// [Sutherland1974]. What a corner of it is follows from the two lines that meet there, so that the outline is closed however near to one
// another edges and sides lie: a corner that each of two tests leaves to the other would take its force with it.
#include <algorithm>
#include <cmath>
#include <utility>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/narrow_phase/clip_parts.hpp"

namespace coulomb {
namespace {

/// An edge of the incident face, or a side of the reference.
struct Line {
  int index = -1;
  bool of_reference = false;
};

struct Corner {
  double point[3];
  Line after;  ///< along which the outline goes on
};

struct Outline {
  int count = 0;
  Corner corner[2 * max_polygon];
};

/// What of the outline is inside of side k, or all but on it.
void cut(Clip& c, int k, bool is_wider, const Outline& in, Outline& out) {
  double m[3];
  const double slack = is_wider ? c.slack : -c.slack;
  const double offset = side_plane(c.reference, k, m) + slack;
  const auto beyond = [&](int i) { return dot3(m, in.corner[i].point) - offset; };
  out.count = 0;
  for (int i = 0; i < in.count; ++i) {
    const int j = i + 1 < in.count ? i + 1 : 0;
    const double here = beyond(i);
    const double there = beyond(j);
    const bool is_inside = here <= 0;
    c.on_border = c.on_border || std::abs(here + slack) <= c.slack;
    if (is_inside) out.corner[out.count++] = in.corner[i];
    if (is_inside == (there <= 0)) continue;

    // The outline goes on along the side, or comes back from it.
    Corner& crossing = out.corner[out.count++];
    crossing.after = is_inside ? Line{k, true} : in.corner[i].after;
    const double part = here / (here - there);
    for (int x = 0; x < 3; ++x)
      crossing.point[x] = in.corner[i].point[x] + part * (in.corner[j].point[x] - in.corner[i].point[x]);
  }
}

/// A corner of the reference, seen along its normal.
void add_reference_corner(Clip& c, const Flat& incident, int k) {
  if (stands_on(incident, c.reference)) return;
  const double slope = dot3(incident.normal, c.reference.normal);
  double r[3];
  double q[3];
  sub3(incident.point[0], c.reference.point[k], r);
  copy3(c.reference.point[k], q);
  axpy3(dot3(r, incident.normal) / slope, c.reference.normal, q);
  Candidate* p = c.add(q);
  if (p == nullptr) return;
  p->rule = MotionRule::reference_vertex;
  p->side = k;
  copy3(incident.normal, p->direction_a);
  p->feature = feature_id(1, c.on_a, c.reference.id[k], 0, 0, 0);
}

/// An edge of the incident face goes out of the reference, or into it.
void add_crossing(Clip& c, const Flat& incident, const double* q, int edge, int side, bool is_leaving) {
  const int end = edge + 1 < incident.count ? edge + 1 : 0;
  double m[3];
  double e[3];
  side_plane(c.reference, side, m);
  sub3(incident.point[end], incident.point[edge], e);
  Candidate* p = c.add(q);
  if (p == nullptr) return;
  p->edge = edge;
  p->side = side;
  p->is_leaving = is_leaving;
  const int u = incident.id[edge];
  const int v = incident.id[end];
  p->feature = feature_id(2, c.on_a, std::min(u, v), std::max(u, v), c.reference.id[side], c.reference.face);

  // The edge's direction and the side's normal; where parallels cross is rounding, and has no speed.
  const double length = norm3(e);
  if (dot3(m, e) == 0) return;
  p->rule = MotionRule::edge_crossing;
  for (int x = 0; x < 3; ++x) {
    p->direction_a[x] = e[x] / length;
    p->direction_b[x] = m[x];
  }
}

}  // namespace

void clip_outline(Clip& c, const Flat& incident, bool is_wider) {
  Outline outlines[2];
  Outline* now = &outlines[0];
  Outline* next = &outlines[1];
  now->count = incident.count;
  for (int i = 0; i < incident.count; ++i) {
    copy3(incident.point[i], now->corner[i].point);
    now->corner[i].after = {i, false};
  }
  for (int k = 0; k < c.reference.count && now->count > 0; ++k) {
    cut(c, k, is_wider, *now, *next);
    std::swap(now, next);
  }

  for (int i = 0; i < now->count; ++i) {
    const Corner& corner = now->corner[i];
    const Line before = now->corner[i > 0 ? i - 1 : now->count - 1].after;
    const Line after = corner.after;
    if (before.of_reference && after.of_reference) {
      // Sides run backwards here: a side begins where the outline leaves it.
      if (before.index != after.index) add_reference_corner(c, incident, before.index);
    } else if (before.of_reference || after.of_reference) {
      const int edge = before.of_reference ? after.index : before.index;
      const int side = before.of_reference ? before.index : after.index;
      add_crossing(c, incident, corner.point, edge, side, after.of_reference);
    } else if (Candidate* p = c.add(incident.point[after.index])) {
      p->feature = feature_id(0, c.on_a, incident.id[after.index], 0, 0, 0);
    }
  }
}

}  // namespace coulomb
