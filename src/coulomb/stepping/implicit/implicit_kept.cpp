#include "coulomb/stepping/implicit/implicit_kept.hpp"

namespace coulomb {

/// After prepare and prepare_base: all that the reverse sweep reads, and the LU of H.
void linearize_stage(const Model& model, const ImplicitStage& stage, ImplicitEquation& equation,
                     ImplicitFactor& factor) {
  equation.differentiate(model, stage);
  equation.differentiate_base(model, stage);
  equation.newton_matrix(model, stage, factor.matrix());
  factor.factor();
}

void StageViews::restore(ImplicitEquation& equation, ImplicitFactor& factor) const {
  factor.set_factors(factors);
  equation.set_reverse_terms(terms);
}

}  // namespace coulomb
