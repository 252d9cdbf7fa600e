// dQ/dq and dQ/dv of penalty contact (penalty_contact.hpp; docs/theory.md (B11)). With the rows' derivatives G, e (row_derivatives.hpp)
// and the law L that takes (dc_T, df_N) to df, a contact adds for the dofs k by which and d on which it acts
//
//   dQ_d/dq_k += J_d . E^T L (G J_k + W psi_dot_k),   dQ_d/dv_k += J_d . E^T L W J_k,   W = diag(1, 1, w) E
//
// E the rows as covectors on the twist. A share that turns with the bodies adds E^T share_slope turn^T to E^T L G. Sums of E^T L G and
// E^T L W over the contacts of two bodies come first.
#include <cstring>

#include "coulomb/base/small_math.hpp"
#include "coulomb/constraints/islands.hpp"
#include "coulomb/constraints/penalty/penalty_contact.hpp"
#include "coulomb/dynamics/dynamics.hpp"

namespace coulomb {
namespace {

/// Sums over the contacts of two bodies: [on][by].
struct PairSums {
  Matrix6 G[2][2];  // of E^T L G, with the share's turn
  Matrix6 W[2][2];  // of E^T L W
};

/// to += E^T L rows
void add_product(const Matrix6& E, const PenaltyLaw& law, const Matrix6& rows, double normal_weight, Matrix6& to) {
  // L rows; the normal row has its weight.
  double df[3][6];
  for (int j = 0; j < 6; ++j) {
    df[2][j] = normal_weight * rows[2][j];
    for (int i = 0; i < 2; ++i)
      df[i][j] = law.T[i][0] * rows[0][j] + law.T[i][1] * rows[1][j] + law.N[i] * df[2][j];
  }

  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 6; ++j)
      to[i][j] += E[0][i] * df[0][j] + E[1][i] * df[1][j] + E[2][i] * df[2][j];
}

/// G += E^T share_slope (turn of `by`)^T
void add_share(const Matrix6& E, const PenaltyLaw& law, const double* turn, double sign, Matrix6& G) {
  for (int i = 0; i < 6; ++i) {
    const double df = E[0][i] * law.share_slope[0] + E[1][i] * law.share_slope[1] + E[2][i] * law.share_slope[2];
    for (int j = 0; j < 3; ++j)
      G[i][3 + j] += sign * df * turn[j];
  }
}

/// What one contact adds to the sums of its bodies; moving: those that have dofs.
void add_contact(const BodyRows& b, const BodyRowDerivative& D, const PenaltyLaw& law, const ContactShare& share,
                 const bool moving[2], PairSums& sums) {
  const Matrix6* E[2] = {&D.e_a, &D.e_b};
  const Matrix6* G[2] = {&D.G_a, &D.G_b};
  for (int on = 0; on < 2; ++on) {
    for (int by = 0; by < 2; ++by) {
      if (!moving[on] || !moving[by]) continue;
      add_product(*E[on], law, *G[by], 1.0, sums.G[on][by]);
      add_product(*E[on], law, *E[by], 1 + b.restitution, sums.W[on][by]);
      if (share.kind == ContactShare::Kind::whole) continue;
      add_share(*E[on], law, share.turn, by == 0 ? 1.0 : -1.0, sums.G[on][by]);
    }
  }
}

void multiply6(const Matrix6& M, const double* x, double* out) {
  for (int i = 0; i < 6; ++i)
    out[i] += dot6(M[i], x);
}

/// Where the derivatives go, transposed: [dof by which][dof on which].
struct ForceColumns {
  double* dq_T;
  double* dv_T;
  int ld;
};

/// The dofs `by` which a body moves change the force on the dofs `on`: both are root paths, named by their last dofs.
COULOMB_SIMD void spread(const Model& model, const DynamicsWorkspace& dynamics, int by, int on, const Matrix6& G,
                         const Matrix6& W, const ForceColumns& out) {
  const double* J = dynamics.columns.data();
  const double* rate = dynamics.column_rate.data();
  const int* from = model.dof_path.data() + model.dof_row[by];
  const int* to = model.dof_path.data() + model.dof_row[on];
  const int num_from = model.dof_depth[by] + 1;
  const int num_to = model.dof_depth[on] + 1;
  for (int i = 0; i < num_from; ++i) {
    // The change of the wrench by dof k ...
    const int k = from[i];
    double df[6] = {0, 0, 0, 0, 0, 0};
    double df_dv[6] = {0, 0, 0, 0, 0, 0};
    multiply6(G, J + 8 * k, df);
    multiply6(W, rate + 8 * k, df);
    multiply6(W, J + 8 * k, df_dv);

    // ... is felt by all dofs that move the other body.
    double* row_q = out.dq_T + std::size_t(k) * out.ld;
    double* row_v = out.dv_T + std::size_t(k) * out.ld;
    for (int j = 0; j < num_to; ++j) {
      const double* column = J + 8 * to[j];
      row_q[to[j]] += dot6(column, df);
      row_v[to[j]] += dot6(column, df_dv);
    }
  }
}

}  // namespace

RowState row_state(const Model& model, const DynamicsWorkspace& dynamics, const PenaltyForces& forces,
                   const double* v) {
  // Both velocities of a row are v.
  const double* twist = forces.twist.data();
  const double* rate = dynamics.column_rate.data();
  return {model, dynamics, forces.rows, {twist, rate, twist, rate}, v, forces.force.data(), forces.inactive};
}

void penalty_row_derivatives(const Model& model, const DynamicsWorkspace& dynamics, PenaltyForces& forces) {
  const RowState state = row_state(model, dynamics, forces, nullptr);
  row_derivatives(state, forces.collision.contacts, forces.derivatives);
}

void penalty_derivatives(const Model& model, const DynamicsWorkspace& dynamics, const PenaltyForces& forces,
                         double* dQ_dq_T, double* dQ_dv_T, int ld) {
  // Forces at points and frames that move.
  const RowState state = row_state(model, dynamics, forces, nullptr);
  add_wrench_columns(state, forces.derivatives, DofMatrix(dQ_dq_T, ld));

  // Forces that change: contacts of the same two bodies follow each other.
  const std::vector<BodyRows>& rows = forces.rows.body_rows;
  const ForceColumns out{dQ_dq_T, dQ_dv_T, ld};
  PairSums sums;
  const int count = int(rows.size());
  for (int i = 0; i < count;) {
    const int body[2] = {rows[i].body_a, rows[i].body_b};
    const int last[2] = {model.body_last_dof[body[0]], model.body_last_dof[body[1]]};
    const bool moving[2] = {last[0] >= 0, last[1] >= 0};

    bool any = false;
    std::memset(&sums, 0, sizeof sums);
    for (; i < count && rows[i].body_a == body[0] && rows[i].body_b == body[1]; ++i) {
      if (forces.inactive[i]) continue;
      any = true;
      add_contact(rows[i], forces.derivatives.blocks[i], forces.laws[i], forces.shares[i], moving, sums);
    }

    // Their sums go along the root paths once.
    for (int on = 0; any && on < 2; ++on)
      for (int by = 0; by < 2; ++by)
        if (moving[on] && moving[by]) {
          spread(model, dynamics, last[by], last[on], sums.G[on][by], sums.W[on][by], out);
        }
  }
}

}  // namespace coulomb
