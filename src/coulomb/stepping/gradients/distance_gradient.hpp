// DistanceGradient: contacts have an influence on the derivative before they close. The step is the exact one. In its
// derivative, a near gap acts as a partial contact, the more the closer it is. After [Paulus2026] and [Kim2024], who
// use weak forces at a distance; here the gap has a share of the contact itself.
//
// The near gaps i have Phi_i > 0 at the start of the step, Phi^+_i = Phi_i + h J_i v+ at its end, and no impulse that
// keeps them open:
//
//   share      s_i = exp(-max(Phi^+_i, 0) / l),   l: gradient_scale
//   a contact  J dv+ + R dlambda + (J dq + dPhi/dtheta dtheta) / h = 0: the free velocity would have closed the gap
//   in part    (D + G + R) dlambda = -(J dv+ + (J dq + dPhi/dtheta dtheta) / h),   D_ii = (G_ii + R_i) (1 - s_i) / s_i
//   response   dtau += J^T dlambda / h through the exact derivative,   G = J (dv+/dtau) J^T / h
//
// R is the compliance of the contact law, 0 for rigid contact. A single gap has the share s of the response of a
// contact that is about to close: the whole response at Phi^+ = 0, none far away. dv+ on the right is the exact one;
// the rotation of J is neglected. Gaps that other contacts hold, with G_ii below 1e-6 J M^-1 J^T, are left out.
#pragma once

#include <vector>

#include "coulomb/collision/detect.hpp"
#include "coulomb/collision_cache.hpp"
#include "coulomb/stepping/gradients/gradient_modes.hpp"
#include "coulomb/stepping/impacts/impact_gap.hpp"

namespace coulomb {

class DistanceGradient final : public GradientDecorator {
 public:
  DistanceGradient(std::unique_ptr<StepGradient> exact, const Model& model);

  void prepare(const Model& model, const StepOptions& options, StepRecord& record, const StepMemory& memory) override;
  const StepDerivatives& jacobian() override;
  std::shared_ptr<StepDerivatives> shared_jacobian() override { return jacobian(), derivatives_; }
  std::shared_ptr<SparseStepDerivatives> sparse_jacobian() override { return StepGradient::sparse_jacobian(); }
  void parameter_columns(const ParameterSet& set, std::vector<double>& columns_T) override;
  void vjp(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set = nullptr) override;

 private:
  void find_gaps(const Model& model, const StepOptions& options, const StepRecord& record);
  void responses();
  void drop_held();
  void factor();
  /// Of a column: what the gaps' impulses add, given J dv+ and the change of the gaps themselves; null: they stay.
  void add_response(const double* gap_change, double* column);
  void response_columns();

  int nv_ = 0;
  int count_ = 0;  ///< of near gaps
  double h_ = 0;
  CollisionWorkspace collision_;
  CollisionCache cache_;  ///< of no step: gaps are a function of the poses
  std::vector<ImpactGap> gaps_;
  std::vector<double> share_;       ///< count: s
  std::vector<double> compliance_;  ///< count: R
  std::vector<double> free_;        ///< count: J M^-1 J^T
  std::vector<int> kept_;           ///< gaps that something can move
  std::vector<double> response_;    ///< count x 2 nv: (dq1, dv1) for a unit of impulse
  std::vector<double> factor_;      ///< count x padded: G, then LU of D + G + R
  std::vector<int> pivots_;
  std::vector<double> work_, impulse_, change_;
  std::vector<double> zero_;       ///< nv
  std::vector<double> cotangent_;  ///< nv: J^T r
  StepCotangent part_;
  bool have_jacobian_ = false, have_response_ = false;
};

}  // namespace coulomb
