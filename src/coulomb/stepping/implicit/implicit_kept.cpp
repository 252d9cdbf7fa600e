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

/// Copies: the equation goes on to the next step.
KeptStage::KeptStage(const ImplicitEquation& equation, const ImplicitFactor& factor)
    : factor_(factor.factors_alone()), terms_(equation.reverse_terms()) {}

void KeptStage::restore(ImplicitEquation& equation, ImplicitFactor& factor) const {
  factor = factor_;
  equation.set_reverse_terms(terms_);
}

std::size_t KeptStage::bytes() const { return sizeof *this + factor_.bytes() + terms_.bytes(); }

}  // namespace coulomb
