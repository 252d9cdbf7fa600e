// What a block's key (constraint_keys.hpp) stands for, in words.
#include "coulomb/stepping/contradictions.hpp"

#include <algorithm>

#include "coulomb/constraints/constraint_keys.hpp"

namespace coulomb {
namespace {

constexpr std::size_t most_names = 5;

/// Its own name, or whom it ties.
std::string equality_name(const Model& model, const Equality& equality) {
  const bool joints = equality.type == EqualityType::joint;
  const bool tendons = equality.type == EqualityType::tendon;
  const std::string kind = joints || tendons ? "equality" : equality.type == EqualityType::weld ? "weld" : "connection";
  if (!equality.name.empty()) return kind + " " + equality.name;
  if (tendons) {
    const std::string first = kind + " of tendon " + model.tendons[equality.tendon_a].name;
    return equality.tendon_b < 0 ? first : first + " and tendon " + model.tendons[equality.tendon_b].name;
  }
  if (!joints) return kind + " of " + model.body_names[equality.body_a] + " and " + model.body_names[equality.body_b];
  const std::string first = kind + " of joint " + model.joint_names[equality.joint_a];
  return equality.joint_b < 0 ? first : first + " and joint " + model.joint_names[equality.joint_b];
}

/// By the key that its rows were given.
std::string constraint_name(const Model& model, std::uint64_t key) {
  switch (kind_of(key)) {
    case ConstraintKind::contact: {
      const int pair = pair_of(key);
      return model.geometry_names[model.pair_a[pair]] + " on " + model.geometry_names[model.pair_b[pair]];
    }
    case ConstraintKind::equality: return equality_name(model, model.equalities[index_of(key)]);
    case ConstraintKind::limit: {
      const int tendon = limited_joint(key) - model.num_joints;
      const std::string who =
          tendon >= 0 ? "tendon " + model.tendons[tendon].name : "joint " + model.joint_names[limited_joint(key)];
      return who + " at its " + (is_upper_limit(key) ? "upper" : "lower") + " limit";
    }
    case ConstraintKind::tendon_spring: return "spring of tendon " + model.tendons[index_of(key) / 3].name;
    case ConstraintKind::tendon_friction: return "dry friction of tendon " + model.tendons[index_of(key)].name;
    case ConstraintKind::dry_friction: break;
  }
  return "dry friction of joint " + model.joint_names[model.dof_joint[index_of(key)]];
}

}  // namespace

std::vector<std::string> constraint_names(const Model& model, const std::vector<std::uint64_t>& keys) {
  // Blocks of one pair or joint are one constraint.
  std::vector<std::string> names;
  for (const std::uint64_t key : keys) {
    std::string name = constraint_name(model, key);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

/// The first few of them.
std::string enumeration(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), most_names); ++i)
    out += (i > 0 ? ", " : "") + names[i];
  if (names.size() > most_names) {
    out += " and " + std::to_string(names.size() - most_names) + " more";
  }
  return out;
}

}  // namespace coulomb
