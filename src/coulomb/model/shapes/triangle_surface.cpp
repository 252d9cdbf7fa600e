// Normals, neighbours, which edges and corners can touch by themselves, and the tree of boxes.
#include "coulomb/model/shapes/triangle_surface.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "coulomb/base/small_math.hpp"
#include "coulomb/model/checks.hpp"

namespace coulomb {
namespace {

constexpr double flat_sine = 1e-9;   // sine between two faces: the edge between them is inside of one plane
constexpr int leaf_size = 4;         // triangles of a box that is not split
constexpr double one_plane = 1e-12;  // sines, and offsets over the distance: triangles of one plane

[[noreturn]] void fail(const std::string& what, int triangle, const std::string& why) {
  throw std::invalid_argument(what + " triangles[" + std::to_string(triangle) + "]: " + why);
}

class SurfaceBuilder {
 public:
  SurfaceBuilder(TriangleSurface& surface, const std::string& what) : s_(surface), what_(what) {}

  void build() {
    check_indices();
    find_normals();
    find_neighbours();
    find_features();
    find_rings();
    find_boxes();
  }

 private:
  const double* vertex(int v) const { return &s_.vertices[3 * v]; }
  int corner(int triangle, int k) const { return s_.triangles[3 * triangle + k % 3]; }

  void check_indices() const {
    for (int t = 0; t < s_.num_triangles(); ++t)
      for (int k = 0; k < 3; ++k)
        if (corner(t, k) < 0 || corner(t, k) >= s_.num_vertices())
          fail(what_, t,
               std::to_string(corner(t, k)) + " is none of its " + std::to_string(s_.num_vertices()) + " vertices");
  }

  void find_normals() {
    s_.normals.resize(s_.triangles.size());
    for (int t = 0; t < s_.num_triangles(); ++t) {
      double e[3];
      double f[3];
      double* n = &s_.normals[3 * t];
      sub3(vertex(corner(t, 1)), vertex(corner(t, 0)), e);
      sub3(vertex(corner(t, 2)), vertex(corner(t, 0)), f);
      cross3(e, f, n);
      const double area = norm3(n);
      if (!(area > 1e-12 * std::max(dot3(e, e), dot3(f, f)))) fail(what_, t, "its corners lie on one line");
      for (int i = 0; i < 3; ++i)
        n[i] /= area;
    }
  }

  /// Two triangles at most meet at an edge, which they run through in opposite directions.
  void find_neighbours() {
    s_.across.assign(s_.triangles.size(), -1);
    std::map<std::pair<int, int>, int> edges;  // directed edge: where it is in triangles
    for (int t = 0; t < s_.num_triangles(); ++t)
      for (int k = 0; k < 3; ++k)
        if (!edges.emplace(std::pair(corner(t, k), corner(t, k + 1)), 3 * t + k).second)
          fail(what_, t,
               "another triangle runs through its edge (" + std::to_string(corner(t, k)) + ", " +
                   std::to_string(corner(t, k + 1)) + ") in the same direction; an edge has two triangles at most");
    for (const auto& [edge, at] : edges) {
      const auto other = edges.find({edge.second, edge.first});
      if (other != edges.end()) s_.across[at] = other->second / 3;
    }
  }

  /// An edge that is not inside of one plane and not a valley, or that is the border; each is listed by its first triangle.
  bool is_ridge(int t, int k) const {
    const int other = s_.across[3 * t + k];
    if (other < 0) return true;
    double e[3];
    double turn[3];
    sub3(vertex(corner(t, k + 1)), vertex(corner(t, k)), e);
    cross3(&s_.normals[3 * t], &s_.normals[3 * other], turn);
    return dot3(turn, e) > flat_sine * norm3(e) ||
           (dot3(turn, e) > -flat_sine * norm3(e) && dot3(&s_.normals[3 * t], &s_.normals[3 * other]) < 0);
  }

  void find_features() {
    s_.features.assign(s_.num_triangles(), 0);
    std::vector<bool> ends(s_.num_vertices(), false);
    for (int t = 0; t < s_.num_triangles(); ++t)
      for (int k = 0; k < 3; ++k) {
        if (!is_ridge(t, k)) continue;
        ends[corner(t, k)] = ends[corner(t, k + 1)] = true;
        const int other = s_.across[3 * t + k];
        if (other < 0 || t < other) s_.features[t] |= surface_feature::edge(k);
      }

    // Corners likewise.
    std::vector<bool> listed(s_.num_vertices(), false);
    for (int t = 0; t < s_.num_triangles(); ++t)
      for (int k = 0; k < 3; ++k) {
        const int v = corner(t, k);
        if (!ends[v] || listed[v]) continue;
        listed[v] = true;
        s_.features[t] |= surface_feature::corner(k);
      }
  }

  void find_rings() {
    std::vector<std::vector<int>> around(s_.num_vertices());
    const auto add = [&](int v, int w) {
      if (std::find(around[v].begin(), around[v].end(), w) == around[v].end()) around[v].push_back(w);
    };
    for (int t = 0; t < s_.num_triangles(); ++t)
      for (int k = 0; k < 3; ++k) {
        add(corner(t, k), corner(t, k + 1));
        add(corner(t, k + 1), corner(t, k));
      }
    s_.ring_start.assign(1, 0);
    s_.ring.clear();
    for (const auto& ring : around) {
      s_.ring.insert(s_.ring.end(), ring.begin(), ring.end());
      s_.ring_start.push_back(static_cast<int>(s_.ring.size()));
    }
  }

  /// The box of some triangles.
  void bound(int begin, int end, double* box) const {
    std::fill(box, box + 3, INFINITY);
    std::fill(box + 3, box + 6, -INFINITY);
    for (int i = begin; i < end; ++i)
      for (int k = 0; k < 3; ++k) {
        const double* x = vertex(corner(s_.leaf_triangles[i], k));
        for (int c = 0; c < 3; ++c) {
          box[c] = std::min(box[c], x[c]);
          box[3 + c] = std::max(box[3 + c], x[c]);
        }
      }
  }

  double middle(int t, int axis) const {
    return vertex(corner(t, 0))[axis] + vertex(corner(t, 1))[axis] + vertex(corner(t, 2))[axis];
  }

  bool in_one_plane(int t, int u) const {
    double turn[3];
    double arm[3];
    cross3(&s_.normals[3 * t], &s_.normals[3 * u], turn);
    sub3(vertex(corner(u, 0)), vertex(corner(t, 0)), arm);
    return norm3(turn) <= one_plane && dot3(&s_.normals[3 * t], &s_.normals[3 * u]) > 0 &&
           std::abs(dot3(&s_.normals[3 * t], arm)) <= one_plane * norm3(arm);
  }

  bool at_border(int t) const { return s_.across[3 * t] < 0 || s_.across[3 * t + 1] < 0 || s_.across[3 * t + 2] < 0; }

  /// The plane of a leaf's triangles.
  int plane_of_leaf(int begin, int end) const {
    const int first = s_.leaf_triangles[begin];
    for (int i = begin; i < end; ++i)
      if (at_border(s_.leaf_triangles[i]) || !in_one_plane(first, s_.leaf_triangles[i])) return -1;
    return first;
  }

  /// Where triangles begin ... end - 1 are split, after they have been sorted for it: a height field's grid, walls and floor first, then at
  /// the median of the longest side. Walls and floor are large: among the triangles of the grid they would widen all of its boxes.
  int split_at(int begin, int end, const double* box) {
    const int cells = 2 * (s_.rows - 1) * (s_.columns - 1);
    const int walls = 4 * (s_.rows + s_.columns - 2);
    for (const int part : {cells, cells + walls})
      if (s_.rows > 0 && begin < part && part < end) return part;

    int axis = 0;
    for (int c = 1; c < 3; ++c)
      if (box[3 + c] - box[c] > box[3 + axis] - box[axis]) axis = c;
    const int half = begin + (end - begin) / 2;
    std::nth_element(s_.leaf_triangles.begin() + begin, s_.leaf_triangles.begin() + half,
                     s_.leaf_triangles.begin() + end, [&](int a, int b) {
                       const double x = middle(a, axis);
                       const double y = middle(b, axis);
                       return x < y || (x == y && a < b);
                     });
    return half;
  }

  void split(int begin, int end) {
    const int node = static_cast<int>(s_.node_second.size());
    double box[6];
    bound(begin, end, box);
    s_.node_box.insert(s_.node_box.end(), box, box + 6);
    s_.node_second.push_back(-1 - begin);
    s_.node_count.push_back(end - begin);
    s_.node_plane.push_back(-1);
    if (end - begin <= leaf_size) {
      s_.node_plane[node] = plane_of_leaf(begin, end);
      return;
    }

    const int half = split_at(begin, end, box);
    s_.node_count[node] = 0;
    split(begin, half);
    const int second = static_cast<int>(s_.node_second.size());
    s_.node_second[node] = second;
    split(half, end);
    const int plane = s_.node_plane[node + 1];
    if (plane >= 0 && s_.node_plane[second] >= 0 && in_one_plane(plane, s_.node_plane[second]))
      s_.node_plane[node] = plane;
  }

  void find_boxes() {
    s_.leaf_triangles.resize(s_.num_triangles());
    for (int t = 0; t < s_.num_triangles(); ++t)
      s_.leaf_triangles[t] = t;
    s_.node_box.clear();
    s_.node_second.clear();
    s_.node_count.clear();
    s_.node_plane.clear();
    split(0, s_.num_triangles());
    for (int c = 0; c < 3; ++c) {
      s_.aabb_center[c] = 0.5 * (s_.node_box[c] + s_.node_box[3 + c]);
      s_.aabb_half[c] = 0.5 * (s_.node_box[3 + c] - s_.node_box[c]);
    }
  }

  TriangleSurface& s_;
  const std::string& what_;
};

/// The vertices of a grid's border, counter-clockwise seen from above.
std::vector<int> border_of_grid(int rows, int columns) {
  std::vector<int> out;
  for (int column = 0; column < columns - 1; ++column)
    out.push_back(column);
  for (int row = 0; row < rows - 1; ++row)
    out.push_back(row * columns + columns - 1);
  for (int column = columns - 1; column > 0; --column)
    out.push_back((rows - 1) * columns + column);
  for (int row = rows - 1; row > 0; --row)
    out.push_back(row * columns);
  return out;
}

/// Walls from the grid's border down to `floor`, two triangles an edge, then a fan of triangles that closes them.
void add_base(int rows, int columns, double floor, std::vector<double>& vertices, std::vector<int>& triangles) {
  const std::vector<int> border = border_of_grid(rows, columns);
  const int first = rows * columns;
  const int count = static_cast<int>(border.size());
  for (int v : border) {
    const double x = vertices[3 * v];
    const double y = vertices[3 * v + 1];
    vertices.insert(vertices.end(), {x, y, floor});
  }
  const int middle = first + count;
  vertices.insert(vertices.end(), {0, 0, floor});
  for (int k = 0; k < count; ++k) {
    const int next = (k + 1) % count;
    const int below = first + k;
    const int next_below = first + next;
    triangles.insert(triangles.end(), {below, next_below, border[next]});
    triangles.insert(triangles.end(), {below, border[next], border[k]});
  }
  for (int k = 0; k < count; ++k)
    triangles.insert(triangles.end(), {first + (k + 1) % count, first + k, middle});
}

}  // namespace

std::shared_ptr<const TriangleSurface> make_triangle_surface(const std::vector<double>& vertices,
                                                             const std::vector<int>& triangles,
                                                             const std::string& what) {
  if (vertices.size() % 3 != 0 || vertices.size() < 9)
    throw std::invalid_argument(what + " vertices: " + std::to_string(vertices.size()) +
                                " coordinates; at least three points of three are needed");
  if (triangles.size() % 3 != 0 || triangles.empty())
    throw std::invalid_argument(what + " triangles: " + std::to_string(triangles.size()) +
                                " indices; at least one triangle of three is needed");
  checks::finite(what + " vertices", vertices.data(), static_cast<int>(vertices.size()));
  auto out = std::make_shared<TriangleSurface>();
  out->vertices = vertices;
  out->triangles = triangles;
  out->name = what;
  SurfaceBuilder(*out, what).build();
  return out;
}

std::shared_ptr<const TriangleSurface> make_height_field(const HeightField& field, const std::string& what) {
  const int rows = field.rows;
  const int columns = field.columns;
  if (rows < 2 || columns < 2)
    throw std::invalid_argument(what + " heights: " + std::to_string(rows) + " x " + std::to_string(columns) +
                                "; at least two rows of two are needed");
  for (int i = 0; i < 2; ++i)
    checks::positive(what + " spacing[" + std::to_string(i) + "]", field.spacing[i]);
  checks::positive(what + " base", field.base);
  checks::finite(what + " heights", field.heights.data(), static_cast<int>(field.heights.size()));

  // Vertices row by row, and two triangles a cell.
  std::vector<double> vertices;
  std::vector<int> triangles;
  vertices.reserve(3 * field.heights.size());
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column) {
      vertices.push_back((column - 0.5 * (columns - 1)) * field.spacing[0]);
      vertices.push_back((row - 0.5 * (rows - 1)) * field.spacing[1]);
      vertices.push_back(field.heights[static_cast<std::size_t>(row) * columns + column]);
    }
  for (int row = 0; row + 1 < rows; ++row)
    for (int column = 0; column + 1 < columns; ++column) {
      const int v = row * columns + column;
      triangles.insert(triangles.end(), {v, v + 1, v + columns + 1, v, v + columns + 1, v + columns});
    }
  const double lowest = *std::min_element(field.heights.begin(), field.heights.end());
  add_base(rows, columns, lowest - field.base, vertices, triangles);

  auto out = std::make_shared<TriangleSurface>();
  out->vertices = std::move(vertices);
  out->triangles = std::move(triangles);
  out->name = what;
  out->rows = rows;
  out->columns = columns;
  SurfaceBuilder(*out, what).build();
  return out;
}

std::shared_ptr<const TriangleSurface> move_surface(const TriangleSurface& surface, const std::vector<double>& vertices,
                                                    const std::string& what) {
  auto out = std::make_shared<TriangleSurface>(surface);
  out->vertices = vertices;
  SurfaceBuilder(*out, what).build();
  return out;
}

}  // namespace coulomb
