// BounceGradient: Nimble's approximate derivative of positions through elastic impacts of plain steps ([Werling2021,
// appendix E]; docs/theory.md (I11)). In a step that is not split at the impact, a ball that starts lower ends lower;
// in truth it has bounced already and ends higher. For every contact that bounces, dq+/dq = X must satisfy J_i X J_i^+
// = -e_i; X is the matrix nearest to the identity that does:
//
//   X = 1 + sum_i m_i j_i^T j_i,   j_i = J_i / |J_i|,   sum_j (j_i . j_j)^2 m_j = -(1 + e_i),   and dq+/dv = h X
//
// This is exact for one bouncing contact at constant velocity. The derivatives of velocities, and those of positions
// with respect to forces and parameters, are unchanged.
#pragma once

#include <memory>
#include <vector>

#include "coulomb/stepping/gradients/gradient_modes.hpp"

namespace coulomb {

class BounceGradient final : public GradientDecorator {
 public:
  using GradientDecorator::GradientDecorator;

  void prepare(const Model& model, const StepOptions& options, StepRecord& record, const StepMemory& memory) override;
  const StepDerivatives& jacobian() override;
  std::shared_ptr<StepDerivatives> shared_jacobian() override { return jacobian(), derivatives_; }
  std::shared_ptr<SparseStepDerivatives> sparse_jacobian() override { return StepGradient::sparse_jacobian(); }
  void vjp(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set = nullptr) override;

 private:
  void find_bounces(const Model& model, const StepRecord& record);
  void times_x(const double* a, double* out) const;  ///< X a; X is symmetric

  int nv_ = 0;
  int count_ = 0;  ///< of contacts that bounce
  double h_ = 0;
  std::vector<double> rows_;    ///< count x nv: j_i
  std::vector<double> weight_;  ///< count: m_i
  std::vector<double> zero_;    ///< nv
  std::vector<double> x_bar_;   ///< nv: X dq1
  StepCotangent part_;          ///< of the velocity alone
  bool have_jacobian_ = false;
};

}  // namespace coulomb
