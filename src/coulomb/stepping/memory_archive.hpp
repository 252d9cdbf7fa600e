// What steps carry on, as bytes: a simulation goes on in another process with the same bits.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "coulomb/stepping/step_memory.hpp"

namespace coulomb {

std::string save_memories(const std::vector<StepMemory>& memories);
/// Throws std::invalid_argument for bytes that save_memories did not write: "memory: ...".
std::vector<StepMemory> load_memories(std::string_view bytes);

}  // namespace coulomb
