// ImplicitLinearization: the derivative of a recorded implicit step, stage by stage (implicit_step.hpp), by the implicit function
// theorem: docs/theory.md (B5) to (B8). With P = H^-1 of a stage, E = d(+)/dq and J = d(+)/dw at its displacement:
//
//   K = J (dw_bar + db x c v+ + (v+ + b x v+) dc),   D = E dq + K
//   dv+ = P [ R_a (E dv_bar + [u] K + a+ dc) / c - R_q D + r ],   dq+ = D + c J (dv+ + b x dv+)
//
// r = dtau, and -dR of the controls and of parameters. Reverse: y = P^T (v+_bar + c (1 - [b]) J^T q+_bar), z = q+_bar - R_q^T y,
// m = R_a y / c, and every input has its product with y, z or m: one transposed solve a stage, no product of matrices. What
// explicit_dynamics adds depends on the base (q, v) of the stage.
//
// Of several runs, each has the derivative of its rule: they start from the same columns, and end in those of the trees that they move; in
// reverse, each starts from the cotangents of its trees, and what all give the start is added.
#pragma once

#include <memory>
#include <vector>

#include "coulomb/linalg/dense_kernels.hpp"
#include "coulomb/parameters/right_hand_side.hpp"
#include "coulomb/stepping/implicit/implicit_step.hpp"
#include "coulomb/stepping/step_gradient.hpp"

namespace coulomb {

bool is_timestep(const ParameterSet::Item& item);

class ImplicitLinearization final : public StepGradient {
 public:
  explicit ImplicitLinearization(const Model& model);
  ~ImplicitLinearization() override;

  void prepare(const Model& model, const StepOptions& options, StepRecord& record, const StepMemory& memory) override;
  const StepDerivatives& jacobian() override;
  std::shared_ptr<StepDerivatives> shared_jacobian() override { return jacobian(), derivatives_; }
  void parameter_columns(const ParameterSet& set, std::vector<double>& columns_T) override;
  void impulse_columns(StepInput input, std::vector<double>& out_T) override;
  void impulse_columns(const ParameterSet& set, std::vector<double>& out_T) override;
  void vjp(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set = nullptr) override;
  bool impulse_cotangent(const double* lambda, const ParameterSet& set, double* dq1, double* dv1,
                         double* parameters) override;
  void restore_contacts() override;

 private:
  struct Stage {
    explicit Stage(const Model& model) : equation(model), factor(model.nv) {}

    ImplicitEquation equation;
    ImplicitFactor factor;  // of H
    bool evaluated = false;
    std::unique_ptr<SpinningStart> start;  // bdf1

    // Forward mode, written by invert: nv rows of ld, transposed.
    bool inverted = false;
    std::vector<double> P_T;   // H^-1
    std::vector<double> N_T;   // P R_q
    std::vector<double> Q_T;   // P (R_a / c - R_base_v)
    std::vector<double> B_T;   // P R_base_q
    std::vector<double> time;  // nv: P R_a a+ / c
  };
  /// Columns as rows of ld: tangents of the inputs, then of the next state.
  struct Columns {
    int count = 0;
    std::vector<double> dq;
    std::vector<double> dv;
    std::vector<double> previous_dq;  // bdf2, as the next
    std::vector<double> previous_dv;
    std::vector<double> dh;     // one number per column
    std::vector<double> force;  // per stage, set by the caller of `forward`
    std::vector<double> shift;  // likewise, of parameters: dDelta

    void resize(int columns, int ld, bool previous);
  };
  /// Cotangents that one stage passes on.
  struct StageCotangent {
    std::vector<double> q;
    std::vector<double> v_bar;
    std::vector<double> w_bar;
    std::vector<double> y;
    double c = 0;
  };
  /// What the columns of one stage start from, beside dw_bar in D_.
  struct StageColumns {
    int count;
    const double* base_dq;
    const double* v_bar;
    const double* force;
    const double* dh;  ///< change of the time step per column, or null
    double fraction;   ///< of it, that the stage's c is
  };

  /// The last one, after all stages: where several runs have ended.
  const ImplicitStage& solution(int i) const { return i < extra_->count ? extra_->stages[i] : *extra_->end; }
  /// That which has the contacts at the end of the step, of all trees.
  int last_stage() const { return extra_->runs.size() > 1 ? extra_->count : extra_->count - 1; }
  /// visit(first, count): dofs of the trees that a run moves.
  template <class Visit>
  void for_each_moved(const ImplicitRun& run, Visit visit) const {
    for (int tree = 0; tree < model_->num_trees; ++tree) {
      const int first = model_->tree_first_dof[tree];
      if (solution(run.first).has(tree)) visit(first, model_->tree_first_dof[tree + 1] - first);
    }
  }
  void evaluate(int i);  ///< what a kept stage leaves out; once
  void invert(int i);
  template <class Forces, class Shifts>
  void forward(Columns& columns, Forces forces, Shifts shifts);
  template <class Forces, class Shifts>
  void forward_run(const ImplicitRun& run, Columns& columns, Forces forces, Shifts shifts);
  void start_bdf2_columns(const ImplicitStage& stage, const Columns& in);
  void start_second_columns(const ImplicitStage& first, const Columns& in, int parts, const double* dh);
  /// D_ holds dw_bar on entry; stage_q_, stage_v_: the columns of q+ and v+.
  void forward_stage(int i, const StageColumns& in);
  void reverse_stage(int i, const double* dq1, const double* dv1, StageCotangent& out);
  void reverse_bdf2(const ImplicitStage& stage, StepCotangent& out);
  double reverse_run(const ImplicitRun& run, StepCotangent& out, const ParameterSet* set);
  double reverse_runs(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set);
  void add_turned_velocity(StepCotangent& out);
  void input_columns();
  void store_columns(int first, int count, std::vector<double>& to) const;
  void control_forces(int i, double* rows) const;
  void impulses_of(int first, int count, std::vector<double>& out_T);
  void add_impulse_changes(int i, const ParameterSet& set, double h, int rows, std::vector<double>& out_T);
  void parameter_forces(int i, const ParameterSet& set, double* rows);
  template <class Visit>
  void visit_shifts(int i, const ParameterSet& set, Visit visit);
  void parameter_shifts(int i, const ParameterSet& set, double* rows);
  void add_shift_gradient(int i, const ParameterSet& set, const double* v_bar, std::vector<double>& out);
  void add_stage_gradient(int i, const ParameterSet& set, const double* y, std::vector<double>& out);
  /// visit(scalar, context, rhs) for every part of -dR/dtheta of a stage, rhs without rows.
  template <class Visit>
  void visit_sides(int i, const ParameterSet& set, Visit visit);
  struct ContextRows;
  ParameterContext context_at(int i, const DynamicsWorkspace& at, const double* q, const ConstraintOptions& unit,
                              const ContextRows& own) const;
  void spring_side(int i, const RightHandSide& rows, RightHandSide& out);
  std::vector<RightHandSide>& cleared_sides(int count);

  const Model* model_;
  const StepOptions* options_ = nullptr;
  StepRecord* record_ = nullptr;
  ImplicitExtra* extra_ = nullptr;
  std::vector<std::unique_ptr<Stage>> stages_;
  Columns columns_;
  std::vector<double> start_dq_, start_dv_, end_dq_, end_dv_;  // of several runs
  StepCotangent sum_;                                          // likewise: q, v and those before

  // Of one stage of forward mode, count rows of ld.
  std::vector<double> v_bar_;
  std::vector<double> D_;       // dw_bar, then D
  std::vector<double> E_dq_;    // E dq
  std::vector<double> turned_;  // E dv_bar + [u] K
  std::vector<double> stage_q_;
  std::vector<double> stage_v_;
  std::vector<double> inertia_rows_;  // nv x ld: R_a / c - R_base_v

  // bdf2: xi (nv), and what the state before gives.
  std::vector<double> xi_;
  std::vector<double> before_dq_;    // forward: J_r^-1(-xi) dq_before
  std::vector<double> db_;           // forward: of b, which moves with w_bar
  std::vector<double> before_dv_;    // forward: E(xi) dv_before
  std::vector<double> before_E_dq_;  // forward: E(xi) dq_before
  std::vector<double> w_bar_bar_;    // reverse: the cotangent of xi / 3
  std::vector<double> turn_;         // reverse: u x v_bar / 3

  // Of parameters (implicit_parameters.cpp).
  std::vector<double> twist_y_;  // 16 nv: link twists of y at the end, and at the inertia's state
  std::vector<double> change_;   // of the springs' forces
  std::vector<double> wrench_;   // nv x 8
  std::vector<double> moved_;    // nv
  RightHandSide spring_side_;
  StageCotangent first_, second_;
  DynamicsWorkspace fext_at_;  // kinematics where a stage's wrenches act
  std::vector<RightHandSide> sides_;
  ProductScratch product_;
  bool have_jacobian_ = false;
};

}  // namespace coulomb
