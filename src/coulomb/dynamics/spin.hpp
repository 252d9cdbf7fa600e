// The spin of free and ball joints through a step, torque-free instead of explicit: docs/theory.md (S4) to (S6); docs/conventions.md
// "Bodies that spin".
//
// The part of the bias b(q, v) that is quadratic in a joint's own velocity belongs to one rigid body: all that the joint carries, with
// the other joints held. Taken at the start of the step it feeds energy to what spins. Here that body turns as it does when no torque acts,
//
//   K dw/dt = -w x I w  for the time h,   w the angular velocity in the joint's axes,
//
// with I the inertia about the centre of mass (free joint) or about the anchor (ball joint) and K = I + armature; its centre of mass, c
// from a free joint's origin, goes straight. Beyond the explicit change h a_0, a_0 = -K^-1 (w x I w), this shifts the velocity by
//
//   Delta_w = w(h) - w - h a_0
//   Delta_v = R [w x c - exp(h w(h)) (w(h) x c) + h (a_0 x c + w x (w x c))]   (free joint: velocity of its origin, R its rotation)
//
// and the step takes b = ID(q, v, -Delta / h) instead of ID(q, v, 0): M v_free = M (v + Delta) + h (tau - ID(q, v, 0)).
//
// w(h) is the sum of its Taylor series, to rounding: energy w.K w / 2 and, without armature, |I w| are kept at every h, and the one
// solution is smooth in everything.
#pragma once

#include <vector>

#include "coulomb/dynamics/dynamics.hpp"

namespace coulomb {

/// Where a step takes the forces that Delta belongs to: the bias at its start (semi-implicit steps), or all at its end (end_shift.hpp).
enum class SpinLaw { at_start, at_end };

/// Which Delta, and of which trees.
struct SpinRule {
  const unsigned char* left_out = nullptr;  ///< by tree; null: all take part
  SpinLaw law = SpinLaw::at_start;
};

/// Delta of a step.
struct SpinShift {
  explicit SpinShift(const Model& model) : velocity(model.nv) {}
  std::vector<double> velocity;  ///< nv: Delta, m/s and rad/s; zero but for free and ball joints
  void clear();
  bool any = false;      ///< some entry may not be zero
  bool limited = false;  ///< something turns by more than largest_turn in the step: its spin is that after largest_turn
};

/// rad: torque-free motion is followed so far within a step.
inline constexpr double largest_turn = 64;

/// Delta at (q, v) for a step of length h. After mass_matrix.
void spin_shift(const Model& model, const DynamicsWorkspace& ws, const double* v, double h, SpinShift& out,
                const SpinRule& rule = {});
/// Whether any joint may have a Delta at these velocities, whatever its inertia.
bool may_spin(const Model& model, const double* v);

/// What a status says where the spin was limited; null where it was not.
const char* spin_limit_reason(const SpinShift& spin);

/// Derivative of one joint's Delta. Rows: velocity of the origin (free joints; world axes), then angular velocity.
struct SpinDerivative {
  enum Column { spin = 0, inertia = 3, armature = 9, first_moment = 12, mass = 15, time = 16, count = 17 };
  int joint = -1;
  int dof = 0;      ///< first of the three rotations
  int linear = -1;  ///< first of the three translations; -1: a ball
  /// By w, the inertia about the anchor (xx xy yy xz yz zz), armature, mass * centre, mass, h.
  double by[6][count] = {};

  /// By the inertia row (mass, first moments, S: spatial.hpp) of what the joint carries, in world axes about the tree's reference
  /// point.
  double by_row[6][10] = {};

  double turned[9] = {};  ///< 3 x 3: of the linear rows, by the joint's own rotation
};

/// Of all free and ball joints that spin; without `even` those are left out of which no state changes Delta: one body whose
/// moments of inertia are equal, turning about its centre of mass. After mass_matrix.
void spin_derivatives(const Model& model, const DynamicsWorkspace& ws, const double* v, double h, bool even,
                      std::vector<SpinDerivative>& out, const SpinRule& rule = {});

/// Change of Delta (6) when the inertia of what the joint carries changes by `row` (12: spatial.hpp, about the tree's reference point).
void spin_change(const SpinDerivative& spin, const double* row, double* change);

/// Change of an inertia row (12) that is displaced by a twist; both about the tree's reference point.
void displaced_inertia(const double* inertia, const double* twist, double* row);

/// Calls add(d, value) with the entries of M x, x the joint's entries (6) of a vector of velocities.
template <class Add>
void multiply_mass_of(const Model& model, const DynamicsWorkspace& ws, const SpinDerivative& spin, const double* x,
                      Add add) {
  for (int i = spin.linear < 0 ? 3 : 0; i < 6; ++i) {
    if (x[i] == 0) continue;
    const int dof = i < 3 ? spin.linear + i : spin.dof + i - 3;
    const int depth = model.dof_depth[dof];
    const int row = model.dof_row[dof];
    for (int k = 0; k <= depth; ++k)
      add(model.dof_path[row + k], ws.mass[row + k] * x[i]);
    for (int d = dof + 1; d < model.dof_subtree_end[dof]; ++d)
      add(d, ws.mass[model.dof_row[d] + depth] * x[i]);
  }
}

/// Calls visit_v(k, change) and visit_q(k, change) for the dofs k whose velocity or position changes the joint's Delta, by change (6).
template <class VisitV, class VisitQ>
void visit_spin_columns(const Model& model, const DynamicsWorkspace& ws, const SpinDerivative& spin, VisitV visit_v,
                        VisitQ visit_q) {
  double change[6];
  for (int k = 0; k < 3; ++k) {
    for (int i = 0; i < 6; ++i)
      change[i] = spin.by[i][k];
    visit_v(spin.dof + k, change);
    if (spin.linear < 0) continue;
    for (int i = 0; i < 6; ++i)
      change[i] = i < 3 ? spin.turned[3 * i + k] : 0.0;
    visit_q(spin.dof + k, change);
  }

  // Joints beyond move what the joint carries.
  for (int k = spin.dof + 3; k < model.dof_subtree_end[spin.dof + 2]; ++k) {
    double row[12];
    displaced_inertia(&ws.composite[12 * model.dof_body[k]], &ws.columns[8 * k], row);
    spin_change(spin, row, change);
    visit_q(k, change);
  }
}

}  // namespace coulomb
