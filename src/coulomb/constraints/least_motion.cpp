// docs/theory.md (K8).
#include "coulomb/constraints/least_motion.hpp"

#include <algorithm>
#include <cstddef>

#include "coulomb/constraints/islands.hpp"
#include "coulomb/linalg/dense.hpp"

namespace coulomb {
namespace {

/// The row of Y in one segment of its block.
const double* row_of_segment(const ConstraintProblem& problem, const RowSegment& segment, int row_of_block) {
  const std::size_t width = dense::padded(problem.tree_size[segment.tree]);
  return problem.Y.data() + segment.start + width * row_of_block;
}

}  // namespace

void LeastMotion::start(const Island& island, const std::vector<CorrectedRow>& rows, const std::vector<double>& beta) {
  island_ = &island;
  rows_ = &rows;
  beta_ = &beta;
  x_.assign(rows.size(), 0.0);
  motion_.assign(island.num_dofs(), 0.0);
  diagonal_.assign(rows.size(), 0.0);

  const ConstraintProblem& problem = island.problem;
  for (std::size_t k = 0; k < rows.size(); ++k)
    for (const RowSegment& segment : problem.segments[rows[k].block]) {
      if (segment.tree < 0) continue;
      const double* y = row_of_segment(problem, segment, rows[k].row_of_block);
      for (int d = 0; d < problem.tree_size[segment.tree]; ++d)
        diagonal_[k] += y[d] * y[d];
    }
}

double LeastMotion::speed(int k) const {
  const ConstraintProblem& problem = island_->problem;
  const CorrectedRow& row = (*rows_)[k];
  double sum = 0;
  for (const RowSegment& segment : problem.segments[row.block]) {
    if (segment.tree < 0) continue;
    const double* y = row_of_segment(problem, segment, row.row_of_block);
    const double* u = motion_.data() + island_->tree_start[segment.tree];
    for (int d = 0; d < problem.tree_size[segment.tree]; ++d)
      sum += y[d] * u[d];
  }
  return sum;
}

void LeastMotion::push(int k, double change) {
  const ConstraintProblem& problem = island_->problem;
  const CorrectedRow& row = (*rows_)[k];
  x_[k] += change;
  for (const RowSegment& segment : problem.segments[row.block]) {
    if (segment.tree < 0) continue;
    const double* y = row_of_segment(problem, segment, row.row_of_block);
    double* u = motion_.data() + island_->tree_start[segment.tree];
    for (int d = 0; d < problem.tree_size[segment.tree]; ++d)
      u[d] += y[d] * change;
  }
}

double LeastMotion::slack(int k) const { return (*beta_)[k] - speed(k) - eps_ * (*rows_)[k].weight * x_[k]; }

double LeastMotion::sweep(double eps) {
  eps_ = eps;
  double energy = 0;
  for (int k = 0; k < int(x_.size()); ++k) {
    const double pivot = diagonal_[k] + eps * (*rows_)[k].weight;
    if (!(pivot > 0)) continue;
    const double change = std::min(slack(k) / pivot, -x_[k]);
    if (change == 0) continue;
    push(k, change);
    energy += change * change * pivot;
  }
  return energy;
}

double LeastMotion::work() const {
  double sum = 0;
  for (std::size_t k = 0; k < x_.size(); ++k)
    sum += x_[k] * (2 * (*beta_)[k] - eps_ * (*rows_)[k].weight * x_[k]);
  for (const double u : motion_)
    sum -= u * u;
  return sum;
}

}  // namespace coulomb
