// The equation of one implicit stage, for the unknown v+ (nv), docs/theory.md (B1) to (B4):
//
//   q+ = q (+) w,  w = w_bar + c (v+ + b x v+),   a+ = (v+ - E(w) v_bar) / c
//   R = ID(q+, v+, a+) - tau(q+, v+, u) - tau_user - J^T f_ext - Q(q+, v+) = 0
//
// with Q the forces of springs (implicit_springs.hpp) and of penalty contact. The methods differ in c, v_bar and w_bar only
// (implicit_step.hpp). E(w) = d(+)/dq turns the angular velocity of a free or ball joint from the axes of q to those of q+:
// differences are then those of the vector as the joint's parent sees it, which hardly changes where a body spins fast (for all other
// dofs E is the identity). b, on rotations only, does the same for the displacement. With `explicit_dynamics` the rigid-body part is that of the semi-implicit step, taken at (q, v) with implicit damping:
//
//   a+ = (v+ - v) / c,   R = M(q) (a+ - Delta/c) + b(q, v) + D (v+ - v) + c K v+ - tau(q, v, u) - tau_user - J^T f_ext - Q(q+, v+)
//
// with D and K of the joints' forces (dynamics/implicit_gains.hpp)
// and free and ball joints spinning torque-free (Delta(q, v, c): dynamics/spin.hpp).
//
// Newton's matrix is H = dR/dv+ = R_a / c + R_v + (c R_q - R_a [u]) J_r(w) (1 + [b]), u = E(w) v_bar and [.] on rotations only, by the derivatives of inverse dynamics with all body forces at
// material points, and the rest from the springs and contacts.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "coulomb/constraints/penalty/penalty_contact.hpp"
#include "coulomb/dynamics/implicit_gains.hpp"
#include "coulomb/dynamics/joint_forces.hpp"
#include "coulomb/dynamics/spin.hpp"
#include "coulomb/stepping/implicit/implicit_springs.hpp"
#include "coulomb/stepping/step_options.hpp"

namespace coulomb {

/// What a stage is given, and its solution.
struct ImplicitStage {
  explicit ImplicitStage(const Model& model);
  double c = 0;
  bool explicit_dynamics = false;                       ///< then v_bar is the velocity v
  std::vector<double> q, v_bar, w_bar, b;               ///< nq, nv, nv, nv
  std::vector<double> v_next;                           ///< the unknown
  std::vector<double> q_next, acceleration, w, turned;  ///< that follow from it; E(w) v_bar
  /// By tree: of which the stage is not; they rest, touch nothing, and their entries have no meaning. Empty: it is of all.
  std::vector<unsigned char> left_out;
  bool has(int tree) const { return left_out.empty() || !left_out[tree]; }
  /// From now on the stage is not of this tree, which rests at q (nq).
  void leave_out(const Model& model, int tree, const double* q);
  std::size_t bytes() const;
  /// w, q_next, E(w) v_bar and the acceleration, of v_next.
  void follow(const Model& model);
};

struct StageInputs {
  const double *u, *tau;            ///< nu, nv
  const std::vector<double>* fext;  ///< empty, or num_bodies x 6
};

/// The numbers of q (nq) that belong to a tree: first and last + 1.
std::pair<int, int> tree_coordinates(const Model& model, int tree);
/// A tree's part of a state.
void copy_tree(const Model& model, int tree, const double* q_from, const double* v_from, double* q, double* v);

/// First dof of the rotations of every free and ball joint.
template <class Visit>
void for_each_rotation(const Model& model, Visit visit) {
  for (int j = 0; j < model.num_joints; ++j) {
    if (model.joint_type[j] == JointType::free) visit(model.joint_v[j] + 3);
    if (model.joint_type[j] == JointType::ball) visit(model.joint_v[j]);
  }
}

/// What reverse mode reads of an equation: R_q, R_a, how controls push; and with explicit_dynamics what depends on the base. Views, as long
/// as the numbers stay where they are.
struct ReverseTerms {
  bool explicit_dynamics = false;
  std::span<const double> R_q_T, mass, dtau_du, base_q_T, base_v_T, time_acceleration, time_force;
};

/// Of a body in the world: where the user's force acts.
void centre_of_mass(const Model& model, const DynamicsWorkspace& at, int body, double* com);

class ImplicitEquation {
 public:
  explicit ImplicitEquation(const Model& model);

  /// Before the first evaluation of a stage, and whenever what it is given changed.
  void begin(const Model& model, const StepOptions& options, const StageInputs& inputs, const ImplicitStage& stage);
  /// q+, a+, w and the residual at stage.v_next.
  void evaluate(const Model& model, const StepOptions& options, ImplicitStage& stage);
  /// The residual alone, where q+ and a+ are known.
  void evaluate_end(const Model& model, const StepOptions& options, const ImplicitStage& stage);
  /// What derivatives by the state and by parameters share, where the residual was evaluated last.
  void prepare(const Model& model, const ImplicitStage& stage);
  /// R_q_T and R_v_T. After prepare.
  void differentiate(const Model& model, const ImplicitStage& stage);
  /// How far the rounding of the forces moves the residual: `rounding`. Where the residual was evaluated last (implicit_rounding.cpp).
  void find_rounding(const Model& model);
  /// The derivatives of the base, with explicit_dynamics: base_q_T and base_v_T; and time_acceleration, time_force.
  void prepare_base(const Model& model, const ImplicitStage& stage);
  void differentiate_base(const Model& model, const ImplicitStage& stage);
  /// H^T (rows of ld) from them.
  void newton_matrix(const Model& model, const ImplicitStage& stage, double* H_T) const;

  /// At which inverse dynamics is differentiated: a+, with explicit_dynamics a+ - Delta/c. After prepare_base.
  const double* base_acceleration(const ImplicitStage& stage) const {
    return explicit_ ? base_acceleration_.data() : stage.acceleration.data();
  }
  /// explicit_dynamics: joints that spin, and Delta. After prepare_base.
  const std::vector<SpinDerivative>& spins() const { return spins_; }
  const SpinShift& spin() const { return spin_; }
  const ImplicitGains& gains() const { return gains_; }

  /// After differentiate and differentiate_base.
  ReverseTerms reverse_terms() const;
  void set_reverse_terms(const ReverseTerms& terms);

  /// y = R_a x.
  void times_mass(const Model& model, const double* x, double* y) const;
  /// The dynamics that M, inertial parameters and joint forces are taken from.
  const DynamicsWorkspace& inertial() const { return explicit_ ? before_ : dynamics; }

  // at (q+, v+)
  DynamicsWorkspace dynamics;
  JointForces joint_forces;  ///< explicit_dynamics: at (q, v)
  SpringForces springs;
  PenaltyForces contacts;
  BodyForces forces;             ///< all that act on bodies at (q+, v+), after prepare
  std::vector<double> residual;  ///< nv
  std::vector<double>
      scale;  ///< nv: sum of the sizes of the residual's terms; of M a+ the full row, after differentiate
  std::vector<double> rounding;      ///< nv: errors of the forces in R, in units of the roundoff; by find_rounding
  std::vector<double> R_q_T, R_v_T;  ///< nv x ld: by the tangent of q+ and by v+, at fixed a+
  std::vector<double> base_q_T,
      base_v_T;  ///< explicit_dynamics: by q and v, at fixed q+, v+, and a+ = (v+ - v)/c taken apart
  std::vector<double> time_acceleration;  ///< nv: dR/dc = -M time_acceleration / c + time_force
  std::vector<double> time_force;         ///< nv, or empty where it is zero

 private:
  void add_external(const Model& model, const DynamicsWorkspace& at, double* Q);
  void add_external_forces(const Model& model, const DynamicsWorkspace& at, BodyForces& to) const;
  void add_rigid_derivatives(const Model& model, const DynamicsWorkspace& at, bool joints, double* q_T,
                             double* v_T) const;
  void term(const double* x, int nv, double sign);
  void add_error(const Model& model, int body, double arm, double force, double torque);
  void add_row_error(const Model& model, const BodyRows& b, const double* f, double by_place, double by_speed);

  void subtract_spin(const Model& model, const SpinDerivative& spin, double c);
  void subtract_turning(const Model& model, const ImplicitStage& stage, double* H_T) const;

  bool explicit_ = false, torque_free_ = false;
  ImplicitGains gains_;  // explicit_dynamics
  StageInputs inputs_{};
  DynamicsWorkspace before_;  // explicit_dynamics: at (q, v)
  SpinShift spin_;            // explicit_dynamics
  std::vector<SpinDerivative> spins_;
  std::vector<double> base_acceleration_;          // a+ - Delta / c
  BodyForces external_;                            // explicit_dynamics: of the user, at q
  std::vector<double> constant_, constant_scale_;  // explicit_dynamics: b - tau - ...
  std::vector<double> term_, wrench_;
  std::vector<double> errors_;  // nv x 2: of forces and moments on the bodies below a dof
};

}  // namespace coulomb
