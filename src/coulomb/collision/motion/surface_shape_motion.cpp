// Vertices of a surface as motions of the contacts on it. A face turns with its three vertices, an edge with its two ends; a corner moves.
#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/contact.hpp"
#include "coulomb/collision/motion/shape_motion.hpp"
#include "coulomb/collision/motion/surface_motion.hpp"
#include "coulomb/collision/narrow_phase/surface_queries.hpp"
#include "coulomb/collision/shape.hpp"

namespace coulomb {
namespace {

constexpr double on_feature = 1e-7;  // of the feature's size: the witness lies on it
constexpr double same_normal = 1e-9;

const double* vertex(const TriangleSurface& s, int v) { return &s.vertices[3 * v]; }

/// Barycentric coordinates of a point of the triangle's plane.
void set_weights(const TriangleSurface& s, int t, const double* x, double* weight) {
  double area = 0;
  for (int k = 0; k < 3; ++k) {
    double side[3];
    double arm[3];
    double across[3];
    const double* from = vertex(s, s.triangles[3 * t + (k + 1) % 3]);
    sub3(vertex(s, s.triangles[3 * t + (k + 2) % 3]), from, side);
    sub3(x, from, arm);
    cross3(side, arm, across);
    weight[k] = dot3(across, &s.normals[3 * t]);
    area += weight[k];
  }
  for (int k = 0; k < 3; ++k)
    weight[k] /= area;
}

}  // namespace

void find_carrier(const Model& model, const Contact& contact, bool of_a, const double* geometry_position,
                  const double* geometry_rotation, SurfaceCarrier& out) {
  SurfaceCarrier& c = out;
  c = SurfaceCarrier{};
  c.of_a = of_a;
  Shape shape;
  set_shape(model, of_a ? contact.geometry_a : contact.geometry_b, shape);
  if (shape.surface == nullptr) return;
  const TriangleSurface& s = *shape.surface;
  std::copy(geometry_rotation, geometry_rotation + 9, c.rotation);

  // The witness and the outward normal in the geometry's frame.
  double x[3];
  double out_normal[3];
  sub3(of_a ? contact.point_a : contact.point_b, geometry_position, x);
  rotate_transposed(geometry_rotation, x, x);
  rotate_transposed(geometry_rotation, contact.normal, c.normal);
  for (int i = 0; i < 3; ++i)
    out_normal[i] = of_a ? -c.normal[i] : c.normal[i];

  SurfaceFeature feature;
  if (!feature_at(s, x, out_normal, on_feature, same_normal, feature)) return;
  c.surface = &s;
  c.num = feature.num;
  c.face = feature.num == 3 ? feature.triangle : -1;
  for (int k = 0; k < feature.num; ++k)
    c.list[k] = feature.vertices[k];
  c.weight[0] = 1;
  if (c.num == 3) set_weights(s, c.face, x, c.weight);
  if (c.num == 2) {
    double along[3];
    double arm[3];
    sub3(vertex(s, c.list[1]), vertex(s, c.list[0]), along);
    sub3(x, vertex(s, c.list[0]), arm);
    c.weight[1] = dot3(arm, along) / dot3(along, along);
    c.weight[0] = 1 - c.weight[1];
  }
}

void vertex_motion(const Contact& contact, const SurfaceCarrier& c, int k, int axis, ShapeMotion& out) {
  out = ShapeMotion{};
  if (c.surface == nullptr) return;
  const TriangleSurface& s = *c.surface;
  double u[3] = {0, 0, 0};
  double turn[3] = {0, 0, 0};
  double delta[3] = {0, 0, 0};
  delta[axis] = 1;

  if (c.num == 3) {
    // The plane's normal turns against the chord of the other two; the plane moves along its normal.
    const double* n = &s.normals[3 * c.face];
    double side[3];
    double chord[3];
    double area[3];
    double dn[3];
    sub3(vertex(s, c.list[(k + 1) % 3]), vertex(s, c.list[(k + 2) % 3]), chord);
    sub3(vertex(s, c.list[k]), vertex(s, c.list[(k + 2) % 3]), side);
    cross3(chord, side, area);
    cross3(delta, chord, dn);
    axpy3(-dot3(n, dn), n, dn);
    for (int i = 0; i < 3; ++i)
      turn[i] = (c.of_a ? -1 : 1) * dn[i] / norm3(area);
    axpy3(c.weight[k] * n[axis], n, u);
  } else {
    u[axis] = c.weight[k];
    if (c.num == 2) {
      double along[3];
      sub3(vertex(s, c.list[1]), vertex(s, c.list[0]), along);
      axpy3((k == 1 ? -1 : 1) * c.normal[axis] / dot3(along, along), along, turn);
    }
  }

  // The contact follows (G12).
  SurfaceMotion m;
  PointMotion moved;
  rotate(c.rotation, u, c.of_a ? m.u_a : m.u_b);
  rotate(c.rotation, turn, c.of_a ? m.a : m.b);
  out.frozen = !move_contact(contact, m, moved);
  copy3(moved.dn, out.dnormal);
  copy3(moved.dp, out.dpoint);
  out.ddistance = moved.dphi;
}

}  // namespace coulomb
