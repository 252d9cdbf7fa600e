// A compiled MuJoCo model as named arrays, and its translation into SceneParts. Filled from mjModel* (mjcf.cpp) or from
// mujoco.MjModel in Python (coulomb/mjcf.py): one translation serves both, and no MuJoCo header is needed here.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "coulomb/scene_parts.hpp"

namespace coulomb {

/// Keys are mjModel's field names (row-major, flattened), options as opt_gravity, opt_timestep, ...; a field that a MuJoCo version
/// does not have is left out and counts as zero. Counts of things without arrays: nsensor, nsite, ncam, nlight, ... in `integers`.
struct MujocoArrays {
  std::string name;
  std::map<std::string, std::vector<double>> reals;
  std::map<std::string, std::vector<int>> integers;

  /// By kind: body, joint, geom, mesh, actuator, equality, key, tendon, site, sensor, "" if unnamed; sensor_type:
  /// "framepos", ...
  std::map<std::string, std::vector<std::string>> names;
};

/// Throws std::invalid_argument naming the element wherever leaving something out would change the motion; what can be left out
/// is listed in SceneParts::ignored.
/// soft: contacts and joint limits are as soft as the file says.
SceneParts translate_mujoco_arrays(const MujocoArrays& arrays, bool soft);

}  // namespace coulomb
