// Which pairs may touch: bounding spheres in single precision, one geometry against all of its partners at a time, then oriented
// boxes. Conservative: a pair closer than its margin is never dropped. Half-spaces take the signed distance of the box.
#pragma once

#include <cstdint>
#include <vector>

#include "coulomb/model/model.hpp"

namespace coulomb {

struct CollisionWorkspace;

/// Constants of the filter, computed once from the model.
struct FilterTables {
  /// Geometry i against the columns begin..end-1 (multiples of 16 wide, end may pass num_geometries into the padding).
  struct Row {
    int geometry = 0, begin = 0, end = 0, offset = 0;  ///< offset: where the row starts in allowed and pair_of
  };
  explicit FilterTables(const Model& model);

  int padded = 0;                      ///< num_geometries rounded up to 16
  std::vector<Row> rows;
  std::vector<std::uint8_t> allowed;   ///< 1 where (row, column) is a pair of two bounded shapes
  std::vector<int> pair_of;            ///< aligned with allowed: the pair's index
  std::vector<int> half_space_pairs;   ///< pairs with a half-space, ascending
  std::vector<double> box_center;      ///< num_geometries x 3: centre of box and sphere, body frame
  std::vector<double> box_local;       ///< num_geometries x 3: the same in the geometry frame
  std::vector<double> box_half;        ///< num_geometries x 3: half sides along the geometry's axes
  std::vector<double> radius;          ///< bounding sphere
  std::vector<double> reach;           ///< radius + half the largest margin of the geometry's pairs
  std::vector<double> size;            ///< smallest size, metres
  std::vector<double> rotation;        ///< num_geometries x 9: body from geometry
  std::vector<int> used;               ///< geometries that appear in some pair
};

/// Fills workspace.candidates, ascending, and the poses of the geometries concerned.
void filter_pairs(const Model& model, const double* body_position, const double* body_rotation, CollisionWorkspace& workspace);

}  // namespace coulomb
