// A soft contact or joint limit as a row of the constraint problem, docs/theory.md (S9): a spring and a dashpot, whose force is evaluated
// at the end of the step, k times the depth plus d times the closing velocity, and never pulls.
#pragma once

#include <optional>

#include "coulomb/constraints/constraint_rows.hpp"

namespace coulomb {

struct Model;
struct PairPenalty;
struct Tendon;

struct OneSidedSpring {
  double stiffness = 0;  ///< k, N/m or N m/rad, > 0
  double dashpot = 0;    ///< d, N s/m or N m s/rad
  double armature = 0;   ///< m, kg or kg m^2, that moves with the gap: of tendons, whose springs pull as well
};

/// Of a pair of geometries, their scales included. None: the contact is rigid.
std::optional<OneSidedSpring> contact_spring(const PairPenalty& pair);

/// Of a joint's limits. None: they are rigid.
std::optional<OneSidedSpring> limit_spring(const Model& model, int joint);

/// Of the joint whose limit the row is, or of the tendon whose spring it is; limits of tendons are rigid.
std::optional<OneSidedSpring> limit_spring(const Model& model, const DofRow& row, const Block& block);

/// What of a tendon's spring and damper a row has: both of them where it acts for either sign, else the spring alone.
OneSidedSpring tendon_spring(const Tendon& tendon, bool both_signs);
/// Of an implicit step, whose springs are forces: -d force / d length. Dampers and dry friction alone have one without effect, by which
/// their parameters are told.
double tendon_slope(const Tendon& tendon, BlockType type);
/// A spring without a range has one row with its damper; else the damper has a row of its own.
bool has_range(const Tendon& tendon);

/// c_N + R lambda_N + beta >= 0, complementary to lambda_N >= 0.
struct SpringRow {
  double compliance = 0;  ///< R
  Bias bias;              ///< beta; the damper has a corner where the gap closes
  double rate_slope = 0;  ///< of beta by the rate that the gap would keep, which an armature keeps going
};
SpringRow spring_row(const OneSidedSpring& spring, double timestep, double phi);
/// The same of a spring that pulls as well: c + R lambda + beta = 0.
/// rate: that which the gap would keep without forces, J v - h (dJ/dt v).
SpringRow two_sided_row(const OneSidedSpring& spring, double timestep, double phi, double rate);

/// R of a pair's normal rows, soft or not.
double contact_compliance(const Model& model, int pair, double timestep);

/// How fast these numbers change with a parameter.
struct SpringChange {
  double stiffness = 0;
  double dashpot = 0;
  double armature = 0;
  double timestep = 0;
};
/// Gap and lambda_N of a row; the rate of the gap at the start of the step, and how that changes at constant v.
struct SpringState {
  double phi;
  double impulse;
  double rate = 0;
  double bend = 0;
};
/// s of the row: the change of R lambda_N + beta at fixed gap, rate and impulse.
double spring_side(const OneSidedSpring& spring, double timestep, const SpringState& state, const SpringChange& change,
                   bool both_signs = false);

}  // namespace coulomb
