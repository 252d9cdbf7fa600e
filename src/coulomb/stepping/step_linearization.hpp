// StepLinearization: the derivative of one recorded step (THEORY 3 to 5, T4 to T6), all from one factorisation.
//
//   dv+ = P r - W^T B s,   P = Mh^-1 - W^T (B J Mh^-1),   W = A^-T C^T J Mh^-1,   Mh = M + h D
//   r_q = -h dID'/dq + h dtau/dq + d(J^T lambda),  r_v = Mh - h db/dv + h dtau/dv,  r_tau = h,  s = d(J v+ + beta)
//   dq+ = (d(+)/dq) dq + h (d(+)/dw) dv+
//
// ID' holds contact impulses at material points; their motion is in row_derivatives. Forward mode forms P once; reverse mode (vjp)
// sweeps the tree and forms no matrix.
#pragma once

#include <memory>
#include <vector>

#include "coulomb/constraints/row_derivatives.hpp"
#include "coulomb/dense_kernels.hpp"
#include "coulomb/solvers/linearization.hpp"
#include "coulomb/stepping/step_gradient.hpp"

namespace coulomb {

class StepAverage;

class StepLinearization final : public StepGradient {
 public:
  explicit StepLinearization(const Model& model);
  StepLinearization(const StepLinearization& other);  ///< a fresh one for the same model
  ~StepLinearization() override;

  void prepare(const Model& model, const StepOptions& options, StepRecord& record, const StepMemory& memory) override;
  /// The derivative of the step itself, without what options.gradient may ask for.
  void prepare_exact(const Model& model, const StepOptions& options, StepRecord& record);

  const StepDerivatives& jacobian() override;
  std::shared_ptr<StepDerivatives> shared_jacobian() override { return jacobian(), derivatives_; }
  void parameter_columns(const ParameterSet& set, std::vector<double>& columns_T) override;
  void impulse_columns(StepInput input, std::vector<double>& out_T) override;
  void impulse_columns(const ParameterSet& set, std::vector<double>& out_T) override;
  void vjp(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set = nullptr) override;

  const RowDerivatives& row_derivatives() const { return rows_; }
  bool ambiguous() const override { return ambiguous_; }
  bool frozen(int contact) const { return rows_.motions[contact].frozen; }

 private:
  RowVelocities row_velocities() const;
  void collect_forces();
  void response_matrices();
  void right_hand_sides();
  void store_columns(const double* dv_T, double scale, double* columns_T);
  void add_integrate_jacobian(double* columns_T);
  /// vjp of the modes as they are.
  void vjp_of_modes(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set);
  /// vjp with the better side at every tie (GradientMode::complementarity_aware). The linearisation is afterwards as before.
  void vjp_at_ties(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set);
  void impulses_of(const double* r_T, const double* s, int count, int width, double* out_T);
  ParameterContext parameter_context() const;
  void parameter_gradient(const ParameterSet& set, const double* dq1, const double* y, const double* z,
                          std::vector<double>& out);
  void bounce_row(const BodyRows& rows, double* row) const;
  void add_bounce_cotangent(const double* z, double* out);

  const Model* model_ = nullptr;
  const StepOptions* options_ = nullptr;
  StepRecord* record_ = nullptr;
  BodyForces forces_;
  RowDerivatives rows_;
  ProblemLinearization problem_;
  std::vector<unsigned char> inactive_;
  std::vector<double> rate_next_, body_twist_;            // column rates at v+
  std::vector<double> reduced_, W_, BYM_, s_, Bs_, P_T_;  // nv x ld, rows x ld, ...
  std::vector<double> r_q_, r_v_, out_;                   // nv x ld
  std::vector<double> w_, scratch_, lambda_bar_;
  std::vector<RightHandSide> sides_;  // of one parameter
  std::vector<double> parameter_r_, parameter_s_, parameter_Bs_, parameter_p_;
  ProductScratch product_;
  bool have_jacobian_ = false, ambiguous_ = false, use_average_ = false;
  std::unique_ptr<StepAverage> average_;  // made when first needed
};

}  // namespace coulomb
