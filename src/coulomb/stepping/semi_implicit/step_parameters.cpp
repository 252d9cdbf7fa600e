// The derivative of a step by named parameters: forward columns and the reverse product from the same sparse right-hand sides
// (parameters/right_hand_side.hpp): docs/theory.md (P1).
//
//   dv+ = P r - W^T B s,   dq+ = h (d(+)/dw) dv+ + dh (d(+)/dw) v+            gradient = y . r + z . s + dh dq+ . (d(+)/dw) v+
#include <algorithm>

#include "coulomb/configuration.hpp"
#include "coulomb/linalg/dense_kernels.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/stepping/gradients/step_average.hpp"
#include "coulomb/stepping/semi_implicit/step_linearization.hpp"

namespace coulomb {

/// The step as the kinds see it, at the level in place.
ParameterContext StepLinearization::parameter_context() {
  const StepRecord& r = *record_;
  ParameterContext out{.model = *model_,
                       .dynamics = r.dynamics,
                       .options = options_->constraints,
                       .rows = r.rows,
                       .contacts = r.collision.contacts,
                       .derivatives = rows_,
                       .inactive = inactive_,
                       .velocities = row_velocities(),
                       .body_twist = r.dynamics.body_twist.data(),
                       .body_twist_plus = body_twist_.data(),
                       .q = r.configuration(),
                       .v = r.v.data(),
                       .u = r.u.data(),
                       .v_plus = r.v_next.data(),
                       .acceleration = acceleration_.data(),
                       .lambda = r.solution.lambda.data(),
                       .fext = r.fext,
                       .modes = modes_,
                       .joint_forces = r.joint_forces,
                       .facets = facets_.data()};
  out.spins = &spins(true);
  out.spin_shift = r.spin.velocity.data();
  out.gains = &r.gains;
  out.gain_time = options_->constraints.timestep;
  out.fixed = fixed_velocity();
  return out;
}

void StepLinearization::parameter_columns(const ParameterSet& set, std::vector<double>& columns_T) {
  // P and W.
  prepare_matrices();
  const StepRecord& record = *record_;
  const int nv = model_->nv;
  const int n = record.rows.num_rows;
  const int count = set.size();
  const int width = padded(count);

  // r, s and p of all scalars, at every level.
  columns_T.assign(std::size_t(2) * nv * count, 0.0);
  parameter_p_.assign(std::size_t(count) * n, 0.0);
  std::vector<double> dh(count, 0.0);
  collect_parameter_sides(set, dh);
  for (int level = 0; level < lower_; ++level) {
    exchange_levels(level);
    collect_parameter_sides(set, dh);
    exchange_levels(level);
  }
  if (num_bounded_ > 0) correction_parameter_sides(set, dh);

  // dv+ = P r - W^T B s, island by island.
  const double h = options_->constraints.timestep;
  std::vector<double> dv_T;
  for (int index : record.islands.order) {
    const Island& own = island(index);
    const int size = own.num_dofs();
    const int ld = padded(size);
    const int m = reduced_size(index);
    if (size == 0) continue;
    const double* Bs = island_parameter_sides(index, count);
    dv_T.resize(std::size_t(count) * ld);
    multiply(Product::set, rows_of(parameter(last_level).island_r.data(), count, size, ld), islands_[index].P_T.data(),
             dv_T.data(), ld, ld, product_);
    if (Bs)
      multiply(Product::subtract, transposed(Bs, count, m, width), islands_[index].W.data(), dv_T.data(), ld, ld,
               product_);
    for (int level = 0; level < lower_levels(index); ++level)
      subtract_level(index, level, parameter(level).island_r.data(), parameter(last_level).island_r.data(),
                     parameter(level).island_Bs.data(), count, dv_T.data());

    // dq+ = J_r (h dv+ + dh v+); J_r follows for all columns.
    for (std::size_t t = 0; t < own.trees.size(); ++t)
      for (int d = own.tree_start[t]; d < own.tree_start[t + 1]; ++d) {
        const int dof = model_->tree_first_dof[own.trees[t]] + d - own.tree_start[t];
        for (int k = 0; k < count; ++k) {
          const double dv = dv_T[std::size_t(k) * ld + d];
          columns_T[std::size_t(2) * nv * k + dof] = h * dv + dh[k] * record.v_next[dof];
          columns_T[std::size_t(2) * nv * k + nv + dof] = dv;
        }
      }
  }
  for (int d = 0; d < nv; ++d)
    w_[d] = h * record.v_next[d];
  times_integrate_jacobian(*model_, w_.data(), IntegrateArgument::w, true, columns_T.data(), 2 * nv, count);
  judge_parameters(set);
}

/// r, s and p of every scalar of the set, at the level in place; p once.
void StepLinearization::collect_parameter_sides(const ParameterSet& set, std::vector<double>& dh) {
  const int nv = model_->nv;
  const int n = record_->rows.num_rows;
  const int width = padded(set.size());
  std::vector<double>& r = parameter(level_).r;
  std::vector<double>& s = parameter(level_).s;
  r.assign(std::size_t(set.size()) * nv, 0.0);
  s.assign(std::size_t(n) * width, 0.0);

  // Each kind lists what a unit of its scalars changes.
  const ParameterContext context = parameter_context();
  for (const ParameterSet::Item& item : set.items()) {
    if (int(sides_.size()) < item.element.size) sides_.resize(item.element.size);
    for (int k = 0; k < item.element.size; ++k)
      sides_[k].clear();
    item.kind->right_hand_sides(context, item.element, sides_.data());
    for (int k = 0; k < item.element.size; ++k) {
      const int column = item.first + k;
      double* s_column = n > 0 ? s.data() + column : nullptr;
      expand(context, sides_[k], r.data() + std::size_t(column) * nv, s_column, width);

      // Impulses that change directly, of friction, are along the slip, where a sliding contact has no row: their compliance asks nothing of s.
      if (level_ != last_level) continue;
      for (const auto& p : sides_[k].impulses)
        parameter_p_[std::size_t(column) * n + p.index] += p.value;
      dh[column] = sides_[k].timestep;
    }
  }
}

// Gathers r and, where the island has reduced rows, B s of its own; of every level that counts by itself.
const double* StepLinearization::island_parameter_sides(int index, int count) {
  gather_parameter_sides(index, last_level, count);
  for (int level = 0; level < lower_levels(index); ++level)
    gather_parameter_sides(index, level, count);
  return reduced_size(index) > 0 ? parameter(last_level).island_Bs.data() : nullptr;
}

/// Of one level.
void StepLinearization::gather_parameter_sides(int index, int level, int count) {
  const Island& own = island(index);
  const int ld = padded(own.num_dofs());
  const int width = padded(count);
  const int m = reduced_size(index, level);
  ParameterSides& sides = parameter(level);
  sides.island_r.assign(std::size_t(count) * ld, 0.0);

  // Columns of r, in the order of the island's dofs.
  for (int k = 0; k < count; ++k)
    for (std::size_t t = 0; t < own.trees.size(); ++t)
      std::copy_n(sides.r.data() + std::size_t(k) * model_->nv + model_->tree_first_dof[own.trees[t]],
                  own.tree_start[t + 1] - own.tree_start[t],
                  sides.island_r.data() + std::size_t(k) * ld + own.tree_start[t]);
  if (reduced_size(index) == 0) return;

  // Rows of s, reduced.
  island_s_.resize(own.rows.size() * width);
  sides.island_Bs.resize(std::size_t(m) * width);
  for (std::size_t i = 0; i < own.rows.size(); ++i)
    std::copy_n(sides.s.data() + std::size_t(own.rows[i]) * width, width, island_s_.data() + i * width);
  if (const BoundedIsland* bound = bounded(index)) {
    const StepRecord& r = *record_;
    const double* lambda = level == last_level ? r.solution.lambda.data() : other_levels_[level]->lambda.data();
    add_change(*bound, bound->of_parameters, lambda, width, island_s_.data());
  }
  const ProblemLinearization& problem = islands_[index].problem;
  if (level == last_level)
    problem.reduced_rows(island_s_.data(), sides.island_Bs.data(), width, width);
  else
    problem.reduced_rows(level, island_s_.data(), sides.island_Bs.data(), width, width);
}

/// out = y . r + z . s + dh dq+ . (d(+)/dw) v+, scalar by scalar.
void StepLinearization::parameter_gradient(const ParameterSet& set, const double* dq1, const double* y, const double* z,
                                           std::vector<double>& out) {
  const ParameterContext context = parameter_context();
  twist_.resize(8 * std::size_t(model_->nv) + 8);
  moved_.resize(model_->nv);
  link_twists(*model_, record_->dynamics, y, twist_.data());
  out.assign(set.size(), 0.0);
  for (const ParameterSet::Item& item : set.items()) {
    if (int(sides_.size()) < item.element.size) sides_.resize(item.element.size);
    for (int k = 0; k < item.element.size; ++k)
      sides_[k].clear();
    item.kind->right_hand_sides(context, item.element, sides_.data());
    for (int k = 0; k < item.element.size; ++k) {
      double value = project(context, sides_[k], y, twist_.data(), z);

      // A longer step goes further.
      if (sides_[k].timestep != 0) {
        for (int d = 0; d < model_->nv; ++d)
          w_[d] = options_->constraints.timestep * record_->v_next[d];
        std::copy_n(dq1, model_->nv, moved_.begin());
        integrate_jacobian_times(*model_, w_.data(), IntegrateArgument::w, true, moved_.data(), 1, 1);
        for (int d = 0; d < model_->nv; ++d)
          value += sides_[k].timestep * moved_[d] * record_->v_next[d];
      }
      out[item.first + k] = value;
    }
  }
}

}  // namespace coulomb
