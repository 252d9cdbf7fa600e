// Mocap bodies: fixed to the world, where the caller puts them before each step. Their poses are rows of 7 numbers, position (m) and unit
// quaternion (w x y z), one for each of Model::mocap_bodies.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "coulomb/model.hpp"

namespace coulomb {

/// Numbers of the poses of all mocap bodies.
inline std::size_t mocap_size(const Model& model) { return 7 * model.mocap_bodies.size(); }
/// And of a tangent of them: 6 for each, that of the parameter body_placement.
inline std::size_t mocap_tangent_size(const Model& model) { return 6 * model.mocap_bodies.size(); }
/// The parameters of these poses, body_placement/<body>, in the order of Model::mocap_bodies.
std::vector<std::string> mocap_parameters(const Model& model);

/// Throws std::invalid_argument for poses of one step that are not finite or not unit. name: as an array is indexed, with an open bracket:
/// "mocap[" or "mocap[3, ".
void check_mocap_poses(const Model& model, const double* poses, const std::string& name);

/// Fixed poses of a model whose bodies are moved again and again: memory is used again as soon as nobody looks at it.
class FixedPosesStorage {
 public:
  /// Model::fixed_poses, from the placements that the bodies have now.
  void find(Model& model);

 private:
  std::shared_ptr<FixedPoses> in_use_;
  std::shared_ptr<FixedPoses> before_;
};

/// The poses that they have in the model.
std::vector<double> mocap_poses(const Model& model);
/// Are the mocap bodies there already, bit for bit?
bool mocap_bodies_are_at(const Model& model, const double* poses);
/// Puts them there; the poses must have been checked.
void place_mocap_bodies(Model& model, const double* poses, FixedPosesStorage& storage);

/// The model as the steps of a rollout see it. It stays one object, so that what looks at it need not look again.
class MocapModel {
 public:
  /// `model` itself without poses (null), else a copy with its mocap bodies there.
  const Model& at(const std::shared_ptr<const Model>& model, const double* poses);

 private:
  std::shared_ptr<const Model> original_;
  std::unique_ptr<Model> moved_;
  FixedPosesStorage storage_;
};

}  // namespace coulomb
