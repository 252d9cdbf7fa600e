// ImpactGradient: the derivative of a step that was split at impacts (docs/theory.md (I3) to (I8)), phase by phase, each from the
// StepLinearization of its own problem:
//
//   impact   dv := dv+(dq, dv, dtheta)
//   smooth   da = (dv+(dq, dv, du, dtau, dtheta, dh) - dv - a dh) / h, then along q(t) = q (+) (t v + t^2/2 a) to t = T:
//            dq := dq(T) + q'(T) dT,   dv := dv + T da + a dT,   ds := ds - dT
//            at an impact  dT = -(J_N dq(T) + dPhi/dtheta dtheta) / (J_N q'(T)), held fixed where it grazes; at the end dT = ds
//            what sinks from where it was at the start of the phase: less the same of the gap there
//
// h is the length of the phase's problem. Of impacts at the same time, islands that do not know each other have dT_k of their own, each
// for its dofs. The clock goes on from dT_0, so after the impact the others catch up:  dq += v+ (dT_0 - dT_k),  dv += a+ (dT_0 - dT_k).
//
// Where bodies spin in flight, v+ is that of the velocity w = v + t_p/2 a half way of what was planned, and a that of both:
//          (h + t_p/2 (1 - V)) da = dv+(dq, w fixed) - (1 - V)(dv + a dt_p/2) - a dh,   V = dv+/dw.
//
// Reverse mode sweeps the phases backward and forms no matrix.
#pragma once

#include <memory>
#include <vector>

#include "coulomb/dense_kernels.hpp"
#include "coulomb/stepping/impact_gap.hpp"
#include "coulomb/stepping/step_linearization.hpp"

namespace coulomb {

class ImpactGradient final : public StepGradient {
 public:
  explicit ImpactGradient(const Model& model);

  void prepare(const Model& model, const StepOptions& options, StepRecord& record, const StepMemory& memory) override;
  const StepDerivatives& jacobian() override;
  std::shared_ptr<StepDerivatives> shared_jacobian() override { return jacobian(), derivatives_; }
  void parameter_columns(const ParameterSet& set, std::vector<double>& columns_T) override;
  /// Of the impulses of the last smooth phase: those of a whole step from where it starts.
  void impulse_columns(StepInput input, std::vector<double>& out_T) override;
  void impulse_columns(const ParameterSet& set, std::vector<double>& out_T) override;
  void vjp(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set = nullptr) override;
  bool ambiguous() override;

 private:
  /// Tangents of (q, v), of the time left and of the step's length: one row per column of the Jacobian.
  struct Tangents {
    int count = 0;
    std::vector<double> q, v, rest, step;  ///< count x ld, count x ld, count, count
    std::vector<double> lag;               ///< count x events of the last impact: dT_0 - dT_k; empty: there is but one
    void reset(int columns, int ld);
  };
  const ImpactPhase& phase(int i) const { return (*phases_)[i]; }
  const StepRecord& record(int i) const { return phases_->record(i, *step_); }
  const StepRecord& start_of(int i);
  int last_smooth() const;
  void start_by_state(Tangents& t) const;
  static double planned(const ImpactPhase& phase, const Tangents& t, int column);  ///< change of phase.planned
  void evaluated_at(int i, const Tangents& t, std::vector<double>& q_T) const;
  /// direct(phase, dv_T, gap) adds what columns change directly: velocity rows of the phase (count x ld), and the gap's columns.
  template <class Direct>
  void follow(int i, const Direct& direct, Tangents& t);
  void follow_path(int i, const std::vector<double>& gap, Tangents& t);
  int num_events(int i) const { return static_cast<int>(phase(i).others.size()) + 1; }
  int event_of(int i, int dof) const { return phase(i).event_of_dof.empty() ? 0 : phase(i).event_of_dof[dof]; }
  void event_rates(int i, const double* path_velocity);
  void catch_up(int i, Tangents& t) const;
  void catch_up_vjp(int i, const StepCotangent& bar);
  void factor_midpoint(int phase, bool transposed);
  void path_velocity(int i, std::vector<double>& w, std::vector<double>& velocity) const;
  void input_columns(int i, double* dv_T, int first_u, int first_tau);
  void theta_columns(int i, const ParameterSet& set, double* dv_T, std::vector<double>& gap);
  void smooth_vjp(int i, StepCotangent& bar, const ParameterSet* set, double& rest, double& step);
  void impulses(const Tangents& t, int i, std::vector<double>& out_T);
  static int timestep_column(const ParameterSet& set);

  const Model* model_;
  StepRecord* step_ = nullptr;
  const ImpactPhases* phases_ = nullptr;
  std::vector<std::unique_ptr<StepLinearization>> linear_;  ///< one per phase
  std::vector<std::vector<ImpactGap>> gaps_;                ///< the same; of phases that end in impacts, one per event
  std::vector<ImpactGap> starts_;                           ///< the same; where thresholds are measured from
  std::vector<std::unique_ptr<StepRecord>>
      start_records_;  ///< the same; of phases evaluated half way, as far as wanted
  double h_ = 0;
  int ld_ = 0;
  bool have_jacobian_ = false;
  Tangents tangents_;
  std::vector<double> q_T_, dv_T_, by_q_, by_v_, columns_;
  std::vector<double> gap_columns_;  ///< events x columns
  std::vector<double> at_start_;     ///< by column: what the event's threshold moves by
  std::vector<double> rate_,
      time_;                     ///< by event: J_N q'(T), 0: the time is fixed; change of that time, or its cotangent
  std::vector<double> lag_bar_;  ///< by event: cotangent of dT_0 - dT_k
  mutable std::vector<double> w_, u_, bar_, zero_, moved_;
  StepCotangent part_;
  ProductScratch product_;
  std::vector<double> midpoint_, pivot_scratch_;  ///< LU of h + t_p/2 (1 - V), or of its transpose
  std::vector<int> pivots_;
};

}  // namespace coulomb
