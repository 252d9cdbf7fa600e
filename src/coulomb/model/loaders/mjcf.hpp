// Reads MJCF through MuJoCo's own compiler, where the build found the MuJoCo C library (COULOMB_WITH_MUJOCO).
#pragma once

#include <string>

#include "coulomb/model/loaders/mujoco_arrays.hpp"

namespace coulomb {

/// A path, or XML text (anything whose first character is '<'). Throws std::invalid_argument with MuJoCo's message, or
/// std::runtime_error when this build has no MuJoCo.
MujocoArrays read_mjcf(const std::string& path_or_xml);

/// Whether read_mjcf is available in this build.
bool has_mujoco();

}  // namespace coulomb
