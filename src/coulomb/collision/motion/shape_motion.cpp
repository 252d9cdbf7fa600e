// Changes of shape as motions of a surface. Sizes: the derivative of the support point at fixed direction. Vertices:
// what carries the contact is found again from the geometry (a vertex, an edge, a face, one side of a face) and moves
// with its vertices.
#include "coulomb/collision/motion/shape_motion.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/motion/surface_motion.hpp"
#include "coulomb/collision/narrow_phase/clip_parts.hpp"

namespace coulomb {
namespace {

/// Of the size: the witness lies on that side, rim or vertex.
constexpr double on_surface = 1e-6;

/// A geometry at a pose, as a shape.
Shape posed(const Model& model, int geometry, const double* position, const double* rotation) {
  Shape s;
  set_shape(model, geometry, s);
  copy3(position, s.position);
  for (int i = 0; i < 9; ++i)
    s.rotation[i] = rotation[i];
  return s;
}

/// The geometry gave the contact one of its contact points: those do not change with its shape.
bool made_by_own_point(const Contact& contact, bool of_a) {
  return contact.contact_point >= 0 && contact.point_on_a == of_a;
}

/// u and turn are the motion of one surface, in the geometry's frame: the contact follows (G12).
void move_contact_with_surface(const Contact& contact, bool of_a, const double* rotation, const double* u,
                               const double* turn, ShapeMotion& out) {
  SurfaceMotion m;
  PointMotion moved;
  rotate(rotation, u, of_a ? m.u_a : m.u_b);
  rotate(rotation, turn, of_a ? m.a : m.b);
  out.frozen = !move_contact(contact, m, moved);
  copy3(moved.dn, out.dnormal);
  copy3(moved.dp, out.dpoint);
  out.ddistance = moved.dphi;
}

/// d(support point)/d(size k) at fixed outward direction w, at the surface point x; geometry's frame. A point held
/// fixed on a box or cylinder moves with the sides on which it lies. What it says along a flat direction does not
/// matter.
void size_velocity(const Shape& s, int k, const double* x, const double* w, double* u) {
  const double* size = s.size;

  // On that side, that rim or that end.
  const auto reaches = [](double value, double limit) { return std::abs(value) >= (1 - on_surface) * limit; };
  u[0] = u[1] = u[2] = 0;
  switch (s.type) {
    case ShapeType::sphere: copy3(w, u); return;
    case ShapeType::capsule: {
      const double core = x[2] - size[0] * w[2];
      if (k == 0)
        copy3(w, u);
      else if (reaches(core, size[1]))
        u[2] = core > 0 ? 1 : -1;
      return;
    }
    case ShapeType::cylinder: {
      const double radius = std::hypot(x[0], x[1]);
      if (k == 0 && reaches(radius, size[0])) {
        u[0] = x[0] / radius;
        u[1] = x[1] / radius;
      }
      if (k == 1 && reaches(x[2], size[1])) {
        u[2] = x[2] > 0 ? 1 : -1;
      }
      return;
    }
    case ShapeType::box:
      if (reaches(x[k], size[k])) {
        u[k] = x[k] > 0 ? 1 : -1;
      }
      return;
    case ShapeType::ellipsoid: {
      // p = Q w / h, h^2 = w . Q w, Q = diag(a^2)
      double h2 = 0;
      for (int i = 0; i < 3; ++i)
        h2 += size[i] * size[i] * w[i] * w[i];

      const double h = std::sqrt(h2);
      const double along = size[k] * w[k] * w[k] / h2;
      for (int i = 0; i < 3; ++i)
        u[i] = -along * size[i] * size[i] * w[i] / h;
      u[k] += 2 * size[k] * w[k] / h;
      return;
    }
    default: return;
  }
}

// What of a mesh carries a contact.

/// Corners and faces by number.
const double* corner(const ConvexMesh& mesh, int v) { return mesh.vertices.data() + 3 * v; }
int face_length(const ConvexMesh& mesh, int face) { return mesh.face_start[face + 1] - mesh.face_start[face]; }
int face_corner(const ConvexMesh& mesh, int face, int k) { return mesh.face_vertices[mesh.face_start[face] + k]; }

/// The carrier is the edge, by the witness' place on it.
void take_edge(MeshCarrier& c, int first, int second) {
  double d[3];
  double r[3];
  sub3(corner(*c.mesh, second), corner(*c.mesh, first), d);
  sub3(c.at, corner(*c.mesh, first), r);
  const double t = dot3(r, d) / dot3(d, d);

  c.num = 2;
  c.list[0] = first;
  c.list[1] = second;
  c.weight[0] = 1 - t;
  c.weight[1] = t;
}

/// How far the point is from the edge, and how far the direction (unit) turned from it, both over the mesh's size.
double edge_error(const MeshCarrier& c, const double* direction, int first, int second, double size) {
  double d[3];
  double r[3];
  double across[3];
  double off[3];
  sub3(corner(*c.mesh, second), corner(*c.mesh, first), d);
  sub3(c.at, corner(*c.mesh, first), r);

  const double length = norm3(d);
  for (double& x : d)
    x /= length;
  cross3(d, direction, across);
  cross3(d, r, off);
  const double along = dot3(r, d);
  const double beyond = std::max(0.0, std::max(-along, along - length));
  return norm3(across) + (norm3(off) + beyond) / size;
}

/// Edge along `direction` through the witness: of the face towards `out` (as it was clipped), else of the vertex
/// towards it, else any.
bool find_edge(const Shape& s, MeshCarrier& c, const double* world_out, const double* direction, double size) {
  const ConvexMesh& mesh = *c.mesh;

  // The best so far.
  double best = on_surface;
  bool found = false;
  const auto offer = [&](int first, int second) {
    const double error = edge_error(c, direction, first, second, size);
    if (error < best) {
      best = error;
      found = true;
      take_edge(c, first, second);
    }
  };

  // The outline of the face, as it was clipped.
  double cosine;
  double point[3];
  const int face = best_face(s, world_out, cosine);
  const int n = face_length(mesh, face);
  const int stride = (n + max_polygon - 1) / max_polygon;
  for (int k = 0; k < n; k += stride)
    offer(face_corner(mesh, face, k), face_corner(mesh, face, k + stride < n ? k + stride : 0));
  if (found) return true;

  // Edges of the support vertex.
  int hint = -1;
  const int top = core_support(s, world_out, point, hint);
  for (int k = mesh.neighbour_start[top]; k < mesh.neighbour_start[top + 1]; ++k)
    offer(top, mesh.neighbours[k]);

  // Any edge.
  for (int u = 0; u < mesh.num_vertices() && !found; ++u)
    for (int k = mesh.neighbour_start[u]; k < mesh.neighbour_start[u + 1]; ++k)
      if (u < mesh.neighbours[k]) {
        offer(u, mesh.neighbours[k]);
      }
  return found;
}

/// A point held fixed inside the face towards `out`: its place in a triangle of it.
void find_in_face(const Shape& s, MeshCarrier& c, const double* world_out) {
  // The face, and the triangle of its fan that holds the point best.
  const ConvexMesh& mesh = *c.mesh;
  double cosine;
  double best = -1e300;
  const int face = best_face(s, world_out, cosine);

  const double* n = mesh.face_normals.data() + 3 * face;
  for (int k = 1; k + 1 < face_length(mesh, face); ++k) {
    const int v[3] = {face_corner(mesh, face, 0), face_corner(mesh, face, k), face_corner(mesh, face, k + 1)};

    // Barycentric weights are areas.
    double weight[3];
    double total = 0;
    for (int i = 0; i < 3; ++i) {
      double p[3];
      double q[3];
      double area[3];
      sub3(corner(mesh, v[(i + 1) % 3]), c.at, p);
      sub3(corner(mesh, v[(i + 2) % 3]), c.at, q);
      cross3(p, q, area);
      total += weight[i] = dot3(n, area);
    }

    const double least = std::min(weight[0], std::min(weight[1], weight[2])) / total;
    if (!(least > best)) continue;
    best = least;
    c.num = 3;
    for (int i = 0; i < 3; ++i) {
      c.list[i] = v[i];
      c.weight[i] = weight[i] / total;
    }
  }
}

/// From a vertex to the witness.
double distance_to(const MeshCarrier& c, int v) {
  double d[3];
  sub3(corner(*c.mesh, v), c.at, d);
  return norm3(d);
}

/// The carrier is one vertex: the support vertex, the contact's own one or any at the witness, else a place inside
/// the face.
void find_point(const Shape& s, const Contact& contact, MeshCarrier& c, const double* world_out, double size) {
  // The support vertex, or the one that the contact is named after if that is nearer.
  int hint = -1;
  double point[3];
  int best = core_support(s, world_out, point, hint);
  if (contact.feature >= 0 && contact.feature < c.mesh->num_vertices() &&
      distance_to(c, contact.feature) < distance_to(c, best))
    best = contact.feature;

  // Any vertex at the witness.
  if (distance_to(c, best) > on_surface * size)
    for (int v = 0; v < c.mesh->num_vertices(); ++v)
      if (distance_to(c, v) < distance_to(c, best)) {
        best = v;
      }

  c.num = 1;
  c.list[0] = best;
  c.weight[0] = 1;

  if (distance_to(c, best) > on_surface * size) {
    find_in_face(s, c, world_out);
  }
}

/// The carrier is a face; its normal is the sum of v_i x v_(i+1) over twice the area.
void take_face(const Shape& s, MeshCarrier& c, MeshCarrier::Role role, const double* world_normal) {
  double cosine;
  double sum[3] = {0, 0, 0};
  const ConvexMesh& mesh = *c.mesh;

  c.role = role;
  c.face = best_face(s, world_normal, cosine);
  const int n = face_length(mesh, c.face);
  for (int k = 0; k < n; ++k)
    add_cross3(corner(mesh, face_corner(mesh, c.face, k)), corner(mesh, face_corner(mesh, c.face, (k + 1) % n)), sum);
  c.area2 = dot3(sum, mesh.face_normals.data() + 3 * c.face);
}

/// The corner of the face at the witness.
void take_corner(MeshCarrier& c) {
  c.num = 1;
  c.list[0] = face_corner(*c.mesh, c.face, 0);
  for (int k = 1; k < face_length(*c.mesh, c.face); ++k) {
    const int v = face_corner(*c.mesh, c.face, k);
    if (distance_to(c, v) < distance_to(c, c.list[0])) {
      c.list[0] = v;
    }
  }
}

/// The side of the face whose plane, as it was clipped, has the normal c.side and goes through the witness.
void take_side(MeshCarrier& c, double size) {
  const ConvexMesh& mesh = *c.mesh;
  const int n = face_length(mesh, c.face);
  const int stride = (n + max_polygon - 1) / max_polygon;
  double best = 1e300;
  for (int k = 0; k < n; k += stride) {
    const int first = face_corner(mesh, c.face, k);
    const int second = face_corner(mesh, c.face, k + stride < n ? k + stride : 0);

    // Its plane: across the face, through the side.
    double d[3];
    double r[3];
    sub3(corner(mesh, second), corner(mesh, first), d);
    sub3(c.at, corner(mesh, first), r);
    double m[3];
    cross3(d, mesh.face_normals.data() + 3 * c.face, m);
    const double error = 1 - dot3(m, c.side) / norm3(m) + std::abs(dot3(r, c.side)) / size;

    if (error < best) {
      best = error;
      c.num = 2;
      c.list[0] = first;
      c.list[1] = second;
    }
  }
}

// How it moves with a vertex.

/// The plane of the carrier's face: change of its outward normal and speed along that normal at `at`. Normal: sum of
/// v_i x v_(i+1).
void plane_motion(const MeshCarrier& c, int vertex, int axis, double* dn, double& speed) {
  const ConvexMesh& mesh = *c.mesh;
  const double* n = mesh.face_normals.data() + 3 * c.face;
  const int count = face_length(mesh, c.face);

  dn[0] = dn[1] = dn[2] = speed = 0;
  for (int k = 0; k < count; ++k) {
    if (face_corner(mesh, c.face, k) != vertex) continue;

    // The normal turns with the vertex against the chord of its neighbours.
    double delta[3] = {0, 0, 0};
    double chord[3];
    double arm[3];
    delta[axis] = 1;
    sub3(corner(mesh, face_corner(mesh, c.face, (k + 1) % count)),
         corner(mesh, face_corner(mesh, c.face, (k + count - 1) % count)), chord);
    cross3(delta, chord, dn);
    axpy3(-dot3(n, dn), n, dn);
    for (int i = 0; i < 3; ++i)
      dn[i] /= c.area2;

    // The plane moves by the vertex itself and by that turn.
    sub3(c.at, corner(mesh, face_corner(mesh, c.face, 0)), arm);
    speed = (k == 0 ? n[axis] : 0.0) - dot3(dn, arm);
    return;
  }
}

/// Speed of the side plane (through first and second, along the face's normal) along its normal at the incident point.
double side_speed(const MeshCarrier& c, int vertex, int axis, const double* dn) {
  const ConvexMesh& mesh = *c.mesh;

  // How the side and the face's normal move.
  double e[3];
  double de[3] = {0, 0, 0};
  double turned[3] = {0, 0, 0};
  double arm[3];
  sub3(corner(mesh, c.list[1]), corner(mesh, c.list[0]), e);
  if (vertex == c.list[1]) {
    de[axis] = 1;
  }
  if (vertex == c.list[0]) {
    de[axis] = -1;
  }
  add_cross3(de, mesh.face_normals.data() + 3 * c.face, turned);
  add_cross3(e, dn, turned);

  // The plane at the incident point.
  sub3(c.across, corner(mesh, c.list[0]), arm);
  return (vertex == c.list[0] ? c.side[axis] : 0.0) - dot3(arm, turned) / norm3(e);
}

/// u and turn of the rules (surface_motion.hpp), geometry's frame.
void vertex_velocity(const Contact& contact, const MeshCarrier& c, int vertex, int axis, double* u, double* turn) {
  u[0] = u[1] = u[2] = turn[0] = turn[1] = turn[2] = 0;

  // A vertex or a place between vertices; an edge turns n as well.
  if (c.role == MeshCarrier::Role::point || c.role == MeshCarrier::Role::edge) {
    for (int i = 0; i < c.num; ++i)
      if (c.list[i] == vertex) {
        u[axis] += c.weight[i];
      }
    if (c.role == MeshCarrier::Role::point || (vertex != c.list[0] && vertex != c.list[1])) return;
    double e[3];
    sub3(corner(*c.mesh, c.list[1]), corner(*c.mesh, c.list[0]), e);
    axpy3((vertex == c.list[1] ? -1 : 1) * c.normal[axis] / dot3(e, e), e, turn);
    return;
  }

  // A face moves along its normal and turns n if it carries it.
  const double* n = c.mesh->face_normals.data() + 3 * c.face;
  const double sign = c.of_a ? -1 : 1;
  double dn[3];
  double speed;
  plane_motion(c, vertex, axis, dn, speed);
  axpy3(speed, n, u);

  if (c.role == MeshCarrier::Role::incident_face) return;
  for (int i = 0; i < 3; ++i)
    turn[i] = sign * dn[i];

  // A corner stays on its vertices across the normal.
  if (c.role == MeshCarrier::Role::corner && vertex == c.list[0]) {
    u[axis] += 1;
    axpy3(-n[axis], n, u);
  }

  // The rule takes the side for rigid with the face: u + (incident point - own) x turning.
  if (c.role == MeshCarrier::Role::side)
    axpy3(side_speed(c, vertex, axis, dn) - sign * contact.distance * dot3(c.side, turn), c.side, u);
}

}  // namespace

int num_sizes(ShapeType type) {
  switch (type) {
    case ShapeType::sphere: return 1;
    case ShapeType::capsule:
    case ShapeType::cylinder: return 2;
    case ShapeType::box:
    case ShapeType::ellipsoid: return 3;
    default: return 0;
  }
}

void size_motion(const Model& model, const Contact& contact, bool of_a, int k, const double* geometry_position,
                 const double* geometry_rotation, ShapeMotion& out) {
  // Its own points do not move with its shape.
  if (made_by_own_point(contact, of_a)) {
    out = ShapeMotion{};
    return;
  }

  // Witness and outward normal in the geometry's frame.
  const Shape s = posed(model, of_a ? contact.geometry_a : contact.geometry_b, geometry_position, geometry_rotation);
  const double none[3] = {0, 0, 0};
  double x[3];
  double w[3];
  double u[3];
  sub3(of_a ? contact.point_a : contact.point_b, s.position, x);
  rotate_transposed(s.rotation, x, x);
  rotate_transposed(s.rotation, contact.normal, w);
  if (of_a)
    for (double& value : w)
      value = -value;

  size_velocity(s, k, x, w, u);
  move_contact_with_surface(contact, of_a, s.rotation, u, none, out);
}

void contact_point_motion(const Contact& contact, const double* u, ShapeMotion& out) {
  SurfaceMotion m;
  PointMotion moved;
  copy3(u, contact.point_on_a ? m.u_a : m.u_b);
  out.frozen = !move_contact(contact, m, moved);
  copy3(moved.dn, out.dnormal);
  copy3(moved.dp, out.dpoint);
  out.ddistance = moved.dphi;
}

int MeshCarrier::count() const { return face >= 0 ? face_length(*mesh, face) : num; }
int MeshCarrier::vertex(int k) const { return face >= 0 ? face_corner(*mesh, face, k) : list[k]; }

void find_carrier(const Model& model, const Contact& contact, bool of_a, const double* geometry_position,
                  const double* geometry_rotation, MeshCarrier& out) {
  const Shape s = posed(model, of_a ? contact.geometry_a : contact.geometry_b, geometry_position, geometry_rotation);
  MeshCarrier& c = out;
  c = MeshCarrier{};
  c.mesh = s.mesh;
  c.of_a = of_a;
  if (s.mesh == nullptr || made_by_own_point(contact, of_a)) return;

  // Witness, normal and side in the geometry's frame.
  for (int i = 0; i < 9; ++i)
    c.rotation[i] = s.rotation[i];
  sub3(of_a ? contact.point_a : contact.point_b, s.position, c.at);
  sub3(of_a ? contact.point_b : contact.point_a, s.position, c.across);
  rotate_transposed(s.rotation, c.at, c.at);
  rotate_transposed(s.rotation, c.across, c.across);
  rotate_transposed(s.rotation, contact.normal, c.normal);
  rotate_transposed(s.rotation, contact.side, c.side);

  const double sign = of_a ? -1 : 1;
  const double size = norm3(s.mesh->aabb_half.data());
  const double world_out[3] = {sign * contact.normal[0], sign * contact.normal[1], sign * contact.normal[2]};
  const SurfacePatch& patch = of_a ? contact.a : contact.b;
  const bool reference = contact.reference_on_a == of_a;
  double direction[3];

  // By the rule of the contact: a corner or the face below it, a side or an edge across it, an edge, a face, or a
  // point.
  if (contact.rule == MotionRule::reference_vertex) {
    if (reference) {
      take_face(s, c, MeshCarrier::Role::corner, world_out);
      take_corner(c);
    } else
      take_face(s, c, MeshCarrier::Role::incident_face, contact.incident_normal);
  } else if (contact.rule == MotionRule::edge_crossing && reference) {
    take_face(s, c, MeshCarrier::Role::side, world_out);
    take_side(c, size);
  } else if (contact.rule == MotionRule::edge_crossing || patch.num_flat == 1) {
    c.role = MeshCarrier::Role::edge;
    rotate_transposed(s.rotation, contact.rule == MotionRule::edge_crossing ? contact.edge : patch.E[0], direction);
    if (!find_edge(s, c, world_out, direction, size)) {
      c.role = MeshCarrier::Role::point;
      find_point(s, contact, c, world_out, size);
    }
  } else if (patch.num_flat == 2) {
    take_face(s, c, MeshCarrier::Role::face, world_out);
  } else {
    find_point(s, contact, c, world_out, size);
  }
}

void vertex_motion(const Contact& contact, const MeshCarrier& carrier, int vertex, int axis, ShapeMotion& out) {
  double u[3];
  double turn[3];
  out = ShapeMotion{};
  if (carrier.mesh == nullptr) return;
  vertex_velocity(contact, carrier, vertex, axis, u, turn);
  move_contact_with_surface(contact, carrier.of_a, carrier.rotation, u, turn, out);
}

}  // namespace coulomb
