// Faces are kept, with the normals of the moved polygons, as long as they stay flat and the surface convex: a small
// change of the vertices is then a small change of every face. Else the hull decides which faces there are.
#include "coulomb/parameters/kinds/moved_mesh.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <stdexcept>

#include "coulomb/base/small_math.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/model/shapes/convex_mesh.hpp"

namespace coulomb {
namespace {

// Relative to the mesh's size. Merged faces of meshes in single precision are flat to a few 1e-6 (convex_mesh.cpp).
constexpr double flat_tolerance = 4e-6;
constexpr double convex_tolerance = 1e-5;

/// For messages.
std::string vertex_text(const double* v) {
  return "(" + checks::text(v[0]) + ", " + checks::text(v[1]) + ", " + checks::text(v[2]) + ")";
}

/// The faces of `mesh` as triangles, corner v being order[v] (null: v).
std::vector<int> fans(const ConvexMesh& mesh, const int* order) {
  std::vector<int> out;
  for (int f = 0; f < mesh.num_faces(); ++f) {
    const int* loop = mesh.face_vertices.data() + mesh.face_start[f];
    for (int k = 1; k + 1 < mesh.face_start[f + 1] - mesh.face_start[f]; ++k)
      for (const int v : {loop[0], loop[k], loop[k + 1]})
        out.push_back(order != nullptr ? order[v] : v);
  }
  return out;
}

/// Normal and offset of a face of the moved mesh; false when it bent or another vertex lies outside.
bool fit_face(ConvexMesh& mesh, int face, double size) {
  const int start = mesh.face_start[face];
  const int count = mesh.face_start[face + 1] - start;
  const auto corner = [&](int k) { return &mesh.vertices[3 * mesh.face_vertices[start + k]]; };

  // The normal is the mean of a fan of triangles.
  double n[3] = {0, 0, 0};
  for (int k = 1; k + 1 < count; ++k) {
    double e[3];
    double g[3];
    sub3(corner(k), corner(0), e);
    sub3(corner(k + 1), corner(0), g);
    add_cross3(e, g, n);
  }

  const double length = norm3(n);
  if (!(length > 1e-12 * size * size)) return false;
  for (double& x : n)
    x /= length;

  // Its corners lie in one plane ...
  double offset = 0;
  for (int k = 0; k < count; ++k) {
    offset += dot3(n, corner(k)) / count;
    if (!(std::abs(dot3(n, corner(k)) - dot3(n, corner(0))) <= flat_tolerance * size)) return false;
  }

  // ... that no other vertex is outside of.
  for (int v = 0; v < mesh.num_vertices(); ++v)
    if (!(dot3(n, &mesh.vertices[3 * v]) - offset <= convex_tolerance * size)) return false;

  copy3(n, &mesh.face_normals[3 * face]);
  mesh.face_offsets[face] = offset;
  return true;
}

}  // namespace

std::shared_ptr<const ConvexMesh> move_vertices(const ConvexMesh& mesh, const std::vector<double>& vertices) {
  // Every face of the moved mesh keeps its corners.
  auto moved = std::make_shared<ConvexMesh>(mesh);
  moved->vertices = vertices;

  double size = 0;
  for (std::size_t k = 0; k < vertices.size(); ++k)
    size = std::max(size, std::abs(vertices[k] - vertices[k % 3]));
  for (int f = 0; f < mesh.num_faces(); ++f)
    if (!fit_face(*moved, f, size)) return nullptr;

  // Tables of the vertices alone are made anew; the vertices have to come out in the same order.
  std::shared_ptr<const ConvexMesh> fresh;
  try {
    fresh = make_convex_mesh(vertices, fans(mesh, nullptr), mesh.name);
  } catch (const std::invalid_argument&) {
    return nullptr;
  }
  if (fresh->vertices != vertices) return nullptr;

  moved->support_start = fresh->support_start;
  moved->support_vertices = fresh->support_vertices;
  moved->center = fresh->center;
  moved->aabb_center = fresh->aabb_center;
  moved->aabb_half = fresh->aabb_half;
  return moved;
}

std::shared_ptr<const ConvexMesh> hull_in_order(const std::vector<double>& vertices, const std::string& name,
                                                const std::string& what) {
  // Vertices are known by their place.
  std::map<std::array<double, 3>, int> index;
  const auto key = [](const double* v) { return std::array<double, 3>{v[0] + 0.0, v[1] + 0.0, v[2] + 0.0}; };
  const int n = static_cast<int>(vertices.size() / 3);
  for (int v = 0; v < n; ++v) {
    const auto [at, fresh] = index.emplace(key(&vertices[3 * v]), v);
    if (!fresh)
      checks::fail(what,
                   "vertices " + std::to_string(at->second) + " and " + std::to_string(v) + " are at the same place");
  }

  // The hull has the faces, but vertices in an order of its own.
  std::shared_ptr<const ConvexMesh> hull;
  try {
    hull = make_convex_hull(vertices, name);
  } catch (const std::invalid_argument& error) {
    checks::fail(what, error.what());
  }

  // The order of its vertices here; all of them are used.
  std::vector<int> order(hull->num_vertices());
  std::vector<unsigned char> used(n, 0);
  for (int v = 0; v < hull->num_vertices(); ++v) {
    const auto at = index.find(key(&hull->vertices[3 * v]));
    if (at == index.end()) {
      checks::fail(what, "the convex hull of the vertices could not be built");
    }
    order[v] = at->second;
    used[at->second] = 1;
  }

  for (int v = 0; v < n; ++v)
    if (!used[v])
      checks::fail(what, "vertex " + std::to_string(v) + " at " + vertex_text(&vertices[3 * v]) +
                             " is not a corner of the convex hull: every vertex of a mesh must be one");

  // Faces with the caller's numbers; edges and faces may have no further vertex.
  auto mesh = make_convex_mesh(vertices, fans(*hull, order.data()), name);
  if (mesh->num_vertices() != n)
    checks::fail(what, "a vertex lies in the middle of an edge or face: every vertex must be a corner");
  return mesh;
}

}  // namespace coulomb
