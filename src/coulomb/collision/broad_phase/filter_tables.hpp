// Constants of the broad phase (filter.hpp), computed once from a model.
#pragma once

#include <cstdint>
#include <vector>

#include "coulomb/collision/broad_phase/sphere_sweep.hpp"
#include "coulomb/model.hpp"

namespace coulomb {

/// Models with at least this many geometries are swept: where it takes the same time as testing every pair.
inline constexpr int least_swept_geometries = 200;

/// Models with fewer geometries that are fixed to the world sweep them along with the others: beside a single one, a look into the tree
/// costs every other geometry more than it saves.
inline constexpr int least_fixed_geometries = 32;

/// The pair of two geometries. In a model the pairs of one first geometry follow one another, ascending by the second.
class PairLookup {
 public:
  PairLookup() = default;
  explicit PairLookup(const Model& model);
  /// Index of pair (a, b), a < b; -1 when these two do not collide.
  int find(const Model& model, int a, int b) const;

  std::vector<int> start;  ///< num_geometries + 1: where a geometry's pairs begin
};

/// Constants of the filter, computed once from the model.
struct FilterTables {
  static constexpr int lanes = 16;  ///< geometries are padded to whole vectors

  /// Rows of the poses, one value per geometry each: 9 rotation, 3 position, 3 centre.
  static constexpr int position_row = 9;
  static constexpr int centre_row = 12;

  /// Geometry i against the columns begin..end-1 (multiples of 16 wide, end may pass num_geometries into the padding).
  struct Row {
    int geometry = 0;
    int begin = 0;
    int end = 0;
    int offset = 0;  ///< where the row starts in allowed and pair_of
  };
  /// A half-space and its partners.
  struct Plane {
    int geometry = 0;
    std::vector<int> other;
    std::vector<int> pair;
    std::vector<double> margin;
  };
  /// Geometries begin..end-1, multiples of 16.
  struct Block {
    int begin = 0;
    int end = 0;
  };
  /// Bounded geometries of bodies that are fixed to the world, none the other's partner; none in models that are not swept.
  struct Fixed {
    std::vector<int> geometries;
    std::vector<int> bodies;    ///< that carry them
    std::vector<Block> others;  ///< all geometries but these, and what lies between two of them
  };
  /// swept_from: how many geometries are many.
  explicit FilterTables(const Model& model, int swept_from = least_swept_geometries);
  /// The sweep of the bounded geometries that have partners, with fixed ones or with those as still; empty where every pair is tested.
  SphereSweep make_sweep(const Model& model, bool fixed_are_still) const;

  int padded = 0;      ///< num_geometries rounded up to 16
  bool swept = false;  ///< many geometries: `lookup` instead of rows, allowed and pair_of
  PairLookup lookup;
  Fixed fixed;
  std::vector<Row> rows;
  std::vector<std::uint8_t> allowed;  ///< 1 where (row, column) is a pair of two bounded shapes
  std::vector<int> pair_of;           ///< aligned with allowed: the pair's index
  std::vector<Plane> planes;
  std::vector<double> local;  ///< 15 rows of `padded`: rotation, position, centre of box and sphere in the body frame
  std::vector<double> box_half;  ///< 3 rows of `padded`: half sides along the geometry's axes
  std::vector<double> radius;    ///< bounding sphere
  std::vector<double> reach;     ///< radius + half the largest margin of the geometry's pairs
  std::vector<double> core;      ///< how far from the centre turning about it moves the surface
  std::vector<double> size;      ///< smallest size, metres
};

}  // namespace coulomb
