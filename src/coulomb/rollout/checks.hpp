// What the room refuses, in the words that all of it uses: argument, element, value and what is expected.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <vector>

#include "coulomb/model.hpp"

namespace coulomb {

/// Throws std::invalid_argument "name: got 3, expected ...".
[[noreturn]] void refuse(const std::string& name, long long got, const std::string& expected);
/// Throws std::invalid_argument "name[i, k] is nan, expected a finite number".
[[noreturn]] void refuse_number(const std::string& name, std::initializer_list<std::size_t> index, double value);

/// Throws std::invalid_argument "fext[t, b, k] is nan, ..."; x: steps x bodies x 6 or null.
void check_finite_wrenches(const double* x, int steps, int bodies);
/// Throws std::invalid_argument as check_mocap_poses; x: steps x mocap bodies x 7 or null. outer: the indices before t, "" or "2, ".
void check_mocap_rows(const Model& model, const double* x, int steps, const std::string& outer = "");
/// Throws std::invalid_argument "name[i, k] is nan, ..." for entries of x (rows x columns) that are not finite; null is fine.
void check_finite_rows(const char* name, const double* x, int rows, int columns);
/// Throws std::invalid_argument "name[i, k] is nan, ..." for the first entry of n rows of `width` that is not finite; with depth > 0 of n
/// planes of depth x width. Null, and rows that the mask leaves out, are fine.
void check_finite_batch(const char* name, const double* x, std::size_t n, std::size_t width, const unsigned char* mask,
                        std::size_t depth = 0);

/// Throws std::invalid_argument if a parameter is one of `poses`, which are asked for step by step as "mocap".
void check_no_pose(const std::vector<std::string>& parameters, const std::vector<std::string>& poses);

/// Throws std::overflow_error if one of x is not finite: the derivative `what` has grown too large by this step.
void check_overflow(const char* what, const double* x, std::size_t count, int step);

}  // namespace coulomb
