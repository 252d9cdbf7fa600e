#include "coulomb/stepping/neutral_overlaps.hpp"

#include <algorithm>

#include "coulomb/collision/detect.hpp"
#include "coulomb/dynamics/dynamics.hpp"

namespace coulomb {

namespace {

/// The body that a robot is: its floating base, or what is fixed to the world and carries its links. World: none.
int robot_of(const Model& model, int body) {
  while (body > 0 && model.body_parent[body] > 0)
    body = model.body_parent[body];
  return body;
}

/// Bodies of the same one.
bool of_one_robot(const Model& model, int body_a, int body_b) {
  const int robot = robot_of(model, body_a);
  return robot > 0 && robot == robot_of(model, body_b);
}

/// Scenes of single bodies have no pair to look at.
bool has_own_pairs(const Model& model) {
  for (std::size_t p = 0; p < model.pair_a.size(); ++p)
    if (of_one_robot(model, model.geometry_body[model.pair_a[p]], model.geometry_body[model.pair_b[p]])) return true;
  return false;
}

}  // namespace

std::vector<int> neutral_overlaps(const Model& model, double depth) {
  if (!has_own_pairs(model)) return {};

  // The neutral pose, once.
  DynamicsWorkspace dynamics(model);
  CollisionWorkspace workspace(model);
  CollisionCache cache;
  kinematics(model, model.q_neutral.data(), dynamics);
  detect_contacts(model, dynamics.body_position.data(), dynamics.body_rotation.data(), {}, cache, workspace);

  // Contacts are in the order of their pairs.
  std::vector<int> out;
  for (const Contact& contact : workspace.contacts) {
    if (!of_one_robot(model, contact.body_a, contact.body_b) || contact.distance > -depth) continue;
    if (out.empty() || out.back() != contact.pair) {
      out.push_back(contact.pair);
    }
  }
  return out;
}

std::shared_ptr<const Model> without_pairs(std::shared_ptr<const Model> model, const std::vector<int>& pairs) {
  if (pairs.empty()) return model;
  auto out = std::make_shared<Model>(*model);

  // Every array by pairs, without them.
  const auto drop = [&](auto& values) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!std::binary_search(pairs.begin(), pairs.end(), int(i))) {
        values[kept++] = values[i];
      }
    values.resize(kept);
  };
  drop(out->pair_a);
  drop(out->pair_b);
  drop(out->pair_friction);
  drop(out->pair_restitution);
  drop(out->pair_compliance);
  drop(out->pair_overrides);
  drop(out->pair_penalty);
  drop(out->pair_margin);
  drop(out->pair_weight);

  // Told to whoever asks the model.
  for (int pair : pairs) {
    const std::string line = "pair " + model->geometry_names[model->pair_a[pair]] + ", " +
                             model->geometry_names[model->pair_b[pair]] +
                             ": overlaps in the neutral pose, left out of the simulation";
    out->ignored.push_back(line);
    out->deviations.push_back(line);
  }
  return out;
}

}  // namespace coulomb
