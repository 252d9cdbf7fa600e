// A soft contact or limit as a row of the constraint problem, docs/theory.md (S9): a spring and a dashpot, whose force is evaluated
// at the end of the step, k times the depth plus d times the closing velocity, and never pulls; those of equalities and tendons do, too.
// Springs of MJCF files have a mass besides, which moves with the surface, and numbers that depend on the depth (SpringCurve).
#pragma once

#include <optional>

#include "coulomb/constraints/constraint_rows.hpp"

namespace coulomb {

struct Model;
struct PairPenalty;
struct RowSpring;
struct SpringCurve;
struct Tendon;

struct OneSidedSpring {
  double stiffness = 0;  ///< k, N/m or N m/rad, > 0
  double dashpot = 0;    ///< d, N s/m or N m s/rad
  double inertia = 0;    ///< m, kg or kg m^2, that moves with the gap
};

/// What a spring's numbers are of those at full depth, and how that changes with the gap phi.
struct SpringShape {
  double stiffness = 1;
  double others = 1;  ///< of dashpot and inertia
  double stiffness_slope = 0;
  double others_slope = 0;
};
SpringShape spring_shape(const SpringCurve& curve, double phi);

/// Of a pair of geometries at the gap phi, their scales included. None: the contact is rigid.
std::optional<OneSidedSpring> contact_spring(const PairPenalty& pair, double phi);

/// Of a joint's limits, likewise. None: they are rigid.
std::optional<OneSidedSpring> limit_spring(const Model& model, int joint, double phi);

/// Of a row at this depth, of an equality's at an error of this size.
OneSidedSpring at_depth(const RowSpring& law, double depth);

/// Of an equality of bodies: of its rows of translation and of rotation, at the size of its error. None: it is rigid.
struct EqualitySprings {
  OneSidedSpring linear;
  OneSidedSpring angular;
  const SpringCurve* curve = nullptr;
  const OneSidedSpring& of_row(int i) const { return i < 3 ? linear : angular; }
};
std::optional<EqualitySprings> equality_springs(const Model& model, int equality, double error);
/// The same of a block's rows.
std::optional<EqualitySprings> equality_springs(const Model& model, const ConstraintRows& rows, const BodyRows& b);

/// What is soft about a row on joints: a limit, an equality, a tendon's spring or dry friction that creeps. None: it is rigid.
struct RowLaw {
  OneSidedSpring spring;
  const SpringCurve* curve = nullptr;  ///< how its numbers depend on the error; null: they do not
  bool both_signs = false;
  double depth_sign =
      1;  ///< of d gap / d phi, where the gap is that of the curve: phi of a limit, -|phi| of an equality
};
std::optional<RowLaw> row_law(const Model& model, const ConstraintRows& rows, const DofRow& row);

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
  double bounce = 0;      ///< share of the velocity before the step that beta has: the mass has that velocity
};
/// approach: the row's velocity before the step.
SpringRow spring_row(const OneSidedSpring& spring, double timestep, double phi, double approach);
/// The same of a spring that pulls as well: c + R lambda + beta = 0.
/// approach: the velocity that the row would keep without forces, J v - h (dJ/dt v).
SpringRow two_sided_row(const OneSidedSpring& spring, double timestep, double phi, double approach);

/// R of a pair's normal rows, soft or not.
double contact_compliance(const Model& model, int pair, double timestep);

/// How fast these numbers change with a parameter.
struct SpringChange {
  double stiffness = 0;
  double dashpot = 0;
  double inertia = 0;
  double timestep = 0;
};
/// Of one row in a step. approach: its velocity before the step; bend: how that changes at constant v.
struct SpringState {
  double timestep = 0;
  double phi = 0;
  double approach = 0;
  double impulse = 0;
  double bend = 0;
};
/// s of the row: the change of R lambda_N + beta at fixed gap, velocity and impulse.
double spring_side(const OneSidedSpring& spring, const SpringState& state, const SpringChange& change,
                   bool both_signs = false);
/// The same per gap (that of the curve: minus the depth), by the numbers that depend on it.
double curve_side(const SpringCurve& curve, const OneSidedSpring& spring, const SpringState& state, double gap,
                  bool both_signs = false);

}  // namespace coulomb
