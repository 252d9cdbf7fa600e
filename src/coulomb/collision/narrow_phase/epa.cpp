// Expanding polytope on fixed arrays: triangles are scanned for the nearest, the visible ones are replaced by a fan
// over their horizon. Small polytopes (tens of triangles) make the scans cheaper than any queue.
#include "coulomb/collision/narrow_phase/epa.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"

namespace coulomb {

namespace {

constexpr int max_vertices = 96;
constexpr int max_faces = 256;
constexpr int max_edges = 256;
constexpr double same_side = 0.999;  // cosine: faces that look the same way end at one witness
constexpr double finer = 1e-3;       // of the tolerance: shapes that are as near on two sides end there

/// A triangle of the polytope.
struct Face {
  int v[3];
  double n[3];
  double d;
  bool sliver;  // never the nearest: too thin, in the plane of the face beside it, or folded inwards
};

/// A polytope inside of A - B that holds the origin.
struct Polytope {
  MinkowskiVertex vertex[max_vertices];
  Face face[max_faces];
  int num_vertices;
  int num_faces;
  double thin;  // triangles lower than this have no normal of their own
};

/// Triangle i, j, k; edge i -> j borders a face of the polytope already.
bool add_face(Polytope& p, int i, int j, int k) {
  if (p.num_faces == max_faces) return false;
  Face& f = p.face[p.num_faces];
  f.v[0] = i;
  f.v[1] = j;
  f.v[2] = k;

  // Twice its area against its longest side: how thin it is.
  double e1[3];
  double e2[3];
  double e3[3];
  sub3(p.vertex[j].w, p.vertex[i].w, e1);
  sub3(p.vertex[k].w, p.vertex[i].w, e2);
  sub3(e2, e1, e3);
  cross3(e1, e2, f.n);
  const double area = norm3(f.n);
  const double side2 = std::max({dot3(e1, e1), dot3(e2, e2), dot3(e3, e3)});
  f.sliver = !(area * area > p.thin * p.thin * side2);

  // A sliver takes the plane of the face behind its edge i -> j.
  if (f.sliver) {
    f.n[0] = f.n[1] = f.n[2] = f.d = 0;
    for (int q = 0; q < p.num_faces; ++q)
      for (int c = 0; c < 3; ++c)
        if (p.face[q].v[c] == j && p.face[q].v[(c + 1) % 3] == i) {
          copy3(p.face[q].n, f.n);
          f.d = p.face[q].d;
        }
  } else {
    for (double& c : f.n)
      c /= area;
    f.d = dot3(f.n, p.vertex[i].w);
  }

  ++p.num_faces;
  return true;
}

/// Nearer to one another than `distance`.
bool same_point(const MinkowskiVertex& u, const MinkowskiVertex& v, double distance) {
  double d[3];
  sub3(u.w, v.w, d);
  return dot3(d, d) < distance * distance;
}

/// Adds support points until the simplex is a tetrahedron; false when A - B is flat.
bool complete_tetrahedron(const Shape& a, const Shape& b, int hints[2], Simplex& s, double scale, double normal[3]) {
  const double small = 1e-10 * scale;
  if (s.count < 1) {
    const double x[3] = {1, 0, 0};
    minkowski_support(a, b, x, hints, s.v[s.count++]);
  }

  // Distance to the affine hull of the simplex.
  const auto far = [&](const double* w) {
    double r[3];
    double e[3];
    double f[3];
    double n[3];
    sub3(w, s.v[0].w, r);
    if (s.count == 1) return norm3(r);
    sub3(s.v[1].w, s.v[0].w, e);
    if (s.count == 2) {
      cross3(r, e, n);
      return norm3(n) / norm3(e);
    }
    sub3(s.v[2].w, s.v[0].w, f);
    cross3(e, f, n);
    return std::abs(dot3(r, n)) / norm3(n);
  };
  while (s.count < 4) {
    // Directions across the simplex: any, across its line, or across its plane.
    double dirs[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    int num = 3;
    if (s.count == 2) {
      double e[3];
      double t[3];
      sub3(s.v[1].w, s.v[0].w, e);
      for (int i = 0; i < 3; ++i) {
        copy3(dirs[i], t);
        cross3(e, t, dirs[i]);
      }
    } else if (s.count == 3) {
      double e[3];
      double f[3];
      sub3(s.v[1].w, s.v[0].w, e);
      sub3(s.v[2].w, s.v[0].w, f);
      cross3(e, f, dirs[0]);
      num = 1;
    }

    // The support point that is farthest from it, of both signs.
    double best = small;
    MinkowskiVertex found;
    MinkowskiVertex trial;
    for (int i = 0; i < 2 * num; ++i) {
      const double sign = i & 1 ? -1.0 : 1.0;
      const double d[3] = {sign * dirs[i / 2][0], sign * dirs[i / 2][1], sign * dirs[i / 2][2]};
      minkowski_support(a, b, d, hints, trial);
      const double distance = far(trial.w);
      if (distance > best) {
        best = distance;
        found = trial;
      }
    }

    // None: A - B has no extent across the simplex.
    if (!(best > small)) {
      copy3(dirs[s.count == 3 ? 0 : 2], normal);
      if (!(norm3(normal) > 0)) {
        copy3(dirs[0], normal);
      }
      const double length = norm3(normal);
      for (int i = 0; i < 3; ++i)
        normal[i] = length > 0 ? normal[i] / length : (i == 2 ? 1.0 : 0.0);
      return false;
    }

    s.v[s.count++] = found;
  }
  return true;
}

/// A tetrahedron without volume: leaves its largest triangle, or edge, or point, for complete_tetrahedron() to start from.
void drop_degenerate(Simplex& s, double scale) {
  const double small = 1e-9 * scale;
  double e[3];
  double f[3];
  double n[3];

  // The largest of the four triangles, and how high the fourth vertex is above it.
  if (s.count == 4) {
    static constexpr int triples[4][4] = {{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 3, 1}, {1, 2, 3, 0}};
    int best = 0;
    double area = -1;
    double height = 0;
    for (int k = 0; k < 4; ++k) {
      const int* t = triples[k];
      sub3(s.v[t[1]].w, s.v[t[0]].w, e);
      sub3(s.v[t[2]].w, s.v[t[0]].w, f);
      cross3(e, f, n);
      if (!(norm3(n) > area)) continue;
      area = norm3(n);
      best = k;
      sub3(s.v[t[3]].w, s.v[t[0]].w, e);
      height = area > 0 ? std::abs(dot3(e, n)) / area : 0.0;
    }

    if (height > small) return;
    const MinkowskiVertex kept[3] = {s.v[triples[best][0]], s.v[triples[best][1]], s.v[triples[best][2]]};
    for (int k = 0; k < 3; ++k)
      s.v[k] = kept[k];
    s.count = 3;
  }

  // The longest side, from `far` to `far` + 1, and how high the third vertex is above it.
  if (s.count == 3) {
    int far = 0;
    double longest = -1;
    double area = 0;
    for (int k = 0; k < 3; ++k) {
      sub3(s.v[(k + 1) % 3].w, s.v[k].w, e);
      sub3(s.v[(k + 2) % 3].w, s.v[k].w, f);
      cross3(e, f, n);
      if (norm3(e) > longest) {
        longest = norm3(e);
        far = k;
        area = norm3(n);
      }
    }

    if (area > small * longest) return;
    const MinkowskiVertex kept[2] = {s.v[far], s.v[(far + 1) % 3]};
    s.v[0] = kept[0];
    s.v[1] = kept[1];
    s.count = 2;
  }

  // Two vertices at one place.
  if (s.count == 2) {
    sub3(s.v[1].w, s.v[0].w, e);
    if (!(norm3(e) > small)) {
      s.count = 1;
    }
  }
}

/// Removes the faces that see `w`, fans their horizon to the new vertex. False when full or nothing is visible.
bool expand(Polytope& p, const MinkowskiVertex& next, double tolerance) {
  if (p.num_vertices == max_vertices) return false;
  int edges[max_edges][2];
  int num_edges = 0;
  const int num_before = p.num_faces;

  // Edges that two removed faces share go; what is left is the horizon.
  for (int i = 0; i < p.num_faces;) {
    const Face f = p.face[i];
    if (!(dot3(f.n, next.w) - f.d > tolerance)) {
      ++i;
      continue;
    }

    // An edge met before, in the other direction, is inside.
    for (int k = 0; k < 3; ++k) {
      const int u = f.v[k];
      const int v = f.v[(k + 1) % 3];
      int e = 0;
      while (e < num_edges && !(edges[e][0] == v && edges[e][1] == u))
        ++e;
      if (e < num_edges) {
        edges[e][0] = edges[--num_edges][0];
        edges[e][1] = edges[num_edges][1];
      } else {
        if (num_edges == max_edges) return false;
        edges[num_edges][0] = u;
        edges[num_edges++][1] = v;
      }
    }

    p.face[i] = p.face[--p.num_faces];
  }

  if (p.num_faces == num_before) return false;

  // A fan from the horizon to the new vertex.
  p.vertex[p.num_vertices] = next;
  const int index = p.num_vertices++;
  for (int e = 0; e < num_edges; ++e)
    if (!add_face(p, edges[e][0], edges[e][1], index)) return false;
  return true;
}

/// Does a face that looks another way lie nearer than `depth`? Behind it the shapes may be nearer to one another.
bool has_rival(const Polytope& p, const Face& nearest, double depth) {
  for (int i = 0; i < p.num_faces; ++i) {
    const Face& f = p.face[i];
    if (!f.sliver && f.d < depth && dot3(f.n, nearest.n) < same_side) return true;
  }
  return false;
}

/// The simplex of a face: its vertices with the weights of the point nearest to the origin.
void take_face(const Polytope& p, const Face& f, Simplex& s) {
  // The corners, seen from the origin's projection on the face.
  const double projection[3] = {f.d * f.n[0], f.d * f.n[1], f.d * f.n[2]};
  double x[3][3];
  for (int k = 0; k < 3; ++k)
    sub3(p.vertex[f.v[k]].w, projection, x[k]);

  // Barycentric weights are areas.
  double weight[3];
  double sum = 0;
  for (int k = 0; k < 3; ++k) {
    double m[3];
    cross3(x[(k + 1) % 3], x[(k + 2) % 3], m);
    weight[k] = std::max(0.0, dot3(m, f.n));
    sum += weight[k];
  }

  s.count = 3;
  for (int c = 0; c < 3; ++c)
    s.closest[c] = projection[c];
  for (int k = 0; k < 3; ++k) {
    s.v[k] = p.vertex[f.v[k]];
    s.weight[k] = sum > 0 ? weight[k] / sum : 1.0 / 3;
  }
}

/// For polytopes that rounding spoilt (coincident, aligned shapes): an axis of either shape may do better than the face
/// found.
double try_axes(const Shape& a, const Shape& b, int hints[2], double depth, Simplex& s, double normal[3]) {
  for (int k = 0; k < 12; ++k) {
    const Shape& shape = k < 6 ? a : b;
    const double sign = k & 1 ? -1.0 : 1.0;
    const int axis = k % 6 / 2;
    const double d[3] = {sign * shape.rotation[axis], sign * shape.rotation[3 + axis], sign * shape.rotation[6 + axis]};

    MinkowskiVertex v;
    minkowski_support(a, b, d, hints, v);
    const double value = dot3(d, v.w);
    if (!(value < depth)) continue;

    depth = value;
    s.count = 1;
    s.v[0] = v;
    s.weight[0] = 1;
    for (int i = 0; i < 3; ++i) {
      normal[i] = -d[i];
      s.closest[i] = value * d[i];
    }
  }
  return depth;
}

}  // namespace

double epa(const Shape& a, const Shape& b, double tolerance, int hints[2], Simplex& simplex, double normal[3],
           bool& solid) {
  // A tetrahedron to start from.
  const double scale = bounding_radius(a) + bounding_radius(b);
  drop_degenerate(simplex, scale);
  solid = complete_tetrahedron(a, b, hints, simplex, scale, normal);
  if (!solid) return 0;

  Polytope p;
  p.num_vertices = 4;
  p.num_faces = 0;
  p.thin = 1e-9 * scale;
  for (int i = 0; i < 4; ++i)
    p.vertex[i] = simplex.v[i];

  // Its faces look outwards.
  double e[3];
  double f[3];
  double g[3];
  double n[3];
  sub3(p.vertex[1].w, p.vertex[0].w, e);
  sub3(p.vertex[2].w, p.vertex[0].w, f);
  sub3(p.vertex[3].w, p.vertex[0].w, g);
  cross3(e, f, n);
  if (dot3(n, g) > 0) {
    std::swap(p.vertex[1], p.vertex[2]);
  }
  add_face(p, 0, 1, 2);
  add_face(p, 0, 3, 1);
  add_face(p, 0, 2, 3);
  add_face(p, 1, 3, 2);

  // The nearest face, moved out to its support point until that adds nothing. Within the tolerance it may still not be the nearest one: it
  // is as soon as no face of another side lies below its support point.
  const double slack = 1e-13 * scale;
  Face nearest = p.face[0];
  Face accepted;
  bool within = false;
  bool degenerate = false;
  for (;;) {
    int best = -1;
    for (int i = 0; i < p.num_faces; ++i)
      if (!p.face[i].sliver && (best < 0 || p.face[i].d < p.face[best].d)) {
        best = i;
      }
    degenerate |= best < 0;
    if (best < 0) break;
    nearest = p.face[best];
    MinkowskiVertex next;
    minkowski_support(a, b, nearest.n, hints, next);

    const double left = dot3(nearest.n, next.w) - nearest.d;
    if (left <= std::max(finer * tolerance, slack)) break;
    if (left <= tolerance) {
      if (!has_rival(p, nearest, nearest.d + left)) break;
      accepted = nearest;
      within = true;
    }

    // A vertex (nearly) met before cannot add to the polytope: of this face, it is on the surface; of another
    // one, rounding has folded the face, which is not.
    bool mine = false;
    bool met = false;
    for (int i = 0; i < p.num_vertices; ++i)
      met |= same_point(p.vertex[i], next, p.thin);
    for (const int v : nearest.v)
      mine |= same_point(p.vertex[v], next, p.thin);
    if (mine) break;
    if (met) {
      p.face[best].sliver = degenerate = true;
    } else if (!expand(p, next, slack)) {
      degenerate = true;
      break;
    }
  }

  // Where there was no room for more, what was within the tolerance is taken.
  if (degenerate && within) {
    nearest = accepted;
    degenerate = false;
  }

  // The face's plane is the separating one ...
  take_face(p, nearest, simplex);
  for (int i = 0; i < 3; ++i)
    normal[i] = -nearest.n[i];
  double depth = nearest.d;

  // ... if rounding has not spoilt it: then what the direction found is worth, not what the face says.
  if (degenerate) {
    MinkowskiVertex v;
    minkowski_support(a, b, nearest.n, hints, v);
    depth = try_axes(a, b, hints, dot3(nearest.n, v.w) - slack, simplex, normal);
  }
  return std::max(0.0, depth);
}

}  // namespace coulomb
