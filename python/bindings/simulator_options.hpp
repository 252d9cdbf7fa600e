// The options of Simulator: one table of names, members, ranges and words. Keywords, their defaults, the signature, the docstring, what
// `Simulator.options` returns and docs/options.md are made of it.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "coulomb/simulator.hpp"

namespace coulomb::python {

/// Those that keyword arguments ask for, the others as they are by default. TypeError: a name that is none, a value of another type.
SimulatorOptions options_of(const nanobind::kwargs& keywords);
/// The keyword arguments of Simulator that make these options.
nanobind::dict keywords_of(const SimulatorOptions& options);

/// "def __init__(self, model: Model, timestep: float | None = None, *, contact: str = 'auto', ...) -> None"
std::string signature_of_options();
/// What the options are, by what they belong to.
std::string words_on_options();

/// _core._simulator_options(): a list of (group, name, type, default, range, words).
void bind_simulator_options(nanobind::module_& module);

}  // namespace coulomb::python
