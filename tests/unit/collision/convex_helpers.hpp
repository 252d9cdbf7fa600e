// Random posed convex shapes and brute-force support values for the tests of the convex pairs.
#pragma once

#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/shape.hpp"

namespace coulomb::test {

/// Hull of points in general position, by trying every triple: small sets only.
inline ConvexMesh brute_hull(const std::vector<double>& points) {
  ConvexMesh mesh;
  mesh.vertices = points;
  const int n = mesh.num_vertices();
  const double* v = mesh.vertices.data();
  std::vector<std::vector<int>> joined(n);
  mesh.face_start.push_back(0);
  for (int i = 0; i < n; ++i)
    for (int j = i + 1; j < n; ++j)
      for (int k = j + 1; k < n; ++k) {
        double e[3], f[3], m[3], r[3];
        sub3(v + 3 * j, v + 3 * i, e), sub3(v + 3 * k, v + 3 * i, f);
        cross3(e, f, m);
        int above = 0, below = 0;
        for (int l = 0; l < n; ++l) {
          if (l == i || l == j || l == k) continue;
          sub3(v + 3 * l, v + 3 * i, r);
          (dot3(r, m) > 0 ? above : below)++;
        }
        if (above > 0 && below > 0) continue;
        const double sign = above > 0 ? -1 : 1, length = norm3(m);
        for (double& x : m) x *= sign / length;
        mesh.face_normals.insert(mesh.face_normals.end(), m, m + 3);
        mesh.face_offsets.push_back(dot3(m, v + 3 * i));
        const int face[3] = {i, sign > 0 ? j : k, sign > 0 ? k : j};
        for (int c = 0; c < 3; ++c) {
          mesh.face_vertices.push_back(face[c]);
          for (const int other : {face[(c + 1) % 3], face[(c + 2) % 3]}) {
            bool seen = false;
            for (int x : joined[face[c]]) seen |= x == other;
            if (!seen) joined[face[c]].push_back(other);
          }
        }
        mesh.face_start.push_back(static_cast<int>(mesh.face_vertices.size()));
      }
  mesh.neighbour_start.push_back(0);
  for (int i = 0; i < n; ++i) {
    mesh.neighbours.insert(mesh.neighbours.end(), joined[i].begin(), joined[i].end());
    mesh.neighbour_start.push_back(static_cast<int>(mesh.neighbours.size()));
  }
  for (int i = 0; i < n; ++i)
    for (int c = 0; c < 3; ++c) mesh.aabb_half[c] = std::max(mesh.aabb_half[c], std::abs(v[3 * i + c]));
  return mesh;
}

struct Random {
  std::mt19937_64 engine;
  explicit Random(unsigned seed) : engine(seed) {}
  double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine); }
  void direction(double* d) {
    do {
      for (int i = 0; i < 3; ++i) d[i] = std::normal_distribution<double>()(engine);
    } while (norm3(d) < 1e-3);
    const double length = norm3(d);
    for (int i = 0; i < 3; ++i) d[i] /= length;
  }
  void rotation(double* R) {
    double q[4], n = 0;
    for (double& x : q) x = std::normal_distribution<double>()(engine), n += x * x;
    for (double& x : q) x /= std::sqrt(n);
    quaternion_to_matrix(q, R);
  }
};

/// A shape with storage for its size.
struct OwnedShape {
  Shape shape;
  double size[3];
  ConvexMesh mesh;
};

inline std::unique_ptr<OwnedShape> random_shape(ShapeType type, Random& random) {
  auto s = std::make_unique<OwnedShape>();
  s->shape.type = type;
  for (double& x : s->size) x = random.uniform(0.3, 1.0);
  s->shape.size = s->size;
  if (type == ShapeType::mesh) {
    std::vector<double> points;
    double d[3];
    for (int i = 0; i < 20; ++i) {
      random.direction(d);
      points.insert(points.end(), {0.9 * d[0], 0.7 * d[1], 0.5 * d[2]});
    }
    s->mesh = brute_hull(points);
    s->shape.mesh = &s->mesh;
  }
  random.rotation(s->shape.rotation);
  return s;
}

/// -h_A(-n) - h_B(n): a lower bound of the signed distance for any unit n, attained by the right one.
inline double support_gap(const Shape& a, const Shape& b, const double* n) {
  double p[3], q[3];
  const double m[3] = {-n[0], -n[1], -n[2]};
  int ha = 0, hb = 0;
  shape_support(a, m, p, ha), shape_support(b, n, q, hb);
  return dot3(n, p) - dot3(n, q);
}

}  // namespace coulomb::test
