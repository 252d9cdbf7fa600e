#include "coulomb/parameters/penalty_sides.hpp"

#include "coulomb/base/small_math.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/constraints/penalty/penalty_contact.hpp"
#include "coulomb/parameters/right_hand_side.hpp"

namespace coulomb {
namespace {

/// s of one contact's rows as forces: df_T = T dc_T + N df_N.
void add_law(const ParameterContext& context, int contact, const double* s, RightHandSide& out) {
  // (B11): the slopes of the law turn velocities into forces; h times those are impulses.
  const double h = context.options.timestep;
  const BodyRows& b = context.rows.body_rows[contact];
  const PenaltyLaw& law = context.penalty->laws[contact];
  double df[3] = {0, 0, h * s[2]};
  double f[3] = {0, 0, 0};
  for (int i = 0; i < 2; ++i)
    df[i] = h * (law.T[i][0] * s[0] + law.T[i][1] * s[1] + law.N[i] * s[2]);

  for (int i = 0; i < 3; ++i) {
    axpy3(df[i], b.axes[i], f);
    if (df[i] != 0) {
      out.impulses.push_back({b.row + i, df[i]});
    }
  }
  add_contact_force(context, b, f, out);
}

}  // namespace

void add_share_change(const ParameterContext& context, const BodyRows& b, double change, RightHandSide& out) {
  // The force is proportional to the share.
  if (change == 0) return;
  const double* slope = context.penalty->laws[b.block].share_slope;

  double f[3] = {0, 0, 0};
  for (int i = 0; i < 3; ++i) {
    const double p = context.options.timestep * change * slope[i];
    axpy3(p, b.axes[i], f);
    out.impulses.push_back({b.row + i, p});
  }
  add_contact_force(context, b, f, out);
}

void close_penalty_sides(const ParameterContext& context, RightHandSide* out, int count) {
  // Entries of one contact follow one another.
  for (int k = 0; k < count; ++k) {
    RightHandSide& side = out[k];
    for (std::size_t i = 0; i < side.rows.size();) {
      const int contact = side.rows[i].index / 3;
      double s[3] = {0, 0, 0};
      for (; i < side.rows.size() && side.rows[i].index / 3 == contact; ++i)
        s[side.rows[i].index % 3] += side.rows[i].value;
      add_law(context, contact, s, side);
    }

    side.rows.clear();
  }
}

}  // namespace coulomb
