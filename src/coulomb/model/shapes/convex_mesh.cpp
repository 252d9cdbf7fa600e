// From triangles to a ConvexMesh: weld, orient, merge coplanar neighbours, walk the outlines, drop what is no corner, check.
// All merging is topological (regions of neighbouring triangles), so the faces always fit together along shared edges.
#include "coulomb/model/shapes/convex_mesh.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "coulomb/base/small_math.hpp"

namespace coulomb {
namespace {

// Relative to the mesh's size; meshes come in single precision.
constexpr double weld_tolerance = 1e-9;
constexpr double coplanar_tolerance = 1e-6;
constexpr double convex_tolerance = 1e-5;

[[noreturn]] void fail(const std::string& name, const std::string& what) {
  throw std::invalid_argument("mesh \"" + name + "\": " + what);
}

/// Where each face's outline passes: from one vertex to the next, counter-clockwise seen from outside.
struct DirectedEdge {
  int from = 0;
  int to = 0;
  int face = 0;
  bool operator<(const DirectedEdge& other) const { return from != other.from ? from < other.from : to < other.to; }
};

/// The directed edges of a surface, found by their vertices. Filled by `add`, then sorted once.
class EdgeTable {
 public:
  void add(int from, int to, int face) { edges_.push_back({from, to, face}); }

  /// Returns an edge that was added twice, or null. vertices: how many there are.
  const DirectedEdge* sort(int vertices) {
    std::stable_sort(edges_.begin(), edges_.end());

    // Where the edges of each vertex begin.
    start_.assign(vertices + 1, 0);
    for (const DirectedEdge& edge : edges_)
      ++start_[edge.from + 1];
    std::partial_sum(start_.begin(), start_.end(), start_.begin());

    const auto twice = std::adjacent_find(
        edges_.begin(), edges_.end(), [](const auto& a, const auto& b) { return a.from == b.from && a.to == b.to; });
    return twice == edges_.end() ? nullptr : &*twice;
  }

  /// -1: there is no such edge.
  int face(int from, int to) const {
    const auto end = edges_.begin() + start_[from + 1];
    const auto found = std::lower_bound(edges_.begin() + start_[from], end, DirectedEdge{from, to, 0});
    return found != end && found->to == to ? found->face : -1;
  }

  const std::vector<DirectedEdge>& edges() const { return edges_; }  ///< by their vertices, ascending
  int first_of(int vertex) const { return start_[vertex]; }          ///< of those that leave it

 private:
  std::vector<DirectedEdge> edges_;
  std::vector<int> start_;
};

/// Welded and oriented triangles of a closed surface.
struct Surface {
  std::string name;
  std::vector<double> vertices;
  std::vector<std::array<int, 3>> triangles;
  EdgeTable edges;  // its faces are the triangles
  double size = 0;
  const double* vertex(int v) const { return &vertices[3 * v]; }
};

/// Longest side of the box about all vertices.
double extent(const std::vector<double>& vertices) {
  double low[3] = {INFINITY, INFINITY, INFINITY};
  double high[3] = {-INFINITY, -INFINITY, -INFINITY};
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    low[i % 3] = std::min(low[i % 3], vertices[i]);
    high[i % 3] = std::max(high[i % 3], vertices[i]);
  }
  return std::max({high[0] - low[0], high[1] - low[1], high[2] - low[2]});
}

/// Representative of each vertex: the first one at its place.
std::vector<int> weld(const Surface& s) {
  // Sorted along x, only neighbours in the order can be at one place.
  const int n = static_cast<int>(s.vertices.size() / 3);
  std::vector<int> order(n);
  std::vector<int> target(n);
  std::iota(order.begin(), order.end(), 0);
  std::iota(target.begin(), target.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return s.vertex(a)[0] != s.vertex(b)[0] ? s.vertex(a)[0] < s.vertex(b)[0] : a < b; });

  const double tolerance = weld_tolerance * s.size;
  for (int i = 0; i < n; ++i)
    for (int j = i + 1; j < n && s.vertex(order[j])[0] - s.vertex(order[i])[0] <= tolerance; ++j) {
      double d[3];
      sub3(s.vertex(order[i]), s.vertex(order[j]), d);
      if (norm3(d) <= tolerance) {
        const int to = std::min(target[order[i]], target[order[j]]);
        target[order[i]] = target[order[j]] = to;
      }
    }

  // Representatives of representatives.
  for (int v = 0; v < n; ++v)
    while (target[v] != target[target[v]])
      target[v] = target[target[v]];
  return target;
}

void check_input(const std::vector<double>& vertices, const std::vector<int>& triangles, const std::string& name) {
  if (vertices.size() % 3 != 0 || vertices.size() < 12)
    fail(name, "vertices holds " + std::to_string(vertices.size()) + " numbers; at least 4 vertices of 3 are needed");
  if (triangles.size() % 3 != 0 || triangles.size() < 12)
    fail(name,
         "triangles holds " + std::to_string(triangles.size()) + " indices; at least 4 triangles of 3 are needed");
  for (std::size_t i = 0; i < vertices.size(); ++i)
    if (!std::isfinite(vertices[i])) {
      fail(name, "vertices[" + std::to_string(i) + "] is not finite");
    }
  for (std::size_t i = 0; i < triangles.size(); ++i)
    if (triangles[i] < 0 || 3 * static_cast<std::size_t>(triangles[i]) >= vertices.size())
      fail(name, "triangles[" + std::to_string(i) + "] is " + std::to_string(triangles[i]) + ", no vertex");
}

/// The normal of a triangle, twice its area long.
void triangle_cross(const Surface& s, const std::array<int, 3>& t, double* out) {
  double e[3];
  double f[3];
  sub3(s.vertex(t[1]), s.vertex(t[0]), e);
  sub3(s.vertex(t[2]), s.vertex(t[0]), f);
  cross3(e, f, out);
}

Surface make_surface(const std::vector<double>& vertices, const std::vector<int>& triangles, const std::string& name) {
  check_input(vertices, triangles, name);
  Surface s;
  s.name = name;
  s.vertices = vertices;
  s.size = extent(vertices);

  // Triangles that welding leaves without area go.
  const std::vector<int> target = weld(s);
  for (std::size_t k = 0; k < triangles.size(); k += 3) {
    const std::array<int, 3> t = {target[triangles[k]], target[triangles[k + 1]], target[triangles[k + 2]]};
    if (t[0] == t[1] || t[1] == t[2] || t[2] == t[0]) continue;
    s.triangles.push_back(t);
  }
  if (s.triangles.size() < 4) {
    fail(name, "fewer than 4 triangles are left after welding equal vertices");
  }

  // The signed volume tells which way the triangles are oriented.
  double volume = 0;
  for (const auto& t : s.triangles) {
    double c[3];
    double d[3];
    triangle_cross(s, t, c);
    sub3(s.vertex(t[0]), s.vertex(s.triangles[0][0]), d);
    volume += dot3(c, d) / 6;
  }
  if (!(std::abs(volume) > 1e-9 * s.size * s.size * s.size)) {
    fail(name, "has no volume (flat)");
  }

  // Outwards, every directed edge is used once,
  for (std::size_t k = 0; k < s.triangles.size(); ++k) {
    auto& t = s.triangles[k];
    if (volume < 0) {
      std::swap(t[1], t[2]);
    }
    for (int i = 0; i < 3; ++i)
      s.edges.add(t[i], t[(i + 1) % 3], static_cast<int>(k));
  }
  if (const DirectedEdge* twice = s.edges.sort(static_cast<int>(s.vertices.size() / 3)))
    fail(name, "edge (" + std::to_string(twice->from) + ", " + std::to_string(twice->to) +
                   ") is used twice in one direction");

  // and once in the other direction by the neighbour: the surface is closed.
  for (const DirectedEdge& edge : s.edges.edges())
    if (s.edges.face(edge.to, edge.from) < 0)
      fail(name, "not closed: edge (" + std::to_string(edge.from) + ", " + std::to_string(edge.to) + ") of triangle " +
                     std::to_string(edge.face) + " has no neighbour");
  return s;
}

/// Region of each triangle: flood from the largest triangle left, over neighbours in its plane.
std::vector<int> flood_regions(const Surface& s, double tolerance, int& num_regions) {
  // Large triangles have the best normals: they come first.
  const int n = static_cast<int>(s.triangles.size());
  std::vector<int> region(n, -1);
  std::vector<int> order(n);
  std::vector<std::array<double, 3>> cross(n);
  for (int k = 0; k < n; ++k)
    triangle_cross(s, s.triangles[k], cross[k].data());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return norm3(cross[a].data()) > norm3(cross[b].data()); });

  // Each seed takes what it can reach across edges and lies in its plane.
  num_regions = 0;
  for (const int seed : order) {
    if (region[seed] >= 0) continue;
    region[seed] = num_regions;
    const double area = norm3(cross[seed].data());
    std::vector<int> open{seed};

    // Of coplanar neighbours the normals agree, and no vertex leaves the plane of the seed.
    while (!open.empty() && area > 0) {
      const auto t = s.triangles[open.back()];
      open.pop_back();
      for (int i = 0; i < 3; ++i) {
        const int next = s.edges.face(t[(i + 1) % 3], t[i]);
        if (region[next] >= 0) continue;

        bool flat = dot3(cross[next].data(), cross[seed].data()) >= 0;
        for (const int v : s.triangles[next]) {
          double d[3];
          sub3(s.vertex(v), s.vertex(s.triangles[seed][0]), d);
          flat = flat && std::abs(dot3(d, cross[seed].data())) <= tolerance * s.size * area;
        }
        if (flat) {
          region[next] = num_regions;
          open.push_back(next);
        }
      }
    }
    ++num_regions;
  }
  return region;
}

/// Outline of every region as a loop of vertices; empty result when one is no simple loop.
std::vector<std::vector<int>> outlines(const Surface& s, const std::vector<int>& region, int num_regions) {
  // Edges between regions, by their first vertex; a vertex that two of one region's edges leave makes no simple
  // loop.
  std::vector<std::vector<DirectedEdge>> border(num_regions);  // ascending, as the edges are
  std::vector<int> touching(s.vertices.size() / 3, 0);
  for (const DirectedEdge& edge : s.edges.edges()) {
    if (region[s.edges.face(edge.to, edge.from)] == region[edge.face]) continue;
    auto& own = border[region[edge.face]];
    if (!own.empty() && own.back().from == edge.from) return {};
    own.push_back(edge);
    ++touching[edge.from];
  }

  // Walked from the first vertex on. A vertex of two regions lies in the middle of an edge and is no corner.
  std::vector<std::vector<int>> loops(num_regions);
  for (int r = 0; r < num_regions; ++r) {
    if (border[r].empty()) return {};
    const int start = border[r].front().from;
    std::size_t steps = 0;
    int v = start;
    do {
      if (touching[v] > 2) {
        loops[r].push_back(v);
      }
      v = std::lower_bound(border[r].begin(), border[r].end(), DirectedEdge{v, 0, 0})->to;
    } while (v != start && ++steps <= border[r].size());

    // The whole outline is one loop of at least three corners.
    if (steps + 1 != border[r].size() || loops[r].size() < 3) return {};
  }
  return loops;
}

/// Vertices that are corners of faces, and faces with their planes.
void fill_faces(const Surface& s, const std::vector<std::vector<int>>& loops, ConvexMesh& mesh) {
  // Corners are numbered in the order of the vertices.
  std::vector<int> index(s.vertices.size() / 3, -1);
  for (const auto& loop : loops)
    for (const int v : loop)
      index[v] = 0;
  int count = 0;
  for (std::size_t v = 0; v < index.size(); ++v) {
    if (index[v] < 0) continue;
    index[v] = count++;
    mesh.vertices.insert(mesh.vertices.end(), s.vertex(v), s.vertex(v) + 3);
  }

  // The plane of a face: the mean of its triangles' normals, the mean height of its corners.
  mesh.face_start.push_back(0);
  for (const auto& loop : loops) {
    double n[3] = {0, 0, 0};
    double offset = 0;
    for (std::size_t i = 1; i + 1 < loop.size(); ++i) {
      double c[3];
      triangle_cross(s, {loop[0], loop[i], loop[i + 1]}, c);
      add3(n, c, n);
    }

    const double length = norm3(n);
    for (const int v : loop) {
      mesh.face_vertices.push_back(index[v]);
      offset += dot3(n, s.vertex(v)) / (length * loop.size());
    }
    for (double x : n)
      mesh.face_normals.push_back(x / length);
    mesh.face_offsets.push_back(offset);
    mesh.face_start.push_back(static_cast<int>(mesh.face_vertices.size()));
  }
}

/// Faces across edges, and vertices joined by edges.
void fill_adjacency(ConvexMesh& mesh) {
  // Every directed edge belongs to one face; its twin to the face across.
  EdgeTable edges;
  const auto each_edge = [&mesh](auto visit) {
    for (int f = 0; f < mesh.num_faces(); ++f)
      for (int k = mesh.face_start[f]; k < mesh.face_start[f + 1]; ++k) {
        const int last = k + 1 == mesh.face_start[f + 1] ? mesh.face_start[f] : k + 1;
        visit(f, mesh.face_vertices[k], mesh.face_vertices[last]);
      }
  };
  each_edge([&](int f, int u, int v) { edges.add(u, v, f); });
  bool fits = edges.sort(mesh.num_vertices()) == nullptr;
  each_edge([&](int, int u, int v) {
    mesh.face_neighbour.push_back(edges.face(v, u));
    fits = fits && mesh.face_neighbour.back() >= 0;
  });
  if (!fits) {
    fail(mesh.name, "faces do not fit together along an edge");
  }

  // Since every edge has its twin, the edges that leave a vertex name all its neighbours.
  for (int v = 0; v <= mesh.num_vertices(); ++v)
    mesh.neighbour_start.push_back(edges.first_of(v));
  for (const DirectedEdge& edge : edges.edges())
    mesh.neighbours.push_back(edge.to);

  // Euler's formula: one surface without holes.
  const int num_edges = static_cast<int>(edges.edges().size() / 2);
  if (mesh.num_vertices() - num_edges + mesh.num_faces() != 2) {
    fail(mesh.name, "surface is not a single closed one");
  }
}

/// Faces around every vertex.
void fill_vertex_faces(ConvexMesh& mesh) {
  std::vector<std::vector<int>> around(mesh.num_vertices());
  for (int f = 0; f < mesh.num_faces(); ++f)
    for (int k = mesh.face_start[f]; k < mesh.face_start[f + 1]; ++k)
      around[mesh.face_vertices[k]].push_back(f);
  mesh.vertex_face_start.push_back(0);
  for (const auto& faces : around) {
    mesh.vertex_faces.insert(mesh.vertex_faces.end(), faces.begin(), faces.end());
    mesh.vertex_face_start.push_back(static_cast<int>(mesh.vertex_faces.size()));
  }
}

/// Of a side of the cube [-1, 1]^3 the cells from (i, j) to before (i_end, j_end), and the direction of a corner of all of them.
struct CellBlock {
  int side;
  int i;
  int j;
  int i_end;
  int j_end;
  void corner(int k, double* d) const {
    const int axis = side / 2;
    const int along = k % 2 == 0 ? i : i_end;
    const int across = k / 2 == 0 ? j : j_end;
    d[axis] = side % 2 == 0 ? 1 : -1;
    d[axis == 2 ? 0 : axis + 1] = 2.0 * along / direction_cells - 1;
    d[axis == 0 ? 2 : axis - 1] = 2.0 * across / direction_cells - 1;
  }
};

/// Those of `among` that may be farthest along some direction of a block: all but those that one of five others, the highest along the corners
/// and along the middle, exceeds along all four corners, and so along every direction between them.
std::vector<int> supports_of(const ConvexMesh& mesh, const CellBlock& block, const std::vector<int>& among,
                             double size) {
  double d[4][3];
  for (int k = 0; k < 4; ++k)
    block.corner(k, d[k]);
  std::vector<std::array<double, 5>> height(among.size());  // along the corners, and their sum
  std::size_t rival[5] = {0, 0, 0, 0, 0};
  for (std::size_t v = 0; v < among.size(); ++v) {
    for (int k = 0; k < 4; ++k)
      height[v][k] = dot3(&mesh.vertices[3 * std::size_t(among[v])], d[k]);
    height[v][4] = height[v][0] + height[v][1] + height[v][2] + height[v][3];
    for (int k = 0; k < 5; ++k)
      if (height[v][k] > height[rival[k]][k]) rival[k] = v;
  }

  std::vector<int> out;
  for (std::size_t v = 0; v < among.size(); ++v) {
    bool exceeded = false;
    for (const std::size_t u : rival) {
      double lead = INFINITY;
      for (int k = 0; k < 4; ++k)
        lead = std::min(lead, height[u][k] - height[v][k]);
      exceeded = exceeded || lead > 1e-12 * size;
    }
    if (!exceeded) out.push_back(among[v]);
  }
  return out;
}

/// Supports of all cells of a block, from those of the block: what no direction of it needs, none of its cells does.
void add_cells(const ConvexMesh& mesh, const CellBlock& block, const std::vector<int>& among, double size,
               std::vector<std::vector<int>>& cells) {
  std::vector<int> supports = supports_of(mesh, block, among, size);
  const int rows = block.i_end - block.i;
  const int columns = block.j_end - block.j;
  if (rows == 1 && columns == 1) {
    cells[(block.side * direction_cells + block.i) * direction_cells + block.j] = std::move(supports);
    return;
  }

  // Halves of the longer side.
  CellBlock first = block;
  CellBlock second = block;
  if (rows >= columns)
    first.i_end = second.i = block.i + rows / 2;
  else
    first.j_end = second.j = block.j + columns / 2;
  add_cells(mesh, first, supports, size, cells);
  add_cells(mesh, second, supports, size, cells);
}

void fill_support_cells(ConvexMesh& mesh, double size) {
  std::vector<int> all(mesh.num_vertices());
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::vector<int>> cells(6 * direction_cells * direction_cells);
  for (int side = 0; side < 6; ++side)
    add_cells(mesh, {side, 0, 0, direction_cells, direction_cells}, all, size, cells);
  for (const std::vector<int>& supports : cells) {
    mesh.support_start.push_back(static_cast<int>(mesh.support_vertices.size()));
    mesh.support_vertices.insert(mesh.support_vertices.end(), supports.begin(), supports.end());
  }
  mesh.support_start.push_back(static_cast<int>(mesh.support_vertices.size()));
}

/// Box about the vertices, and their mean.
void fill_bounds(ConvexMesh& mesh) {
  for (int i = 0; i < 3; ++i) {
    double low = INFINITY;
    double high = -INFINITY;
    double sum = 0;
    for (int v = 0; v < mesh.num_vertices(); ++v) {
      const double x = mesh.vertices[3 * v + i];
      low = std::min(low, x);
      high = std::max(high, x);
      sum += x;
    }
    mesh.aabb_center[i] = 0.5 * (low + high);
    mesh.aabb_half[i] = 0.5 * (high - low);
    mesh.center[i] = sum / mesh.num_vertices();
  }
}

/// No vertex of the faces around a face is outside of it. A closed surface that is convex everywhere is convex as a whole (Hadamard).
void check_convex(const ConvexMesh& mesh, double size) {
  const auto check = [&](int f, int v) {
    const double height = dot3(&mesh.face_normals[3 * f], &mesh.vertices[3 * v]) - mesh.face_offsets[f];
    if (!(height <= convex_tolerance * size))
      fail(mesh.name, "not convex: vertex " + std::to_string(v) + " lies " + std::to_string(height) +
                          " m outside face " + std::to_string(f));
  };
  for (int f = 0; f < mesh.num_faces(); ++f)
    for (int k = mesh.face_start[f]; k < mesh.face_start[f + 1]; ++k) {
      const int v = mesh.face_vertices[k];
      for (int i = mesh.neighbour_start[v]; i < mesh.neighbour_start[v + 1]; ++i)
        check(f, mesh.neighbours[i]);
      const int across = mesh.face_neighbour[k];
      for (int i = mesh.face_start[across]; i < mesh.face_start[across + 1]; ++i)
        check(f, mesh.face_vertices[i]);
    }
}

}  // namespace

std::shared_ptr<const ConvexMesh> make_convex_mesh(const std::vector<double>& vertices,
                                                   const std::vector<int>& triangles, const std::string& name) {
  // Faces are merged triangles; where merging fails on slivers, the triangles themselves.
  const Surface surface = make_surface(vertices, triangles, name);
  int num_regions = 0;
  std::vector<int> region = flood_regions(surface, coplanar_tolerance, num_regions);
  std::vector<std::vector<int>> loops = outlines(surface, region, num_regions);
  if (loops.empty()) {
    for (const auto& t : surface.triangles)
      loops.emplace_back(t.begin(), t.end());
  }

  auto mesh = std::make_shared<ConvexMesh>();
  mesh->name = name;
  fill_faces(surface, loops, *mesh);
  fill_adjacency(*mesh);
  fill_vertex_faces(*mesh);
  fill_support_cells(*mesh, surface.size);
  fill_bounds(*mesh);
  check_convex(*mesh, surface.size);
  return mesh;
}

}  // namespace coulomb
