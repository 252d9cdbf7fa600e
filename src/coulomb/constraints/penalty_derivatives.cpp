// dQ/dq and dQ/dv of penalty contact (penalty_contact.hpp; docs/theory.md (B11)). With the rows' derivatives G, e (row_derivatives.hpp)
// and the law L that takes (dc_T, df_N) to df, a contact adds for the dofs k by which and d on which it acts
//
//   dQ_d/dq_k += J_d . E^T L (G J_k + W psi_dot_k),   dQ_d/dv_k += J_d . E^T L W J_k,   W = diag(1, 1, w) E
//
// E the rows as covectors on the twist. A share that turns with the bodies adds E^T share_slope turn^T to E^T L G. Sums of E^T L G and
// E^T L W over the contacts of two bodies come first.
#include <cstring>

#include "coulomb/constraints/penalty_contact.hpp"
#include "coulomb/small_math.hpp"

namespace coulomb {
namespace {

/// Sums over the contacts of two bodies: [on][by].
struct PairSums {
  double G[2][2][6][6], W[2][2][6][6];
};

/// to += E^T L rows
void add_product(const double E[6][6], const PenaltyLaw& law, const double rows[6][6], double normal_weight,
                 double to[6][6]) {
  double df[3][6];
  for (int j = 0; j < 6; ++j) {
    df[2][j] = normal_weight * rows[2][j];
    for (int i = 0; i < 2; ++i) df[i][j] = law.T[i][0] * rows[0][j] + law.T[i][1] * rows[1][j] + law.N[i] * df[2][j];
  }
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 6; ++j) to[i][j] += E[0][i] * df[0][j] + E[1][i] * df[1][j] + E[2][i] * df[2][j];
}

/// G += E^T share_slope (turn of `by`)^T
void add_share(const double E[6][6], const PenaltyLaw& law, const double* turn, double sign, double G[6][6]) {
  for (int i = 0; i < 6; ++i) {
    const double df = E[0][i] * law.share_slope[0] + E[1][i] * law.share_slope[1] + E[2][i] * law.share_slope[2];
    for (int j = 0; j < 3; ++j) G[i][3 + j] += sign * df * turn[j];
  }
}

void add_contact(const BodyRows& b, const BodyRowDerivative& D, const PenaltyLaw& law, const ContactShare& share,
                 const bool moving[2], PairSums& sums) {
  const double(*E[2])[6] = {D.e_a, D.e_b};
  const double(*G[2])[6] = {D.G_a, D.G_b};
  for (int on = 0; on < 2; ++on)
    for (int by = 0; by < 2; ++by) {
      if (!moving[on] || !moving[by]) continue;
      add_product(E[on], law, G[by], 1.0, sums.G[on][by]);
      add_product(E[on], law, E[by], 1 + b.restitution, sums.W[on][by]);
      if (share.kind != ContactShare::Kind::whole)
        add_share(E[on], law, share.turn, by == 0 ? 1.0 : -1.0, sums.G[on][by]);
    }
}

void multiply6(const double M[6][6], const double* x, double* out) {
  for (int i = 0; i < 6; ++i) out[i] += dot6(M[i], x);
}

/// The dofs `by` which a body moves change the force on the dofs `on`: both are root paths.
COULOMB_SIMD void spread(const Model& model, const DynamicsWorkspace& dynamics, int by, int on, const double G[6][6],
                         const double W[6][6], double* dQ_dq_T, double* dQ_dv_T, int ld) {
  const double *J = dynamics.columns.data(), *rate = dynamics.column_rate.data();
  const int *from = model.dof_path.data() + model.dof_row[by], *to = model.dof_path.data() + model.dof_row[on];
  const int num_from = model.dof_depth[by] + 1, num_to = model.dof_depth[on] + 1;
  for (int i = 0; i < num_from; ++i) {
    const int k = from[i];
    double df[6] = {0, 0, 0, 0, 0, 0}, df_dv[6] = {0, 0, 0, 0, 0, 0};
    multiply6(G, J + 8 * k, df);
    multiply6(W, rate + 8 * k, df);
    multiply6(W, J + 8 * k, df_dv);
    double *row_q = dQ_dq_T + std::size_t(k) * ld, *row_v = dQ_dv_T + std::size_t(k) * ld;
    for (int j = 0; j < num_to; ++j) {
      const double* column = J + 8 * to[j];
      row_q[to[j]] += dot6(column, df);
      row_v[to[j]] += dot6(column, df_dv);
    }
  }
}

}  // namespace

void penalty_row_derivatives(const Model& model, const DynamicsWorkspace& dynamics, PenaltyForces& forces) {
  const double *twist = forces.twist.data(), *rate = dynamics.column_rate.data();
  row_derivatives(model, dynamics, forces.rows, forces.collision.contacts, {twist, rate, twist, rate},
                  forces.force.data(), forces.inactive, forces.derivatives);
}

void penalty_derivatives(const Model& model, const DynamicsWorkspace& dynamics, const PenaltyForces& forces,
                         double* dQ_dq_T, double* dQ_dv_T, int ld) {
  const ConstraintRows& rows = forces.rows;
  add_wrench_columns(model, dynamics, rows, forces.derivatives, forces.force.data(), DofMatrix(dQ_dq_T, ld));
  PairSums sums;
  const int count = static_cast<int>(rows.body_rows.size());
  for (int i = 0; i < count;) {
    const int body[2] = {rows.body_rows[i].body_a, rows.body_rows[i].body_b};
    const bool moving[2] = {model.body_last_dof[body[0]] >= 0, model.body_last_dof[body[1]] >= 0};
    bool any = false;
    std::memset(&sums, 0, sizeof sums);
    for (; i < count && rows.body_rows[i].body_a == body[0] && rows.body_rows[i].body_b == body[1]; ++i) {
      if (forces.inactive[i]) continue;
      any = true;
      add_contact(rows.body_rows[i], forces.derivatives.blocks[i], forces.laws[i], forces.shares[i], moving, sums);
    }
    for (int on = 0; any && on < 2; ++on)
      for (int by = 0; by < 2; ++by)
        if (moving[on] && moving[by])
          spread(model, dynamics, model.body_last_dof[body[by]], model.body_last_dof[body[on]], sums.G[on][by],
                 sums.W[on][by], dQ_dq_T, dQ_dv_T, ld);
  }
}

}  // namespace coulomb
