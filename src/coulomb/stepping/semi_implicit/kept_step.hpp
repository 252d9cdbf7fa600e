// Kept steps: what the derivative of a semi-implicit step needs and what is slow to find again: its contacts, its impulses with their modes,
// and the free velocity, on which rows depend. A rollout keeps it from the forward pass, as far as its memory budget goes;
// recall_semi_implicit_step (semi_implicit.hpp) evaluates the rest again, to the same bits.
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
