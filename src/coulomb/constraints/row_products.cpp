// The row derivatives applied: dense columns for the full Jacobian, one tree sweep for a vjp (docs/theory.md (L8)).
#include <algorithm>

#include "coulomb/base/small_math.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/constraints/islands.hpp"
#include "coulomb/constraints/path_products.hpp"
#include "coulomb/constraints/row_derivatives.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/model.hpp"

namespace coulomb {
namespace {

/// s of a block on the dofs of one of its bodies.
void fill_side(const RowState& state, const BodyRows& b, int body, const Matrix6& G, const Matrix6& e,
               const RowMatrix& s) {
  const Model& model = state.model;
  const int last = model.body_last_dof[body];
  if (last < 0) return;

  const RowMatrix::Place to = s.at(model, b.block, b.row, model.body_tree[body]);
  const Path path{model.dof_path.data() + model.dof_row[last], model.dof_depth[last] + 1, to.first};
  const RowCovectors rows{b.size, G, e};
  add_path_rows(state.dynamics.columns.data(), state.velocities.rate_plus, path, rows, to.data, to.ld);
  // Rows that keep a share of their velocity see the column rates at v, too.
  for (int i = b.first_kept(); i < b.end_kept(); ++i) {
    double* row = to.data + std::size_t(i) * to.ld;
    for (int k = 0; k < path.length; ++k)
      row[path.dof[k] - to.first] += b.restitution * dot6(state.velocities.rate + 8 * path.dof[k], e[i]);
  }
}

/// d(J^T lambda) on the dofs of one body's path by the dofs of another's.
void add_forces(const RowState& state, int by_body, int on_body, const Matrix6& M, const DofMatrix& r_T) {
  const Model& model = state.model;
  const DynamicsWorkspace& dynamics = state.dynamics;
  const int by = model.body_last_dof[by_body];
  const int on = model.body_last_dof[on_body];
  if (by < 0 || on < 0) return;

  const int tree_by = model.body_tree[by_body];
  const int tree_on = model.body_tree[on_body];
  const auto path = [&](int tree, int last) {
    const DofBlock& t = dynamics.trees[tree];
    return TreePath{dynamics.streams.data() + t.streams, dynamics.ancestors.data() + t.matrix / 8, t.ld,
                    last - t.first};
  };
  add_path_forces(path(tree_by, by), path(tree_on, on), M, r_T.at(model, tree_by, tree_on));
}

/// out += M^T x
void add_transposed6(const Matrix6& M, const double* x, double* out) {
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 6; ++j)
      out[j] += M[i][j] * x[i];
}

/// z . the rows of a block, for one of its bodies: on the motion of its last dof.
void collect_row_gradient(const BodyRows& b, const Matrix6& G, const Matrix6& e, const double* z, SubtreeSum& sum) {
  for (int i = 0; i < b.size; ++i) {
    for (int j = 0; j < 6; ++j) {
      sum.column[j] += z[b.row + i] * G[i][j];
      sum.rate[j] += z[b.row + i] * e[i][j];
    }
  }
  for (int i = b.first_kept(); i < b.end_kept(); ++i)
    for (int j = 0; j < 6; ++j)
      sum.bounce[j] += b.restitution * z[b.row + i] * e[i][j];
}

/// y . d(J^T lambda) of a pair of bodies, as work at the velocity y.
void collect_wrench_gradient(const Model& model, const PairWrenchDerivative& pair, RowSweep& sweep) {
  const double* twist_a = body_link_twist(model, sweep.twist_y.data(), pair.body_a);
  const double* twist_b = body_link_twist(model, sweep.twist_y.data(), pair.body_b);
  if (const int d = model.body_last_dof[pair.body_a]; d >= 0) {
    add_transposed6(pair.aa, twist_a, sweep.sums[d].column);
    add_transposed6(pair.ba, twist_b, sweep.sums[d].column);
  }
  if (const int d = model.body_last_dof[pair.body_b]; d >= 0) {
    add_transposed6(pair.ab, twist_a, sweep.sums[d].column);
    add_transposed6(pair.bb, twist_b, sweep.sums[d].column);
  }
}

/// From the leaves to the roots: a dof pairs what its subtree has collected with its own column and rates, then hands it on.
void sweep_to_roots(const RowState& state, RowSweep& sweep, double* out_q) {
  const double* columns = state.dynamics.columns.data();
  for (int d = state.model.nv - 1; d >= 0; --d) {
    const SubtreeSum& sum = sweep.sums[d];
    out_q[d] += dot6(columns + 8 * d, sum.column) + dot6(state.velocities.rate_plus + 8 * d, sum.rate) +
                dot6(state.velocities.rate + 8 * d, sum.bounce);

    const int parent = state.model.dof_parent[d];
    if (parent < 0) continue;
    SubtreeSum& of_parent = sweep.sums[parent];
    for (int i = 0; i < 6; ++i) {
      of_parent.column[i] += sum.column[i];
      of_parent.rate[i] += sum.rate[i];
      of_parent.bounce[i] += sum.bounce[i];
    }
  }
}

/// Both products of a row on joints, whose coefficients turn with them.
void add_dof_row_gradient(const RowState& state, const DofRow& row, const StepMultipliers& multipliers, double* out_q) {
  // Dry friction at its bound holds nothing, and yet it pulls.
  const double z = state.inactive[row.block] ? 0.0 : multipliers.z[row.row];
  const double lambda = state.lambda[row.row];
  for (int j = 0; j < row.num; ++j) {
    double& out = out_q[row.dof[j]];
    out += z * (row.dbias_dphi * row.coefficient[j] + state.rows.dbias_dq(row, j));
    out += z * state.rows.drate_dq(row, j, state.v_plus) + lambda * state.rows.drate_dq(row, j, multipliers.y);
    if (row.bounce != 0) out += z * row.bounce * state.rows.drate_dq(row, j, state.v);
  }
}

}  // namespace

void fill_row_columns(const RowState& state, const RowDerivatives& derivatives, const RowMatrix& s) {
  // Rows on bodies, on the root paths of both.
  const Model& model = state.model;
  const std::vector<BodyRows>& blocks = state.rows.body_rows;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const BodyRows& b = blocks[i];
    if (state.inactive[b.block]) continue;
    const BodyRowDerivative& D = derivatives.blocks[i];
    fill_side(state, b, b.body_a, D.G_a, D.e_a, s);
    fill_side(state, b, b.body_b, D.G_b, D.e_b, s);
  }

  // Rows on joints: the bias follows the error, the coefficients turn with the joint.
  for (const DofRow& d : state.rows.dof_rows) {
    if (state.inactive[d.block]) continue;
    for (int j = 0; j < d.num; ++j) {
      double value =
          d.dbias_dphi * d.coefficient[j] + state.rows.dbias_dq(d, j) + state.rows.drate_dq(d, j, state.v_plus);
      if (d.bounce != 0) value += d.bounce * state.rows.drate_dq(d, j, state.v);
      const RowMatrix::Place to = s.at(model, d.block, d.row, model.body_tree[model.dof_body[d.dof[j]]]);
      to.data[d.dof[j] - to.first] += value;
    }
  }
}

void add_wrench_columns(const RowState& state, const RowDerivatives& derivatives, const DofMatrix& r_T) {
  // Wrenches on bodies: either moves the force on both.
  for (const PairWrenchDerivative& p : derivatives.wrenches) {
    add_forces(state, p.body_a, p.body_a, p.aa, r_T);
    add_forces(state, p.body_a, p.body_b, p.ba, r_T);
    add_forces(state, p.body_b, p.body_a, p.ab, r_T);
    add_forces(state, p.body_b, p.body_b, p.bb, r_T);
  }

  // Coefficients of rows on joints turn with these.
  const Model& model = state.model;
  const auto tree_of = [&](int dof) { return model.body_tree[model.dof_body[dof]]; };
  for (const DofRow& row : state.rows.dof_rows) {
    if (row.turning < 0) continue;
    for (int j = 0; j < row.num; ++j) {
      for (int i = 0; i < row.num; ++i) {
        const double turning = state.rows.dcoefficient(row, i, j);
        if (turning == 0) continue;
        const int by = tree_of(row.dof[j]);
        const int on = tree_of(row.dof[i]);
        const PathTarget to = r_T.at(model, by, on);
        double* row_of_dof = to.data + std::size_t(row.dof[j] - model.tree_first_dof[by]) * to.ld;
        row_of_dof[row.dof[i] - model.tree_first_dof[on]] += turning * state.lambda[row.row];
      }
    }
  }
}

void row_derivatives_vjp(const RowState& state, const RowDerivatives& derivatives, const StepMultipliers& multipliers,
                         RowSweep& sweep, double* out_q) {
  const Model& model = state.model;
  const std::vector<BodyRows>& blocks = state.rows.body_rows;

  // Work is counted at the velocity y: y . d(J^T lambda) = (J y) . d(wrench).
  sweep.twist_y.resize(8 * model.nv);
  link_twists(model, state.dynamics, multipliers.y, sweep.twist_y.data());

  // Every body collects, at its last dof, what its motion would change.
  sweep.sums.assign(model.nv, SubtreeSum{});
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const BodyRows& b = blocks[i];
    if (state.inactive[b.block]) continue;
    const BodyRowDerivative& D = derivatives.blocks[i];
    const int last_a = model.body_last_dof[b.body_a];
    const int last_b = model.body_last_dof[b.body_b];
    if (last_a >= 0) {
      collect_row_gradient(b, D.G_a, D.e_a, multipliers.z, sweep.sums[last_a]);
    }
    if (last_b >= 0) {
      collect_row_gradient(b, D.G_b, D.e_b, multipliers.z, sweep.sums[last_b]);
    }
  }
  for (const PairWrenchDerivative& pair : derivatives.wrenches)
    collect_wrench_gradient(model, pair, sweep);

  // One sweep hands the sums to all dofs that move the body; rows on joints need none.
  sweep_to_roots(state, sweep, out_q);
  for (const DofRow& row : state.rows.dof_rows) {
    if (state.inactive[row.block] && row.turning < 0) continue;
    add_dof_row_gradient(state, row, multipliers, out_q);
  }
}

}  // namespace coulomb
