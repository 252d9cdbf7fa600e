// The derivative of bounded position corrections (docs/theory.md (K5) to (K7)): what islands ask for, beta', and the compliance R of the rows
// follow beta and G x,
//
//   dbeta' = by_error dbeta + by_rows (dG x),      dG x = dJ w + J Mh^-1 (dJ^T x - dMh w),   w = Mh^-1 J^T x
//
// and s is dJ v+ + dbeta' + dR lambda, R = compliance S.
//
// Right-hand sides r and s of a step are affine in its velocity and impulses. Those of the step that moves by w with impulses x, less those
// of the step at rest without impulses, are what dG x asks for; those at rest are dbeta. Both are prepared as levels of the step are.
#include <algorithm>

#include "coulomb/linalg/dense_kernels.hpp"
#include "coulomb/stepping/semi_implicit/step_linearization.hpp"

namespace coulomb {

/// Islands whose corrections are bounded, and the two motions that their derivative takes.
void StepLinearization::prepare_corrections() {
  StepRecord& r = *record_;
  num_bounded_ = 0;
  if (!r.corrections.any) return;
  bounded_of_.assign(r.islands.pool.size(), -1);
  for (int index : r.islands.order) {
    if (!r.corrections.of_island[index].bounded) continue;
    bounded_of_[index] = num_bounded_++;
    if (int(bounded_.size()) < num_bounded_) bounded_.emplace_back();
    BoundedIsland& own = bounded_[num_bounded_ - 1];
    own.index = index;
    correction_slopes(r.corrections.of_island[index], own.slopes);
  }

  // Rows that are not corrected take no part, whatever they do in the step itself.
  for (auto* level : {&rest_, &correction_}) {
    if (!*level) *level = std::make_unique<LevelState>(*model_);
    LevelState& state = **level;
    state.lambda.assign(r.rows.num_rows, 0.0);
    state.inactive.assign(r.rows.num_blocks, 1);
    state.facets = facets_;

    // Friction has no part in these motions.
    state.modes = modes_;
    for (int b = 0; b < r.rows.num_blocks; ++b)
      if (r.rows.blocks[b].is_contact()) state.modes[b] = Mode::sticking;
    for (int i = 0; i < num_bounded_; ++i) {
      const Island& own = island(bounded_[i].index);
      for (const CorrectedRow& row : r.corrections.of_island[bounded_[i].index].rows)
        state.inactive[own.blocks[row.block]] = 0;
    }
  }

  // At rest, and the motion w of the impulses x.
  std::fill(rest_->v_next.begin(), rest_->v_next.end(), 0.0);
  for (int i = 0; i < num_bounded_; ++i) {
    const IslandCorrection& c = r.corrections.of_island[bounded_[i].index];
    for (int k = 0; k < c.n; ++k)
      correction_->lambda[island(bounded_[i].index).rows[c.rows[k].row]] = c.x[k];
  }
  std::fill(correction_->v_next.begin(), correction_->v_next.end(), 0.0);
  apply_rows_transposed(*model_, r.dynamics, r.rows, correction_->lambda.data(), link_wrench_.data(),
                        correction_->v_next.data());
  solve_mass(*model_, r.dynamics, correction_->v_next.data());
  prepare_motion(*rest_, rest_level);
  prepare_motion(*correction_, correction_level);
}

/// of_q: what q changes of the corrections.
void StepLinearization::correction_columns() {
  const Model& model = *model_;
  StepRecord& r = *record_;
  const int width = padded(model.nv);
  const std::size_t size = std::size_t(r.rows.num_rows) * width;
  for (int level : {rest_level, correction_level}) {
    // All of this level: r is then in the place of the last one's.
    exchange_levels(level);
    derivative_pairs(model, r.dynamics);
    right_hand_sides();
    correction_s_.assign(size, 0.0);
    fill_row_columns(row_state(), rows_, RowMatrix(correction_s_.data(), width));
    exchange_levels(level);
    for (int i = 0; i < num_bounded_; ++i)
      level == rest_level ? take_rest(bounded_[i]) : take_motion(bounded_[i]);
  }
}

/// dbeta, and r of what is at rest.
void StepLinearization::take_rest(BoundedIsland& own) {
  const Island& it = island(own.index);
  const IslandCorrection& c = record_->corrections.of_island[own.index];
  const int nv = it.num_dofs();
  const int ld = padded(nv);
  own.rest_r.assign(islands_[own.index].r_q.begin(), islands_[own.index].r_q.begin() + std::size_t(nv) * ld);
  gather_columns(own, own.errors);

  // J Mh^-1 = Y u_hat of its rows.
  const double* u_hat = dense_factor(own.index);
  const double* Y = dense_rows(own.index, it.problem.Y.data());
  own.response.assign(std::size_t(c.n) * ld, 0.0);
  for (int i = 0; i < c.n; ++i)
    for (int k = 0; k < nv; ++k)
      for (int d = 0; d < nv; ++d)
        own.response[std::size_t(i) * ld + d] +=
            Y[std::size_t(c.rows[i].row) * ld + k] * u_hat[std::size_t(k) * ld + d];
}

/// dG x, then what it changes.
void StepLinearization::take_motion(BoundedIsland& own) {
  const Island& it = island(own.index);
  const IslandCorrection& c = record_->corrections.of_island[own.index];
  const int nv = it.num_dofs();
  const int ld = padded(nv);
  gather_columns(own, own.motions);
  const double* r = islands_[own.index].r_q.data();
  for (int i = 0; i < c.n; ++i)
    for (int k = 0; k < nv; ++k) {
      double sum = -own.errors[std::size_t(i) * ld + k];
      for (int d = 0; d < nv; ++d)
        sum +=
            own.response[std::size_t(i) * ld + d] * (r[std::size_t(k) * ld + d] - own.rest_r[std::size_t(k) * ld + d]);
      own.motions[std::size_t(i) * ld + k] += sum;
    }
  change_errors(own, nv, ld, own.of_q);
}

/// Columns of correction_s_ that are the island's, of its corrected rows.
void StepLinearization::gather_columns(const BoundedIsland& own, std::vector<double>& out) const {
  const Island& it = island(own.index);
  const IslandCorrection& c = record_->corrections.of_island[own.index];
  const int width = padded(model_->nv);
  const int ld = padded(it.num_dofs());
  out.assign(std::size_t(c.n) * ld, 0.0);
  for (int i = 0; i < c.n; ++i)
    for (std::size_t t = 0; t < it.trees.size(); ++t)
      std::copy_n(
          correction_s_.data() + std::size_t(it.rows[c.rows[i].row]) * width + model_->tree_first_dof[it.trees[t]],
          it.tree_start[t + 1] - it.tree_start[t], out.data() + std::size_t(i) * ld + it.tree_start[t]);
}

/// dbeta' - dbeta = (by_error - 1) errors + by_rows motions, and the change of the compliance.
void StepLinearization::change_errors(const BoundedIsland& own, int count, int ld, CorrectionChange& out) const {
  const IslandCorrection& c = record_->corrections.of_island[own.index];
  const CorrectionSlopes& slopes = own.slopes;
  out.errors.assign(std::size_t(c.n) * ld, 0.0);
  out.compliance.assign(ld, 0.0);
  for (int j = 0; j < c.n; ++j) {
    const double* error = own.errors.data() + std::size_t(j) * ld;
    const double* motion = own.motions.data() + std::size_t(j) * ld;
    for (int k = 0; k < count; ++k)
      out.compliance[k] += slopes.compliance_by_error[j] * error[k] + slopes.compliance_by_rows[j] * motion[k];
    for (int i = 0; i < c.n; ++i) {
      double* to = out.errors.data() + std::size_t(i) * ld;
      const double by_error = slopes.by_error[std::size_t(i) * c.ld + j] - (i == j);
      const double by_rows = slopes.by_rows[std::size_t(i) * c.ld + j];
      for (int k = 0; k < count; ++k)
        to[k] += by_error * error[k] + by_rows * motion[k];
    }
  }
}

/// s (rows of the problem x ld) += dbeta' - dbeta + dR lambda, of a level's impulses.
void StepLinearization::add_change(const BoundedIsland& own, const CorrectionChange& change, const double* lambda,
                                   int ld, double* s) const {
  const Island& it = island(own.index);
  const IslandCorrection& c = record_->corrections.of_island[own.index];
  for (int i = 0; i < c.n; ++i) {
    const double* errors = change.errors.data() + std::size_t(i) * ld;
    const double impulse = c.rows[i].scale * lambda[it.rows[c.rows[i].row]];
    double* to = s + std::size_t(c.rows[i].row) * ld;
    for (int k = 0; k < ld; ++k)
      to[k] += errors[k] + impulse * change.compliance[k];
  }
}

/// of_parameters: the same of every scalar of a set. After correction_columns.
void StepLinearization::correction_parameter_sides(const ParameterSet& set, std::vector<double>& dh) {
  for (int level : {rest_level, correction_level}) {
    exchange_levels(level);
    collect_parameter_sides(set, dh);
    exchange_levels(level);
  }
  const int count = set.size();
  const int width = padded(count);
  const std::size_t nv = model_->nv;
  const ParameterSides& rest = parameter(rest_level);
  const ParameterSides& motion = parameter(correction_level);
  for (int b = 0; b < num_bounded_; ++b) {
    BoundedIsland& own = bounded_[b];
    const Island& it = island(own.index);
    const IslandCorrection& c = record_->corrections.of_island[own.index];
    const int ld = padded(it.num_dofs());
    own.errors.assign(std::size_t(c.n) * width, 0.0);
    own.motions.assign(std::size_t(c.n) * width, 0.0);
    for (int i = 0; i < c.n; ++i)
      for (int k = 0; k < count; ++k) {
        const std::size_t at = std::size_t(it.rows[c.rows[i].row]) * width + k;
        double sum = motion.s[at] - rest.s[at];
        for (std::size_t t = 0; t < it.trees.size(); ++t)
          for (int d = it.tree_start[t]; d < it.tree_start[t + 1]; ++d) {
            const std::size_t dof = nv * k + model_->tree_first_dof[it.trees[t]] + d - it.tree_start[t];
            sum += own.response[std::size_t(i) * ld + d] * (motion.r[dof] - rest.r[dof]);
          }
        own.errors[std::size_t(i) * width + k] = rest.s[at];
        own.motions[std::size_t(i) * width + k] = sum;
      }
    change_errors(own, count, width, own.of_parameters);
  }
}

/// z . S lambda of an island, every level with its own multipliers and impulses.
double StepLinearization::compliance_cotangent(const BoundedIsland& own, const double* z, bool levels) const {
  const Island& it = island(own.index);
  const IslandCorrection& c = record_->corrections.of_island[own.index];
  double sum = 0;
  for (int i = 0; i < c.n; ++i) {
    const int row = it.rows[c.rows[i].row];
    sum += z[row] * c.rows[i].scale * record_->solution.lambda[row];
    for (int level = 0; levels && level < lower_levels(own.index); ++level)
      sum +=
          z_lower_[level][row] * c.rows[i].scale * (other_levels_[level]->lambda[row] - record_->solution.lambda[row]);
  }
  return sum;
}

/// q (nv) and, where there is a set, parameters += z . (dbeta' - dbeta + dR lambda). levels: z_lower_ has what of z belongs to these.
void StepLinearization::add_correction_cotangents(const double* z, bool levels, double* q, const ParameterSet* set,
                                                  double* parameters) {
  if (num_bounded_ == 0) return;
  StepRecord& r = *record_;

  // Multipliers of dbeta and of dG x.
  error_z_.assign(r.rows.num_rows, 0.0);
  motion_z_.assign(r.rows.num_rows, 0.0);
  for (int b = 0; b < num_bounded_; ++b) {
    const Island& it = island(bounded_[b].index);
    const IslandCorrection& c = r.corrections.of_island[bounded_[b].index];
    const CorrectionSlopes& slopes = bounded_[b].slopes;
    const double of_compliance = compliance_cotangent(bounded_[b], z, levels);
    for (int i = 0; i < c.n; ++i) {
      const double own = z[it.rows[c.rows[i].row]];
      error_z_[it.rows[c.rows[i].row]] -= own;
      for (int j = 0; j < c.n; ++j) {
        error_z_[it.rows[c.rows[j].row]] += slopes.by_error[std::size_t(i) * c.ld + j] * own;
        motion_z_[it.rows[c.rows[j].row]] += slopes.by_rows[std::size_t(i) * c.ld + j] * own;
      }
      error_z_[it.rows[c.rows[i].row]] += slopes.compliance_by_error[i] * of_compliance;
      motion_z_[it.rows[c.rows[i].row]] += slopes.compliance_by_rows[i] * of_compliance;
    }
  }

  // Of the motion, less of what is at rest.
  find_level_y(motion_z_.data());
  const auto add = [&](int level, double sign, const double* row_z) {
    exchange_levels(level);
    add_sides(sign, row_z, q, set, parameters);
    exchange_levels(level);
  };
  add(correction_level, 1, motion_z_.data());
  for (int i = 0; i < r.rows.num_rows; ++i)
    error_z_[i] -= motion_z_[i];
  add(rest_level, -1, error_z_.data());
}

}  // namespace coulomb
