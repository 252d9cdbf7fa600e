// What a solver of contact problems is asked for, and the words in which it answers.
#pragma once

#include <cstdint>
#include <string>

namespace coulomb {

/// automatic: the regularised problem by warm Newton steps and, where they fail, an interior-point method. The others run one algorithm by
/// itself on the problem as given.
enum class SolverMethod : std::uint8_t { automatic, ac_lm, admm, pgs, dantzig };
/// "auto", "ac_lm", "admm", "pgs"; throws std::invalid_argument otherwise.
SolverMethod solver_method_from_name(const std::string& name);

enum class SolveStatus : std::uint8_t { solved, relaxed, max_iterations, failed };
const char* name_of(SolveStatus status);

/// Mode of a constraint: contacts separate, stick or slide; limits are active or not; dry friction is at a bound or inside.
enum class Mode : std::uint8_t { separating, sticking, sliding, active, lower, upper };
const char* name_of(Mode mode);

}  // namespace coulomb
