// Derivatives of the impulses of a step that was split at impacts: those of its last smooth phase.
#include "coulomb/stepping/impacts/impact_gradient.hpp"

namespace coulomb {

/// out_T (count x rows) += what the phase's impulses change through its state.
void ImpactGradient::impulses(const Tangents& t, int i, std::vector<double>& out_T) {
  const int nv = model_->nv;
  const int n = record(i).rows.num_rows;
  evaluated_at(i, t, q_T_);
  for (const bool by_q : {true, false}) {
    linear_[i]->impulse_columns(by_q ? StepInput::q : StepInput::v, columns_);
    const std::vector<double>& x = by_q ? q_T_ : t.v;
    for (int k = 0; k < t.count; ++k)
      for (int d = 0; d < nv; ++d)
        for (int r = 0; r < n; ++r)
          out_T[std::size_t(k) * n + r] += x[std::size_t(k) * ld_ + d] * columns_[std::size_t(d) * n + r];
  }
}

void ImpactGradient::impulse_columns(StepInput input, std::vector<double>& out_T) {
  const int nv = model_->nv;
  const int last = last_smooth();
  const int n = record(last).rows.num_rows;

  // The state at the start of the last smooth phase.
  const bool of_state = input == StepInput::q || input == StepInput::v;
  const int count = input == StepInput::u ? model_->nu : nv;
  Tangents t;
  t.reset(of_state ? 2 * nv : count, ld_);
  if (of_state) start_by_state(t);
  const auto direct = [&](int i, double* dv_T, std::vector<double>&) {
    input_columns(i, dv_T, input == StepInput::u ? 0 : -1, input == StepInput::tau ? 0 : -1);
  };
  follow(last, direct, t);

  // Inputs move the impulses by themselves, too.
  if (!of_state) {
    linear_[last]->impulse_columns(input, out_T);
    impulses(t, last, out_T);
    for (double& x : out_T)
      x /= phase(last).length;
    return;
  }

  // The state at the start of the step only through that one; of its columns these are the first half or the second.
  std::vector<double> all(std::size_t(2) * nv * n, 0.0);
  impulses(t, last, all);
  for (double& x : all)
    x /= phase(last).length;
  const auto first = all.begin() + (input == StepInput::v ? std::ptrdiff_t(nv) * n : 0);
  out_T.assign(first, first + std::ptrdiff_t(nv) * n);
}

void ImpactGradient::impulse_columns(const ParameterSet& set, std::vector<double>& out_T) {
  const int last = last_smooth();
  Tangents t;
  t.reset(set.size(), ld_);
  start_by_timestep(set, t);
  const auto direct = [&](int i, double* dv_T, std::vector<double>& gap) { theta_columns(i, set, dv_T, gap); };
  follow(last, direct, t);

  // Of the problem itself, whose length is a share of the step's, ...
  linear_[last]->impulse_columns(set, out_T);
  const int h = timestep_column(set);
  const int n = record(last).rows.num_rows;
  for (int r = 0; r < n && h >= 0; ++r)
    out_T[std::size_t(h) * n + r] *= phase(last).length;

  // ... and through the state at its start.
  impulses(t, last, out_T);
  for (double& x : out_T)
    x /= phase(last).length;
}

}  // namespace coulomb
