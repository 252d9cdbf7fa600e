// Support functions and features of posed convex shapes (docs/theory.md (G1): h_X and its witness).
#include "coulomb/collision/shape.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/model/shapes/convex_mesh.hpp"

namespace coulomb {

namespace {

// Vertices of the six box faces, counter-clockwise seen from outside; bit i of an index: + side along axis i.
constexpr int box_faces[6][4] = {{1, 3, 7, 5}, {0, 4, 6, 2}, {2, 6, 7, 3}, {0, 1, 5, 4}, {4, 5, 7, 6}, {0, 2, 3, 1}};

/// R local + position
void to_world(const Shape& s, const double* local, double* out) {
  rotate(s.rotation, local, out);
  for (int i = 0; i < 3; ++i)
    out[i] += s.position[i];
}

/// The best of the vertices listed for directions like d: whatever the hint, the same vertex. Meshes without that table:
/// brute force when small, else climbing along edges, as a vertex not below any of its neighbours is a global maximum.
int mesh_support(const ConvexMesh& mesh, const double* d, int hint) {
  const double* v = mesh.vertices.data();

  // The table's list for this cell of directions.
  if (!mesh.support_start.empty()) {
    const int cell = direction_cell(d);
    const int* k = mesh.support_vertices.data() + mesh.support_start[cell];
    const int* end = mesh.support_vertices.data() + mesh.support_start[cell + 1];
    int best = *k;
    double best_value = dot3(v + 3 * best, d);
    while (++k < end) {
      const double value = dot3(v + 3 * *k, d);
      if (value > best_value) {
        best_value = value;
        best = *k;
      }
    }
    return best;
  }

  // All vertices.
  const int n = mesh.num_vertices();
  if (n <= 12 || mesh.neighbour_start.empty()) {
    int best = 0;
    double best_value = dot3(v, d);
    for (int i = 1; i < n; ++i) {
      const double value = dot3(v + 3 * i, d);
      if (value > best_value) {
        best_value = value;
        best = i;
      }
    }
    return best;
  }

  // Uphill from the hint.
  int current = hint >= 0 && hint < n ? hint : 0;
  double value = dot3(v + 3 * current, d);
  for (;;) {
    int next = -1;
    for (int k = mesh.neighbour_start[current]; k < mesh.neighbour_start[current + 1]; ++k) {
      const int i = mesh.neighbours[k];
      const double candidate = dot3(v + 3 * i, d);
      if (candidate > value) {
        value = candidate;
        next = i;
      }
    }
    if (next < 0) return current;
    current = next;
  }
}

}  // namespace

void set_shape(const Model& model, int geometry, Shape& shape) {
  shape.type = model.geometry_type[geometry];
  shape.size = &model.geometry_size[3 * geometry];
  const int mesh = model.geometry_mesh[geometry];
  shape.mesh = shape.type == ShapeType::mesh ? model.meshes[mesh].get() : nullptr;
  shape.surface = shape.type == ShapeType::surface ? model.surfaces[mesh].get() : nullptr;
}

bool has_ground(const Model& model, int pair) {
  return is_ground(model.geometry_type[model.pair_a[pair]]) || is_ground(model.geometry_type[model.pair_b[pair]]);
}

double core_radius(const Shape& shape) {
  return shape.type == ShapeType::sphere || shape.type == ShapeType::capsule ? shape.size[0] : 0.0;
}

double bounding_radius(const Shape& shape) {
  const double* s = shape.size;
  switch (shape.type) {
    case ShapeType::sphere: return s[0];
    case ShapeType::capsule: return s[0] + s[1];
    case ShapeType::cylinder: return std::sqrt(s[0] * s[0] + s[1] * s[1]);
    case ShapeType::box: return norm3(s);
    case ShapeType::ellipsoid: return std::max({s[0], s[1], s[2]});
    case ShapeType::mesh: return norm3(shape.mesh->aabb_half.data());
    case ShapeType::surface: return norm3(shape.surface->aabb_half.data());
    default: return 1e30;
  }
}

void bounding_center(const Shape& shape, double center[3]) {
  if (shape.type == ShapeType::mesh)
    to_world(shape, shape.mesh->aabb_center.data(), center);
  else if (shape.type == ShapeType::surface)
    to_world(shape, shape.surface->aabb_center.data(), center);
  else
    copy3(shape.position, center);
}

bool has_polyhedral_core(const Shape& shape) {
  return shape.type != ShapeType::cylinder && shape.type != ShapeType::ellipsoid && shape.type != ShapeType::surface;
}

int core_support(const Shape& shape, const double direction[3], double point[3], int& hint) {
  const double* s = shape.size;

  // A ball's core is its centre.
  if (shape.type == ShapeType::sphere) {
    copy3(shape.position, point);
    return 0;
  }

  // By shape, in its own frame; the zero direction has a support point, too.
  double d[3];
  double p[3];
  int index = 0;
  rotate_transposed(shape.rotation, direction, d);
  switch (shape.type) {
    case ShapeType::capsule:
      index = d[2] >= 0 ? 0 : 1;
      p[0] = p[1] = 0;
      p[2] = index == 0 ? s[1] : -s[1];
      break;
    case ShapeType::cylinder: {
      const double radial = std::sqrt(d[0] * d[0] + d[1] * d[1]);
      const double scale = radial > 0 ? s[0] / radial : 0.0;
      index = d[2] >= 0 ? 0 : 1;
      p[0] = radial > 0 ? scale * d[0] : s[0];
      p[1] = scale * d[1];
      p[2] = index == 0 ? s[1] : -s[1];
      break;
    }
    case ShapeType::box:
      for (int i = 0; i < 3; ++i) {
        const bool plus = d[i] >= 0;
        index |= plus ? 1 << i : 0;
        p[i] = plus ? s[i] : -s[i];
      }
      break;
    case ShapeType::ellipsoid: {
      const double w[3] = {s[0] * d[0], s[1] * d[1], s[2] * d[2]};
      const double h = norm3(w);
      for (int i = 0; i < 3; ++i)
        p[i] = h > 0 ? s[i] * w[i] / h : (i == 2 ? s[2] : 0.0);
      break;
    }
    case ShapeType::mesh:
      index = hint = mesh_support(*shape.mesh, d, hint);
      copy3(shape.mesh->vertices.data() + 3 * index, p);
      break;
    default: p[0] = p[1] = p[2] = 0;
  }

  to_world(shape, p, point);
  return index;
}

int shape_support(const Shape& shape, const double direction[3], double point[3], int& hint) {
  const int index = core_support(shape, direction, point, hint);
  const double radius = core_radius(shape);
  const double length = norm3(direction);
  if (radius > 0 && length > 0) {
    axpy3(radius / length, direction, point);
  }
  return index;
}

void core_vertex(const Shape& shape, int vertex, double point[3]) {
  // The same numbers as core_support's.
  const double* s = shape.size;
  double p[3] = {0, 0, 0};
  if (shape.type == ShapeType::capsule)
    p[2] = vertex == 0 ? s[1] : -s[1];
  else if (shape.type == ShapeType::box)
    for (int i = 0; i < 3; ++i)
      p[i] = vertex >> i & 1 ? s[i] : -s[i];
  else if (shape.type == ShapeType::mesh)
    copy3(shape.mesh->vertices.data() + 3 * vertex, p);

  to_world(shape, p, point);
}

bool has_faces(const Shape& shape) {
  return shape.type == ShapeType::box || (shape.type == ShapeType::mesh && shape.mesh->num_faces() > 0);
}

int num_faces(const Shape& shape) {
  if (shape.type == ShapeType::box) return 6;
  return shape.type == ShapeType::mesh ? shape.mesh->num_faces() : 0;
}

void face_normal(const Shape& shape, int face, double normal[3]) {
  if (shape.type == ShapeType::box) {
    const double sign = face & 1 ? -1.0 : 1.0;
    for (int i = 0; i < 3; ++i)
      normal[i] = sign * shape.rotation[3 * i + face / 2];
  } else {
    rotate(shape.rotation, shape.mesh->face_normals.data() + 3 * face, normal);
  }
}

double face_offset(const Shape& shape, int face) {
  double n[3];
  face_normal(shape, face, n);
  return dot3(n, shape.position) +
         (shape.type == ShapeType::box ? shape.size[face / 2] : shape.mesh->face_offsets[face]);
}

int face_size(const Shape& shape, int face) {
  return shape.type == ShapeType::box ? 4 : shape.mesh->face_start[face + 1] - shape.mesh->face_start[face];
}

int face_vertex(const Shape& shape, int face, int k) {
  return shape.type == ShapeType::box ? box_faces[face][k]
                                      : shape.mesh->face_vertices[shape.mesh->face_start[face] + k];
}

/// A mesh's best face: the support vertex holds d in its normal cone, whose corners are the normals of the faces around
/// it; from the best of these over face neighbours while the cosine grows.
int best_face(const Shape& shape, const double direction[3], double& cosine) {
  double d[3];
  rotate_transposed(shape.rotation, direction, d);
  const double length = norm3(d);

  // A box: the axis most along d.
  if (shape.type == ShapeType::box) {
    int axis = 0;
    for (int i = 1; i < 3; ++i)
      if (std::abs(d[i]) > std::abs(d[axis])) {
        axis = i;
      }
    cosine = std::abs(d[axis]) / length;
    return 2 * axis + (d[axis] >= 0 ? 0 : 1);
  }

  // A mesh: the first of the best faces that were offered.
  const ConvexMesh& mesh = *shape.mesh;
  const double* normals = mesh.face_normals.data();
  int best = 0;
  double best_value = -2 * length;
  const auto offer = [&](int f) {
    const double value = dot3(normals + 3 * f, d);
    if (value > best_value) {
      best_value = value;
      best = f;
    }
  };

  // All of few; of many those around the support vertex, then their neighbours uphill.
  if (mesh.vertex_face_start.empty() || mesh.num_faces() <= 24) {
    for (int f = 0; f < mesh.num_faces(); ++f)
      offer(f);
  } else {
    const int vertex = mesh_support(mesh, d, -1);
    for (int k = mesh.vertex_face_start[vertex]; k < mesh.vertex_face_start[vertex + 1]; ++k)
      offer(mesh.vertex_faces[k]);
    for (int from = -1; from != best;) {
      from = best;
      for (int k = mesh.face_start[from]; k < mesh.face_start[from + 1]; ++k)
        offer(mesh.face_neighbour[k]);
    }
  }

  cosine = best_value / length;
  return best;
}

bool are_neighbours(const Shape& shape, int u, int v) {
  if (shape.type == ShapeType::capsule) return u != v;
  if (shape.type == ShapeType::box) {
    return std::popcount(static_cast<unsigned>(u ^ v)) == 1;
  }
  if (shape.type != ShapeType::mesh) return false;
  const ConvexMesh& mesh = *shape.mesh;
  for (int k = mesh.neighbour_start[u]; k < mesh.neighbour_start[u + 1]; ++k)
    if (mesh.neighbours[k] == v) return true;
  return false;
}

}  // namespace coulomb
