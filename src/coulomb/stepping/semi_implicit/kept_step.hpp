// Kept steps: the data that the derivative of a semi-implicit step needs and that is slow to compute again. These are
// the contacts, the impulses with their modes, and the free velocity, on which the rows depend. A rollout keeps them
// from the forward pass within its memory budget; recall_semi_implicit_step (semi_implicit.hpp) computes the rest
// again, with the same bits.
#pragma once

#include <cstddef>

namespace coulomb {

struct StepRecord;

/// Bytes that a step of semi_implicit_step takes; a multiple of eight.
std::size_t kept_step_bytes(const StepRecord& record);
/// Into that many bytes, aligned for double.
void keep_step(const StepRecord& record, std::byte* to);
/// The islands' own solutions are left to Islands::scatter_solution, once islands are found.
void restore_step(const std::byte* from, StepRecord& record);

}  // namespace coulomb
