// The derivative of the impulses of a step (docs/theory.md (L3)): dlambda = -C A^+ (B s + B J Mh^-1 r) + p, p the direct change of a law
// (friction: lambda_N n per unit of mu). Components along the rows: a contact's two tangents and normal, which move with the contact and do
// not spin about the normal. Where impulses are not unique: the limit (StepAverage) where something slides, else of least norm.
#include <algorithm>
#include <numeric>

#include "coulomb/linalg/dense_kernels.hpp"
#include "coulomb/stepping/gradients/step_average.hpp"
#include "coulomb/stepping/semi_implicit/step_linearization.hpp"

namespace coulomb {

/// r_T: column.size() x ld; Bs: reduced rows x padded(column.size()).
void StepLinearization::impulses_of(int index, const double* r_T, const double* Bs, const std::vector<int>& column,
                                    double* out_T) {
  const Island& own = island(index);
  IslandMatrices& x = islands_[index];
  const int nv = own.num_dofs();
  const int ld = padded(nv);
  const int n = own.num_rows();
  const int m = reduced_size(index);
  const int count = int(column.size());
  const int width = padded(count);
  if (m == 0) return;

  // B s + B J Mh^-1 r
  std::vector<double> reduced(std::size_t(m) * width, 0.0);
  std::vector<double> lambda(std::size_t(n) * width);
  if (Bs) std::copy_n(Bs, reduced.size(), reduced.begin());
  for (int i = 0; i < m; ++i)
    for (int k = 0; k < count; ++k) {
      const double* row = x.BYM.data() + std::size_t(i) * ld;
      const double* r = r_T + std::size_t(k) * ld;
      double sum = 0;
      for (int d = 0; d < nv; ++d)
        sum += row[d] * r[d];
      reduced[std::size_t(i) * width + k] += sum;
    }

  // Impulses of the reduced rows, then of all.
  x.problem.solve_reduced(reduced.data(), width, width);
  x.problem.expand(reduced.data(), lambda.data(), width, width);
  for (int k = 0; k < count; ++k)
    for (int i = 0; i < n; ++i)
      out_T[std::size_t(column[k]) * record_->rows.num_rows + own.rows[i]] = -lambda[std::size_t(i) * width + k];
}

/// The same where levels count by themselves: each has its own right-hand side.
void StepLinearization::impulses_of_levels(int index, const double* r_T, const double* Bs, const LevelSides* lower,
                                           const std::vector<int>& column, double* out_T) {
  const Island& own = island(index);
  IslandMatrices& x = islands_[index];
  const int nv = own.num_dofs();
  const int ld = padded(nv);
  const int n = own.num_rows();
  const int count = int(column.size());
  const int width = padded(count);
  const auto right_hand_side = [&](int m, const std::vector<double>& BYM, const double* r, const double* known) {
    std::vector<double> out(std::size_t(m) * width, 0.0);
    if (known) std::copy_n(known, out.size(), out.begin());
    for (int i = 0; i < m; ++i)
      for (int k = 0; k < count; ++k)
        for (int d = 0; d < nv; ++d)
          out[std::size_t(i) * width + k] += BYM[std::size_t(i) * ld + d] * r[std::size_t(k) * ld + d];
    return out;
  };

  // The lower levels, then the last one with what they pass up.
  std::vector<double> up(std::size_t(n) * width, 0.0);
  const auto add_up = [&](std::vector<double>& to) {
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] += up[i];
  };
  for (int level = 0; level < x.problem.lower_levels(); ++level) {
    std::vector<double> solved =
        right_hand_side(reduced_size(index, level), x.lower[level].BYM, lower[level].r_T, lower[level].Bs);
    add_up(solved);
    x.problem.solve_level(level, solved.data(), width, width);
    x.problem.pass_up(level, solved.data(), up.data(), width, width);
  }

  // The last level, of which what is passed up is not its own.
  std::vector<double> last = right_hand_side(reduced_size(index), x.BYM, r_T, Bs);
  std::vector<double> lambda(std::size_t(n) * width);
  const std::vector<double> known = last;
  add_up(last);
  x.problem.solve_upper(last.data(), known.data(), width, width);
  x.problem.expand(last.data(), lambda.data(), width, width);
  for (int k = 0; k < count; ++k)
    for (int i = 0; i < n; ++i)
      out_T[std::size_t(column[k]) * record_->rows.num_rows + own.rows[i]] = -lambda[std::size_t(i) * width + k];
}

/// num_rows numbers for each number of the input.
void StepLinearization::impulse_columns(StepInput input, std::vector<double>& out_T) {
  prepare_matrices();
  const Model& model = *model_;
  const StepRecord& r = *record_;
  const double h = options_->constraints.timestep;

  // One column for each number of the input, by the islands that it moves.
  out_T.assign(std::size_t(input == StepInput::u ? model.nu : model.nv) * r.rows.num_rows, 0.0);
  std::vector<int> column;
  std::vector<double> r_T;
  for (int index : r.islands.order) {
    const Island& own = island(index);
    const IslandMatrices& x = islands_[index];
    const int nv = own.num_dofs();
    const int ld = padded(nv);
    if (reduced_size(index) == 0 || nv == 0) continue;
    const auto own_dof = [&](int d) {
      const int tree = model.body_tree[model.dof_body[d]];
      return d - model.tree_first_dof[tree] + own.tree_start[r.islands.tree_index[tree]];
    };

    // Those of this island.
    column.clear();
    if (input == StepInput::u) {
      for (int k = 0; k < model.nu; ++k)
        if (r.islands.of_tree(actuator_tree(model, k)) == index) column.push_back(k);
    } else {
      for (int tree : own.trees)
        for (int d = model.tree_first_dof[tree]; d < model.tree_first_dof[tree + 1]; ++d)
          column.push_back(d);
    }

    // q and v have right-hand sides already.
    const int lower = x.problem.lower_levels();
    std::vector<LevelSides>& sides = level_sides_;
    const auto add_columns = [&](const double* r, const double* Bs) {
      if (lower > 0)
        impulses_of_levels(index, r, Bs, sides.data(), column, out_T.data());
      else
        impulses_of(index, r, Bs, column, out_T.data());
    };
    if (input == StepInput::q) {
      for (int level = 0; level < lower; ++level)
        sides[level] = {x.lower[level].r_q.data(), x.lower[level].Bs_q.data()};
      add_columns(x.r_q.data(), x.Bs_q.data());
      continue;
    }
    if (input == StepInput::v) {
      for (int level = 0; level < lower; ++level)
        sides[level] = {x.r_v.data(), x.bounces ? x.lower[level].Bs_v.data() : nullptr};
      add_columns(x.r_v.data(), x.bounces ? x.Bs_v.data() : nullptr);
      continue;
    }

    // tau is an impulse of h on its dof, u what its joint takes of it.
    r_T.assign(column.size() * ld, 0.0);
    for (std::size_t k = 0; k < column.size(); ++k) {
      if (input == StepInput::tau) {
        r_T[k * ld + k] = h;
        continue;
      }
      const ActuatorDofs dofs = actuator_dofs(model, column[k]);
      for (int j = 0; j < dofs.num; ++j)
        r_T[k * ld + own_dof(dofs.dof[j])] = h * r.joint_forces.dtau_du[max_actuator_dofs * column[k] + j];
    }
    for (int level = 0; level < lower; ++level)
      sides[level] = {r_T.data(), nullptr};
    add_columns(r_T.data(), nullptr);
  }
}

void StepLinearization::impulse_columns(const ParameterSet& set, std::vector<double>& out_T) {
  // The columns of the next state leave r, s and p.
  std::vector<double> columns_T;
  parameter_columns(set, columns_T);
  const int n = record_->rows.num_rows;
  const int count = set.size();
  out_T.assign(std::size_t(count) * n, 0.0);
  std::vector<int> column(count);
  std::iota(column.begin(), column.end(), 0);
  for (int index : record_->islands.order) {
    if (reduced_size(index) == 0) continue;
    const double* Bs = island_parameter_sides(index, count);
    const double* r = parameter(last_level).island_r.data();
    std::vector<LevelSides>& sides = level_sides_;
    for (int level = 0; level < lower_levels(index); ++level)
      sides[level] = {parameter(level).island_r.data(), parameter(level).island_Bs.data()};
    if (lower_levels(index) > 0)
      impulses_of_levels(index, r, Bs, sides.data(), column, out_T.data());
    else
      impulses_of(index, r, Bs, column, out_T.data());
  }
  for (int k = 0; k < count; ++k)
    for (int i = 0; i < n; ++i)
      out_T[std::size_t(k) * n + i] += parameter_p_[std::size_t(k) * n + i];
}

}  // namespace coulomb
