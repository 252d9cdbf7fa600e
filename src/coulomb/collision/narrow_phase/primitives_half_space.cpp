// A half-space carries the normal by itself (two flat directions), so each point of the other shape moves alone.
#include "coulomb/collision/narrow_phase/primitives_half_space.hpp"

#include <algorithm>
#include <cmath>

namespace coulomb {
namespace {

constexpr double upright_sine = 0.02;  // below it a cylinder stands on four points of its cap

/// Plane of a half-space: outward normal and offset.
struct Plane {
  const Shape& shape;
  double up[3];
  double offset;
  explicit Plane(const Shape& of) : shape(of) {
    shape_axis(shape, 2, up);
    offset = dot3(up, shape.position);
  }
  double height(const double* p) const { return dot3(up, p) - offset; }
};

/// Adds the point `p` of b's surface; the normal, from b to the half-space, points into the plane.
int add_point(const Plane& plane, const Shape& b, Feature feature_b, const double* p, int feature, double margin,
              Contact& out) {
  const double distance = plane.height(p);
  if (!(distance <= margin)) return 0;
  const double n[3] = {-plane.up[0], -plane.up[1], -plane.up[2]};
  set_contact_from_b(n, p, distance, feature, out);
  set_patches(plane.shape, Feature::face, b, feature_b, out);
  return 1;
}

/// A point of b in the world.
void place(const Shape& b, const double* local, double* world) {
  rotate(b.rotation, local, world);
  add3(world, b.position, world);
}

}  // namespace

int collide_half_space_sphere(const Shape& a, const Shape& b, double margin, const CollisionOptions&,
                              CollisionCache::Pair&, Contact* out) {
  const Plane plane(a);

  // The lowest point of the ball.
  double p[3] = {b.position[0], b.position[1], b.position[2]};
  axpy3(-b.size[0], plane.up, p);
  return add_point(plane, b, Feature::round, p, 0, margin, out[0]);
}

int collide_half_space_capsule(const Shape& a, const Shape& b, double margin, const CollisionOptions&,
                               CollisionCache::Pair&, Contact* out) {
  const Plane plane(a);
  double axis[3];
  shape_axis(b, 2, axis);

  // The lowest points of both ends.
  int count = 0;
  for (int end = 0; end < 2; ++end) {
    double p[3] = {b.position[0], b.position[1], b.position[2]};
    axpy3(end == 0 ? b.size[1] : -b.size[1], axis, p);
    axpy3(-b.size[0], plane.up, p);
    count += add_point(plane, b, Feature::round, p, end, margin, out[count]);
  }
  return count;
}

int collide_half_space_cylinder(const Shape& a, const Shape& b, double margin, const CollisionOptions&,
                                CollisionCache::Pair&, Contact* out) {
  const Plane plane(a);
  double down[3];

  // Down in the cylinder's frame.
  rotate_transposed(b.rotation, plane.up, down);
  for (double& x : down)
    x = -x;
  const double sine = std::hypot(down[0], down[1]);
  const double R = b.size[0];
  const double h = b.size[1];

  // Leaning: the lowest point of either rim.
  int count = 0;
  if (sine >= upright_sine) {
    for (int end = 0; end < 2; ++end) {
      const double local[3] = {R * down[0] / sine, R * down[1] / sine, end == 0 ? h : -h};
      double p[3];
      place(b, local, p);
      count += add_point(plane, b, Feature::rim, p, end, margin, out[count]);
    }
    return count;
  }

  // Standing: four points of the rim below.
  const int cap = down[2] > 0 ? 0 : 1;
  for (int k = 0; k < 4; ++k) {
    const double side = k % 2 == 0 ? R : -R;
    const double local[3] = {k < 2 ? side : 0, k < 2 ? 0 : side, cap == 0 ? h : -h};
    double p[3];
    place(b, local, p);
    count += add_point(plane, b, Feature::vertex, p, 2 + 4 * cap + k, margin, out[count]);
  }
  return count;
}

int collide_half_space_ellipsoid(const Shape& a, const Shape& b, double margin, const CollisionOptions&,
                                 CollisionCache::Pair&, Contact* out) {
  const Plane plane(a);
  double w[3];
  double p[3];
  rotate_transposed(b.rotation, plane.up, w);

  // The support point: p = Q w / h, h^2 = w . Q w.
  double h2 = 0;
  for (int i = 0; i < 3; ++i)
    h2 += b.size[i] * b.size[i] * w[i] * w[i];
  const double h = std::sqrt(h2);
  for (int i = 0; i < 3; ++i)
    w[i] *= -b.size[i] * b.size[i] / h;

  place(b, w, p);
  return add_point(plane, b, Feature::round, p, 0, margin, out[0]);
}

/// At most four corners lie below the plane unless the box is deep; then the corners of its lowest face that are below
/// stay.
int collide_half_space_box(const Shape& a, const Shape& b, double margin, const CollisionOptions&,
                           CollisionCache::Pair&, Contact* out) {
  const Plane plane(a);

  // Up in the box's frame.
  double up[3];
  double heights[8];
  rotate_transposed(b.rotation, plane.up, up);
  const double centre = plane.height(b.position);

  // The axis most along it, and how many corners are below the margin.
  int lowest = 0;
  int below = 0;
  for (int i = 1; i < 3; ++i)
    if (std::abs(up[i]) > std::abs(up[lowest])) {
      lowest = i;
    }
  for (int v = 0; v < 8; ++v) {
    heights[v] = centre;
    for (int i = 0; i < 3; ++i)
      heights[v] += (v >> i & 1 ? b.size[i] : -b.size[i]) * up[i];
    below += heights[v] <= margin;
  }

  // Of more than four, those of the lowest face.
  const int face_bit = up[lowest] > 0 ? 0 : 1;
  int count = 0;
  for (int v = 0; v < 8 && below > 0; ++v) {
    if (!(heights[v] <= margin) || (below > 4 && (v >> lowest & 1) != face_bit)) continue;
    double local[3];
    double p[3];
    for (int i = 0; i < 3; ++i)
      local[i] = v >> i & 1 ? b.size[i] : -b.size[i];
    place(b, local, p);
    count += add_point(plane, b, Feature::vertex, p, v, margin, out[count]);
  }
  return count;
}

}  // namespace coulomb
