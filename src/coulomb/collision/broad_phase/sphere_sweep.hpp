// Which of many spheres overlap: sorted along one axis, each is tested against those that begin before it ends (sweep and prune).
// The order is kept from call to call, and so is the axis; they save time and change no answer. Spheres that lie still are kept in a tree
// instead, which is built when they are placed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "coulomb/collision/broad_phase/sphere_tree.hpp"

namespace coulomb {

class SphereSweep {
 public:
  SphereSweep() = default;
  /// members: the geometries that take part, of num_geometries; still: others, of which pairs with members are looked for, but none among
  /// themselves.
  SphereSweep(std::vector<int> members, int num_geometries, std::vector<int> still = {});

  /// Where those that lie still are, until the next call. To be called before the first run.
  void place_still(const SphereRows& spheres);

  /// Finds the pairs that overlap, or whose overlap cannot be told because a number is not finite.
  void run(const SphereRows& spheres);

  /// The result, geometries with first < second, ascending by first, then by second.
  std::vector<int> first;
  std::vector<int> second;

  std::size_t bytes() const;

 private:
  struct Entry {
    float low;  ///< where the sphere begins along the axis
    int geometry;
  };
  void choose_axis(const SphereRows& spheres);
  void sort_entries(const SphereRows& spheres);
  void sweep(const SphereRows& spheres);
  void sort_hits();
  void order_hits();

  int axis_ = 0;

  /// Pairs of geometries that tell how crowded an axis is
  std::vector<int> sample_a_;
  std::vector<int> sample_b_;

  std::vector<Entry> entries_;  ///< in the order of the last call

  /// Spheres in that order, padded
  std::vector<float> x_;
  std::vector<float> y_;
  std::vector<float> z_;
  std::vector<float> r_;

  /// Where they begin and end, padded
  std::vector<float> low_;
  std::vector<float> high_;

  std::vector<std::uint8_t> hits_;  ///< one sphere's hits

  /// The result, ordered by second only
  std::vector<int> half_first_;
  std::vector<int> half_second_;

  std::vector<int> starts_;  ///< where each geometry's hits go

  /// Those that lie still
  std::vector<int> still_;
  SphereTree tree_;

  std::vector<int> found_;           ///< of them, one sphere's hits
  std::vector<std::uint64_t> keys_;  ///< the result while it is sorted: first and second in one number
};

}  // namespace coulomb
