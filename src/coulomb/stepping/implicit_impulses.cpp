// The derivative of what an implicit step reports as contact impulses, lambda = h f at the end of the step: with s the motion of the rows
// (constraints/penalty_contact.hpp),
//
//   df_T = T dc_T + N df_N,   (dc_T, df_N) = s dq+ + (J_T dv+, w J_N dv+) + what the parameter itself changes.
//
// Components along the rows: a contact's two tangents and normal, as everywhere. Impulses are functions of (q+, v+) and parameters alone,
// so that cotangents of theirs go back by the transposes, to those of the state.
#include <algorithm>

#include "coulomb/small_math.hpp"
#include "coulomb/stepping/implicit_linearization.hpp"

namespace coulomb {

// Rows of columns_ [first, first + count) to out_T, count x rows.
void ImplicitLinearization::impulses_of(int first, int count, std::vector<double>& out_T) {
  evaluate(extra_->count - 1);
  const Model& model = *model_;
  const ImplicitStage& stage = solution(extra_->count - 1);
  const ImplicitEquation& e = stages_[extra_->count - 1]->equation;
  const PenaltyForces& contacts = e.contacts;
  const int n = contacts.rows.num_rows, nv = model.nv, ld = e.dynamics.ld;
  const double h = options_->constraints.timestep;
  out_T.assign(std::size_t(count) * n, 0.0);
  if (n == 0) return;
  std::vector<double> s(std::size_t(n) * ld, 0.0), moved(n), twist_dv(8 * nv), twist_dq(8 * nv);
  fill_row_columns(row_state(model, e.dynamics, contacts, stage.v_next.data()), contacts.derivatives,
                   RowMatrix(s.data(), ld));
  for (int k = 0; k < count; ++k) {
    const double *dq = &columns_.dq[std::size_t(first + k) * ld], *dv = &columns_.dv[std::size_t(first + k) * ld];
    link_twists(model, e.dynamics, dv, twist_dv.data());
    link_twists(model, e.dynamics, dq, twist_dq.data());
    apply_rows(model, e.dynamics, contacts.rows, dv, twist_dv.data(), moved.data());
    for (const BodyRows& b : contacts.rows.body_rows) {
      if (contacts.inactive[b.block]) continue;
      double c[3];
      for (int i = 0; i < 3; ++i) {
        c[i] = (i == 2 ? 1 + b.restitution : 1.0) * moved[b.row + i];
        for (int d = 0; d < nv; ++d) c[i] += s[std::size_t(b.row + i) * ld + d] * dq[d];
      }
      const PenaltyLaw& law = contacts.laws[b.block];
      double* out = &out_T[std::size_t(k) * n + b.row];
      for (int i = 0; i < 2; ++i) out[i] = h * (law.T[i][0] * c[0] + law.T[i][1] * c[1] + law.N[i] * c[2]);
      out[2] = h * c[2];
      const ContactShare& share = contacts.shares[b.block];
      if (share.kind == ContactShare::Kind::whole) continue;
      const double *turn_a = body_link_twist(model, twist_dq.data(), b.body_a) + 3,
                   *turn_b = body_link_twist(model, twist_dq.data(), b.body_b) + 3;
      const double change = dot3(share.turn, turn_a) - dot3(share.turn, turn_b);
      for (int i = 0; i < 3; ++i) out[i] += h * law.share_slope[i] * change;
    }
  }
}

bool ImplicitLinearization::impulse_cotangent(const double* lambda, const ParameterSet& set, double* dq1, double* dv1,
                                              double* parameters) {
  const Model& model = *model_;
  const int last = extra_->count - 1;
  evaluate(last);
  const ImplicitStage& stage = solution(last);
  const ImplicitEquation& e = stages_[last]->equation;
  const PenaltyForces& contacts = e.contacts;
  const int n = contacts.rows.num_rows, nv = model.nv, ld = e.dynamics.ld;
  const double h = options_->constraints.timestep;
  if (n == 0) return true;
  std::vector<double> s(std::size_t(n) * ld, 0.0), moved(n, 0.0), scaled(n, 0.0), wrench(8 * nv);
  fill_row_columns(row_state(model, e.dynamics, contacts, stage.v_next.data()), contacts.derivatives,
                   RowMatrix(s.data(), ld));
  for (const BodyRows& b : contacts.rows.body_rows) {
    if (contacts.inactive[b.block]) continue;
    const PenaltyLaw& law = contacts.laws[b.block];
    const double* w = lambda + b.row;
    for (int i = 0; i < 2; ++i) moved[b.row + i] = h * (law.T[0][i] * w[0] + law.T[1][i] * w[1]);
    moved[b.row + 2] = h * (law.N[0] * w[0] + law.N[1] * w[1] + w[2]);
    for (int i = 0; i < 3; ++i) {
      scaled[b.row + i] = (i == 2 ? 1 + b.restitution : 1.0) * moved[b.row + i];
      for (int d = 0; d < nv; ++d) dq1[d] += s[std::size_t(b.row + i) * ld + d] * moved[b.row + i];
    }
    const ContactShare& share = contacts.shares[b.block];
    if (share.kind == ContactShare::Kind::whole) continue;
    const double change = h * dot3(law.share_slope, w);
    for (const double sign : {1.0, -1.0}) {
      const int dof = model.body_last_dof[sign > 0 ? b.body_a : b.body_b];
      if (dof < 0) continue;
      const int* path = model.dof_path.data() + model.dof_row[dof];
      for (int k = 0; k <= model.dof_depth[dof]; ++k)
        dq1[path[k]] += sign * change * dot3(share.turn, e.dynamics.columns.data() + 8 * path[k] + 3);
    }
  }
  apply_rows_transposed(model, e.dynamics, contacts.rows, scaled.data(), wrench.data(), dv1);
  if (set.size() == 0) return true;
  std::vector<double> changes(std::size_t(set.size()) * n, 0.0);
  add_impulse_changes(last, set, h, n, changes);
  for (int k = 0; k < set.size(); ++k)
    for (int i = 0; i < n; ++i) parameters[k] += lambda[i] * changes[std::size_t(k) * n + i];
  for (const ParameterSet::Item& item : set.items())
    if (is_timestep(item))
      for (int i = 0; i < n; ++i) parameters[item.first] += lambda[i] * contacts.force[i];
  return true;
}

void ImplicitLinearization::restore_contacts() {
  if (record_->rows.num_rows > 0 || extra_->count == 0) return;
  evaluate(extra_->count - 1);
  report_contacts(stages_[extra_->count - 1]->equation.contacts, options_->constraints.timestep, *record_);
}

void ImplicitLinearization::impulse_columns(StepInput input, std::vector<double>& out_T) {
  input_columns();
  const int nv = model_->nv;
  switch (input) {
    case StepInput::q: return impulses_of(0, nv, out_T);
    case StepInput::v: return impulses_of(nv, nv, out_T);
    case StepInput::tau: return impulses_of(2 * nv, nv, out_T);
    case StepInput::u: return impulses_of(3 * nv, model_->nu, out_T);
  }
}

void ImplicitLinearization::impulse_columns(const ParameterSet& set, std::vector<double>& out_T) {
  std::vector<double> columns_T;
  parameter_columns(set, columns_T);  // leaves columns_
  impulses_of(0, set.size(), out_T);
  const int last = extra_->count - 1, n = stages_[last]->equation.contacts.rows.num_rows;
  const double h = options_->constraints.timestep;
  add_impulse_changes(last, set, h, n, out_T);
  for (const ParameterSet::Item& item : set.items())
    if (is_timestep(item))
      for (int i = 0; i < n; ++i) out_T[std::size_t(item.first) * n + i] += stages_[last]->equation.contacts.force[i];
}

}  // namespace coulomb
