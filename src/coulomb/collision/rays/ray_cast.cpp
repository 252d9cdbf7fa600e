#include "coulomb/collision/rays/ray_cast.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "coulomb/base/small_math.hpp"

namespace coulomb {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A ray in the frame of a shape, and the best hit so far.
struct LocalRay {
  double o[3];
  double d[3];
  double t;  ///< hits have to be nearer
  bool found = false;
  double n[3] = {0, 0, 0};
  int part = 0;

  void at(double s, double* x) const {
    for (int i = 0; i < 3; ++i)
      x[i] = o[i] + s * d[i];
  }
  /// Is it a hit that is nearer than what is known?
  bool is_better(double s) const { return s >= 0 && s < t; }
  void take(double s, const double* normal, int of) {
    t = s;
    copy3(normal, n);
    part = of;
    found = true;
  }
};

/// Roots of a s^2 + 2 b s + c = 0, ascending. False: there are none, or the ray grazes.
bool roots(double a, double b, double c, double* out) {
  const double discriminant = b * b - a * c;
  if (!(discriminant > 0) || a == 0) return false;
  const double root = std::sqrt(discriminant);

  // Without cancellation.
  const double q = b > 0 ? -b - root : -b + root;
  out[0] = q / a;
  out[1] = c / q;
  if (out[0] > out[1]) std::swap(out[0], out[1]);
  return true;
}

void meet_half_space(LocalRay& ray) {
  const double up[3] = {0, 0, 1};
  if (!(ray.d[2] < 0)) return;
  const double s = -ray.o[2] / ray.d[2];
  if (ray.is_better(s)) ray.take(s, up, 0);
}

/// A ball about (0, 0, z); of an end of a capsule (part +-1) only the half beyond z.
void meet_ball(double radius, double z, int part, LocalRay& ray) {
  const double from[3] = {ray.o[0], ray.o[1], ray.o[2] - z};
  double s[2];
  if (!roots(dot3(ray.d, ray.d), dot3(from, ray.d), dot3(from, from) - radius * radius, s)) return;
  for (const double t : s) {
    if (!ray.is_better(t)) continue;
    double x[3];
    ray.at(t, x);
    x[2] -= z;
    if (part * x[2] < 0) continue;
    for (double& e : x)
      e /= radius;
    ray.take(t, x, part);
  }
}

/// The round side of a cylinder or capsule.
void meet_side(double radius, double half, LocalRay& ray) {
  const double a = ray.d[0] * ray.d[0] + ray.d[1] * ray.d[1];
  const double b = ray.o[0] * ray.d[0] + ray.o[1] * ray.d[1];
  double s[2];
  if (!roots(a, b, ray.o[0] * ray.o[0] + ray.o[1] * ray.o[1] - radius * radius, s)) return;
  for (const double t : s) {
    double x[3];
    ray.at(t, x);
    if (!ray.is_better(t) || std::abs(x[2]) > half) continue;
    const double n[3] = {x[0] / radius, x[1] / radius, 0};
    ray.take(t, n, 0);
  }
}

void meet_discs(double radius, double half, LocalRay& ray) {
  if (ray.d[2] == 0) return;
  for (const int end : {1, -1}) {
    const double t = (end * half - ray.o[2]) / ray.d[2];
    double x[3];
    ray.at(t, x);
    const double n[3] = {0, 0, double(end)};
    if (ray.is_better(t) && x[0] * x[0] + x[1] * x[1] <= radius * radius) ray.take(t, n, end);
  }
}

void meet_ellipsoid(const double* size, LocalRay& ray) {
  // In units of the semi-axes it is a ball.
  double o[3];
  double d[3];
  for (int i = 0; i < 3; ++i) {
    o[i] = ray.o[i] / size[i];
    d[i] = ray.d[i] / size[i];
  }
  double s[2];
  if (!roots(dot3(d, d), dot3(o, d), dot3(o, o) - 1, s)) return;
  for (const double t : s) {
    if (!ray.is_better(t)) continue;
    double n[3];
    for (int i = 0; i < 3; ++i)
      n[i] = (o[i] + t * d[i]) / size[i];
    const double length = norm3(n);
    for (double& e : n)
      e /= length;
    ray.take(t, n, 0);
    return;
  }
}

/// Between which two of its planes the ray is inside of a convex body.
struct Passage {
  double enter = -infinity;
  double leave = infinity;
  int enter_face = -1;
  int leave_face = -1;

  /// n . x <= offset; true: the ray may still meet the body.
  bool clip(double along, double beyond, int face) {
    // Parallel to the plane it is inside always or never.
    if (along == 0) return beyond <= 0;
    const double t = -beyond / along;
    if (along < 0 && t > enter) {
      enter = t;
      enter_face = face;
    }
    if (along > 0 && t < leave) {
      leave = t;
      leave_face = face;
    }
    return enter <= leave;
  }
};

void meet_box(const double* size, LocalRay& ray) {
  // Face 2 axis is the + side.
  Passage p;
  for (int i = 0; i < 3; ++i) {
    if (!p.clip(ray.d[i], ray.o[i] - size[i], 2 * i)) return;
    if (!p.clip(-ray.d[i], -ray.o[i] - size[i], 2 * i + 1)) return;
  }
  const bool within = p.enter < 0;
  const int face = within ? p.leave_face : p.enter_face;
  const double t = within ? p.leave : p.enter;
  if (!ray.is_better(t)) return;
  double n[3] = {0, 0, 0};
  n[face / 2] = face % 2 == 0 ? 1 : -1;
  ray.take(t, n, face / 2);
}

void meet_mesh(const ConvexMesh& mesh, LocalRay& ray) {
  Passage p;
  for (int f = 0; f < mesh.num_faces(); ++f) {
    const double* n = mesh.face_normals.data() + 3 * f;
    if (!p.clip(dot3(n, ray.d), dot3(n, ray.o) - mesh.face_offsets[f], f)) return;
  }
  const bool within = p.enter < 0;
  const double t = within ? p.leave : p.enter;
  const int face = within ? p.leave_face : p.enter_face;
  if (face >= 0 && ray.is_better(t)) ray.take(t, mesh.face_normals.data() + 3 * face, face);
}

/// Moeller and Trumbore's test, from both sides.
void meet_triangle(const TriangleSurface& s, int triangle, LocalRay& ray) {
  const auto corner = [&](int k) { return s.vertices.data() + 3 * s.triangles[3 * triangle + k]; };
  double e1[3];
  double e2[3];
  double from[3];
  double p[3];
  double q[3];
  sub3(corner(1), corner(0), e1);
  sub3(corner(2), corner(0), e2);
  cross3(ray.d, e2, p);
  const double determinant = dot3(e1, p);
  if (determinant == 0) return;

  // Barycentric coordinates. Rounding leaves no gap between triangles.
  constexpr double rim = 1e-12;
  sub3(ray.o, corner(0), from);
  const double u = dot3(from, p) / determinant;
  cross3(from, e1, q);
  const double v = dot3(ray.d, q) / determinant;
  if (!(u >= -rim && v >= -rim && u + v <= 1 + rim)) return;
  const double t = dot3(e2, q) / determinant;
  if (ray.is_better(t)) ray.take(t, s.normals.data() + 3 * triangle, triangle);
}

/// Does the ray enter this box (lower, upper corner) before its best hit?
bool enters(const LocalRay& ray, const double* box) {
  double first = 0;
  double last = ray.t;
  for (int i = 0; i < 3; ++i) {
    if (ray.d[i] == 0) {
      if (ray.o[i] < box[i] || ray.o[i] > box[3 + i]) return false;
      continue;
    }
    const double a = (box[i] - ray.o[i]) / ray.d[i];
    const double b = (box[3 + i] - ray.o[i]) / ray.d[i];
    first = std::max(first, std::min(a, b));
    last = std::min(last, std::max(a, b));
  }

  // Boxes of flat parts have no thickness.
  const double slack = 1e-12 * (1 + std::abs(first));
  return first <= last + slack;
}

void meet_surface(const TriangleSurface& s, LocalRay& ray) {
  constexpr int most_levels = 64;  // a tree of halves has fewer
  int stack[most_levels];
  int depth = 0;
  stack[depth++] = 0;
  while (depth > 0) {
    const int node = stack[--depth];
    if (!enters(ray, &s.node_box[6 * node])) continue;
    if (s.node_count[node] == 0) {
      stack[depth++] = s.node_second[node];
      stack[depth++] = node + 1;
      continue;
    }
    const int first = -1 - s.node_second[node];
    for (int k = first; k < first + s.node_count[node]; ++k)
      meet_triangle(s, s.leaf_triangles[k], ray);
  }
}

/// Far from the ray, by a ball around the shape.
bool is_far(const Shape& shape, const Ray& ray, double reach) {
  double center[3];
  double from[3];
  bounding_center(shape, center);
  sub3(center, ray.origin, from);
  const double radius = bounding_radius(shape);
  const double along = dot3(from, ray.direction);
  if (along < -radius || along > reach + radius) return true;
  return dot3(from, from) - along * along > radius * radius * (1 + 1e-9) + 1e-12;
}

/// The face of a polygon that carries a hit, in the frame of the mesh.
struct Polygon {
  const double* vertices;
  const int* corners;
  int num;
  const double* at(int k) const { return vertices + 3 * corners[(k + num) % num]; }
};

}  // namespace

bool ray_meets(const Shape& shape, const Ray& ray, double reach, SurfaceHit& out) {
  if (shape.type != ShapeType::half_space && is_far(shape, ray, reach)) return false;

  // In the frame of the shape.
  LocalRay local;
  double arm[3];
  local.t = reach;
  sub3(ray.origin, shape.position, arm);
  rotate_transposed(shape.rotation, arm, local.o);
  rotate_transposed(shape.rotation, ray.direction, local.d);

  const double* size = shape.size;
  switch (shape.type) {
    case ShapeType::half_space: meet_half_space(local); break;
    case ShapeType::sphere: meet_ball(size[0], 0, 0, local); break;
    case ShapeType::capsule:
      meet_side(size[0], size[1], local);
      meet_ball(size[0], size[1], 1, local);
      meet_ball(size[0], -size[1], -1, local);
      break;
    case ShapeType::cylinder:
      meet_side(size[0], size[1], local);
      meet_discs(size[0], size[1], local);
      break;
    case ShapeType::box: meet_box(size, local); break;
    case ShapeType::ellipsoid: meet_ellipsoid(size, local); break;
    case ShapeType::mesh: meet_mesh(*shape.mesh, local); break;
    case ShapeType::surface: meet_surface(*shape.surface, local); break;
  }
  if (!local.found) return false;

  out.t = local.t;
  out.part = local.part;
  rotate(shape.rotation, local.n, out.normal);
  return true;
}

void hit_by_size(const Shape& shape, const Ray& ray, const SurfaceHit& hit, double by_size[3]) {
  // The hit and its normal in the frame of the shape.
  double x[3];
  double n[3];
  double arm[3];
  for (int i = 0; i < 3; ++i)
    arm[i] = ray.origin[i] + hit.t * ray.direction[i] - shape.position[i];
  rotate_transposed(shape.rotation, arm, x);
  rotate_transposed(shape.rotation, hit.normal, n);

  by_size[0] = by_size[1] = by_size[2] = 0;
  switch (shape.type) {
    case ShapeType::sphere: by_size[0] = 1; break;
    case ShapeType::capsule:
      // The ends are balls that move along the axis.
      by_size[0] = 1;
      by_size[1] = hit.part * n[2];
      break;
    case ShapeType::cylinder: by_size[hit.part == 0 ? 0 : 1] = 1; break;
    case ShapeType::box: by_size[hit.part] = 1; break;
    case ShapeType::ellipsoid: {
      // sum of (x_i / a_i)^2 = 1: the surface moves by x_k^2 / a_k^3 over the length of the gradient (x_i / a_i^2).
      double gradient[3];
      for (int i = 0; i < 3; ++i)
        gradient[i] = x[i] / (shape.size[i] * shape.size[i]);
      const double length = norm3(gradient);
      for (int k = 0; k < 3; ++k)
        by_size[k] = gradient[k] * x[k] / shape.size[k] / length;
      break;
    }
    default: break;
  }
}

void hit_by_vertices(const Shape& shape, const Ray& ray, const SurfaceHit& hit,
                     std::vector<std::pair<int, std::array<double, 3>>>& by_vertex) {
  // The face, a plane through its first vertex whose normal is the mean over the polygon: N = 1/2 sum of v_k x v_(k+1).
  Polygon face{};
  if (shape.type == ShapeType::mesh) {
    const int first = shape.mesh->face_start[hit.part];
    face = {shape.mesh->vertices.data(), shape.mesh->face_vertices.data() + first,
            shape.mesh->face_start[hit.part + 1] - first};
  } else if (shape.type == ShapeType::surface) {
    face = {shape.surface->vertices.data(), shape.surface->triangles.data() + 3 * std::size_t(hit.part), 3};
  } else {
    return;
  }

  double x[3];
  double arm[3];
  for (int i = 0; i < 3; ++i)
    arm[i] = ray.origin[i] + hit.t * ray.direction[i] - shape.position[i];
  rotate_transposed(shape.rotation, arm, x);
  double N[3] = {0, 0, 0};
  for (int k = 0; k < face.num; ++k) {
    double part[3];
    cross3(face.at(k), face.at(k + 1), part);
    axpy3(0.5, part, N);
  }

  // The plane at x moves along its normal by (N . dv_0 + dN . (v_0 - x)) / |N|, dN = 1/2 dv_k x (v_(k+1) - v_(k-1)).
  const double length = norm3(N);
  double to_first[3];
  sub3(face.at(0), x, to_first);
  for (int k = 0; k < face.num; ++k) {
    double across[3];
    double slope[3];
    sub3(face.at(k + 1), face.at(k - 1), across);
    cross3(across, to_first, slope);
    std::array<double, 3> out{};
    for (int i = 0; i < 3; ++i)
      out[i] = (0.5 * slope[i] + (k == 0 ? N[i] : 0.0)) / length;
    by_vertex.push_back({face.corners[k], out});
  }
}

}  // namespace coulomb
