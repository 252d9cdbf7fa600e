// StepMemory: what a step remembers for the next one. Part of the state: the same state, memory and inputs give the same bits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "coulomb/collision_cache.hpp"
#include "coulomb/model.hpp"
#include "coulomb/solver.hpp"

namespace coulomb {

/// Collision features, impulses by constraint identity, and the state before for multistep methods.
struct StepMemory {
  StepMemory() = default;  ///< of no model
  explicit StepMemory(const Model& model);
  void reset();
  void forget_states();  ///< those of multistep methods, below

  std::uint64_t structure = 0;  ///< of the model: models of another structure cannot use this memory
  CollisionCache collision;
  struct Impulse {
    std::uint64_t key = 0;
    Mode mode = Mode::separating;
    int size = 0;
    double value[6] = {0, 0, 0, 0, 0, 0};    ///< contacts: world axes, force then torque; others: as in the rows
    double value_0[6] = {0, 0, 0, 0, 0, 0};  ///< the same at the first level of the solver
    double value_1[6] = {0, 0, 0, 0, 0, 0};  ///< and at the second
    double compliance =
        0;  ///< that its island was solved with; 0: relaxed, no start for others; < 0: of rows that contradict
  };
  std::vector<Impulse> impulses;  ///< in block order, keys ascending within a kind
  /// BDF2: the state one step back, and the state that the last step ended in; empty before the first step.
  std::vector<double> previous_q, previous_v, last_q, last_v;
  std::vector<unsigned char> forgotten;  ///< by tree: 1: it starts anew, whatever these are; empty: none does
};

/// The state that steps hand on, as bytes: another process continues the simulation with the same bits.
std::string save_memories(const std::vector<StepMemory>& memories);
/// Throws std::invalid_argument for bytes that save_memories did not write: "memory: ...".
std::vector<StepMemory> load_memories(std::string_view bytes);

}  // namespace coulomb
