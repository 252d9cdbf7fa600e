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
#include "coulomb/parameters/parameters.hpp"
#include "coulomb/solvers/linearization.hpp"
#include "coulomb/stepping/semi_implicit.hpp"
#include "coulomb/stepping/step_record.hpp"

namespace coulomb {

/// Jacobian of a step in tangent spaces. A_T: 2nv x 2nv, row k is the column of A for the k-th entry of (q, v), holding (dq1, dv1);
/// B_T: nu rows for the controls; B_tau_T: nv rows for the joint forces.
class Simulator;

/// Where derivatives came from: null once that simulator is gone.
struct DerivativeOrigin {
  Simulator* simulator = nullptr;
};

struct StepDerivatives {
  explicit StepDerivatives(const Model& model);
  int nv = 0, nu = 0;
  std::vector<double> A_T, B_T, B_tau_T;
  std::shared_ptr<const ParameterSet> parameters;  ///< that were asked for, or null
  std::vector<double> parameters_T;                ///< parameters->size() rows of 2 nv
  /// Impulses are not unique, the next velocity depends on the choice and the choice has no derivative here: of least norm.
  bool ambiguous = false;
  std::shared_ptr<DerivativeOrigin> origin;  ///< with `step`, Simulator::step_count() then: for impulses on demand
  std::uint64_t step = 0;
};

struct StepCotangent {
  std::vector<double> q, v, u, tau;                   ///< nv, nv, nu, nv
  std::shared_ptr<const ParameterSet> parameter_set;  ///< that was asked for, or null
  std::vector<double> parameters;                     ///< in its order
};

class StepAverage;

/// What a step depends on, for impulse_columns.
enum class StepInput : std::uint8_t { q, v, u, tau };

class StepLinearization {
 public:
  explicit StepLinearization(const Model& model);
  StepLinearization(const StepLinearization& other);  ///< a fresh one for the same model
  ~StepLinearization();

  /// Prepares everything that forward and reverse mode share. The record must stay unchanged while this is used.
  void prepare(const Model& model, const StepOptions& options, StepRecord& record);
  /// From now on until the next prepare, the mean over states around this one (GradientMode::smoothed_step).
  void smooth(const StepMemory& memory);

  const StepDerivatives& jacobian();
  /// The same, to be kept: the next Jacobian then gets memory of its own.
  std::shared_ptr<StepDerivatives> shared_jacobian() { return jacobian(), derivatives_; }
  /// Columns (dq1, dv1) of the parameters' scalars: set.size() rows of 2 nv.
  void parameter_columns(const ParameterSet& set, std::vector<double>& columns_T);
  /// Derivative of the impulses lambda of all rows (contacts: two tangents, normal) by an input or by parameters: one row of
  /// num_rows per scalar.
  void impulse_columns(StepInput input, std::vector<double>& out_T);
  void impulse_columns(const ParameterSet& set, std::vector<double>& out_T);
  /// dq1, dv1: cotangents of the next state (nv each). set: parameters wanted, or null.
  void vjp(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set = nullptr);
  /// Any of the inputs may be null: zero.
  void jvp(const double* dq, const double* dv, const double* du, const double* dtau, double* dq1, double* dv1);

  /// vjp with the better side at every tie (GradientMode::complementarity_aware). The linearisation is afterwards as before.
  void vjp_at_ties(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set = nullptr);

  const RowDerivatives& row_derivatives() const { return rows_; }
  /// The next velocity depends on a choice among impulses that has no derivative here: the least-norm one is given.
  bool ambiguous() const { return ambiguous_; }
  bool frozen(int contact) const { return rows_.motions[contact].frozen; }

 private:
  RowVelocities row_velocities() const;
  void collect_forces();
  void response_matrices();
  void right_hand_sides();
  void store_columns(const double* dv_T, double scale, double* columns_T);
  void add_integrate_jacobian(double* columns_T);
  void vjp_from_jacobian(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set);
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
  std::shared_ptr<StepDerivatives> derivatives_;
  bool have_jacobian_ = false, ambiguous_ = false, use_average_ = false;
  std::unique_ptr<StepAverage> average_;  // made when first needed
};

}  // namespace coulomb
