// The derivative of what an implicit step reports as contact impulses, lambda = h f at the end of the step: with s the motion of the rows
// (constraints/penalty/penalty_contact.hpp),
//
//   df_T = T dc_T + N df_N,   (dc_T, df_N) = s dq+ + (J_T dv+, w J_N dv+) + what the parameter itself changes.
//
// Components along the rows: a contact's two tangents and normal, as everywhere. Impulses are functions of (q+, v+) and parameters alone,
// so that cotangents of theirs go back by the transposes, to those of the state.
#include <algorithm>

#include "coulomb/base/small_math.hpp"
#include "coulomb/stepping/implicit/implicit_linearization.hpp"

namespace coulomb {
namespace {

/// h df of one contact for the change dc (3) of its velocity.
void change_of_impulse(const PenaltyLaw& law, double h, const double* dc, double* out) {
  for (int i = 0; i < 2; ++i)
    out[i] = h * (law.T[i][0] * dc[0] + law.T[i][1] * dc[1] + law.N[i] * dc[2]);
  out[2] = h * dc[2];
}

/// h dlambda^T df: the cotangent of the velocity of the contact.
void velocity_cotangent(const PenaltyLaw& law, double h, const double* dlambda, double* out) {
  for (int i = 0; i < 2; ++i)
    out[i] = h * (law.T[0][i] * dlambda[0] + law.T[1][i] * dlambda[1]);
  out[2] = h * (law.N[0] * dlambda[0] + law.N[1] * dlambda[1] + dlambda[2]);
}

/// How much of the velocity v+ a row sees: the normal one w.
double velocity_weight(const BodyRows& b, int i) { return i == 2 ? 1 + b.restitution : 1.0; }

/// The change of a contact's share, `change` per unit of it, as a cotangent of q+.
void add_share_cotangent(const Model& model, const DynamicsWorkspace& dynamics, const BodyRows& b,
                         const ContactShare& share, double change, double* dq1) {
  for (const double sign : {1.0, -1.0}) {
    const int dof = model.body_last_dof[sign > 0 ? b.body_a : b.body_b];
    if (dof < 0) continue;
    const int* path = model.dof_path.data() + model.dof_row[dof];
    for (int k = 0; k <= model.dof_depth[dof]; ++k)
      dq1[path[k]] += sign * change * dot3(share.turn, dynamics.columns.data() + 8 * path[k] + 3);
  }
}

}  // namespace

/// Rows of columns_ [first, first + count) to out_T, count x rows.
void ImplicitLinearization::impulses_of(int first, int count, std::vector<double>& out_T) {
  const int last = last_stage();
  evaluate(last);
  const Model& model = *model_;
  const ImplicitEquation& e = stages_[last]->equation;
  const PenaltyForces& contacts = e.contacts;
  const int n = contacts.rows.num_rows;
  const int nv = model.nv;
  const int ld = e.dynamics.ld;
  const double h = options_->constraints.timestep;
  out_T.assign(std::size_t(count) * n, 0.0);
  if (n == 0) return;

  // The motion of the rows with q+, s.
  std::vector<double> s(std::size_t(n) * ld, 0.0);
  fill_row_columns(row_state(model, e.dynamics, contacts, solution(last).v_next.data()), contacts.derivatives,
                   RowMatrix(s.data(), ld));

  std::vector<double> moved(n);
  std::vector<double> twist_dv(8 * nv);
  std::vector<double> twist_dq(8 * nv);
  for (int k = 0; k < count; ++k) {
    const double* dq = &columns_.dq[std::size_t(first + k) * ld];
    const double* dv = &columns_.dv[std::size_t(first + k) * ld];
    link_twists(model, e.dynamics, dv, twist_dv.data());
    link_twists(model, e.dynamics, dq, twist_dq.data());
    apply_rows(model, e.dynamics, contacts.rows, dv, twist_dv.data(), moved.data());

    for (const BodyRows& b : contacts.rows.body_rows) {
      if (contacts.inactive[b.block]) continue;

      // The law of the contact takes dc = s dq+ + w J dv+.
      double dc[3];
      for (int i = 0; i < 3; ++i) {
        dc[i] = velocity_weight(b, i) * moved[b.row + i];
        for (int d = 0; d < nv; ++d)
          dc[i] += s[std::size_t(b.row + i) * ld + d] * dq[d];
      }
      double* out = &out_T[std::size_t(k) * n + b.row];
      change_of_impulse(contacts.laws[b.block], h, dc, out);

      // Its share turns with the two bodies.
      const ContactShare& share = contacts.shares[b.block];
      if (share.kind == ContactShare::Kind::whole) continue;
      const double* turn_a = body_link_twist(model, twist_dq.data(), b.body_a) + 3;
      const double* turn_b = body_link_twist(model, twist_dq.data(), b.body_b) + 3;
      const double change = dot3(share.turn, turn_a) - dot3(share.turn, turn_b);
      for (int i = 0; i < 3; ++i)
        out[i] += h * contacts.laws[b.block].share_slope[i] * change;
    }
  }
}

bool ImplicitLinearization::impulse_cotangent(const double* lambda, const ParameterSet& set, double* dq1, double* dv1,
                                              double* parameters) {
  const Model& model = *model_;
  const int last = last_stage();
  evaluate(last);
  const ImplicitEquation& e = stages_[last]->equation;
  const PenaltyForces& contacts = e.contacts;
  const int n = contacts.rows.num_rows;
  const int nv = model.nv;
  const int ld = e.dynamics.ld;
  const double h = options_->constraints.timestep;
  if (n == 0) return true;

  // The motion of the rows with q+, s.
  std::vector<double> s(std::size_t(n) * ld, 0.0);
  fill_row_columns(row_state(model, e.dynamics, contacts, solution(last).v_next.data()), contacts.derivatives,
                   RowMatrix(s.data(), ld));

  std::vector<double> moved(n, 0.0);
  std::vector<double> scaled(n, 0.0);
  for (const BodyRows& b : contacts.rows.body_rows) {
    if (contacts.inactive[b.block]) continue;

    // Through the law of the contact to its velocity, and from there to q+.
    const PenaltyLaw& law = contacts.laws[b.block];
    velocity_cotangent(law, h, lambda + b.row, &moved[b.row]);
    for (int i = 0; i < 3; ++i) {
      scaled[b.row + i] = velocity_weight(b, i) * moved[b.row + i];
      for (int d = 0; d < nv; ++d)
        dq1[d] += s[std::size_t(b.row + i) * ld + d] * moved[b.row + i];
    }
    const ContactShare& share = contacts.shares[b.block];
    if (share.kind == ContactShare::Kind::whole) continue;
    add_share_cotangent(model, e.dynamics, b, share, h * dot3(law.share_slope, lambda + b.row), dq1);
  }

  // ... and to v+.
  std::vector<double> wrench(8 * nv);
  apply_rows_transposed(model, e.dynamics, contacts.rows, scaled.data(), wrench.data(), dv1);
  if (set.size() == 0) return true;

  // Parameters change forces at fixed (q+, v+); the time step is a factor of the impulses.
  std::vector<double> changes(std::size_t(set.size()) * n, 0.0);
  add_impulse_changes(last, set, h, n, changes);
  for (int k = 0; k < set.size(); ++k)
    for (int i = 0; i < n; ++i)
      parameters[k] += lambda[i] * changes[std::size_t(k) * n + i];
  for (const ParameterSet::Item& item : set.items()) {
    if (!is_timestep(item)) continue;
    for (int i = 0; i < n; ++i)
      parameters[item.first] += lambda[i] * contacts.force[i];
  }
  return true;
}

void ImplicitLinearization::restore_contacts() {
  if (record_->rows.num_rows > 0 || extra_->count == 0) return;
  evaluate(last_stage());
  report_contacts(stages_[last_stage()]->equation.contacts, options_->constraints.timestep, *record_);
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
  // The columns of the next state stay in columns_.
  std::vector<double> columns_T;
  parameter_columns(set, columns_T);
  impulses_of(0, set.size(), out_T);

  // And what parameters change at a fixed one.
  const int last = last_stage();
  const PenaltyForces& contacts = stages_[last]->equation.contacts;
  const int n = contacts.rows.num_rows;
  add_impulse_changes(last, set, options_->constraints.timestep, n, out_T);
  for (const ParameterSet::Item& item : set.items()) {
    if (!is_timestep(item)) continue;
    for (int i = 0; i < n; ++i)
      out_T[std::size_t(item.first) * n + i] += contacts.force[i];
  }
}

}  // namespace coulomb
