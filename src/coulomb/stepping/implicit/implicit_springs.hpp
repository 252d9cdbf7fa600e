// Constraints as springs: what the implicit steppers, and every stepper with penalty contact, do with joint limits, equalities and
// joint dry friction: docs/theory.md (B13). With phi the position error of a row and phi' = J v its rate:
//
//   joint limit   f = max(0, -k phi + d phi' phi)  while phi < 0: a penetration with the law of penalty contact, it never pulls
//   equality      f = -k phi - d phi'
//   dry friction  f = -f_dry v / sqrt(v^2 + v_s^2)
//
// Q = J^T f is a function of (q, v) alone. The rows are those of the hard constraints (constraints/equality_rows, joint_rows), and so is
// their motion (row_derivatives).
#pragma once

#include <optional>
#include <vector>

#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/constraints/row_derivatives.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/stepping/step_options.hpp"

namespace coulomb {

struct BodyForces;

/// One evaluation at (q, v). Storage only grows.
struct SpringForces {
  explicit SpringForces(const Model& model);

  ConstraintRows rows;  ///< of equalities and of limits within reach; a row on dofs has the unit slope dbias_dphi = 1
  std::vector<double> force;  ///< per row
  std::vector<double> dforce_dphi, dforce_drate;
  std::vector<unsigned char> inactive;           ///< per block: a limit that is not reached
  std::vector<double> dry_slope, dry_direction;  ///< nv: df/dv, and f per unit of f_dry
  std::vector<double> twist;                     ///< nv x 8: link twists at v
  RowDerivatives derivatives;                    ///< after spring_row_derivatives

  // scratch
  std::vector<double> rate, wrench, J, s;
};

/// Q (nv) += J^T f. dynamics: after kinematics at q and velocities at v.
void spring_forces(const Model& model, const DynamicsWorkspace& dynamics, const ImplicitOptions& options,
                   const double* q, const double* v, SpringForces& out, double* Q);

/// met[tree] = 1 for trees of which a limit pushes in one of two states, and not in the other. at: scratch, of tendons.
void mark_limits_met(const Model& model, const ImplicitOptions& options, const double* q_a, const double* v_a,
                     const double* q_b, const double* v_b, std::optional<DynamicsWorkspace>& at, unsigned char* met);

/// The equalities' forces at material points, for prepare_derivatives, which then has their part of dQ/dq at fixed forces.
void add_spring_body_forces(const Model& model, const DynamicsWorkspace& dynamics, const SpringForces& forces,
                            BodyForces& out);

/// How the equalities' rows move. After spring_forces at the same (q, v).
void spring_row_derivatives(const Model& model, const DynamicsWorkspace& dynamics, SpringForces& forces);
/// dQ_dq_T[k][d] += dQ_d/dq_k less what ID' holds, dQ_dv_T[k][d] += dQ_d/dv_k; rows of ld. After spring_row_derivatives.
void spring_derivatives(const Model& model, const DynamicsWorkspace& dynamics, const double* v, SpringForces& forces,
                        double* dQ_dq_T, double* dQ_dv_T, int ld);

/// Change of the rows' forces for a change s of the rows, as a parameter's right-hand side has it.
double spring_force_change(const SpringForces& forces, int row, double s);

/// Adds a torque (world axes) on a body to both parts of BodyForces.
void add_body_torque(const Model& model, BodyForces& forces, int body, const double* torque);

}  // namespace coulomb
