// The gap whose closing ends a smooth phase, as a row of its own: dPhi = J dq + dPhi/dtheta dtheta at the configuration
// of the impact (docs/theory.md (I3)). It uses the derivatives of rows, with all velocities zero and the distance as
// the bias.
#pragma once

#include <vector>

#include "coulomb/collision/contact.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/constraints/row_derivatives.hpp"
#include "coulomb/parameters.hpp"
#include "coulomb/parameters/right_hand_side.hpp"
#include "coulomb/stepping/impacts/impact_phases.hpp"

namespace coulomb {

class ImpactGap {
 public:
  /// at: a record with the kinematics of that configuration; it must stay while this is used.
  void build(const Model& model, const ClosingGap& gap, const StepRecord& at, const ConstraintOptions& options);
  const std::vector<double>& row() const { return row_; }  ///< nv (padded)
  /// dPhi/dtheta, set.size() entries.
  void parameters(const ParameterSet& set, std::vector<double>& out);

 private:
  RowVelocities no_velocities() const { return {zero_.data(), zero_.data(), zero_.data(), zero_.data()}; }

  const Model* model_ = nullptr;
  const StepRecord* at_ = nullptr;
  const ConstraintOptions* options_ = nullptr;
  int index_ = 0;  ///< of the row
  ConstraintRows rows_;
  std::vector<Contact> contacts_;
  RowDerivatives derivatives_;
  std::vector<double> zero_;     ///< velocities and impulses
  std::vector<double> row_;      ///< nv (padded): dPhi/dq
  std::vector<double> columns_;  ///< rows x ld
  std::vector<unsigned char> inactive_;
  std::vector<Mode> modes_;
  std::vector<RightHandSide> sides_;
};

}  // namespace coulomb
