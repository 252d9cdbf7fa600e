// StageViews: what the reverse sweep of a trajectory needs of an implicit stage (implicit_linearization.hpp): the LU of Newton's matrix at the
// solution, and the derivatives of the residual that its products take. Views of the equation that was linearized, or of bytes that a
// rollout has kept of it, as it does from the forward pass for every step of one stage, as far as its memory budget goes; where they are
// missing, the sweep evaluates the stage again, to the same bits.
#pragma once

#include <cstddef>

#include "coulomb/stepping/implicit/implicit_equation.hpp"
#include "coulomb/stepping/implicit/implicit_factor.hpp"

namespace coulomb {

/// The matrices of an equation that is prepared, and the LU of Newton's.
void linearize_stage(const Model& model, const ImplicitStage& stage, ImplicitEquation& equation,
                     ImplicitFactor& factor);

struct StageViews {
  ReverseTerms terms;
  ImplicitFactor::Factors factors;

  /// `equation` and `factor` as reverse mode reads them; nothing else of `equation` is set.
  void restore(ImplicitEquation& equation, ImplicitFactor& factor) const;
};

/// In the one order in which they are measured, written and read (kept_bytes.hpp).
template <class Pass, class Views>
void visit(Pass& pass, Views& x) {
  auto& t = x.terms;
  pass.value(t.explicit_dynamics);
  pass.view(t.R_q_T);
  pass.view(t.mass);
  pass.view(t.dtau_du);
  pass.view(t.base_q_T);
  pass.view(t.base_v_T);
  pass.view(t.time_acceleration);
  pass.view(t.time_force);

  auto& f = x.factors;
  pass.value(f.sparse);
  pass.view(f.lu);
  pass.view(f.pivot);
  pass.view(f.lower);
  pass.view(f.lower_start);
  pass.view(f.upper);
  pass.view(f.upper_start);
}

}  // namespace coulomb
