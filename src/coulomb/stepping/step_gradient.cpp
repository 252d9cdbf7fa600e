#include "coulomb/stepping/step_gradient.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace coulomb {

bool is_step_input(const std::string& name) { return name == "q" || name == "v" || name == "u" || name == "tau"; }

StepInput step_input(const std::string& name) {
  if (name == "q") return StepInput::q;
  if (name == "v") return StepInput::v;
  return name == "u" ? StepInput::u : StepInput::tau;
}

StepDerivatives::StepDerivatives(const Model& model)
    : nv(model.nv), nu(model.nu), A_T(std::size_t(4) * nv * nv), B_T(std::size_t(2) * nu * nv),
      B_tau_T(std::size_t(2) * nv * nv) {}

/// Memory of a Jacobian that a caller keeps is left to him; of two, the free one is taken.
StepDerivatives& StepGradient::writable_derivatives(const Model& model) {
  const auto kept = [](const std::shared_ptr<StepDerivatives>& d) { return !d || d.use_count() > 1; };
  if (kept(derivatives_)) std::swap(derivatives_, spare_);
  if (kept(derivatives_)) {
    derivatives_ = std::make_shared<StepDerivatives>(model);
  }
  return *derivatives_;
}

/// Of a stepper that knows no islands.
std::shared_ptr<SparseStepDerivatives> StepGradient::sparse_jacobian() {
  const StepDerivatives& J = jacobian();
  auto out = std::make_shared<SparseStepDerivatives>();
  out->nv = J.nv;
  out->nu = J.nu;
  out->ambiguous = J.ambiguous;

  // One island of all dofs.
  SparseStepDerivatives::Island all;
  all.dofs.resize(J.nv);
  all.actuators.resize(J.nu);
  std::iota(all.dofs.begin(), all.dofs.end(), 0);
  std::iota(all.actuators.begin(), all.actuators.end(), 0);
  all.A_T = J.A_T;
  all.B_T = J.B_T;
  all.B_tau_T = J.B_tau_T;
  all.A_previous_T = J.A_previous_T;
  out->islands.push_back(std::move(all));
  return out;
}

void StepGradient::add_fext_cotangent(const double*, std::vector<double>&) {
  throw std::logic_error("fext: these steps have no derivative of impulses with respect to wrenches");
}

/// Where there is no reverse sweep: rows of the matrices times the cotangents.
void StepGradient::vjp_from_jacobian(const double* dq1, const double* dv1, StepCotangent& out,
                                     const ParameterSet* set) {
  const StepDerivatives& J = jacobian();
  const std::size_t nv = J.nv;
  const auto project = [&](const double* columns_T, std::size_t count, std::vector<double>& to) {
    to.assign(count, 0.0);
    for (std::size_t k = 0; k < count; ++k)
      for (std::size_t d = 0; d < nv; ++d)
        to[k] += columns_T[2 * nv * k + d] * dq1[d] + columns_T[2 * nv * k + nv + d] * dv1[d];
  };

  // Inputs, the state before if there is one, and parameters.
  project(J.A_T.data(), nv, out.q);
  project(J.A_T.data() + 2 * nv * nv, nv, out.v);
  project(J.B_T.data(), J.nu, out.u);
  project(J.B_tau_T.data(), nv, out.tau);
  const bool previous = !J.A_previous_T.empty();
  project(J.A_previous_T.data(), previous ? nv : 0, out.previous_q);
  project(J.A_previous_T.data() + (previous ? 2 * nv * nv : 0), previous ? nv : 0, out.previous_v);
  out.parameters.clear();
  if (!set || set->size() == 0) return;
  std::vector<double> columns_T;
  parameter_columns(*set, columns_T);
  project(columns_T.data(), set->size(), out.parameters);
}

/// Columns of the matrices times the tangents; null: zero.
void StepGradient::jvp(const StepTangent& tangent, double* dq1, double* dv1) {
  const StepDerivatives& J = jacobian();
  const std::size_t nv = J.nv;
  std::fill_n(dq1, nv, 0.0);
  std::fill_n(dv1, nv, 0.0);

  // Columns of the inputs that move.
  const auto add = [&](const double* x, std::size_t count, const double* columns_T) {
    if (!x) return;
    for (std::size_t k = 0; k < count; ++k) {
      const double* column = columns_T + 2 * nv * k;
      for (std::size_t d = 0; d < nv; ++d) {
        dq1[d] += x[k] * column[d];
        dv1[d] += x[k] * column[nv + d];
      }
    }
  };
  add(tangent.q, nv, J.A_T.data());
  add(tangent.v, nv, J.A_T.data() + 2 * nv * nv);
  add(tangent.u, J.nu, J.B_T.data());
  add(tangent.tau, nv, J.B_tau_T.data());
  if (J.A_previous_T.empty()) return;
  add(tangent.previous_q, nv, J.A_previous_T.data());
  add(tangent.previous_v, nv, J.A_previous_T.data() + 2 * nv * nv);
}

}  // namespace coulomb
