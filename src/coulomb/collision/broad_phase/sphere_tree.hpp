// Which of many spheres that lie still overlap one that moves: a tree of boxes, sixteen children each. Far away costs nothing.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace coulomb {

/// Spheres in single precision, as rows: one value per geometry each.
struct SphereRows {
  const float* centre[3];
  const float* radius;
};

/// One of them.
struct SphereAt {
  float centre[3];
  float radius;
};

/// To spare at either end of a sphere along an axis, so that those which test_spheres lets pass overlap along it, too. The last term:
/// squares of smaller numbers vanish.
inline float sphere_slack(float centre, float radius) { return 2e-6f * (std::abs(centre) + radius) + 1e-18f; }

/// Where a sphere begins along an axis; what is no number begins before everything.
inline float sphere_begin(float centre, float radius) {
  const float low = centre - radius - sphere_slack(centre, radius);
  return std::isnan(low) ? -std::numeric_limits<float>::infinity() : low;
}

/// Where it ends; what is no number never does.
inline float sphere_end(float centre, float radius) {
  const float high = centre + radius + sphere_slack(centre, radius);
  return std::isnan(high) ? std::numeric_limits<float>::infinity() : high;
}

/// hits[j] = the sphere and the one in column j are not apart. n: a multiple of 8.
void test_spheres(const float* x, const float* y, const float* z, const float* r, const SphereAt& sphere, int n,
                  std::uint8_t* hits);

class SphereTree {
 public:
  /// Of these geometries' spheres.
  void build(const SphereRows& spheres, const std::vector<int>& geometries);

  /// Adds the geometries whose spheres overlap this one, or whose overlap cannot be told because a number is not finite.
  void find(const SphereAt& sphere, std::vector<int>& found) const;

  std::size_t bytes() const;

 private:
  /// Sixteen boxes, side by side.
  struct Boxes {
    float low[3][16];
    float high[3][16];
  };
  void arrange(const SphereRows& spheres, int begin, int end);
  void add_boxes(int level, int child, const float* low, const float* high);
  void find_below(int level, int child, const Boxes& query, const SphereAt& sphere, std::vector<int>& found) const;

  std::vector<int> order_;  ///< geometries, neighbours in space side by side

  /// Their spheres in that order, padded to whole leaves of sixteen
  std::vector<float> x_;
  std::vector<float> y_;
  std::vector<float> z_;
  std::vector<float> r_;

  /// Per level from the leaves up, boxes of sixteen children each; the last level has one element.
  std::vector<std::vector<Boxes>> levels_;
};

}  // namespace coulomb
