// What the room refuses, in the words that all of it uses: argument, element, value and what is expected.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>

namespace coulomb {

/// Throws std::invalid_argument "name: got 3, expected ...".
[[noreturn]] void refuse(const std::string& name, long long got, const std::string& expected);
/// Throws std::invalid_argument "name[i, k] is nan, expected a finite number".
[[noreturn]] void refuse_number(const std::string& name, std::initializer_list<std::size_t> index, double value);

/// Throws std::overflow_error if one of x is not finite: the derivative `what` has grown too large by this step.
void check_overflow(const char* what, const double* x, std::size_t count, int step);

}  // namespace coulomb
