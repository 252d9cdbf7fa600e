// Pairs of one robot's own geometries that overlap in its neutral pose: neighbours' shells, hulls fatter than the links. Such a pair
// asks the solver to separate what the joints hold together; contact laws have no answer. They are found once and left out.
#pragma once

#include <vector>

#include "coulomb/model.hpp"

namespace coulomb {

/// Indices into Model::pair_* of pairs of one robot that penetrate by more than `depth` metres at q_neutral. A robot is a body that the world
/// carries, moving or fixed (the base link of a URDF), and all that this body carries; never the world's own geometries.
std::vector<int> neutral_overlaps(const Model& model, double depth = 1e-4);

/// The model without these pairs; the same object when there are none.
std::shared_ptr<const Model> without_pairs(std::shared_ptr<const Model> model, const std::vector<int>& pairs);

}  // namespace coulomb
