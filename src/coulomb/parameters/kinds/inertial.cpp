#include "coulomb/parameters/kinds/inertial.hpp"

#include "coulomb/base/small_math.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/dynamics/acceleration.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/spatial.hpp"
#include "coulomb/parameters/right_hand_side.hpp"

namespace coulomb {

void add_outer(double scale, const double* a, const double* b, double* second) {
  static constexpr int row[6] = {0, 0, 1, 0, 1, 2};
  static constexpr int column[6] = {0, 1, 1, 2, 2, 2};
  for (int k = 0; k < 6; ++k)
    second[k] += 0.5 * scale * (a[row[k]] * b[column[k]] + a[column[k]] * b[row[k]]);
}

void add_inertia_change(const ParameterContext& context, int body, const InertiaChange& change, RightHandSide& out) {
  // The body's origin and the first moment, in the world.
  const DynamicsWorkspace& ws = context.dynamics;
  const double* R = ws.body_rotation.data() + 9 * body;
  double x[3];
  double first[3];
  relative_point(context.model, ws, body, ws.body_position.data() + 3 * body, x);
  rotate(R, change.first, first);

  // The first moment about the reference point.
  double row[12] = {0};
  row[0] = change.mass;
  for (int i = 0; i < 3; ++i)
    row[1 + i] = first[i] + change.mass * x[i];

  // S about the reference: R S R^T + 2 sym(x (R mc)^T) + m x x^T. Most parameters change few entries.
  for (int i = 0; i < 3; ++i) {
    const double axis_i[3] = {R[i], R[3 + i], R[6 + i]};
    for (int j = i; j < 3; ++j) {
      static constexpr int at[3][3] = {{0, 1, 3}, {1, 2, 4}, {3, 4, 5}};
      const double entry = change.second[at[i][j]];
      if (entry == 0) continue;
      const double axis_j[3] = {R[j], R[3 + j], R[6 + j]};
      add_outer(i == j ? entry : 2 * entry, axis_i, axis_j, row + 4);
    }
  }
  add_outer(2, x, first, row + 4);
  add_outer(change.mass, x, x, row + 4);

  // The force that the body needs is linear in its inertia (P2).
  const Spatial V = load6(ws.body_twist.data() + 8 * body);
  const Spatial A = load6(ws.body_acceleration.data() + 8 * body);
  const Spatial lifted = A - compensated_acceleration(context.model, body);
  const Spatial force =
      -context.options.timestep * (inertia_times(row, lifted) + cross_force(V, inertia_times(row, V)));
  double wrench[6];
  store6(wrench, force);
  out.add_wrench(body, wrench, wrench + 3);
  add_spin_change(context, body, row, out);
}

}  // namespace coulomb
