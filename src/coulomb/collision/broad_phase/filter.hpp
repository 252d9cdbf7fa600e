// Which pairs may touch: bounding spheres in single precision, then oriented boxes. Conservative: a pair closer than its margin is
// never dropped. Half-spaces take the signed distance of the box. Spheres: of few geometries each is tested against all of its
// partners, many are sorted along an axis first (sphere_sweep.hpp), and those of bodies that are fixed to the world lie in a tree and are
// placed once; the candidates are the same.
#pragma once

#include <cstdint>
#include <vector>

#include "coulomb/collision/broad_phase/sphere_sweep.hpp"
#include "coulomb/model.hpp"

namespace coulomb {

struct CollisionWorkspace;

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

/// Where fixed bodies were in the last detection: while they are there, their geometries need not be placed again.
struct FixedPlaces {
  std::vector<double> poses;  ///< per body of FilterTables::Fixed 12: position, rotation
  double least_margin = 0;
  bool known = false;
};

/// Fills workspace.candidates, ascending, and workspace.pose; where bodies travel, also the margins' widths. travel: see detect_contacts.
void filter_pairs(const Model& model, const double* body_position, const double* body_rotation, const double* travel,
                  CollisionWorkspace& workspace);

/// Fills workspace.shift and turn of geometry g from how its body travels; returns how far the two take its surface.
double follow_travel(const Model& model, const double* body_rotation, const double* travel, int g,
                     CollisionWorkspace& workspace);

/// How much wider than the pair's margin contacts are looked for: by how far its shapes may come together.
double margin_width(const Model& model, const CollisionWorkspace& workspace, int pair);

}  // namespace coulomb
