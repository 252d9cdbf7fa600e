#include "coulomb/step_memory.hpp"

#include "coulomb/base/archive.hpp"

namespace coulomb {

/// As in model/archived_structs.hpp: the bindings count the members.
template <class Archive>
static void fields(Archive& archive, CollisionCache::Pair& x) {
  auto& [axis, hint_a, hint_b, num_kept, kept, reference] = x;
  archive(axis, hint_a, hint_b, num_kept, kept, reference);
}

template <class Archive>
static void fields(Archive& archive, CollisionCache& x) {
  auto& [pair_indices, pairs] = x;
  archive(pair_indices, pairs);
}

template <class Archive>
static void fields(Archive& archive, StepMemory::Impulse& x) {
  auto& [key, mode, size, value, value_0, value_1, compliance] = x;
  archive(key, mode, size, value, value_0, value_1, compliance);
}

template <class Archive>
static void fields(Archive& archive, StepMemory& x) {
  auto& [structure, collision, impulses, previous_q, previous_v, last_q, last_v, forgotten] = x;
  archive(structure, collision, impulses, previous_q, previous_v, last_q, last_v);
  if (archive.format() >= 5) archive(forgotten);
}

std::string save_memories(const std::vector<StepMemory>& memories) { return saved("memory", memories); }

std::vector<StepMemory> load_memories(std::string_view bytes) {
  return loaded<std::vector<StepMemory>>("memory", bytes);
}

}  // namespace coulomb
