// Which geometries may come near each other during a motion: bounding spheres that grow by how far their centres may move. Single
// precision, by rows or swept, as in filter.hpp. Conservative: pairs that are dropped stay apart.
#pragma once

#include "coulomb/collision/broad_phase/filter.hpp"

namespace coulomb {

struct SweptFilter {
  /// swept_from: see FilterTables.
  explicit SweptFilter(const Model& model, int swept_from = least_swept_geometries);

  FilterTables tables;
  std::vector<double> centre;  ///< num_geometries x 3, world: of the bounding spheres at the start
  std::vector<double> reach;   ///< num_geometries: bound of the centre's path
  std::vector<int> pairs;      ///< result, ascending

  /// Pairs whose spheres, grown by reach, meet; pairs with a half-space that moves (reach > 0) always. up: num_geometries x 3, outward
  /// normals of half-spaces at `centre`.
  void run(const Model& model, const double* up);

 private:
  SphereSweep sweep_;
  std::vector<float> sphere_;  ///< 3 rows of centres and one of radii, padded
  std::vector<std::uint8_t> hits_;
};

}  // namespace coulomb
