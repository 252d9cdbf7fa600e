// Keywords of Simulator that belong to the implicit steppers and to constraints as springs, and tie_margin.
#pragma once

#include <nanobind/nanobind.h>

#include "coulomb/stepping/simulator.hpp"

namespace coulomb::python {

/// Sets them from keyword arguments. TypeError: a name that is none, a value that is no number.
void set_implicit_options(const nanobind::kwargs& keywords, SimulatorOptions& options);
/// Adds them to the keyword arguments that make such a simulator.
/// The keyword arguments of Simulator that make these options (stepping.cpp).
nanobind::dict keywords_of(const SimulatorOptions& options);

void store_implicit_options(const SimulatorOptions& options, nanobind::dict& keywords);

}  // namespace coulomb::python
