// The row derivatives applied: dense columns for the full Jacobian, one tree sweep for a vjp.
#include <algorithm>

#include "coulomb/constraints/path_products.hpp"
#include "coulomb/constraints/row_derivatives.hpp"
#include "coulomb/small_math.hpp"

namespace coulomb {
namespace {

void fill_side(const Model& model, const DynamicsWorkspace& dynamics, const BodyRows& b,
               const RowVelocities& velocities, int body, const double G[6][6], const double e[6][6],
               const RowMatrix& s) {
  const int last = model.body_last_dof[body];
  if (last < 0) return;
  const RowMatrix::Place to = s.at(model, b.block, b.row, model.body_tree[body]);
  const Path path{model.dof_path.data() + model.dof_row[last], model.dof_depth[last] + 1, to.first};
  add_path_rows(dynamics.columns.data(), velocities.rate_plus, path, b.size, G, e, to.data, to.ld);
  if (b.restitution == 0) return;
  double* normal = to.data + std::size_t(2) * to.ld;
  for (int k = 0; k < path.length; ++k)
    normal[path.dof[k] - to.first] += b.restitution * dot6(velocities.rate + 8 * path.dof[k], e[2]);
}

/// d(J^T lambda) on the dofs of one body's path by the dofs of another's.
void add_forces(const Model& model, const DynamicsWorkspace& dynamics, int by_body, int on_body, const double M[6][6],
                const DofMatrix& r_T) {
  const int by = model.body_last_dof[by_body], on = model.body_last_dof[on_body];
  if (by < 0 || on < 0) return;
  const int tree_by = model.body_tree[by_body], tree_on = model.body_tree[on_body];
  const auto path = [&](int tree, int last) {
    const DofBlock& t = dynamics.trees[tree];
    return TreePath{dynamics.streams.data() + t.streams, dynamics.ancestors.data() + t.matrix / 8, t.ld,
                    last - t.first};
  };
  add_path_forces(path(tree_by, by), path(tree_on, on), M, r_T.at(model, tree_by, tree_on));
}

void add_transposed6(const double M[6][6], const double* x, double* out) {
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 6; ++j) out[j] += M[i][j] * x[i];
}

void gather(const Model& model, int body, const double G[6][6], const double e[6][6], const BodyRows& b,
            const double* z, double* sum_G, double* sum_e, double* sum_bounce) {
  const int d = model.body_last_dof[body];
  if (d < 0) return;
  for (int i = 0; i < b.size; ++i)
    for (int j = 0; j < 6; ++j) {
      sum_G[8 * d + j] += z[b.row + i] * G[i][j];
      sum_e[8 * d + j] += z[b.row + i] * e[i][j];
    }
  if (b.restitution != 0)
    for (int j = 0; j < 6; ++j) sum_bounce[8 * d + j] += b.restitution * z[b.row + 2] * e[2][j];
}

}  // namespace

void fill_row_columns(const Model& model, const DynamicsWorkspace& dynamics, const ConstraintRows& rows,
                      const RowVelocities& velocities, const double* v_plus, const RowDerivatives& derivatives,
                      const std::vector<unsigned char>& inactive, const RowMatrix& s) {
  for (std::size_t i = 0; i < rows.body_rows.size(); ++i) {
    const BodyRows& b = rows.body_rows[i];
    if (inactive[b.block]) continue;
    const BodyRowDerivative& D = derivatives.blocks[i];
    fill_side(model, dynamics, b, velocities, b.body_a, D.G_a, D.e_a, s);
    fill_side(model, dynamics, b, velocities, b.body_b, D.G_b, D.e_b, s);
  }
  for (const DofRow& d : rows.dof_rows) {
    if (inactive[d.block]) continue;
    for (int j = 0; j < d.num; ++j) {
      double value = d.dbias_dphi * d.coefficient[j];
      for (int i = 0; i < d.num; ++i) value += d.dcoefficient[i][j] * v_plus[d.dof[i]];
      const RowMatrix::Place to = s.at(model, d.block, d.row, model.body_tree[model.dof_body[d.dof[j]]]);
      to.data[d.dof[j] - to.first] += value;
    }
  }
}

void add_wrench_columns(const Model& model, const DynamicsWorkspace& dynamics, const ConstraintRows& rows,
                        const RowDerivatives& derivatives, const double* lambda, const DofMatrix& r_T) {
  for (const PairWrenchDerivative& p : derivatives.wrenches) {
    add_forces(model, dynamics, p.body_a, p.body_a, p.aa, r_T);
    add_forces(model, dynamics, p.body_a, p.body_b, p.ba, r_T);
    add_forces(model, dynamics, p.body_b, p.body_a, p.ab, r_T);
    add_forces(model, dynamics, p.body_b, p.body_b, p.bb, r_T);
  }
  for (const DofRow& d : rows.dof_rows)
    for (int j = 0; j < d.num; ++j)
      for (int i = 0; i < d.num; ++i) {
        if (d.dcoefficient[i][j] == 0) continue;
        const int by = model.body_tree[model.dof_body[d.dof[j]]], on = model.body_tree[model.dof_body[d.dof[i]]];
        const PathTarget to = r_T.at(model, by, on);
        to.data[std::size_t(d.dof[j] - model.tree_first_dof[by]) * to.ld + d.dof[i] - model.tree_first_dof[on]] +=
            d.dcoefficient[i][j] * lambda[d.row];
      }
}

void row_derivatives_vjp(const Model& model, const DynamicsWorkspace& dynamics, const ConstraintRows& rows,
                         const RowVelocities& velocities, const double* v_plus, const RowDerivatives& derivatives,
                         const std::vector<unsigned char>& inactive, const double* lambda, const double* z,
                         const double* y, double* scratch, double* out_q) {
  const int nv = model.nv;
  double *sum_G = scratch, *sum_e = scratch + 8 * nv, *sum_bounce = scratch + 16 * nv, *twist_y = scratch + 24 * nv;
  std::fill_n(scratch, 24 * nv, 0.0);
  link_twists(model, dynamics, y, twist_y);
  for (std::size_t i = 0; i < rows.body_rows.size(); ++i) {
    const BodyRows& b = rows.body_rows[i];
    if (inactive[b.block]) continue;
    const BodyRowDerivative& D = derivatives.blocks[i];
    gather(model, b.body_a, D.G_a, D.e_a, b, z, sum_G, sum_e, sum_bounce);
    gather(model, b.body_b, D.G_b, D.e_b, b, z, sum_G, sum_e, sum_bounce);
  }
  for (const PairWrenchDerivative& p : derivatives.wrenches) {
    const double* eta_a = body_link_twist(model, twist_y, p.body_a);
    const double* eta_b = body_link_twist(model, twist_y, p.body_b);
    if (const int d = model.body_last_dof[p.body_a]; d >= 0) {
      add_transposed6(p.aa, eta_a, sum_G + 8 * d);
      add_transposed6(p.ba, eta_b, sum_G + 8 * d);
    }
    if (const int d = model.body_last_dof[p.body_b]; d >= 0) {
      add_transposed6(p.ab, eta_a, sum_G + 8 * d);
      add_transposed6(p.bb, eta_b, sum_G + 8 * d);
    }
  }
  for (int d = nv - 1; d >= 0; --d) {
    out_q[d] += dot6(dynamics.columns.data() + 8 * d, sum_G + 8 * d) +
                dot6(velocities.rate_plus + 8 * d, sum_e + 8 * d) + dot6(velocities.rate + 8 * d, sum_bounce + 8 * d);
    const int parent = model.dof_parent[d];
    if (parent < 0) continue;
    for (int i = 0; i < 6; ++i) {
      sum_G[8 * parent + i] += sum_G[8 * d + i];
      sum_e[8 * parent + i] += sum_e[8 * d + i];
      sum_bounce[8 * parent + i] += sum_bounce[8 * d + i];
    }
  }
  for (const DofRow& d : rows.dof_rows) {
    if (inactive[d.block]) continue;
    for (int j = 0; j < d.num; ++j) {
      out_q[d.dof[j]] += z[d.row] * d.dbias_dphi * d.coefficient[j];
      for (int i = 0; i < d.num; ++i)
        out_q[d.dof[j]] += d.dcoefficient[i][j] * (z[d.row] * v_plus[d.dof[i]] + lambda[d.row] * y[d.dof[i]]);
    }
  }
}

}  // namespace coulomb
