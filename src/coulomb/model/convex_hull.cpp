// The convex hull of a cloud of points, by Coal (which calls Qhull). The only unit of the core that sees Coal.
#include <coal/shape/convex.h>
#include <coal/shape/geometric_shapes.h>

#include <cmath>
#include <memory>
#include <stdexcept>
#include <utility>

#include "coulomb/model/convex_mesh.hpp"
#include "coulomb/small_math.hpp"

namespace coulomb {
namespace {

[[noreturn]] void fail(const std::string& name, const std::string& what) {
  throw std::invalid_argument("mesh \"" + name + "\": " + what);
}

/// Thickness of the cloud over its extent: far point, far from the line, far from the plane. Qhull's own error path is not safe to
/// take through Coal's library, so flat input must be found first.
double relative_thickness(const std::vector<double>& points) {
  const int n = static_cast<int>(points.size() / 3);
  const auto farthest = [&](auto measure) {
    double best = 0;
    int at = 0;
    for (int i = 0; i < n; ++i) {
      double d[3];
      sub3(&points[3 * i], &points[0], d);
      const double m = measure(d);
      if (m > best) best = m, at = i;
    }
    return std::pair<double, int>(best, at);
  };
  const auto [length, far] = farthest([](const double* d) { return norm3(d); });
  if (!(length > 0)) return 0;
  double axis[3], normal[3] = {0, 0, 0};
  for (int i = 0; i < 3; ++i) axis[i] = (points[3 * far + i] - points[i]) / length;
  const auto [width, side] = farthest([&](const double* d) {
    double c[3];
    cross3(axis, d, c);
    return norm3(c);
  });
  if (!(width > 0)) return 0;
  double d[3];
  sub3(&points[3 * side], &points[0], d);
  cross3(axis, d, normal);
  for (double& x : normal) x /= width;
  return farthest([&](const double* e) { return std::abs(dot3(normal, e)); }).first / length;
}

}  // namespace

std::shared_ptr<const ConvexMesh> make_convex_hull(const std::vector<double>& points, const std::string& name) {
  if (points.size() % 3 != 0 || points.size() < 12)
    fail(name, "points holds " + std::to_string(points.size()) + " numbers; at least 4 points of 3 are needed");
  auto cloud = std::make_shared<std::vector<coal::Vec3s>>();
  for (std::size_t i = 0; i < points.size(); i += 3) {
    for (std::size_t k = i; k < i + 3; ++k)
      if (!std::isfinite(points[k])) fail(name, "points[" + std::to_string(k) + "] is not finite");
    cloud->emplace_back(points[i], points[i + 1], points[i + 2]);
  }
  if (!(relative_thickness(points) > 1e-7)) fail(name, "the points lie in one plane; a hull needs a volume");
  std::unique_ptr<coal::ConvexBase> hull;
  try {
    hull.reset(coal::ConvexBase::convexHull(cloud, static_cast<unsigned>(cloud->size()), true));
  } catch (const std::exception&) {
  }
  const auto* convex = dynamic_cast<const coal::Convex<coal::Triangle>*>(hull.get());
  if (convex == nullptr) fail(name, "the convex hull of the points could not be built");
  std::vector<double> vertices;
  for (const coal::Vec3s& p : *convex->points) vertices.insert(vertices.end(), p.data(), p.data() + 3);
  std::vector<int> triangles;
  for (const coal::Triangle& t : *convex->polygons)
    for (int k = 0; k < 3; ++k) triangles.push_back(static_cast<int>(t[k]));
  return make_convex_mesh(vertices, triangles, name);
}

}  // namespace coulomb
