// What the tests of all shape pairs share: random shapes of every type, poses from apart to deep with aligned and
// tilted features, and references that know the shapes by their definition only: how far a point sticks out, and the
// support gap of a direction.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "collision/scene.hpp"

namespace coulomb::test {

struct Geometry {
  ShapeType type;
  double size[3];
  std::shared_ptr<const ConvexMesh> mesh;
};

inline std::shared_ptr<const ConvexMesh> prism_mesh(int n, double r, double h) {
  std::vector<double> v;
  std::vector<int> t;
  for (const double z : {-h, h})
    for (int i = 0; i < n; ++i) v.insert(v.end(), {r * std::cos(2 * M_PI * i / n), r * std::sin(2 * M_PI * i / n), z});
  for (int i = 1; i + 1 < n; ++i) t.insert(t.end(), {0, i + 1, i, n, n + i, n + i + 1});
  for (int i = 0; i < n; ++i) {
    const int j = (i + 1) % n;
    t.insert(t.end(), {i, j, n + j, i, n + j, n + i});
  }
  return make_convex_mesh(v, t, "prism");
}

inline Geometry random_geometry(ShapeType type, double scale, double aspect, Random& random) {
  Geometry g{type, {0, 0, 0}, nullptr};
  if (type == ShapeType::half_space) return g;
  for (double& x : g.size) x = scale * std::pow(aspect, -random.uniform(0, 1)) * random.uniform(0.5, 1);
  if (type != ShapeType::mesh) return g;
  const int kind = static_cast<int>(random.uniform(0, 4));
  if (kind == 0) g.mesh = box_mesh(g.size[0], g.size[1], g.size[2]);
  else if (kind == 1) g.mesh = prism_mesh(static_cast<int>(random.uniform(3, 9)), g.size[0], g.size[1]);
  else
    g.mesh = kind == 2 ? faceted_ellipsoid(g.size[0], g.size[1], g.size[2], 3, 7)
                       : faceted_ellipsoid(g.size[0], g.size[1], g.size[2], 9, 12);
  return g;
}

inline double extent(const Geometry& g) {
  if (g.mesh) return norm3(g.mesh->aabb_half.data());
  return g.type == ShapeType::sphere ? g.size[0] : g.type == ShapeType::capsule ? g.size[0] + g.size[1] : norm3(g.size);
}

inline double thinnest(const Geometry& g) {
  if (g.mesh) return *std::min_element(g.mesh->aabb_half.begin(), g.mesh->aabb_half.end());
  switch (g.type) {
    case ShapeType::half_space: return 1e300;
    case ShapeType::sphere:
    case ShapeType::capsule: return g.size[0];
    case ShapeType::cylinder: return std::min(g.size[0], g.size[1]);
    default: return *std::min_element(g.size, g.size + 3);
  }
}

inline Shape view(const Scene& scene, int body, const Geometry& g) {
  Shape s;
  s.type = g.type, s.size = g.size, s.mesh = g.mesh.get();
  std::memcpy(s.position, &scene.position[3 * body], sizeof s.position);
  std::memcpy(s.rotation, &scene.rotation[9 * body], sizeof s.rotation);
  return s;
}

/// How far p sticks out of the shape (near the surface: the distance).
inline double outside(const Shape& s, const double* p) {
  double d[3], q[3];
  sub3(p, s.position, d);
  rotate_transposed(s.rotation, d, q);
  const double* z = s.size;
  switch (s.type) {
    case ShapeType::half_space: return q[2];
    case ShapeType::sphere: return norm3(q) - z[0];
    case ShapeType::capsule: return std::hypot(q[0], q[1], q[2] - std::clamp(q[2], -z[1], z[1])) - z[0];
    case ShapeType::cylinder: return std::max(std::hypot(q[0], q[1]) - z[0], std::abs(q[2]) - z[1]);
    case ShapeType::box: return std::max({std::abs(q[0]) - z[0], std::abs(q[1]) - z[1], std::abs(q[2]) - z[2]});
    case ShapeType::ellipsoid: {
      const double u[3] = {q[0] / z[0], q[1] / z[1], q[2] / z[2]}, g[3] = {u[0] / z[0], u[1] / z[1], u[2] / z[2]};
      const double k = norm3(u);
      return k < 0.5 ? -1 : (k - 1) * k / norm3(g);
    }
    case ShapeType::mesh: {
      double most = -1e300;
      for (int f = 0; f < s.mesh->num_faces(); ++f)
        most = std::max(most, dot3(&s.mesh->face_normals[3 * f], q) - s.mesh->face_offsets[f]);
      return most;
    }
    case ShapeType::surface: break;  // not convex: test_surfaces.py
  }
  return 0;
}

inline double support_value(const Shape& s, const double* n) {
  double d[3];
  rotate_transposed(s.rotation, n, d);
  const double *z = s.size, at = dot3(n, s.position);
  switch (s.type) {
    case ShapeType::half_space: return d[2] > 1 - 1e-14 ? at : 1e300;
    case ShapeType::sphere: return at + z[0];
    case ShapeType::capsule: return at + z[0] + z[1] * std::abs(d[2]);
    case ShapeType::cylinder: return at + z[0] * std::hypot(d[0], d[1]) + z[1] * std::abs(d[2]);
    case ShapeType::box: return at + z[0] * std::abs(d[0]) + z[1] * std::abs(d[1]) + z[2] * std::abs(d[2]);
    case ShapeType::ellipsoid: return at + std::hypot(z[0] * d[0], z[1] * d[1], z[2] * d[2]);
    case ShapeType::mesh: {
      double most = -1e300;
      for (int v = 0; v < s.mesh->num_vertices(); ++v) most = std::max(most, dot3(&s.mesh->vertices[3 * v], d));
      return at + most;
    }
    case ShapeType::surface: break;  // not convex: test_surfaces.py
  }
  return 0;
}

/// -h_A(-n) - h_B(n): for every unit n a lower bound of the signed distance.
inline double support_gap(const Shape& a, const Shape& b, const double* n) {
  const double m[3] = {-n[0], -n[1], -n[2]};
  return -support_value(a, m) - support_value(b, n);
}

/// The best gap found from the axes of both shapes, their products, random directions and a shrinking search around the
/// best.
inline double best_gap(const Shape& a, const Shape& b, const double* start, Random& random) {
  double at[3], d[3], best = support_gap(a, b, start);
  copy3(start, at);
  const auto offer = [&](const double* x) {
    const double length = norm3(x);
    if (!(length > 1e-12)) return;
    for (const double sign : {1.0, -1.0}) {
      const double n[3] = {sign * x[0] / length, sign * x[1] / length, sign * x[2] / length},
                   gap = support_gap(a, b, n);
      if (gap > best) best = gap, copy3(n, at);
    }
  };
  for (int i = 0; i < 3; ++i) {
    const double u[3] = {a.rotation[i], a.rotation[3 + i], a.rotation[6 + i]};
    const double v[3] = {b.rotation[i], b.rotation[3 + i], b.rotation[6 + i]};
    offer(u), offer(v);
    for (int j = 0; j < 3; ++j) {
      const double w[3] = {b.rotation[j], b.rotation[3 + j], b.rotation[6 + j]};
      cross3(u, w, d);
      offer(d);
    }
  }
  for (int i = 0; i < 100; ++i) random.direction(d), offer(d);
  for (double step = 0.2; step > 1e-7; step *= 0.9) {
    random.direction(d);
    for (int c = 0; c < 3; ++c) d[c] = at[c] + step * d[c];
    offer(d);
  }
  return best;
}

/// Two bodies near contact: `tilt` turns the second from a pose with axes parallel to the first's (random poses: tilt <
/// 0).
struct PairState {
  Geometry a, b;
  Scene scene;
  double size, total;  // thinnest side of both; sum of their extents

  PairState(const Geometry& first, const Geometry& second, double tilt, bool in_line, Random& random)
      : a(first), b(second) {
    for (const Geometry* g : {&a, &b}) scene.add(g->type, g->size[0], g->size[1], g->size[2], g->mesh);
    const double ea = extent(a), eb = extent(b);
    size = std::min(thinnest(a), thinnest(b)), total = ea + eb;
    scene.connect_all(10 * total);
    random.rotation(scene.body_rotation(1));
    random.rotation(scene.body_rotation(2));
    if (tilt >= 0) align(tilt, random);
    double d[3], up[3];
    random.direction(d);
    if (in_line) {
      const int axis = static_cast<int>(random.uniform(0, 3));
      const double sign = random.uniform(-1, 1) > 0 ? 1 : -1;
      for (int i = 0; i < 3; ++i) d[i] = sign * scene.body_rotation(1)[3 * i + axis];
    }
    for (int body = 1; body < 3; ++body) {
      if ((body == 1 ? a : b).type != ShapeType::half_space) continue;
      for (int i = 0; i < 3; ++i) up[i] = (body == 1 ? 1 : -1) * scene.body_rotation(body)[3 * i + 2];
      if (dot3(up, d) < 0)
        for (double& x : d) x = -x;
    }
    for (int i = 0; i < 3; ++i) scene.body_position(2)[i] = 1.5 * total * d[i];
    if (in_line || tilt < 0 || ea == 0 || eb == 0) return;
    random.direction(d);
    const double shift = random.uniform(0, 1) * std::min(ea, eb);
    for (int i = 0; i < 3; ++i) scene.body_position(2)[i] += shift * d[i];
  }

  void align(double tilt, Random& random) {
    const int p = static_cast<int>(random.uniform(0, 3)), q = (p + 1 + static_cast<int>(random.uniform(0, 2))) % 3;
    double axes[2][3] = {{0, 0, 0}, {0, 0, 0}}, R[9], w[3];
    const double none[3] = {0, 0, 0};
    axes[0][p] = axes[1][q] = 1;
    cross3(axes[0], axes[1], w);
    for (int i = 0; i < 3; ++i) R[3 * i] = axes[0][i], R[3 * i + 1] = axes[1][i], R[3 * i + 2] = w[i];
    multiply3(scene.body_rotation(1), R, scene.body_rotation(2));
    random.direction(w);
    for (double& x : w) x *= tilt;
    move_body(scene, 2, scene.body_position(2), none, w);
  }
  Shape shape_a() const { return view(scene, 1, a); }
  Shape shape_b() const { return view(scene, 2, b); }
};

inline std::vector<Contact> contacts_of(const Scene& scene, const CollisionOptions& options, CollisionCache& cache,
                                        CollisionWorkspace& workspace) {
  detect_contacts(scene.model, scene.position.data(), scene.rotation.data(), options, cache, workspace);
  return workspace.contacts;
}

inline const Contact& deepest(const std::vector<Contact>& contacts) {
  return *std::min_element(contacts.begin(), contacts.end(),
                           [](const Contact& x, const Contact& y) { return x.distance < y.distance; });
}

}  // namespace coulomb::test
