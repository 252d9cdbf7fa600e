#include "coulomb/control/knot_dynamics.hpp"

#include <algorithm>

#include "coulomb/linalg/dense_blocked.hpp"
#include "coulomb/stepping/step_record.hpp"

namespace coulomb {

KnotDynamics::KnotDynamics(std::shared_ptr<const Model> model, const ControlOptions& options)
    : sim_(std::make_unique<Simulator>(std::move(model), options.simulator)), substeps_(options.substeps),
      forces_(options.inputs == "tau"), q_(sim_->model().nq), v_(sim_->model().nv) {}

KnotDynamics::Outcome KnotDynamics::step_once(const double* q, const double* v, const double* u, double* q_next,
                                              double* v_next) {
  sim_->step(q, v, forces_ ? nullptr : u, forces_ ? u : nullptr, nullptr, q_next, v_next);
  return {!sim_->overflowed(), sim_->record().solution.status == SolveStatus::solved};
}

KnotDynamics::Outcome KnotDynamics::step(const double* q, const double* v, const double* u, double* q_next,
                                         double* v_next) {
  Outcome all;
  for (int i = 0; i < substeps_ && all.finite; ++i) {
    const Outcome one = step_once(i == 0 ? q : q_next, i == 0 ? v : v_next, u, q_next, v_next);
    all.finite = one.finite;
    all.converged = all.converged && one.converged;
  }
  return all;
}

/// F := A_i F + (0, B_i).
void KnotDynamics::append_jacobian(int step, const KnotLayout& at, double* F) {
  const StepDerivatives& d = sim_->derivatives();
  const int rows = 2 * at.nv;
  const int ld = at.ld();
  const double* B_T = forces_ ? d.B_tau_T.data() : d.B_T.data();

  if (step == 0) {
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < rows; ++j)
        F[std::size_t(i) * ld + j] = d.A_T[std::size_t(j) * rows + i];
  } else {
    std::copy_n(F, std::size_t(rows) * ld, product_.begin());
    std::fill_n(F, std::size_t(rows) * ld, 0.0);
    dense::add_product(1, d.A_T.data(), 1, rows, product_.data(), ld, F, ld, rows, rows, at.nz());
  }
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < at.nu; ++j)
      F[std::size_t(i) * ld + at.nx() + j] += B_T[std::size_t(j) * rows + i];
}

KnotDynamics::Outcome KnotDynamics::linearize(const double* q, const double* v, const double* u, const KnotLayout& at,
                                              double* q_next, double* v_next, double* F) {
  product_.resize(std::size_t(2) * at.nv * at.ld());
  std::fill_n(F, std::size_t(at.nx()) * at.ld(), 0.0);
  Outcome all;
  for (int i = 0; i < substeps_; ++i) {
    const Outcome one = step_once(i == 0 ? q : q_next, i == 0 ? v : v_next, u, q_next, v_next);
    all.converged = all.converged && one.converged;
    all.finite = one.finite && sim_->differentiable();
    if (!all.finite) return all;
    append_jacobian(i, at, F);
  }

  // What rates remember: the control.
  for (int i = 0; at.rates && i < at.nu; ++i)
    F[std::size_t(2 * at.nv + i) * at.ld() + at.nx() + i] = 1;
  return all;
}

}  // namespace coulomb
