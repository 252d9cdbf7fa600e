// Volume, centre and inertia of solid shapes of unit density. A mesh is a sum of tetrahedra from an interior point, whose second
// moments are V/20 (sum_i x_i x_i^T + s s^T), s the sum of the four corners taken from that point (one of them is zero).
#include "coulomb/model/shapes/shape_inertia.hpp"

#include <numbers>
#include <stdexcept>

#include "coulomb/base/small_math.hpp"

namespace coulomb {
namespace {

constexpr double pi = std::numbers::pi;

/// Without products of inertia.
MassProperties diagonal(double mass, double xx, double yy, double zz) {
  return {mass, {0, 0, 0}, {xx, 0, yy, 0, 0, zz}};
}

/// A cylinder of length 2 half between two half balls.
MassProperties capsule(double r, double half) {
  const double cylinder = 2 * pi * r * r * half;
  const double ball = 4.0 / 3 * pi * r * r * r;
  const double zz = cylinder * r * r / 2 + ball * 2 * r * r / 5;

  // The centre of each half ball is at half + 3 r / 8.
  const double of_cylinder = cylinder * (r * r / 4 + half * half / 3);
  const double of_balls = ball * (2 * r * r / 5 + half * half + 3 * half * r / 4);
  const double xx = of_cylinder + of_balls;
  return diagonal(cylinder + ball, xx, xx, zz);
}

/// Volume, first and second moments of tetrahedra from the mesh's centre, added up.
MassProperties polyhedron(const ConvexMesh& mesh) {
  double volume = 0;
  double first[3] = {0, 0, 0};
  double second[6] = {0, 0, 0, 0, 0, 0};

  // A face is a fan of triangles, each the base of a tetrahedron.
  for (int f = 0; f < mesh.num_faces(); ++f) {
    const int begin = mesh.face_start[f];
    const int end = mesh.face_start[f + 1];
    double corner[3][3];
    const auto corner_of = [&](int k, double* out) {
      const int vertex = mesh.face_vertices[k];
      sub3(&mesh.vertices[3 * vertex], mesh.center.data(), out);
    };
    corner_of(begin, corner[0]);
    for (int k = begin + 1; k + 1 < end; ++k) {
      corner_of(k, corner[1]);
      corner_of(k + 1, corner[2]);

      // Its volume, and its moments about the centre.
      double normal[3];
      cross3(corner[1], corner[2], normal);
      const double v = dot3(corner[0], normal) / 6;
      volume += v;
      double s[3] = {0, 0, 0};
      for (auto& x : corner)
        add3(s, x, s);
      axpy3(v / 4, s, first);

      // Second moments, the lower triangle row by row.
      const int row[6] = {0, 0, 1, 0, 1, 2};
      const int column[6] = {0, 1, 1, 2, 2, 2};
      for (int e = 0; e < 6; ++e) {
        double sum = s[row[e]] * s[column[e]];
        for (auto& x : corner)
          sum += x[row[e]] * x[column[e]];
        second[e] += v / 20 * sum;
      }
    }
  }

  // The centre of mass, and second moments about it (Steiner).
  if (!(volume > 0)) {
    const std::string value = std::to_string(volume);
    throw std::invalid_argument("mesh '" + mesh.name + "': volume " + value + " must be positive");
  }
  const double c[3] = {first[0] / volume, first[1] / volume, first[2] / volume};
  const double xx = second[0] - volume * c[0] * c[0];
  const double yy = second[2] - volume * c[1] * c[1];
  const double zz = second[5] - volume * c[2] * c[2];

  // In the frame of the mesh.
  MassProperties out;
  out.mass = volume;
  for (int i = 0; i < 3; ++i)
    out.com[i] = mesh.center[i] + c[i];
  const double xy = second[1] - volume * c[0] * c[1];
  const double xz = second[3] - volume * c[0] * c[2];
  const double yz = second[4] - volume * c[1] * c[2];
  out.inertia = {yy + zz, -xy, xx + zz, -xz, -yz, xx + yy};
  return out;
}

/// A solid whose moments of inertia are `scale` times sums of squares of its half sides.
MassProperties of_half_sides(double mass, double scale, const Vec3& s) {
  const double xx = s[0] * s[0];
  const double yy = s[1] * s[1];
  const double zz = s[2] * s[2];
  return diagonal(mass, scale * (yy + zz), scale * (xx + zz), scale * (xx + yy));
}

}  // namespace

MassProperties solid_properties(ShapeType type, const Vec3& s, const ConvexMesh* mesh) {
  switch (type) {
    case ShapeType::sphere: {
      const double m = 4.0 / 3 * pi * s[0] * s[0] * s[0];
      const double i = 0.4 * m * s[0] * s[0];
      return diagonal(m, i, i, i);
    }
    case ShapeType::capsule: return capsule(s[0], s[1]);
    case ShapeType::cylinder: {
      const double m = 2 * pi * s[0] * s[0] * s[1];
      const double xx = m * (s[0] * s[0] / 4 + s[1] * s[1] / 3);
      return diagonal(m, xx, xx, m * s[0] * s[0] / 2);
    }
    case ShapeType::box: {
      const double m = 8 * s[0] * s[1] * s[2];
      return of_half_sides(m, m / 3, s);
    }
    case ShapeType::ellipsoid: {
      const double m = 4.0 / 3 * pi * s[0] * s[1] * s[2];
      return of_half_sides(m, m / 5, s);
    }
    case ShapeType::mesh: return polyhedron(*mesh);
    case ShapeType::surface: break;  // has no inside
    case ShapeType::half_space: break;
  }
  throw std::invalid_argument("a half-space has no volume and cannot move");
}

}  // namespace coulomb
