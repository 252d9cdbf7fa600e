// ImplicitLinearization: the derivative of a recorded implicit step, stage by stage (implicit_step.hpp), by the implicit function
// theorem: docs/theory.md (B5) to (B8). With P = H^-1 of a stage, E = d(+)/dq and J = d(+)/dw at its displacement:
//
//   K = J (dw_bar + db x c v+ + (v+ + b x v+) dc),  D = E dq + K,  dv+ = P [ R_a (E dv_bar + [u] K + a+ dc) / c - R_q D + r ],  dq+ = D + c J (dv+ + b x dv+)
//
// r = dtau, and -dR of the controls and of parameters. Reverse: y = P^T (v+_bar + c (1 - [b]) J^T q+_bar), z = q+_bar - R_q^T y,
// m = R_a y / c, and every input has its product with y, z or m: one transposed solve a stage, no product of matrices. What explicit_dynamics adds depends on
// the base (q, v) of the stage.
#pragma once

#include <memory>
#include <vector>

#include "coulomb/dense_kernels.hpp"
#include "coulomb/stepping/implicit_step.hpp"
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
    ImplicitFactor factor;
    bool inverted = false, evaluated = false;
    std::vector<double> P_T, N_T, Q_T, B_T, time;  // P, P R_q, P (R_a / c - R_base_v), P R_base_q; P R_a a+ / c
  };
  /// Columns as rows of ld: tangents of the inputs, then of the next state.
  struct Columns {
    int count = 0;
    std::vector<double> dq, dv, previous_dq, previous_dv, dh;
    std::vector<double> force;  // per stage, set by the caller of `forward`
    void resize(int columns, int ld, bool previous);
  };
  /// Cotangents that one stage passes on.
  struct StageCotangent {
    std::vector<double> q, v_bar, w_bar, y;
    double c = 0;
  };

  const ImplicitStage& solution(int i) const { return extra_->stages[i]; }
  void evaluate(int i);  ///< what a kept stage leaves out; once
  void invert(int i);
  template <class Forces>
  void forward(Columns& columns, Forces forces);
  void forward_stage(int i, int count, const double* base_dq, const double* v_bar, const double* force,
                     const double* dh, double fraction, std::vector<double>& D, std::vector<double>& dq,
                     std::vector<double>& dv);
  void reverse_stage(int i, const double* dq1, const double* dv1, StageCotangent& out);
  void add_turned_velocity(const std::vector<double>& xi, StageCotangent& stage, StepCotangent& out);
  void input_columns();
  void control_forces(int i, double* rows) const;
  void impulses_of(int first, int count, std::vector<double>& out_T);
  void add_impulse_changes(int i, const ParameterSet& set, double h, int rows, std::vector<double>& out_T);
  void parameter_forces(int i, const ParameterSet& set, double* rows);
  void add_stage_gradient(int i, const ParameterSet& set, const double* y, std::vector<double>& out);
  /// visit(scalar, context, rhs) for every part of -dR/dtheta of a stage, rhs without rows.
  template <class Visit>
  void visit_sides(int i, const ParameterSet& set, Visit visit);
  void spring_side(int i, const RightHandSide& rows, RightHandSide& out);
  std::vector<RightHandSide>& cleared_sides(int count);

  const Model* model_;
  const StepOptions* options_ = nullptr;
  StepRecord* record_ = nullptr;
  ImplicitExtra* extra_ = nullptr;
  std::vector<std::unique_ptr<Stage>> stages_;
  Columns columns_;
  std::vector<double> D_, E_, xi_, turned_, v_bar_, stage_q_, stage_v_, product_rows_;
  std::vector<double> twist_y_, change_, wrench_, moved_;
  RightHandSide spring_side_;
  StageCotangent first_, second_;
  DynamicsWorkspace fext_at_;  // kinematics where a stage's wrenches act
  std::vector<RightHandSide> sides_;
  ProductScratch product_;
  bool have_jacobian_ = false;
};

}  // namespace coulomb
