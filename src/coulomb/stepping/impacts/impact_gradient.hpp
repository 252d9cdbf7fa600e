// ImpactGradient: the derivative of a step that was split at impacts (docs/theory.md (I3) to (I8)). It goes phase by
// phase, and each phase uses the StepLinearization of its own problem:
//
//   impact   dv := dv+(dq, dv, dtheta)
//   smooth   da = (dv+(dq, dv, du, dtau, dtheta, dh) - dv - a dh) / h, then along q(t) = q (+) (t v + t^2/2 r) to t = T
//            (r: impact_path.hpp):
//            dq := dq(T) + q'(T) dT,   dv := dv + T da + a dT,   ds := ds - dT
//            at an impact  dT = -(J_N dq(T) + dPhi/dtheta dtheta) / (J_N q'(T)), held fixed where it grazes; at the end
//            dT = ds
//            if the threshold is relative to the gap at the start of the phase: less the same expression for that gap
//
// h is the length of the phase's problem. If several islands have impacts at the same time, each has its own dT_k for
// its dofs. The clock continues from dT_0, so after the impact the other islands catch up:  dq += v+ (dT_0 - dT_k),  dv
// += a+ (dT_0 - dT_k).
//
// If bodies spin in flight, v+ belongs to the velocity w = v + t_p/2 a at half of the planned time, and a to both:
//          (h + t_p/2 (1 - V)) da = dv+(dq, w fixed) - (1 - V)(dv + a dt_p/2) - a dh,   V = dv+/dw.
//
// Reverse mode (impact_products.cpp) sweeps backward over the phases and forms no matrix.
#pragma once

#include <memory>
#include <vector>

#include "coulomb/linalg/dense_kernels.hpp"
#include "coulomb/stepping/impacts/impact_gap.hpp"
#include "coulomb/stepping/step_gradient.hpp"

namespace coulomb {

class ImpactGradient final : public StepGradient {
 public:
  /// mode: of the phases' problems.
  ImpactGradient(const Model& model, GradientMode mode);

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
    std::vector<double> q, v;  ///< count x ld
    std::vector<double> rest;  ///< count: of the time left
    std::vector<double> step;  ///< count: of the step's length
    std::vector<double> lag;   ///< count x events of the last impact: dT_0 - dT_k; empty: there is but one
    void reset(int columns, int ld);
  };

  /// Cotangents of the time left and of the step's length.
  struct ClockCotangent {
    double rest = 0;
    double step = 0;
    /// Of what the phase's planned time is a share of.
    double& of_planned(const ImpactPhase& phase) { return phase.share > 0 ? step : rest; }
  };

  const ImpactPhase& phase(int i) const { return (*phases_)[i]; }
  const StepRecord& record(int i) const { return phases_->record(i, *step_); }
  const StepRecord& start_of(int i);
  int last_smooth() const;
  void start_by_state(Tangents& t) const;
  /// Change of phase.planned, which is this share of the step's length or all that is left of it.
  static double planned(const ImpactPhase& phase, const Tangents& t, int column);
  static double planned_share(const ImpactPhase& phase) { return phase.share > 0 ? phase.share : 1.0; }
  void build_gaps(int i);
  bool is_tied(int i);
  int event_of(int i, const ClosingGap& gap) const;
  void evaluated_at(int i, const Tangents& t, std::vector<double>& q_T) const;
  /// Through the first phases. direct(phase, dv_T, gap) adds what columns change directly: velocity rows of the phase (count x ld), and
  /// the gap's columns.
  template <class Direct>
  void follow(int phases, const Direct& direct, Tangents& t) {
    for (int i = 0; i < phases; ++i) {
      problem_tangents(i, t);
      gap_columns_.assign(std::size_t(num_events(i)) * t.count, 0.0);
      direct(i, dv_T_.data(), gap_columns_);
      follow_phase(i, t);
    }
  }
  void follow_phase(int i, Tangents& t);
  void problem_tangents(int i, const Tangents& t);
  void follow_path(int i, const std::vector<double>& gap, Tangents& t);
  void path_tangents(int i, const Tangents& t);
  void event_times(int i, const std::vector<double>& gap, const Tangents& t, int column);
  int num_events(int i) const { return static_cast<int>(phase(i).others.size()) + 1; }
  int event_of(int i, int dof) const { return phase(i).event_of_dof.empty() ? 0 : phase(i).event_of_dof[dof]; }
  void event_rates(int i, const double* path_velocity);
  void catch_up(int i, Tangents& t) const;
  void catch_up_vjp(int i, const StepCotangent& bar);
  void solve_acceleration(int i, bool transposed, double* rows, int count);
  void half_way(int i, bool of_velocity) const;
  void path_velocity(int i, std::vector<double>& w, std::vector<double>& velocity) const;
  void input_columns(int i, double* dv_T, int first_u, int first_tau);
  void theta_columns(int i, const ParameterSet& set, double* dv_T, std::vector<double>& gap);
  void impact_vjp(int i, StepCotangent& bar, const ParameterSet* set);
  void smooth_vjp(int i, StepCotangent& bar, const ParameterSet* set, ClockCotangent& clock);
  void times_vjp(int i, const StepCotangent& bar, ClockCotangent& clock);
  double gaps_vjp(int i, StepCotangent& bar, const ParameterSet* set);
  void add_gap_parameters(ImpactGap& gap, const ParameterSet& set, double weight, StepCotangent& bar);
  void path_vjp(int i, StepCotangent& bar);
  void problem_vjp(int i, StepCotangent& bar, const ParameterSet* set, ClockCotangent& clock);
  void midpoint_vjp(int i, StepCotangent& bar, ClockCotangent& clock);
  void start_by_timestep(const ParameterSet& set, Tangents& t) const;
  void store_columns(const Tangents& t, int first, int count, std::vector<double>& columns_T) const;
  void impulses(const Tangents& t, int i, std::vector<double>& out_T);
  static int timestep_column(const ParameterSet& set);

  const Model* model_;
  StepRecord* step_ = nullptr;
  const ImpactPhases* phases_ = nullptr;
  GradientMode mode_;
  std::vector<std::unique_ptr<StepGradient>> linear_;  ///< one per phase
  std::vector<std::vector<ImpactGap>> gaps_;           ///< the same; of phases that end in impacts, one per event
  std::vector<ImpactGap> starts_;                      ///< the same; where thresholds are measured from
  ImpactGap tie_;                                      ///< of what else is hit, one at a time
  bool tied_ = false;                                  ///< there are hits whose order no derivative knows
  /// The same; of phases evaluated half way, as far as wanted.
  std::vector<std::unique_ptr<StepRecord>> start_records_;
  double h_ = 0;
  int ld_ = 0;
  bool have_jacobian_ = false;

  // Forward, by column, in the order computed; rows of ld_.
  Tangents tangents_;
  std::vector<double> by_q_, by_v_;            ///< nv x ld: dv+/dq and dv+/dv of the phase's problem
  std::vector<double> q_T_;                    ///< dq where the problem was evaluated
  mutable std::vector<double> half_T_;         ///< of the displacement to there
  std::vector<double> mid_v_T_;                ///< dv + a dt_p/2: of the velocity half way, but for da
  std::vector<double> dv_T_;                   ///< dv+
  std::vector<double> gap_columns_, columns_;  ///< events x columns: dPhi/dtheta; what the parts return
  std::vector<double> at_start_;               ///< by column: what the event's threshold moves by
  std::vector<double> da_T_;                   ///< of the acceleration
  std::vector<double> path_T_;                 ///< T dv + T^2/2 dr, then the motion of the end that this makes
  std::vector<double> time_;                   ///< by event: dT

  // The path of a phase, and its events.
  mutable std::vector<double> displacement_;  ///< nv: T v + T^2/2 r, or half way of what was planned
  std::vector<double> path_velocity_;         ///< nv: q'(T)
  std::vector<double> rate_;                  ///< by event: J_N q'(T), 0: the time is fixed

  // Reverse, in the order computed.
  std::vector<double> lag_bar_;           ///< by event: cotangent of dT_0 - dT_k
  std::vector<double> time_bar_;          ///< by event
  std::vector<double> displacement_bar_;  ///< nv
  std::vector<double> v_next_bar_;        ///< nv
  std::vector<double> zero_;              ///< nv
  StepCotangent part_;
  ProductScratch product_;
  mutable std::vector<double> half_;              ///< nv: 1/2 where the problem is that of half way, else 0
  std::vector<double> midpoint_, pivot_scratch_;  ///< of one tree: LU of 1 + t_p/2h (1 - V), or of its transpose
  std::vector<double> solved_;                    ///< by that
  std::vector<int> pivots_;
};

}  // namespace coulomb
