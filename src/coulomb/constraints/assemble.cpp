#include "coulomb/constraints/assemble.hpp"

#include <algorithm>

#include "coulomb/base/small_math.hpp"
#include "coulomb/constraints/path_products.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/linalg/dense_kernels.hpp"

namespace coulomb {
namespace {

/// m/s, rad/s. Positions of 100 m are rounded to 1e-14 m, which steps of a millisecond correct at 1e-11 m/s: a tenth of what has to be left beside this
/// speed by rows that contradict one another (docs/theory/contact.md, (C13)).
constexpr double least_velocity = 1e-6;

/// How many dofs move the body.
int path_length(const Model& model, int body) {
  const int d = model.body_last_dof[body];
  return d < 0 ? 0 : model.dof_depth[d] + 1;
}

/// Y of a body's six twist rows in path coordinates: the parent's, extended by the body's own dofs.
void body_path_rows(const Model& model, const DynamicsWorkspace& dynamics, int body, AssemblyWorkspace& w) {
  if (w.body_done[body]) return;
  w.body_done[body] = 1;

  // What moves the parent moves the body too.
  double* out = w.body_rows.data() + std::size_t(6) * w.path_ld * body;
  const int parent = model.body_parent[body];
  if (parent > 0 && path_length(model, parent) > 0) {
    body_path_rows(model, dynamics, parent, w);
    std::copy_n(w.body_rows.data() + std::size_t(6) * w.path_ld * parent, 6 * w.path_ld, out);
  } else {
    std::fill_n(out, 6 * w.path_ld, 0.0);
  }

  // And then its own dofs.
  const int first = model.body_first_dof[body];
  for (int d = first; d < first + model.body_num_dofs[body]; ++d) {
    const double* J = dynamics.columns.data() + 8 * d;
    const double* u = dynamics.u_rows.data() + model.dof_row[d];
    add_path_outer(J, u, model.dof_depth[d] + 1, out, w.path_ld);
  }
}

/// A block's rows of Y: those of the twists of its bodies, seen along its axes.
void add_block(const Model& model, const DynamicsWorkspace& dynamics, const BodyRows& b, const RowMatrix& Y,
               AssemblyWorkspace& w) {
  for (const double sign : {1.0, -1.0}) {
    const int body = sign > 0 ? b.body_a : b.body_b;
    const int length = path_length(model, body);
    if (length == 0) continue;

    body_path_rows(model, dynamics, body, w);
    const RowMatrix::Place place = Y.at(model, b.block, b.row, model.body_tree[body]);
    const Path path{model.dof_path.data() + model.dof_row[model.body_last_dof[body]], length, place.first};
    const double* twist_rows = w.body_rows.data() + std::size_t(6) * w.path_ld * body;

    // A row is a covector on the twist: (axis, r x axis), or an axis on the angular velocity.
    double r[3];
    relative_point(model, dynamics, body, sign > 0 ? b.point_a : b.point_b, r);
    for (int i = 0; i < b.size; ++i) {
      double e[6];
      b.covector(i, r, e);
      for (double& x : e)
        x *= sign;
      add_path_row(e, twist_rows, w.path_ld, path, place.data + std::size_t(i) * place.ld);
    }
  }
}

/// A row on joints: rows of U_hat as they are.
void add_dof_row(const Model& model, const DynamicsWorkspace& dynamics, const DofRow& row, const RowMatrix& Y) {
  for (int i = 0; i < row.num; ++i) {
    const int dof = row.dof[i];
    const int start = model.dof_row[dof];
    const RowMatrix::Place place = Y.at(model, row.block, row.row, model.body_tree[model.dof_body[dof]]);
    for (int k = 0; k <= model.dof_depth[dof]; ++k)
      place.data[model.dof_path[start + k] - place.first] += row.coefficient[i] * dynamics.u_rows[start + k];
  }
}

/// Sizes, blocks and the places of their rows in Y, which is zero.
void lay_out(const Model& model, const ConstraintRows& rows, Islands& islands) {
  for (int index : islands.order) {
    Island& island = islands.pool[index];
    ConstraintProblem& problem = island.problem;
    if (island.blocks.empty()) continue;

    // Its columns are its trees' dofs.
    problem.resize(island.num_rows());
    problem.least_velocity = least_velocity;
    problem.segments.assign(island.blocks.size(), {});
    problem.tree_size.clear();
    for (int tree : island.trees)
      problem.tree_size.push_back(model.tree_first_dof[tree + 1] - model.tree_first_dof[tree]);

    // Blocks count rows from the island's first.
    int row = 0;
    for (int block : island.blocks) {
      problem.blocks.push_back(rows.blocks[block]);
      problem.blocks.back().row = row;
      row += rows.blocks[block].size;
    }

    // Rows behind the last compliance have none.
    problem.W.resize(problem.ld);
    for (std::size_t i = 0; i < island.rows.size(); ++i) {
      const auto of_all = std::size_t(island.rows[i]);
      if (of_all < rows.compliance.size()) {
        problem.R[i] = rows.compliance[of_all];
      }
      problem.W[i] = rows.weight[of_all];
    }
  }

  // A block has a segment of Y for each tree that it moves ...
  for_each_block(model, rows, [&](int block, BlockTrees trees) {
    ConstraintProblem& problem = islands.pool[islands.of_block(block)].problem;
    auto& segments = problem.segments[islands.block_index[block]];
    int segment = 0;
    for (int tree : {trees.first, trees.second}) {
      if (tree < 0) continue;
      RowSegment& s = segments[segment++];
      s.tree = islands.tree_index[tree];
    }
  });

  // ... and these lie one behind the other.
  for (int index : islands.order) {
    Island& island = islands.pool[index];
    ConstraintProblem& problem = island.problem;
    if (island.blocks.empty()) continue;

    int size = 0;
    for (std::size_t b = 0; b < island.blocks.size(); ++b) {
      for (RowSegment& s : problem.segments[b]) {
        if (s.tree < 0) continue;
        s.start = size;
        size += problem.blocks[b].size * padded(problem.tree_size[s.tree]);
      }
    }
    problem.Y.assign(size, 0.0);
  }
}

}  // namespace

AssemblyWorkspace::AssemblyWorkspace(const Model& model) {
  int longest = 0;
  for (int d = 0; d < model.nv; ++d)
    longest = std::max(longest, model.dof_depth[d] + 1);
  path_ld = padded(longest);
  body_rows.resize(std::size_t(6) * path_ld * model.num_bodies);
  body_done.resize(model.num_bodies);
  twist_free.resize(8 * model.nv);
}

void assemble_problems(const Model& model, const DynamicsWorkspace& dynamics, const ConstraintRows& rows,
                       const double* v_free, bool dense, AssemblyWorkspace& w, Islands& islands) {
  if (rows.num_rows == 0) return;
  lay_out(model, rows, islands);

  // Y, written into the problems of all islands.
  w.Y_of.resize(islands.pool.size());
  for (int index : islands.order)
    w.Y_of[index] = islands.pool[index].problem.Y.data();
  const RowMatrix Y(islands, w.Y_of.data());
  std::fill(w.body_done.begin(), w.body_done.end(), 0);
  for (const BodyRows& b : rows.body_rows)
    add_block(model, dynamics, b, Y, w);
  for (const DofRow& d : rows.dof_rows)
    add_dof_row(model, dynamics, d, Y);

  // g = J v_free + beta, of all rows at once.
  w.g.resize(rows.num_rows);
  link_twists(model, dynamics, v_free, w.twist_free.data());
  apply_rows(model, dynamics, rows, v_free, w.twist_free.data(), w.g.data());
  for (int index : islands.order) {
    Island& island = islands.pool[index];
    if (island.blocks.empty()) continue;
    for (std::size_t i = 0; i < island.rows.size(); ++i) {
      const int row = island.rows[i];
      island.problem.g[i] = w.g[row] + rows.bias[row];
    }

    // G = Y Y^T, for solvers in contact space.
    if (dense || !prefers_velocities(island.problem))
      form_delassus(island.problem, w.delassus);
    else
      island.problem.has_G = false;
  }
}

}  // namespace coulomb
