// Small scenes for the tests of the collision stage: free bodies, one geometry each, every pair of them enabled.
#pragma once

#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/detect.hpp"
#include "coulomb/model/shapes/convex_mesh.hpp"

namespace coulomb::test {

struct Random {
  std::mt19937_64 engine{12345};
  double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine); }
  void direction(double* out) {
    double n;
    do {
      for (int i = 0; i < 3; ++i) out[i] = uniform(-1, 1);
      n = norm3(out);
    } while (n > 1 || n < 0.1);
    for (int i = 0; i < 3; ++i) out[i] /= n;
  }
  void rotation(double* R) {
    double q[4], n = 0;
    do {
      n = 0;
      for (double& x : q) x = uniform(-1, 1), n += x * x;
    } while (n > 1 || n < 0.01);
    for (double& x : q) x /= std::sqrt(n);
    quaternion_to_matrix(q, R);
  }
};

/// Bodies 1.. of a scene with one geometry per body at the body's own frame; body 0 has none.
struct Scene {
  Model model;
  std::vector<double> position{0, 0, 0}, rotation{1, 0, 0, 0, 1, 0, 0, 0, 1};

  Scene() { model.num_bodies = 1; }

  int add(ShapeType type, double s0, double s1, double s2, std::shared_ptr<const ConvexMesh> mesh = nullptr) {
    model.geometry_type.push_back(type);
    model.geometry_body.push_back(model.num_bodies++);
    model.geometry_mesh.push_back(mesh ? static_cast<int>(model.meshes.size()) : -1);
    if (mesh) model.meshes.push_back(mesh);
    for (double x : {0.0, 0.0, 0.0}) model.geometry_pos.push_back(x);
    for (double x : {1.0, 0.0, 0.0, 0.0}) model.geometry_quat.push_back(x);
    for (double x : {s0, s1, s2}) model.geometry_size.push_back(x);
    for (double x : {0.0, 0.0, 0.0}) position.push_back(x);
    for (double x : {1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0}) rotation.push_back(x);
    return model.num_geometries++;
  }
  void connect_all(double margin) {
    for (int a = 0; a < model.num_geometries; ++a)
      for (int b = a + 1; b < model.num_geometries; ++b) {
        model.pair_a.push_back(a), model.pair_b.push_back(b);
        model.pair_margin.push_back(margin);
      }
  }
  double* body_position(int body) { return &position[3 * body]; }
  double* body_rotation(int body) { return &rotation[9 * body]; }
};

/// Turns body by the rotation vector w about the world point `at`, then shifts it by v.
inline void move_body(Scene& scene, int body, const double* at, const double* v, const double* w) {
  const double angle = norm3(w);
  double R[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  if (angle > 0) {
    double q[4] = {std::cos(angle / 2), 0, 0, 0};
    for (int i = 0; i < 3; ++i) q[1 + i] = std::sin(angle / 2) * w[i] / angle;
    quaternion_to_matrix(q, R);
  }
  double arm[3], turned[3];
  sub3(scene.body_position(body), at, arm);
  rotate(R, arm, turned);
  for (int i = 0; i < 3; ++i) scene.body_position(body)[i] = at[i] + turned[i] + v[i];
  multiply3(R, scene.body_rotation(body), scene.body_rotation(body));
}

/// A box of half sides (x, y, z) as a mesh; an icosphere-like cloud is built by cloud_mesh.
inline std::shared_ptr<const ConvexMesh> box_mesh(double x, double y, double z) {
  std::vector<double> v;
  for (int k = 0; k < 8; ++k)
    for (double c : {k & 1 ? x : -x, k & 2 ? y : -y, k & 4 ? z : -z}) v.push_back(c);
  return make_convex_mesh(
      v, {0, 2, 1, 1, 2, 3, 4, 5, 6, 5, 7, 6, 0, 1, 4, 1, 5, 4, 2, 6, 3, 3, 6, 7, 0, 4, 2, 2, 4, 6, 1, 3, 5, 3, 7, 5},
      "box");
}

/// A faceted ellipsoid: `rings` rings of `segments` vertices and two poles.
inline std::shared_ptr<const ConvexMesh> faceted_ellipsoid(double x, double y, double z, int rings, int segments) {
  std::vector<double> v{0, 0, z};
  for (int r = 1; r <= rings; ++r)
    for (int s = 0; s < segments; ++s) {
      const double theta = M_PI * r / (rings + 1), phi = 2 * M_PI * (s + 0.5 * (r % 2)) / segments;
      for (double c : {x * std::sin(theta) * std::cos(phi), y * std::sin(theta) * std::sin(phi), z * std::cos(theta)})
        v.push_back(c);
    }
  v.insert(v.end(), {0, 0, -z});
  std::vector<int> t;
  const auto at = [&](int r, int s) { return 1 + (r - 1) * segments + (s + segments) % segments; };
  for (int s = 0; s < segments; ++s) {
    t.insert(t.end(), {0, at(1, s), at(1, s + 1)});
    t.insert(t.end(), {at(rings, s + 1), at(rings, s), 1 + rings * segments});
    for (int r = 1; r < rings; ++r) {
      const int shift = r % 2;  // odd rings are turned by half a segment
      t.insert(t.end(), {at(r, s), at(r + 1, s + shift), at(r, s + 1)});
      t.insert(t.end(), {at(r + 1, s + shift), at(r + 1, s + 1 + shift), at(r, s + 1)});
    }
  }
  return make_convex_mesh(v, t, "faceted ellipsoid");
}

}  // namespace coulomb::test
