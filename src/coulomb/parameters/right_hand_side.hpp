// The right-hand sides of one scalar parameter theta (docs/theory.md (L5), (L6)), sparse:
//
//   r = d/dtheta [ h tau - h ID(q, v, (v+ - v - Delta)/h) - h D (v+ - v) + J^T lambda ]      s = d/dtheta [ J v+ + beta + R lambda ]
//
// at fixed v+ and lambda. Forward: dv+ = P r - W^T B s. Reverse: y . r + z . s with the multipliers of a vjp. Both read this one list.
#pragma once

#include <optional>
#include <vector>

#include "coulomb/constraints/one_sided_spring.hpp"
#include "coulomb/constraints/row_velocities.hpp"
#include "coulomb/solver.hpp"

namespace coulomb {

struct BodyRows;
struct ConstraintOptions;
struct ConstraintRows;
struct Contact;
struct DynamicsWorkspace;
struct ImplicitGains;
struct JointForces;
struct Model;
struct PenaltyForces;
struct RowDerivatives;
struct SpinDerivative;

struct RightHandSide {
  struct Wrench {
    int body;
    double value[6];  ///< (f, n) about the reference point of the body's tree, world axes: r += J_body^T value
  };
  struct Entry {
    int index;
    double value;
  };
  std::vector<Wrench> wrenches;

  std::vector<Entry> dofs;      ///< direct entries of r
  std::vector<Entry> rows;      ///< direct entries of s
  std::vector<Entry> impulses;  ///< direct changes p of lambda, whose J^T p and R p are in r and s already
  std::vector<Entry> shift;     ///< direct changes of Delta, where the context asks for these
  double timestep = 0;          ///< dh/dtheta: q+ = q (+) h v+ depends on it directly

  void clear() {
    wrenches.clear();
    dofs.clear();
    rows.clear();
    impulses.clear();
    shift.clear();
    timestep = 0;
  }
  void add_wrench(int body, const double* linear, const double* angular, double sign = 1);
};

/// A step as parameters see it.
struct ParameterContext {
  const Model& model;
  const DynamicsWorkspace& dynamics;  ///< after prepare_derivatives
  const ConstraintOptions& options;
  const ConstraintRows& rows;
  const std::vector<Contact>& contacts;
  const RowDerivatives& derivatives;  ///< of the active rows
  const std::vector<unsigned char>& inactive;
  RowVelocities velocities;

  const double* body_twist;       ///< num_bodies x 8, at v
  const double* body_twist_plus;  ///< num_bodies x 8, at v+
  const double* q;
  const double* v;
  const double* u;
  const double* v_plus;
  const double* acceleration;  ///< nv: (v+ - v - Delta) / h
  const double* lambda;

  const std::vector<double>& fext;  ///< empty or num_bodies x 6
  const std::vector<Mode>& modes;
  const JointForces& joint_forces;
  const PenaltyForces* penalty = nullptr;              ///< contacts are its forces: see penalty_sides.hpp
  const int* facets = nullptr;                         ///< per block, where there are pyramids
  const std::vector<SpinDerivative>* spins = nullptr;  ///< of Delta, of all joints that spin; null: none
  const double* spin_shift = nullptr;                  ///< nv: Delta; null: zero
  double spin_scale = 1;                               ///< r += spin_scale M dDelta
  const ImplicitGains* gains =
      nullptr;                ///< what a step takes at its end of joint forces that are those of its start; null: none
  double gain_time = 0;       ///< how long a step with them is
  bool shift_itself = false;  ///< instead dDelta goes to `shift`
  bool rows_are_forces =
      false;  ///< springs of an implicit step: s is the motion of a row that changes its force as theta does
  const double* fixed = nullptr;  ///< as RowState has it
  bool own_forces = true;  ///< forces that bodies carry with them (of sites, of the medium) act here; false: elsewhere
};

/// r of a change of the inertia (12, about the tree's reference point) of a body, or of it and all beyond, through the spins of the joints
/// that carry it.
void add_spin_change(const ParameterContext& context, int body, const double* row, RightHandSide& out);
/// r of a unit of one column of a joint's Delta.
void add_spin_column(const ParameterContext& context, const SpinDerivative& spin, int column, RightHandSide& out);

/// Of the contact whose rows these are, where it is a soft row of the constraint problem (docs/theory.md (S9)).
std::optional<OneSidedSpring> spring_of(const ParameterContext& context, const BodyRows& b);
/// What a soft row of an equality of bodies acts at.
SpringState soft_row_state(const ParameterContext& context, const BodyRows& b, int i);

/// Force f at the contact's point: on A, and its opposite on B.
void add_contact_force(const ParameterContext& context, const BodyRows& b, const double* f, RightHandSide& out);

/// The same of a torque.
void add_contact_torque(const ParameterContext& context, const BodyRows& b, const double* torque, RightHandSide& out);

/// Velocity along row k of a contact, at v+.
double row_velocity(const ParameterContext& context, const BodyRows& b, int k);

/// A contact whose surface moves while the bodies do not: point by dp, normal by dn, distance by dphi.
void add_surface_motion(const ParameterContext& context, const BodyRows& b, const double* dn, const double* dp,
                        double dphi, RightHandSide& out);

/// r (nv, zeroed by the caller) and s (stride: distance between rows of s).
void expand(const ParameterContext& context, const RightHandSide& rhs, double* r, double* s, int stride);

/// y . r + z . s; twist_y: link twists of y.
double project(const ParameterContext& context, const RightHandSide& rhs, const double* y, const double* twist_y,
               const double* z);

}  // namespace coulomb
