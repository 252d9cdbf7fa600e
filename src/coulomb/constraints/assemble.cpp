#include "coulomb/constraints/assemble.hpp"

#include <algorithm>

#include "coulomb/constraints/path_products.hpp"
#include "coulomb/dense_kernels.hpp"
#include "coulomb/small_math.hpp"

namespace coulomb {
namespace {

int path_length(const Model& model, int body) {
  const int d = model.body_last_dof[body];
  return d < 0 ? 0 : model.dof_depth[d] + 1;
}

// Y of a body's six twist rows in path coordinates: the parent's, extended by the body's own dofs.
void body_path_rows(const Model& model, const DynamicsWorkspace& dynamics, int body, AssemblyWorkspace& w) {
  if (w.body_done[body]) return;
  w.body_done[body] = 1;
  double* out = w.body_rows.data() + std::size_t(6) * w.path_ld * body;
  const int parent = model.body_parent[body];
  std::fill_n(out, 6 * w.path_ld, 0.0);
  if (parent > 0 && path_length(model, parent) > 0) {
    body_path_rows(model, dynamics, parent, w);
    std::copy_n(w.body_rows.data() + std::size_t(6) * w.path_ld * parent, 6 * w.path_ld, out);
  }
  const int first = model.body_first_dof[body];
  for (int d = first; d < first + model.body_num_dofs[body]; ++d) {
    const double* J = dynamics.columns.data() + 8 * d;
    const double* u = dynamics.u_rows.data() + model.dof_row[d];
    add_path_outer(J, u, model.dof_depth[d] + 1, out, w.path_ld);
  }
}

// Adds e . twist rows of the body to a dense row of Y.
void add_body_row(const Model& model, const AssemblyWorkspace& w, int body, const double* e, double* y) {
  const int length = path_length(model, body);
  if (length == 0) return;
  const Path path{model.dof_path.data() + model.dof_row[model.body_last_dof[body]], length};
  add_path_row(e, w.body_rows.data() + std::size_t(6) * w.path_ld * body, w.path_ld, path, y);
}

void add_block(const Model& model, const DynamicsWorkspace& dynamics, const BodyRows& b, int ld, AssemblyWorkspace& w) {
  for (const double sign : {1.0, -1.0}) {
    const int body = sign > 0 ? b.body_a : b.body_b;
    if (path_length(model, body) == 0) continue;
    body_path_rows(model, dynamics, body, w);
    double r[3];
    relative_point(model, dynamics, body, sign > 0 ? b.point_a : b.point_b, r);
    for (int i = 0; i < b.size; ++i) {
      double e[6] = {0, 0, 0, 0, 0, 0};
      if (i < 3) {
        copy3(b.axes[i], e);
        cross3(r, e, e + 3);
      } else {
        e[i] = b.torque_scale;
      }
      for (double& x : e) x *= sign;
      add_body_row(model, w, body, e, w.Y.data() + std::size_t(b.row + i) * ld);
    }
  }
}

}  // namespace

AssemblyWorkspace::AssemblyWorkspace(const Model& model) {
  int longest = 0;
  for (int d = 0; d < model.nv; ++d) longest = std::max(longest, model.dof_depth[d] + 1);
  path_ld = padded(longest);
  body_rows.resize(std::size_t(6) * path_ld * model.num_bodies);
  body_done.resize(model.num_bodies);
  twist_free.resize(8 * model.nv);
}

void assemble_problem(const Model& model, const DynamicsWorkspace& dynamics, const ConstraintRows& rows,
                      const double* v_free, AssemblyWorkspace& w, ConstraintProblem& problem) {
  const int n = rows.num_rows, nv = model.nv, ld = dynamics.ld, ldn = padded(n);
  problem.resize(n);
  problem.blocks.assign(rows.blocks.begin(), rows.blocks.end());
  std::copy(rows.compliance.begin(), rows.compliance.end(), problem.R.begin());
  if (n == 0) return;
  if (w.Y.size() < std::size_t(n) * ld) w.Y.resize(std::size_t(n) * ld);
  if (w.Yt.size() < std::size_t(nv) * ldn) w.Yt.resize(std::size_t(nv) * ldn);
  std::fill_n(w.Y.data(), std::size_t(n) * ld, 0.0);
  std::fill_n(w.Yt.data(), std::size_t(nv) * ldn, 0.0);
  std::fill(w.body_done.begin(), w.body_done.end(), 0);

  for (const BodyRows& b : rows.body_rows) add_block(model, dynamics, b, ld, w);
  for (const DofRow& d : rows.dof_rows)
    for (int i = 0; i < d.num; ++i) {
      const int start = model.dof_row[d.dof[i]];
      for (int k = 0; k <= model.dof_depth[d.dof[i]]; ++k)
        w.Y[std::size_t(d.row) * ld + model.dof_path[start + k]] += d.coefficient[i] * dynamics.u_rows[start + k];
    }
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < nv; ++k) w.Yt[std::size_t(k) * ldn + i] = w.Y[std::size_t(i) * ld + k];

  multiply(Product::set, rows_of(w.Y.data(), n, nv, ld), w.Yt.data(), problem.G.data(), ldn, ldn, w.product);
  link_twists(model, dynamics, v_free, w.twist_free.data());
  apply_rows(model, dynamics, rows, v_free, w.twist_free.data(), problem.g.data());
  for (int i = 0; i < n; ++i) problem.g[i] += rows.bias[i];
}

}  // namespace coulomb
