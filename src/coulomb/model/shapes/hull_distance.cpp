#include "coulomb/model/shapes/hull_distance.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "coulomb/base/small_math.hpp"
#include "coulomb/model/shapes/convex_mesh.hpp"

namespace coulomb {
namespace {

constexpr double samples_across = 30;  // of the hull's size: pockets narrower than that are no matter
constexpr double rounding = 1e-6;      // of the hull's size: meshes come in single precision

struct Triangle {
  double corner[3][3];
  double middle(int axis) const { return (corner[0][axis] + corner[1][axis] + corner[2][axis]) / 3; }
};

double squared_distance(const double* a, const double* b) {
  double d[3];
  sub3(a, b, d);
  return dot3(d, d);
}

/// The square of the distance of p from the segment a b.
double squared_to_segment(const double* p, const double* a, const double* b) {
  double along[3];
  double to[3];
  sub3(b, a, along);
  sub3(p, a, to);
  const double square = dot3(along, along);
  const double t = square > 0 ? std::clamp(dot3(along, to) / square, 0.0, 1.0) : 0.0;
  double nearest[3];
  copy3(a, nearest);
  axpy3(t, along, nearest);
  return squared_distance(p, nearest);
}

/// The same from a triangle: from its plane where the foot is inside, else from its sides.
double squared_to_triangle(const double* p, const Triangle& t) {
  double u[3];
  double w[3];
  double normal[3];
  double to[3];
  sub3(t.corner[1], t.corner[0], u);
  sub3(t.corner[2], t.corner[0], w);
  cross3(u, w, normal);
  sub3(p, t.corner[0], to);
  const double square = dot3(normal, normal);
  if (square > 0) {
    bool inside = true;
    for (int k = 0; k < 3 && inside; ++k) {
      double side[3];
      double from[3];
      double turn[3];
      sub3(t.corner[(k + 1) % 3], t.corner[k], side);
      sub3(p, t.corner[k], from);
      cross3(side, from, turn);
      inside = dot3(turn, normal) >= 0;
    }
    const double height = dot3(normal, to);
    if (inside) return height * height / square;
  }
  double least = squared_to_segment(p, t.corner[0], t.corner[1]);
  least = std::min(least, squared_to_segment(p, t.corner[1], t.corner[2]));
  return std::min(least, squared_to_segment(p, t.corner[2], t.corner[0]));
}

std::vector<Triangle> make_triangles(const std::vector<double>& vertices, const std::vector<int>& triangles) {
  const int count = static_cast<int>(vertices.size() / 3);
  std::vector<Triangle> out(triangles.size() / 3);
  for (std::size_t t = 0; t < out.size(); ++t) {
    for (int k = 0; k < 3; ++k) {
      const int v = triangles[3 * t + k];
      if (v < 0 || v >= count)
        throw std::invalid_argument("triangles[" + std::to_string(t) + "]: vertex " + std::to_string(v) +
                                    " is none of the " + std::to_string(count) + " vertices");
      copy3(&vertices[3 * std::size_t(v)], out[t].corner[k]);
    }
  }
  return out;
}

/// A tree of boxes over triangles, which it sorts: a node's left child follows it.
class TriangleTree {
 public:
  explicit TriangleTree(std::vector<Triangle>& triangles) : triangles_(triangles) {
    nodes_.reserve(2 * triangles.size());
    build(0, int(triangles.size()));
  }

  /// Lowers `least`, the square of a distance from p, to that of the nearest triangle; stops where it is `enough`.
  void find_nearest(const double* p, double enough, double& least, int& nearest) const {
    visit(0, p, enough, least, nearest);
  }

 private:
  struct Node {
    double low[3];
    double high[3];
    int first = 0;
    int count = 0;   // of a leaf
    int right = -1;  // -1: a leaf
  };
  static constexpr int most_in_leaf = 4;

  int build(int first, int end) {
    const int index = int(nodes_.size());
    Node node;
    for (int i = 0; i < 3; ++i) {
      node.low[i] = INFINITY;
      node.high[i] = -INFINITY;
      for (int t = first; t < end; ++t)
        for (const auto& corner : triangles_[t].corner) {
          node.low[i] = std::min(node.low[i], corner[i]);
          node.high[i] = std::max(node.high[i], corner[i]);
        }
    }
    node.first = first;
    node.count = end - first;
    nodes_.push_back(node);
    if (end - first <= most_in_leaf) return index;

    // Halves along the longest side.
    int axis = 0;
    for (int i = 1; i < 3; ++i)
      if (node.high[i] - node.low[i] > node.high[axis] - node.low[axis]) axis = i;
    const int middle = (first + end) / 2;
    std::nth_element(triangles_.begin() + first, triangles_.begin() + middle, triangles_.begin() + end,
                     [axis](const Triangle& a, const Triangle& b) { return a.middle(axis) < b.middle(axis); });
    build(first, middle);
    const int right = build(middle, end);
    nodes_[index].right = right;
    return index;
  }

  static double squared_to_box(const Node& node, const double* p) {
    double sum = 0;
    for (int i = 0; i < 3; ++i) {
      const double out = std::max({node.low[i] - p[i], p[i] - node.high[i], 0.0});
      sum += out * out;
    }
    return sum;
  }

  void visit(int index, const double* p, double enough, double& least, int& nearest) const {
    const Node& node = nodes_[index];
    if (least <= enough || squared_to_box(node, p) >= least) return;
    if (node.right < 0) {
      for (int t = node.first; t < node.first + node.count; ++t) {
        const double square = squared_to_triangle(p, triangles_[t]);
        if (square >= least) continue;
        least = square;
        nearest = t;
      }
      return;
    }
    const bool left_first = squared_to_box(nodes_[index + 1], p) <= squared_to_box(nodes_[node.right], p);
    visit(left_first ? index + 1 : node.right, p, enough, least, nearest);
    visit(left_first ? node.right : index + 1, p, enough, least, nearest);
  }

  std::vector<Triangle>& triangles_;
  std::vector<Node> nodes_;
};

/// The largest distance so far, and the triangle that was nearest to the last point, which is a good guess for the next.
class Farthest {
 public:
  /// negligible: m
  Farthest(std::vector<Triangle>& triangles, double negligible)
      : tree_(triangles), triangles_(triangles), floor_(negligible * negligible), largest_(floor_) {}

  void visit(const double* p) {
    double least = squared_to_triangle(p, triangles_[last_]);
    tree_.find_nearest(p, largest_, least, last_);
    largest_ = std::max(largest_, least);
  }
  double distance() const { return largest_ > floor_ ? std::sqrt(largest_) : 0; }

 private:
  TriangleTree tree_;
  const std::vector<Triangle>& triangles_;
  int last_ = 0;
  double floor_;
  double largest_;
};

double longest_side(const Triangle& t) {
  double square = 0;
  for (int k = 0; k < 3; ++k)
    square = std::max(square, squared_distance(t.corner[k], t.corner[(k + 1) % 3]));
  return std::sqrt(square);
}

/// Points of a triangle, in rows from the corner across its longest side to that side.
void visit_grid(const double* a, const double* b, const double* c, double spacing, Farthest& farthest) {
  if (squared_distance(a, b) > squared_distance(b, c)) std::swap(a, c);
  if (squared_distance(a, c) > squared_distance(b, c)) std::swap(a, b);
  const double longest = std::sqrt(squared_distance(b, c));
  const double height = std::sqrt(squared_to_segment(a, b, c));
  const int rows = std::max(2, static_cast<int>(std::ceil(height / spacing)));
  const int columns = std::max(2, static_cast<int>(std::ceil(longest / spacing)));
  for (int i = 0; i <= rows; ++i)
    for (int j = 0; j <= columns; ++j) {
      const double down = double(i) / rows;
      const double along = double(j) / columns;
      double p[3];
      for (int x = 0; x < 3; ++x)
        p[x] = a[x] + down * ((1 - along) * (b[x] - a[x]) + along * (c[x] - a[x]));
      farthest.visit(p);
    }
}

/// Faces of the hull as fans of triangles.
std::vector<Triangle> hull_triangles(const std::vector<double>& points) {
  const auto hull = make_convex_hull(points, "mesh");
  std::vector<int> indices;
  for (int f = 0; f < hull->num_faces(); ++f) {
    const int first = hull->face_start[f];
    for (int k = first + 1; k + 1 < hull->face_start[f + 1]; ++k)
      indices.insert(indices.end(), {hull->face_vertices[first], hull->face_vertices[k], hull->face_vertices[k + 1]});
  }
  return make_triangles(hull->vertices, indices);
}

/// Of the box that holds them.
double diagonal(const std::vector<Triangle>& triangles) {
  double sum = 0;
  for (int i = 0; i < 3; ++i) {
    double low = INFINITY;
    double high = -INFINITY;
    for (const Triangle& t : triangles)
      for (const auto& corner : t.corner) {
        low = std::min(low, corner[i]);
        high = std::max(high, corner[i]);
      }
    sum += (high - low) * (high - low);
  }
  return std::sqrt(sum);
}

}  // namespace

double hull_distance(const std::vector<double>& vertices, const std::vector<int>& triangles,
                     const std::vector<int>& hull, double negligible) {
  std::vector<Triangle> surface = make_triangles(vertices, triangles);
  const std::vector<Triangle> outside = hull.empty() ? hull_triangles(vertices) : make_triangles(vertices, hull);
  if (surface.empty()) return 0;
  const double size = diagonal(outside);
  const double floor = std::max(negligible, rounding * size);

  // The corners of the hull belong to the mesh, and no point of a triangle is farther from all its corners than its longest side over
  // sqrt(3): small triangles cannot exceed what larger ones have found.
  std::vector<std::pair<double, const Triangle*>> by_reach;
  for (const Triangle& t : outside)
    if (const double reach = longest_side(t) / std::sqrt(3.0); reach > floor) by_reach.emplace_back(reach, &t);
  if (by_reach.empty()) return 0;
  std::stable_sort(by_reach.begin(), by_reach.end(), [](const auto& a, const auto& b) { return a.first > b.first; });

  Farthest farthest(surface, floor);
  for (const auto& [reach, t] : by_reach) {
    if (reach <= farthest.distance()) break;
    visit_grid(t->corner[0], t->corner[1], t->corner[2], size / samples_across, farthest);
  }
  return farthest.distance();
}

}  // namespace coulomb
