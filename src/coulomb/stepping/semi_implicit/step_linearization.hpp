// StepLinearization: the derivative of one recorded step (docs/theory.md (L4) to (L8)), from a single factorisation.
//
//   dv+ = P r - W^T B s,   P = Mh^-1 - W^T (B J Mh^-1),   W = A^-T C^T J Mh^-1,   Mh = M + h D
//   r_q = -h dID'/dq + h dtau/dq + d(J^T lambda),  r_v = Mh - h db/dv + h dtau/dv,  r_tau = h,  s = d(J v+ + beta)
//   dq+ = (d(+)/dq) dq + h (d(+)/dw) dv+
//
// ID' contains the contact impulses at material points; row_derivatives computes the motion of these points. Forward
// mode forms P once, island by island; reverse mode (vjp) sweeps over the trees and forms no matrix.
#pragma once

#include <memory>
#include <vector>

#include "coulomb/constraints/row_derivatives.hpp"
#include "coulomb/linalg/dense_kernels.hpp"
#include "coulomb/parameters/right_hand_side.hpp"
#include "coulomb/solvers/linearization/linearization.hpp"
#include "coulomb/stepping/semi_implicit/wedges.hpp"
#include "coulomb/stepping/step_gradient.hpp"
#include "coulomb/stepping/step_options.hpp"
#include "coulomb/stepping/step_record.hpp"

namespace coulomb {

inline void make_room(std::vector<double>& v, std::size_t size) {
  if (v.size() < size) v.resize(size);
}

class StepLinearization final : public StepGradient {
 public:
  explicit StepLinearization(const Model& model);

  void prepare(const Model& model, const StepOptions& options, StepRecord& record, const StepMemory& memory) override;

  const StepDerivatives& jacobian() override;
  std::shared_ptr<StepDerivatives> shared_jacobian() override { return jacobian(), derivatives_; }
  std::shared_ptr<SparseStepDerivatives> sparse_jacobian() override;
  void parameter_columns(const ParameterSet& set, std::vector<double>& columns_T) override;
  void impulse_columns(StepInput input, std::vector<double>& out_T) override;
  void impulse_columns(const ParameterSet& set, std::vector<double>& out_T) override;
  void vjp(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set = nullptr) override;
  void add_fext_cotangent(const double* tau_bar, std::vector<double>& fext) override;

  const RowDerivatives& row_derivatives() const { return rows_; }
  const std::vector<Mode>& modes() const { return modes_; }  ///< of the last level
  bool ambiguous() override { return state_ambiguous() || ambiguous_parameters_; }
  bool frozen(int contact) const { return rows_.motions[contact].frozen; }

 private:
  /// What an island's derivative takes; matrices have a row per own dof, row or reduced row, and ld = its dofs rounded up to 8.
  struct IslandMatrices {
    ProblemLinearization problem;
    std::vector<double> P_T, r_q, r_v;       // dofs x ld
    std::vector<double> W, BYM, Bs_q, Bs_v;  // reduced rows x ld
    std::vector<double> s;                   // as ConstraintProblem::Y
    bool bounces = false;                    // Bs_v is not zero
    /// The same of levels that count by themselves (ProblemLinearization::lower_levels). P_T then is of all.
    struct Lower {
      std::vector<double> r_q, W, BYM, Bs_q, Bs_v;
      std::vector<double> P_T;  // (W^T B J Mh^-1)^T: the level's part of P
    };
    std::vector<Lower> lower;
  };
  /// What differs from level to level of a step's solution; the record and this class hold those of the last level, this another's.
  struct LevelState {
    explicit LevelState(const Model& model)
        : v_next(model.nv), acceleration(model.nv), twist_next(8 * model.nv), rate_next(8 * model.nv),
          body_twist(8 * model.num_bodies), forces(model), joint_forces(model) {}
    std::vector<double> v_next, acceleration;  // nv
    std::vector<double> lambda;                // rows
    std::vector<Mode> modes;                   // blocks
    std::vector<int> facets;
    std::vector<double> twist_next, rate_next, body_twist;
    RowDerivatives rows;
    BodyForces forces;
    JointForces joint_forces;             // if some of them act at the end
    std::vector<unsigned char> inactive;  // of motions of corrections: blocks that are not corrected
  };
  /// What inputs change of an island's corrections: corrected rows x ld, and ld.
  struct CorrectionChange {
    std::vector<double> errors;      // dbeta' - dbeta
    std::vector<double> compliance;  // of the rows, in S
  };
  /// An island whose position corrections are bounded; matrices have a row per corrected row, if not said otherwise.
  struct BoundedIsland {
    int index = 0;
    CorrectionSlopes slopes;
    std::vector<double> rest_r;           // r_q of what is at rest, dofs x ld
    std::vector<double> response;         // J Mh^-1
    std::vector<double> errors, motions;  // dbeta, dG x: of q, then of parameters
    CorrectionChange of_q, of_parameters;
  };
  /// What a reverse product computes, in this order (docs/theory.md (L8)).
  struct Adjoint {
    void reserve(int nv, int rows);

    std::vector<double> w;             // nv: cotangent of v+
    std::vector<double> y;             // nv: multipliers of the momentum balance
    std::vector<double> link_twist;    // nv x 8: of Mh^-1 w
    std::vector<double> row_velocity;  // rows: J Mh^-1 w
    std::vector<double> z;             // rows: their multipliers
    std::vector<double> link_wrench;   // nv x 8: of z
    std::vector<double> correction;    // nv: Mh^-1 J^T z
    std::vector<double> id_q;          // nv: y . dID'/dq, and dID'/dv
    std::vector<double> id_v;
  };
  /// The rotation of a ball or free joint, and the blocks of d(+)^T there.
  struct Rotation {
    int dof = 0;
    double by_q[9], by_w[9];
  };

  // step_kinks.cpp
  bool state_ambiguous();
  bool chosen_by_memory();
  bool find_unresolved();  ///< unresolved_, of all islands
  bool further_is_resolved(int index, const ProblemLinearization::Unresolved& further, const ParameterSet* set);
  bool all_further_resolved(const ParameterSet* set);
  void leftover_of_state(const double* z);
  void leftover_of_parameters(const double* z, const ParameterSet& set);
  void judge_parameters(const ParameterSet& set);

  const Island& island(int index) const { return record_->islands.pool[index]; }
  int reduced_size(int index) const {
    return island(index).blocks.empty() ? 0 : islands_[index].problem.reduced_size();
  }
  /// Of a level, or the last.
  int reduced_size(int index, int level) const {
    const ProblemLinearization& problem = islands_[index].problem;
    return level == last_level ? problem.reduced_size() : problem.reduced_size(level);
  }
  RowVelocities row_velocities() const;
  /// The step as its rows see it, at the level in place.
  RowState row_state() const {
    const StepRecord& r = *record_;
    return {*model_,   r.dynamics,       r.rows,    row_velocities(), r.v_next.data(), r.solution.lambda.data(),
            inactive_, fixed_velocity(), r.v.data()};
  }
  /// Of the level in place.
  const double* fixed_velocity() const { return level_ == 0 && !fixed_.empty() ? fixed_.data() : nullptr; }
  void take_labels(int level, std::vector<Mode>& modes, std::vector<int>& facets) const;
  void prepare_spins();
  void prepare_problems();
  void find_inactive();
  void add_block_forces(const BodyRows& b);
  void collect_forces();
  void prepare_level(const Model& model);

  // step_levels.cpp: levels below the last that have right-hand sides of their own
  int lower_levels(int index) const { return reduced_size(index) > 0 ? islands_[index].problem.lower_levels() : 0; }
  void reserve_levels();
  void find_fixed_velocity();
  void prepare_lower_level(int level);
  void prepare_motion(LevelState& state, int level);
  /// A lower level in the place of the last one, and back.
  void exchange_levels(int level);
  /// The same without what the dynamics keep of a level.
  void exchange_states(int level);
  LevelState& level_state(int level) {
    if (level == rest_level) return *rest_;
    return level == correction_level ? *correction_ : *other_levels_[level];
  }
  void prepare_matrices_of_level(int level);
  /// dv_T (count x ld) -= (Bs_k + B_k J Mh^-1 (r_k - r)) through W_k of a lower level. r_k_T, r_T: count x ld; Bs_k: reduced rows x
  /// padded(count), or null.
  void subtract_level(int index, int level, const double* r_k_T, const double* r_T, const double* Bs_k, int count,
                      double* dv_T);
  void find_level_y(const double* z);
  void add_sides(double sign, const double* z, double* q, const ParameterSet* set, double* parameters);
  void add_joint_forces_of_level(double* q);
  /// What q and the parameters change at a lower level but not at the last one, in out; z: the multipliers of that level.
  void add_level_difference(int level, const double* z, StepCotangent& out, const ParameterSet* set);

  // step_corrections.cpp: what bounded position corrections add to s
  const BoundedIsland* bounded(int index) const {
    return num_bounded_ > 0 && bounded_of_[index] >= 0 ? &bounded_[bounded_of_[index]] : nullptr;
  }
  void prepare_corrections();
  void correction_columns();
  void take_rest(BoundedIsland& own);
  void take_motion(BoundedIsland& own);
  void gather_columns(const BoundedIsland& own, std::vector<double>& out) const;
  void change_errors(const BoundedIsland& own, int count, int ld, CorrectionChange& out) const;
  void add_change(const BoundedIsland& own, const CorrectionChange& change, const double* lambda, int ld,
                  double* s) const;
  double compliance_cotangent(const BoundedIsland& own, const double* z, bool levels) const;
  void correction_parameter_sides(const ParameterSet& set, std::vector<double>& dh);
  void add_correction_cotangents(const double* z, bool levels, double* q, const ParameterSet* set, double* parameters);

  // forward mode: the matrices of all islands, then the columns of one
  void prepare_matrices();
  void response_matrices(int index);
  void velocity_responses(int index, const double* Y, const double* u_hat);
  void subtract_response(int index, int level);
  void right_hand_sides();
  void row_columns();
  /// Rows (dq1, dv1) of twice the island's dofs: A_T (null: not wanted) for its q, then its v; B_tau_T for its joint forces.
  void island_columns(int index, double* A_T, double* B_tau_T);
  void velocity_columns(int index, const std::vector<double>& r_T, const double* Bs, double* columns_T);
  void store_columns(int index, const double* dv_T, double scale, double* columns_T);
  void add_integrate_jacobian(int index, double* columns_T);
  void actuator_columns(StepDerivatives& out) const;
  void add_actuator_columns(int index, SparseStepDerivatives::Island& out) const;
  /// A matrix in the layout of the island's Y, dense: as it is where there is one tree, else a copy.
  const double* dense_rows(int index, const double* rows);
  const double* dense_factor(int index);
  template <class Visit>
  void for_each_rotation(int index, Visit visit) const;

  // step_products.cpp, in the order of the call
  void pull_back_integration(const double* dq1, const double* dv1, StepCotangent& out);
  void solve_multipliers();
  void add_inverse_dynamics(StepCotangent& out);
  void add_joint_forces(StepCotangent& out) const;
  bool controls_feel_levels() const;
  std::vector<double> control_rows();
  void store_forces_and_controls(StepCotangent& out) const;
  bool row_cotangents(const double* row_values, double* z);
  /// Columns x of the island: impulses -C A^+ (Bs + B J Mh^-1 r), to rows column[k] of out_T. Bs may be null.
  void impulses_of(int index, const double* r_T, const double* Bs, const std::vector<int>& column, double* out_T);
  /// Right-hand sides of an island's columns at a lower level: r_T as above, Bs or null.
  struct LevelSides {
    const double *r_T = nullptr, *Bs = nullptr;
  };
  void impulses_of_levels(int index, const double* r_T, const double* Bs, const LevelSides* lower,
                          const std::vector<int>& column, double* out_T);
  ParameterContext parameter_context();
  /// Velocity per impulse of a row's compliance.
  void collect_parameter_sides(const ParameterSet& set, std::vector<double>& dh);
  void gather_parameter_sides(int index, int level, int count);
  void parameter_gradient(const ParameterSet& set, const double* dq1, const double* y, const double* z,
                          std::vector<double>& out);
  /// Of the island: r_T, count x ld, and Bs, reduced rows x padded(count), or null.
  const double* island_parameter_sides(int index, int count);
  void bounce_rows(const BodyRows& rows, const RowMatrix& s) const;
  void add_bounce_cotangent(const double* z, double* out);

  /// The spins' M dDelta in r: columns by the state.
  void add_spin_columns();
  void add_spin_cotangents(const double* momentum, StepCotangent& out);
  /// Joints that spin; even: also those of which only parameters change Delta.
  const std::vector<SpinDerivative>& spins(bool even);

  const Model* model_ = nullptr;
  const StepOptions* options_ = nullptr;
  StepRecord* record_ = nullptr;
  BodyForces forces_;
  RowDerivatives rows_;
  std::vector<IslandMatrices> islands_;  // by index into the record's pool
  std::vector<double> acceleration_;     // (v+ - v - Delta) / h, at which inverse dynamics is differentiated
  std::vector<SpinDerivative> spins_, all_spins_;
  bool have_all_spins_ = false;
  std::vector<double> spin_mass_;  // 6 x ld of one island
  std::vector<Rotation> rotations_;
  std::vector<int> tree_rotations_;      // num_trees + 1: of rotations_
  std::vector<unsigned char> inactive_;  // without impulse at every level
  std::vector<Mode> modes_;              // of the level in place
  std::vector<int> facets_;
  std::vector<double> rate_next_, body_twist_;                                      // column rates at v+
  std::vector<double> reduced_, expanded_, response_, out_, dense_, dense_factor_;  // of one island
  std::vector<double> A_T_, B_tau_T_;                                               // the same: its columns
  std::vector<double> fixed_;                                                       // num_rows: see RowState
  std::vector<double> local_;                                                       // the same: in its rows
  std::vector<double*> r_q_of_, s_of_;                                              // by island
  std::vector<double> w_;            // nv: h v+, at which the integration is differentiated
  std::vector<double> identity_;     // nv: of d(+)/dq, 0 at rotations
  std::vector<double> link_wrench_;  // nv x 8: of a level's impulses or multipliers
  Adjoint adjoint_;
  RowSweep row_sweep_;
  std::vector<RightHandSide> sides_;  // of one parameter
  struct ParameterSides {
    std::vector<double> r, s;                 // of all rows
    std::vector<double> island_r, island_Bs;  // of one island
  };
  ParameterSides last_parameter_, rest_parameter_, correction_parameter_;
  std::vector<ParameterSides> lower_parameter_;
  ParameterSides& parameter(int level) {
    if (level == rest_level) return rest_parameter_;
    if (level == correction_level) return correction_parameter_;
    return level == last_level ? last_parameter_ : lower_parameter_[level];
  }
  std::vector<double> parameter_p_, island_s_, difference_;
  ProductScratch product_;
  bool have_matrices_ = false;
  bool have_jacobian_ = false;

  // step_kinks.cpp
  enum class Known : std::uint8_t { unknown, no, yes };
  Known ambiguous_ = Known::unknown;
  Known has_unresolved_ = Known::unknown;
  bool ambiguous_parameters_ = false;  // of the last ones asked for
  std::vector<double> unresolved_;     // rows: motions that dependent rows cannot follow, over the distance of a border
  std::vector<double> further_z_;      // rows: the same of one further problem of an island
  std::vector<double> still_;          // nv: zero
  std::vector<double> leftover_;       // of columns: z . s
  Wedges wedges_;

  static constexpr int last_level = -1, rest_level = -2, correction_level = -3;
  int lower_ = 0;                                          // levels, of any island
  int level_ = last_level;                                 // the one in place
  std::vector<std::unique_ptr<LevelState>> other_levels_;  // made when first needed
  std::vector<std::vector<double>> z_lower_;
  std::vector<double> own_z_lower_;  // of one island
  std::vector<double*> own_z_pointers_;
  std::vector<LevelSides> level_sides_;
  std::vector<double> level_y_, signed_y_, signed_z_, id_q_, id_v_, gradient_;  // of add_level_difference
  std::vector<double> moved_, twist_;                                           // of parameter_gradient

  // step_corrections.cpp
  int num_bounded_ = 0;
  std::vector<BoundedIsland> bounded_;
  std::vector<int> bounded_of_;                    // by island: index into bounded_, or -1
  std::unique_ptr<LevelState> rest_, correction_;  // made when first needed
  std::vector<double> level_u_;                    // nu: what levels add to the cotangent of controls
  std::vector<double> correction_s_;               // rows x padded(nv)
  std::vector<double> error_z_, motion_z_, with_corrections_, moved_q_;
};

}  // namespace coulomb
