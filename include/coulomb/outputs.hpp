// Outputs: frames, sensors, contacts and forces, read at a state or after a step, and their derivatives. Along trajectories: rollout.hpp.
//
//   dy/dx = y_q dq1/dx + y_v dv1/dx + y_lambda dlambda/dx + dy/dx at fixed (q1, v1, lambda)
//
// Points, normals and depths of contacts are functions of the configuration where they were found, and of the parameters that move shapes:
// q before the step moves anything; with implicit steppers and penalty contact that of the next state.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "coulomb/derivatives.hpp"
#include "coulomb/model.hpp"
#include "coulomb/sensors.hpp"
#include "coulomb/simulator.hpp"

namespace coulomb {

/// Readings at a state (docs/outputs.md has the names); their derivative by "q", "v" or a parameter, tangent_size x columns, row major.
std::vector<double> output_readings(const Model& model, const std::vector<double>& q, const std::vector<double>& v,
                                    const std::vector<std::string>& names);
std::vector<double> output_jacobian(const Model& model, const std::vector<double>& q, const std::vector<double>& v,
                                    const std::vector<std::string>& names, const std::string& wrt, int& columns);

/// What a ray meets first.
struct RayHit {
  int geometry = -1;               ///< -1: nothing
  double distance = -1;            ///< m
  std::array<double, 3> normal{};  ///< unit, world: outwards from the geometry
};
/// The first geometry that a ray from `point` along `direction` (world, any length but zero) meets at q, those of one body left out (-1:
/// none). A ray that begins in a geometry meets its surface from within; half-spaces are met from outside alone. Throws
/// std::invalid_argument naming the argument.
RayHit ray(const Model& model, const std::vector<double>& q, const std::array<double, 3>& point,
           const std::array<double, 3>& direction, int excluded_body = -1);

enum class ContactQuantity : std::uint8_t { point, normal, depth };

/// Derivative of a quantity of the contacts (world axes) by "q", "v", "u", "tau" or a parameter: rows as Simulator::contacts(), three per
/// contact (depth: one), row major, `columns` wide. Throws as Simulator::impulse_derivatives.
std::vector<double> contact_derivatives(Simulator& simulator, ContactQuantity quantity, const std::string& wrt,
                                        int& columns);

/// Readings after the last step: at the next state; of forces, in the step. Throws std::logic_error before the first step.
std::vector<double> read_outputs(const Simulator& simulator, const OutputSet& outputs);

/// Their derivative by "q", "v", "u", "tau" or a parameter: tangent_size x columns, row major.
std::vector<double> output_derivatives(Simulator& simulator, const OutputSet& outputs, const std::string& wrt,
                                       int& columns);

/// Adjoints that a reverse product may start from besides (dq1, dv1); null: zero.
struct OutputCotangent {
  const OutputSet* outputs = nullptr;
  const double* doutputs = nullptr;  ///< tangent_size
  const double* dlambda = nullptr;   ///< 3 per contact of Simulator::contacts(), along ContactReport::frame
};
/// Simulator::vjp of the next state (dq1, dv1 of nv; null: zero) and of outputs.
StepCotangent vjp(Simulator& simulator, const double* dq1, const double* dv1, const OutputCotangent& cotangent,
                  const std::vector<std::string>& parameters = {}, bool wants_fext = false);

}  // namespace coulomb
