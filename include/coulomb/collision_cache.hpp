// CollisionCache: what the collision stage remembers from step to step, as a part of StepMemory.
#pragma once

#include <vector>

namespace coulomb {

/// Memory from step to step: separating axes, support hints, the points kept. Part of the state: copying it copies the
/// memory, equal state and equal cache give equal contacts, bit for bit. It knows the candidates of the last detection only: a
/// pair that went out of reach comes back as one that was never close.
struct CollisionCache {
  struct Pair {
    double axis[3] = {0, 0, 0};  ///< last separating axis or normal, zero if unknown

    /// Last support vertices (hill climbing)
    int hint_a = -1;
    int hint_b = -1;

    int num_kept = 0;    ///< manifold points kept from the last step
    int kept[8] = {0};   ///< their feature ids
    int reference = -1;  ///< reference face choice: -1 unknown, else 2*face + (0: on A, 1: on B)
  };
  std::vector<int> pair_indices;  ///< ascending, into Model's pairs
  std::vector<Pair> pairs;        ///< aligned with pair_indices
  void reset();
  /// The pair's entry; nullptr if it has none.
  const Pair* find(int pair_index) const;
  Pair* find(int pair_index);
};

}  // namespace coulomb
