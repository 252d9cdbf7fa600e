// The convex hull of a cloud of points, by Qhull (its reentrant library, which Coal depends on too). The only unit that sees Qhull.
// Qhull is called directly: Coal's own hull stores neighbour counts in eight bits and cannot hold a vertex with 255 edges or more.
extern "C" {
#include <libqhull_r/qhull_ra.h>
}

#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <utility>

#include "coulomb/base/small_math.hpp"
#include "coulomb/model/shapes/convex_mesh.hpp"

namespace coulomb {
namespace {

[[noreturn]] void fail(const std::string& name, const std::string& what) {
  throw std::invalid_argument("mesh \"" + name + "\": " + what);
}

/// Thickness of the cloud over its extent: far point, far from the line, far from the plane.
double relative_thickness(const std::vector<double>& points) {
  const int n = static_cast<int>(points.size() / 3);

  // Largest of a measure of d, the vector from the first point, and where.
  const auto farthest = [&](auto measure) {
    double best = 0;
    int at = 0;
    for (int i = 0; i < n; ++i) {
      double d[3];
      sub3(&points[3 * i], &points[0], d);
      const double m = measure(d);
      if (m > best) {
        best = m;
        at = i;
      }
    }
    return std::pair<double, int>(best, at);
  };

  // The first point and the farthest one span an axis,
  const auto [length, far] = farthest([](const double* d) { return norm3(d); });
  if (!(length > 0)) return 0;
  double axis[3];
  double normal[3] = {0, 0, 0};
  for (int i = 0; i < 3; ++i)
    axis[i] = (points[3 * far + i] - points[i]) / length;

  // the farthest from that axis a plane,
  const auto [width, side] = farthest([&](const double* d) {
    double c[3];
    cross3(axis, d, c);
    return norm3(c);
  });
  if (!(width > 0)) return 0;

  // and the farthest from that plane tells the thickness.
  double d[3];
  sub3(&points[3 * side], &points[0], d);
  cross3(axis, d, normal);
  for (double& x : normal)
    x /= width;
  return farthest([&](const double* e) { return std::abs(dot3(normal, e)); }).first / length;
}

/// One run of Qhull; frees its memory whatever happens.
class Hull {
 public:
  explicit Hull(const std::vector<double>& points) : log_(std::tmpfile(), std::fclose) {
    points_ = points;
    qh_zero(&qh_, log_.get());
    char options[] = "qhull Qt";  // triangulated facets
    exit_code_ =
        qh_new_qhull(&qh_, 3, static_cast<int>(points.size() / 3), points_.data(), False, options, nullptr, log_.get());
  }
  ~Hull() {
    qh_freeqhull(&qh_, !qh_ALL);
    int current = 0;
    int total = 0;
    qh_memfreeshort(&qh_, &current, &total);
  }
  Hull(const Hull&) = delete;
  Hull& operator=(const Hull&) = delete;

  int exit_code() const { return exit_code_; }

  /// Indices into the points, counter-clockwise seen from outside.
  std::vector<int> triangles() {
    // Qhull's macros ask for a variable of this name.
    qhT* qh = &qh_;
    std::vector<int> out;
    for (facetT* facet = qh->facet_list; facet != nullptr && facet->next != nullptr; facet = facet->next) {
      // Corners, in the order that Qhull's orientation asks for.
      if (qh_setsize(qh, facet->vertices) != 3) return {};
      int corner[3];
      for (int i = 0; i < 3; ++i)
        corner[i] = qh_pointid(qh, static_cast<vertexT*>(SETelem_(facet->vertices, i))->point);
      if ((facet->toporient != 0) != (qh_ORIENTclock != 0)) {
        std::swap(corner[1], corner[2]);
      }
      out.insert(out.end(), corner, corner + 3);
    }
    return out;
  }

 private:
  qhT qh_;
  std::vector<double> points_;  // Qhull keeps pointers to them
  std::unique_ptr<std::FILE, int (*)(std::FILE*)>
      log_;  // Qhull writes its complaints somewhere, if not here then on stderr
  int exit_code_ = 0;
};

}  // namespace

std::shared_ptr<const ConvexMesh> make_convex_hull(const std::vector<double>& points, const std::string& name) {
  // What can be wrong with the points ...
  if (points.size() % 3 != 0 || points.size() < 12)
    fail(name, "points holds " + std::to_string(points.size()) + " numbers; at least 4 points of 3 are needed");
  for (std::size_t k = 0; k < points.size(); ++k)
    if (!std::isfinite(points[k])) {
      fail(name, "points[" + std::to_string(k) + "] is not finite");
    }
  if (!(relative_thickness(points) > 1e-7)) {
    fail(name, "the points lie in one plane; a hull needs a volume");
  }

  // ... and with what Qhull makes of them.
  const auto hull = std::make_unique<Hull>(points);
  const std::vector<int> corners = hull->exit_code() == 0 ? hull->triangles() : std::vector<int>{};
  if (corners.empty())
    fail(name, "the convex hull of the points could not be built (Qhull's exit code " +
                   std::to_string(hull->exit_code()) + ")");

  // Corners are numbered in the order of the points.
  std::vector<int> index(points.size() / 3, -1);
  std::vector<int> triangles;
  std::vector<double> vertices;
  for (const int corner : corners)
    index[corner] = 0;
  int count = 0;
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (index[i] < 0) continue;
    index[i] = count++;
    vertices.insert(vertices.end(), &points[3 * i], &points[3 * i] + 3);
  }

  for (const int corner : corners)
    triangles.push_back(index[corner]);

  return make_convex_mesh(vertices, triangles, name);
}

}  // namespace coulomb
