// The matrices that all columns of a step's Jacobian share: of each island Mh^-1, W and B J Mh^-1 (P), and the right-hand sides r and B s.
#include <algorithm>

#include "coulomb/base/simd.hpp"
#include "coulomb/base/small_math.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/linalg/dense_kernels.hpp"
#include "coulomb/stepping/semi_implicit/semi_implicit.hpp"
#include "coulomb/stepping/semi_implicit/step_linearization.hpp"

namespace coulomb {
namespace {

COULOMB_SIMD void scale(double a, const double* __restrict x, int n, double* __restrict y) {
  for (int i = 0; i < n; ++i)
    y[i] = a * x[i];
}

COULOMB_SIMD void add_scaled(double a, const double* __restrict x, int n, double* __restrict y) {
  for (int i = 0; i < n; ++i)
    y[i] += a * x[i];
}

}  // namespace

/// What the columns of all islands need.
void StepLinearization::prepare_matrices() {
  if (have_matrices_) return;
  have_matrices_ = true;
  const Model& model = *model_;
  StepRecord& r = *record_;
  const double h = options_->constraints.timestep;

  // Blocks of d(+) at h v+.
  for (int d = 0; d < model.nv; ++d)
    w_[d] = h * r.v_next[d];
  for (Rotation& rotation : rotations_) {
    const double* w = w_.data() + rotation.dof;
    integrate_rotation_block(w, IntegrateArgument::q, true, rotation.by_q);
    integrate_rotation_block(w, IntegrateArgument::w, true, rotation.by_w);
  }

  // What bounded corrections ask for, which takes the place of r.
  if (num_bounded_ > 0) {
    expand_factor(model, r.dynamics);
    correction_columns();
  }

  // What all columns multiply, island by island.
  derivative_pairs(model, r.dynamics);
  expand_factor(model, r.dynamics);
  for (int index : r.islands.order)
    response_matrices(index);
  right_hand_sides();
  row_columns();
  for (int level = 0; level < lower_; ++level)
    prepare_matrices_of_level(level);

  // What the dynamics keep is the last level's again.
  if (lower_ > 0) prepare_derivatives(model, r.dynamics, acceleration_.data(), &forces_);
}

// u_hat of the island's trees, dense.
const double* StepLinearization::dense_factor(int index) {
  const Island& own = island(index);
  const DynamicsWorkspace& dynamics = record_->dynamics;
  if (own.trees.size() == 1) return dynamics.u_hat.data() + dynamics.trees[own.trees[0]].matrix;
  const int nv = own.num_dofs();
  const int ld = padded(nv);

  // Tree by tree on the diagonal.
  dense_factor_.assign(std::size_t(nv) * ld, 0.0);
  for (std::size_t t = 0; t < own.trees.size(); ++t) {
    const DofBlock& tree = dynamics.trees[own.trees[t]];
    for (int k = 0; k < tree.size; ++k)
      std::copy_n(dynamics.u_hat.data() + tree.matrix + std::size_t(k) * tree.ld, tree.size,
                  dense_factor_.data() + std::size_t(own.tree_start[t] + k) * ld + own.tree_start[t]);
  }
  return dense_factor_.data();
}

/// A matrix in the layout of the island's Y, dense: as it is where there is one tree.
const double* StepLinearization::dense_rows(int index, const double* rows) {
  const Island& own = island(index);
  const ConstraintProblem& problem = own.problem;
  if (own.trees.size() == 1) return rows;
  const int ld = padded(own.num_dofs());

  // Segment by segment.
  dense_.assign(std::size_t(problem.n) * ld, 0.0);
  for (std::size_t b = 0; b < problem.blocks.size(); ++b)
    for (const RowSegment& segment : problem.segments[b]) {
      if (segment.tree < 0) continue;
      const int size = problem.tree_size[segment.tree];
      for (int i = 0; i < problem.blocks[b].size; ++i)
        std::copy_n(rows + segment.start + std::size_t(i) * padded(size), size,
                    dense_.data() + std::size_t(problem.blocks[b].row + i) * ld + own.tree_start[segment.tree]);
    }
  return dense_.data();
}

/// Mh^-1, the reduced rows' W and B J Mh^-1, and P^T.
void StepLinearization::response_matrices(int index) {
  IslandMatrices& x = islands_[index];
  const int nv = island(index).num_dofs();
  const int ld = padded(nv);
  const int m = reduced_size(index);
  if (nv == 0) return;

  // Room, and Y and u_hat dense.
  const double* u_hat = dense_factor(index);
  make_room(x.P_T, std::size_t(nv) * ld);
  make_room(x.W, std::size_t(m) * ld);
  make_room(x.BYM, std::size_t(m) * ld);
  make_room(reduced_, std::size_t(m) * ld);
  const double* Y = m > 0 ? dense_rows(index, island(index).problem.Y.data()) : nullptr;
  if (m > 0 && x.problem.responds_in_velocities()) return velocity_responses(index, Y, u_hat);

  // Mh^-1 = u_hat^T u_hat; without rows that is all.
  multiply(Product::set, transposed(u_hat, nv, nv, ld), u_hat, x.P_T.data(), ld, ld, product_);
  if (m == 0) return;

  // Reduced rows first: B Y and C^T Y have fewer rows than Y, and are the same when nothing slides.
  const auto times_u_hat = [&](int rows, std::vector<double>& out) {
    multiply(Product::set, rows_of(reduced_.data(), rows, nv, ld), u_hat, out.data(), ld, ld, product_);
  };
  x.problem.reduced_rows(Y, reduced_.data(), ld, ld);
  times_u_hat(m, x.BYM);
  if (x.problem.symmetric()) {
    std::copy_n(x.BYM.data(), std::size_t(m) * ld, x.W.data());
  } else {
    x.problem.expand_transposed(Y, reduced_.data(), ld, ld);
    times_u_hat(m, x.W);
  }

  // P = Mh^-1 - W^T B J Mh^-1
  const auto subtract = [&] {
    multiply(Product::subtract, transposed(x.BYM.data(), nv, m, ld), x.W.data(), x.P_T.data(), ld, ld, product_);
  };
  const int lower = x.problem.lower_levels();
  if (lower == 0) {
    x.problem.solve_reduced_transposed(x.W.data(), ld, ld);
    subtract();
    return;
  }

  // Lower levels by themselves: what the level above passes down to them.
  make_room(difference_, std::size_t(m) * ld);
  x.problem.solve_upper_transposed(x.W.data(), difference_.data(), ld, ld);
  subtract();
  for (int level = lower - 1; level >= 0; --level) {
    IslandMatrices::Lower& own = x.lower[level];
    const int rows = reduced_size(index, level);
    const std::size_t size = std::size_t(rows) * ld;
    for (auto* values : {&own.W, &own.BYM, &difference_, &reduced_})
      make_room(*values, size);
    x.problem.pass_down(level, difference_.data(), own.W.data(), ld, ld);
    x.problem.solve_level_transposed(level, own.W.data(), ld, ld);
    std::copy_n(own.W.data(), size, difference_.data());
    x.problem.reduced_rows(level, Y, reduced_.data(), ld, ld);
    times_u_hat(rows, own.BYM);
    subtract_response(index, level);
  }
}

/// The same of an island whose systems are solved in velocities: P = u_hat^T V, V what the rows leave of u_hat.
void StepLinearization::velocity_responses(int index, const double* Y, const double* u_hat) {
  IslandMatrices& x = islands_[index];
  const int nv = island(index).num_dofs();
  const int ld = padded(nv);
  const int lower = x.problem.lower_levels();
  const auto times_u_hat = [&](int rows, std::vector<double>& out) {
    make_room(out, std::size_t(rows) * ld);
    multiply(Product::set, rows_of(reduced_.data(), rows, nv, ld), u_hat, out.data(), ld, ld, product_);
  };
  const auto reduce = [&](int level) {
    const std::size_t size = std::size_t(reduced_size(index, level)) * ld;
    for (auto* values : {&reduced_, &expanded_})
      make_room(*values, size);
    if (level == last_level)
      x.problem.reduced_rows(Y, reduced_.data(), ld, ld);
    else
      x.problem.reduced_rows(level, Y, reduced_.data(), ld, ld);
    if (level == last_level)
      x.problem.expand_transposed(Y, expanded_.data(), ld, ld);
    else
      x.problem.expand_transposed(level, Y, expanded_.data(), ld, ld);
  };

  // The last level.
  reduce(last_level);
  times_u_hat(reduced_size(index), x.BYM);
  make_room(response_, std::size_t(nv) * ld);
  make_room(difference_, std::size_t(reduced_size(index)) * ld);
  x.problem.velocity_responses(reduced_.data(), expanded_.data(), nv, ld, u_hat, response_.data(), x.W.data(),
                               lower > 0 ? difference_.data() : nullptr);
  multiply(Product::set, transposed(u_hat, nv, nv, ld), response_.data(), x.P_T.data(), ld, ld, product_);

  // The levels below it, by what the one above passes down.
  for (int level = lower - 1; level >= 0; --level) {
    IslandMatrices::Lower& own = x.lower[level];
    const int rows = reduced_size(index, level);
    const std::size_t size = std::size_t(rows) * ld;
    for (auto* values : {&own.W, &difference_})
      make_room(*values, size);
    reduce(level);
    times_u_hat(rows, own.BYM);
    x.problem.pass_down(level, difference_.data(), own.W.data(), ld, ld);
    x.problem.solve_level_transposed(level, reduced_.data(), expanded_.data(), nv, ld, own.W.data());
    std::copy_n(own.W.data(), size, difference_.data());
    subtract_response(index, level);
  }
}

/// What a lower level takes of P.
void StepLinearization::subtract_response(int index, int level) {
  IslandMatrices& x = islands_[index];
  IslandMatrices::Lower& own = x.lower[level];
  const int nv = island(index).num_dofs();
  const int ld = padded(nv);
  const std::size_t size = std::size_t(nv) * ld;
  make_room(own.P_T, size);
  multiply(Product::set, transposed(own.BYM.data(), nv, reduced_size(index, level), ld), own.W.data(), own.P_T.data(),
           ld, ld, product_);
  for (std::size_t i = 0; i < size; ++i)
    x.P_T[i] -= own.P_T[i];
}

/// r_q, r_v (transposed); the velocity columns are then P r - W^T B s.
void StepLinearization::right_hand_sides() {
  const Model& model = *model_;
  StepRecord& r = *record_;
  const double h = options_->constraints.timestep;
  for (int index : r.islands.order) {
    IslandMatrices& x = islands_[index];
    const Island& own = island(index);
    const std::size_t size = std::size_t(own.num_dofs()) * padded(own.num_dofs());
    make_room(x.r_q, size);
    make_room(x.r_v, size);
    r_q_of_[index] = x.r_q.data();

    // - h dID': one tree has the layout of its matrices already.
    if (own.trees.size() == 1) {
      const std::size_t from = r.dynamics.trees[own.trees[0]].matrix;
      scale(-h, r.dynamics.id_dq_T.data() + from, int(size), x.r_q.data());
      scale(-h, r.dynamics.id_dv_T.data() + from, int(size), x.r_v.data());
      continue;
    }
    std::fill_n(x.r_q.data(), size, 0.0);
    std::fill_n(x.r_v.data(), size, 0.0);
    for (std::size_t t = 0; t < own.trees.size(); ++t) {
      const DofBlock& tree = r.dynamics.trees[own.trees[t]];
      for (int k = 0; k < tree.size; ++k) {
        const std::size_t from = tree.matrix + std::size_t(k) * tree.ld;
        const std::size_t to = std::size_t(own.tree_start[t] + k) * padded(own.num_dofs()) + own.tree_start[t];
        scale(-h, r.dynamics.id_dq_T.data() + from, tree.size, x.r_q.data() + to);
        scale(-h, r.dynamics.id_dv_T.data() + from, tree.size, x.r_v.data() + to);
      }
    }
  }

  // Joint forces, and Mh of dv itself.
  for (int t = 0; t < model.num_trees; ++t) {
    const int index = r.islands.of_tree(t);
    const int first = model.tree_first_dof[t];
    const int start = island(index).tree_start[r.islands.tree_index[t]] - first;
    const int ld = padded(island(index).num_dofs());
    double* r_q = islands_[index].r_q.data();
    double* r_v = islands_[index].r_v.data();
    const auto at = [&](int k, int d) { return std::size_t(start + k) * ld + start + d; };
    for (int d = first; d < model.tree_first_dof[t + 1]; ++d) {
      const int joint = model.dof_joint[d];
      const int dof = model.joint_v[joint];
      for (int j = 0; j < joint_num_dofs(model.joint_type[joint]); ++j) {
        r_q[at(dof + j, d)] += h * r.joint_forces.dtau_dq[6 * d + j];
        r_v[at(dof + j, d)] += h * r.joint_forces.dtau_dv[6 * d + j];
      }

      // M is packed by root paths; each entry stands at two places.
      const int row = model.dof_row[d];
      for (int k = 0; k <= model.dof_depth[d]; ++k) {
        const int i = model.dof_path[row + k];
        const double mass = r.dynamics.mass[row + k] + (i == d ? h * model.dof_damping[d] : 0.0);
        r_v[at(i, d)] += mass;
        if (i != d) r_v[at(d, i)] += mass;
      }
    }
  }

  // Tendons, muscles, drag: all of their dofs are of one island.
  for (const CoupledSlope& slope : r.joint_forces.coupled_slopes) {
    const int index = r.islands.of_tree(model.body_tree[model.dof_body[slope.row]]);
    const auto own = [&](int dof) {
      const int tree = model.body_tree[model.dof_body[dof]];
      return std::size_t(dof - model.tree_first_dof[tree] + island(index).tree_start[r.islands.tree_index[tree]]);
    };
    const std::size_t to = own(slope.column) * padded(island(index).num_dofs()) + own(slope.row);
    islands_[index].r_q[to] += h * slope.dq;
    islands_[index].r_v[to] += h * slope.dv;
  }

  // Spins, contact points and frames that move.
  add_spin_columns();
  add_wrench_columns(row_state(), rows_, DofMatrix(r.islands, r_q_of_.data()));
}

/// r of M Delta, where joints spin torque-free.
void StepLinearization::add_spin_columns() {
  const Model& model = *model_;
  const StepRecord& r = *record_;
  for (const SpinDerivative& spin : spins_) {
    const int tree = model.body_tree[model.joint_body[spin.joint]];
    const int index = r.islands.of_tree(tree);
    const int shift = island(index).tree_start[r.islands.tree_index[tree]] - model.tree_first_dof[tree];
    const int ld = padded(island(index).num_dofs());

    // The columns of M that Delta meets.
    make_room(spin_mass_, 6 * std::size_t(ld));
    std::fill_n(spin_mass_.data(), 6 * std::size_t(ld), 0.0);
    for (int i = 0; i < 6; ++i) {
      double unit[6] = {};
      unit[i] = 1;
      double* to = spin_mass_.data() + std::size_t(i) * ld + shift;
      multiply_mass_of(model, r.dynamics, spin, unit, [&](int d, double value) { to[d] = value; });
    }

    // Times how Delta changes with the state.
    const auto add_to = [&](std::vector<double>& r_T) {
      return [&](int k, const double* change) {
        double* column = r_T.data() + std::size_t(shift + k) * ld;
        for (int i = spin.linear < 0 ? 3 : 0; i < 6; ++i)
          add_scaled(change[i], spin_mass_.data() + std::size_t(i) * ld, ld, column);
      };
    };
    visit_spin_columns(model, r.dynamics, spin, add_to(islands_[index].r_v), add_to(islands_[index].r_q));
  }
}

/// Made once for a step, when first asked for.
const std::vector<SpinDerivative>& StepLinearization::spins(bool even) {
  if (!even) return spins_;
  if (have_all_spins_) return all_spins_;
  have_all_spins_ = true;
  all_spins_.clear();
  const StepRecord& r = *record_;
  if (options_->torque_free_spin)
    spin_derivatives(*model_, r.dynamics, r.v.data(), options_->constraints.timestep, true, all_spins_, {r.flying()});
  return all_spins_;
}

/// B s of the rows' dependence on q, and on v where they bounce or have an armature.
void StepLinearization::row_columns() {
  StepRecord& r = *record_;
  const auto clear = [&] {
    for (int index : r.islands.order) {
      IslandMatrices& x = islands_[index];
      const std::size_t size = reduced_size(index) > 0 ? island(index).problem.Y.size() : 0;
      make_room(x.s, island(index).blocks.empty() ? 0 : island(index).problem.Y.size());
      std::fill_n(x.s.data(), size, 0.0);
      s_of_[index] = x.s.data();
    }
  };
  const auto reduce = [&](int index, std::vector<double>& Bs) {
    const ProblemLinearization& problem = islands_[index].problem;
    const int level = level_ < problem.lower_levels() ? level_ : last_level;
    const int ld = padded(island(index).num_dofs());
    make_room(Bs, std::size_t(reduced_size(index, level)) * ld);
    const double* s = dense_rows(index, islands_[index].s.data());
    if (const BoundedIsland* own = bounded(index); own && &Bs == &islands_[index].Bs_q) {
      with_corrections_.assign(s, s + std::size_t(island(index).num_rows()) * ld);
      add_change(*own, own->of_q, r.solution.lambda.data(), ld, with_corrections_.data());
      s = with_corrections_.data();
    }
    if (level == last_level)
      problem.reduced_rows(s, Bs.data(), ld, ld);
    else
      problem.reduced_rows(level, s, Bs.data(), ld, ld);
  };

  // s_q of all active rows.
  const RowMatrix s(r.islands, s_of_.data());
  clear();
  fill_row_columns(row_state(), rows_, s);
  for (int index : r.islands.order) {
    islands_[index].bounces = false;
    if (reduced_size(index) > 0) reduce(index, islands_[index].Bs_q);
  }

  // s_v: a bouncing row's bias is e J v, that of a tendon's armature a share of J v.
  bool any = false;
  for (const BodyRows& b : r.rows.body_rows) {
    if (b.restitution == 0 || inactive_[b.block]) continue;
    islands_[r.islands.of_block(b.block)].bounces = any = true;
  }
  for (const DofRow& row : r.rows.dof_rows) {
    const bool feels_velocity = row.slopes >= 0 || (row.bounce != 0 && !inactive_[row.block]);
    if (feels_velocity) islands_[r.islands.of_block(row.block)].bounces = any = true;
  }
  if (!any) return;

  clear();
  for (const BodyRows& b : r.rows.body_rows)
    if (b.restitution != 0 && !inactive_[b.block]) bounce_rows(b, s);
  for (const DofRow& row : r.rows.dof_rows)
    for (int j = 0; row.slopes >= 0 && j < row.num; ++j) {
      const RowMatrix::Place to = s.at(*model_, row.block, row.row, model_->body_tree[model_->dof_body[row.dof[j]]]);
      to.data[row.dof[j] - to.first] += r.rows.dbias_dv(row, j);
    }
  for (const DofRow& d : r.rows.dof_rows) {
    if (d.bounce == 0 || inactive_[d.block]) continue;
    for (int j = 0; j < d.num; ++j) {
      const RowMatrix::Place to = s.at(*model_, d.block, d.row, model_->body_tree[model_->dof_body[d.dof[j]]]);
      to.data[d.dof[j] - to.first] += d.bounce * d.coefficient[j];
    }
  }
  for (int index : r.islands.order)
    if (islands_[index].bounces) reduce(index, islands_[index].Bs_v);
}

/// Of rows that keep a share e of their velocity: e J as rows on v.
void StepLinearization::bounce_rows(const BodyRows& b, const RowMatrix& s) const {
  for (const double sign : {1.0, -1.0}) {
    const int body = sign > 0 ? b.body_a : b.body_b;
    const int last = model_->body_last_dof[body];
    if (last < 0) continue;
    double r[3];
    relative_point(*model_, record_->dynamics, body, sign > 0 ? b.point_a : b.point_b, r);

    // Each as a covector on the twist, along the body's root path.
    const RowMatrix::Place to = s.at(*model_, b.block, b.row, model_->body_tree[body]);
    const int* path = model_->dof_path.data() + model_->dof_row[last];
    for (int i = b.first_kept(); i < b.end_kept(); ++i) {
      double e[6];
      b.covector(i, r, e);
      double* row = to.data + std::size_t(i) * to.ld;
      for (int k = 0; k <= model_->dof_depth[last]; ++k)
        row[path[k] - to.first] += sign * b.restitution * dot6(record_->dynamics.columns.data() + 8 * path[k], e);
    }
  }
}

}  // namespace coulomb
