// Keys that identify blocks of rows from step to step: the kind of constraint in the four highest bits, then its index
// within the kind.
#pragma once

#include <cstdint>

namespace coulomb {

enum class ConstraintKind : std::uint8_t { contact = 1, equality, limit, dry_friction, tendon_spring, tendon_friction };

inline constexpr int kind_shift = 60;

constexpr std::uint64_t constraint_key(ConstraintKind kind, std::uint64_t index) {
  return (std::uint64_t(kind) << kind_shift) | index;
}

/// Of a pair of shapes: the pair and the features that touch.
constexpr std::uint64_t contact_key(int pair, int feature) {
  return constraint_key(ConstraintKind::contact, (std::uint64_t(pair) << 32) | std::uint32_t(feature));
}
constexpr std::uint64_t limit_key(int joint, bool upper) {
  return constraint_key(ConstraintKind::limit, 2 * std::uint64_t(joint) + std::uint64_t(upper));
}

/// Tendons count behind the joints.
constexpr std::uint64_t tendon_limit_key(int num_joints, int tendon, bool upper) {
  return limit_key(num_joints + tendon, upper);
}

/// Of the spring of a tendon: beyond its lower or its upper length, or whatever its length and its speed.
enum class TendonSpringSide : std::uint8_t { lower, upper, both };
constexpr std::uint64_t tendon_spring_key(int tendon, TendonSpringSide side) {
  return constraint_key(ConstraintKind::tendon_spring, 3 * std::uint64_t(tendon) + std::uint64_t(side));
}

constexpr ConstraintKind kind_of(std::uint64_t key) { return ConstraintKind(key >> kind_shift); }
constexpr std::uint64_t index_of(std::uint64_t key) { return key & ((std::uint64_t(1) << kind_shift) - 1); }

// The inverse of contact_key and limit_key.
constexpr int pair_of(std::uint64_t key) { return int(index_of(key) >> 32); }
constexpr int limited_joint(std::uint64_t key) { return int(index_of(key) / 2); }
constexpr bool is_upper_limit(std::uint64_t key) { return index_of(key) % 2 == 1; }

}  // namespace coulomb
