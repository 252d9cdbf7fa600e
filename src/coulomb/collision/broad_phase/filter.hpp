// Which pairs may touch: bounding spheres in single precision, then oriented boxes. Conservative: a pair closer than its margin is
// never dropped. Half-spaces take the signed distance of the box. Spheres: of few geometries each is tested against all of its
// partners, many are sorted along an axis first (sphere_sweep.hpp), and those of bodies that are fixed to the world lie in a tree and are
// placed once; the candidates are the same.
#pragma once

#include <vector>

#include "coulomb/collision/broad_phase/filter_tables.hpp"

namespace coulomb {

struct CollisionWorkspace;

/// Where fixed bodies were in the last detection: while they are there, their geometries need not be placed again.
struct FixedPlaces {
  std::vector<double> poses;  ///< per body of FilterTables::Fixed 12: position, rotation
  double least_margin = 0;
  bool known = false;
  std::shared_ptr<const FixedPoses> of_model;  ///< the same object: the same poses
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
