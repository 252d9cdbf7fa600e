// Names of constraints, for reports of contradictory ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coulomb/model.hpp"

namespace coulomb {

/// Of ConstraintRows::keys, each name once: "<geometry> on <geometry>", "joint <name> at its lower limit", "weld <name>", ...
std::vector<std::string> constraint_names(const Model& model, const std::vector<std::uint64_t>& keys);

/// "a, b, c"; of more than five the first five "and N more".
std::string enumeration(const std::vector<std::string>& names);

}  // namespace coulomb
