// KeptStage: what the reverse sweep of a trajectory needs of an implicit stage (implicit_linearization.hpp): the LU of Newton's matrix at the
// solution, and the derivatives of the residual that its products take. A rollout keeps it from the forward pass for every step of one
// stage, as far as its memory budget goes; where it is missing, the sweep evaluates the stage again, to the same bits.
#pragma once

#include <cstddef>
#include <vector>

#include "coulomb/stepping/implicit/implicit_equation.hpp"
#include "coulomb/stepping/implicit/implicit_factor.hpp"

namespace coulomb {

/// The matrices of an equation that is prepared, and the LU of Newton's.
void linearize_stage(const Model& model, const ImplicitStage& stage, ImplicitEquation& equation,
                     ImplicitFactor& factor);

class KeptStage {
 public:
  /// Of a stage after linearize_stage.
  KeptStage(const ImplicitEquation& equation, const ImplicitFactor& factor);
  /// `equation` and `factor` as reverse mode reads them; nothing else of `equation` is set.
  void restore(ImplicitEquation& equation, ImplicitFactor& factor) const;
  std::size_t bytes() const;

 private:
  ImplicitFactor factor_;
  ReverseTerms terms_;
};

}  // namespace coulomb
