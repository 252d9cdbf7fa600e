// What a block's key stands for, in words: kind in the four highest bits, then the index that the rows' builders put there.
#include "coulomb/stepping/contradictions.hpp"

#include <algorithm>

namespace coulomb {
namespace {

constexpr std::size_t most_names = 5;

/// Its own name, or whom it ties.
std::string equality_name(const Model& model, const Equality& equality) {
  const bool joints = equality.type == EqualityType::joint;
  const std::string kind = joints ? "equality" : equality.type == EqualityType::weld ? "weld" : "connection";
  if (!equality.name.empty()) return kind + " " + equality.name;
  if (!joints) return kind + " of " + model.body_names[equality.body_a] + " and " + model.body_names[equality.body_b];
  const std::string first = kind + " of joint " + model.joint_names[equality.joint_a];
  return equality.joint_b < 0 ? first : first + " and joint " + model.joint_names[equality.joint_b];
}

/// By the key that its rows were given.
std::string constraint_name(const Model& model, std::uint64_t key) {
  const std::uint64_t index = key & ((std::uint64_t(1) << 60) - 1);
  switch (key >> 60) {
    case 1: {
      const std::uint64_t pair = index >> 32;
      return model.geometry_names[model.pair_a[pair]] + " on " + model.geometry_names[model.pair_b[pair]];
    }
    case 2: return equality_name(model, model.equalities[index]);
    case 3:
      return "joint " + model.joint_names[index / 2] + " at its " + (index % 2 == 0 ? "lower" : "upper") + " limit";
    default: return "dry friction of joint " + model.joint_names[model.dof_joint[index]];
  }
}

}  // namespace

std::vector<std::string> constraint_names(const Model& model, const std::vector<std::uint64_t>& keys) {
  // Blocks of one pair or joint are one constraint.
  std::vector<std::string> names;
  for (const std::uint64_t key : keys) {
    std::string name = constraint_name(model, key);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

/// The first few of them.
std::string enumeration(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), most_names); ++i)
    out += (i > 0 ? ", " : "") + names[i];
  if (names.size() > most_names) out += " and " + std::to_string(names.size() - most_names) + " more";
  return out;
}

}  // namespace coulomb
