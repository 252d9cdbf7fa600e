// Pairs of geometries of one robot that the joints between them cannot separate: shells of neighbouring links, hulls
// larger than the links. Such a pair demands that the solver separate bodies that joints hold together, and no contact
// law has a solution. These pairs are found once and left out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coulomb/model.hpp"

namespace coulomb {

/// Indices into Model::pair_*, ascending, of pairs of one robot that overlap at neutral() and in 64 more poses of its joints within their limits,
/// the same ones whenever they are asked for. Bodies with one joint between them need only touch, within a thousandth of the smaller shape's size.
/// Never pairs that the user named. A robot is a body that the world carries, moving or fixed (the base link of a URDF), and all that this body
/// carries; never the world's own geometries.
std::vector<int> neutral_overlaps(const Model& model);

/// What is said of such pairs, a line each.
std::vector<std::string> overlap_lines(const Model& model, const std::vector<int>& pairs);

/// The model without these pairs, which says so; the same object when there are none.
std::shared_ptr<const Model> without_pairs(std::shared_ptr<const Model> model, const std::vector<int>& pairs);

}  // namespace coulomb
