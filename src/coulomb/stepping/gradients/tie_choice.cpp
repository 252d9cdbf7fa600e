#include "coulomb/stepping/gradients/tie_choice.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/solvers/delassus.hpp"
#include "coulomb/solvers/friction_pyramid.hpp"
#include "coulomb/stepping/step_options.hpp"
#include "coulomb/stepping/step_record.hpp"

namespace coulomb {
namespace {

/// The mode on the other side of the border that the block is nearest to.
Mode other_side(const Block& block, Mode mode, const double* lambda, const double* c) {
  switch (block.type) {
    case BlockType::limit: return mode == Mode::active ? Mode::separating : Mode::active;
    case BlockType::box: return mode != Mode::sticking ? Mode::sticking : *lambda >= 0 ? Mode::upper : Mode::lower;
    case BlockType::cone:
      if (block.mu == 0) return mode == Mode::separating ? Mode::sliding : Mode::separating;
      if (mode == Mode::separating) return Mode::sticking;
      if (std::max(lambda[2], 0.0) + std::max(c[2], 0.0) == 0) return Mode::separating;
      return mode == Mode::sticking ? Mode::sliding : lambda[2] > 0 ? Mode::sticking : Mode::separating;
    default: return mode;
  }
}

/// The labels that the linearisation takes: modes and, of pyramids, the features they slide on.
struct Labels {
  std::vector<Mode> modes;
  std::vector<int> facets;
  bool operator==(const Labels& other) const = default;
};

/// Diagonal entry of the Delassus matrix: velocity per impulse of a block's row.
double mobility(const StepRecord& r, int b, int row_of_block) {
  return delassus_diagonal(r.islands.pool[r.islands.of_block(b)].problem, r.islands.block_index[b], row_of_block);
}

/// The block takes the other side of its tie.
void flip(const StepRecord& r, int b, Labels& labels) {
  const Block& block = r.rows.blocks[b];
  const SolverResult& solution = r.solution;
  const double* lambda = solution.lambda.data() + block.row;
  const double* c = solution.c.data() + block.row;
  if (block.type != BlockType::pyramid) {
    labels.modes[b] = other_side(block, labels.modes[b], lambda, c);
    return;
  }

  // A pyramid may leave its feature as well as its mode. weight: velocity per impulse.
  double weight = 0;
  for (int i = 0; i < 3; ++i)
    weight += mobility(r, b, i) / 3;
  const PyramidMode other = pyramid_other_side(block, weight, {labels.modes[b], labels.facets[b]}, lambda, c);
  labels.modes[b] = other.mode;
  labels.facets[b] = other.facet;
}

/// A contact with friction that presses by no more than the margin (a share of its island's largest speed) may part as well, whatever
/// border it is nearest to.
bool may_part(const StepRecord& r, int b, Mode mode, double margin) {
  const Block& block = r.rows.blocks[b];
  const ConstraintProblem& problem = r.islands.pool[r.islands.of_block(b)].problem;
  if ((block.type != BlockType::cone && block.type != BlockType::pyramid) || block.mu == 0) return false;

  // Beside the largest speed of its problem.
  double largest = 0;
  for (int i = 0; i < problem.n; ++i)
    largest = std::max(largest, std::abs(problem.g[i]));
  return mode != Mode::separating && r.solution.lambda[block.row + 2] * mobility(r, b, 2) <= margin * largest;
}

/// ||dl/dv||^2 + ||dl/dtau||^2 / h
double size(const StepCotangent& g, double h) {
  double v = 0;
  double tau = 0;
  for (double x : g.v)
    v += x * x;
  for (double x : g.tau)
    tau += x * x;
  return v + tau / h;
}

}  // namespace

void TieGradient::prepare(const Model& model, const StepOptions& options, StepRecord& record,
                          const StepMemory& memory) {
  model_ = &model;
  options_ = &options;
  record_ = &record;
  memory_ = &memory;
  exact_->prepare(model, options, record, memory);
}

void TieGradient::vjp(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set) {
  StepRecord& r = *record_;
  const StepOptions& options = *options_;
  const double h = options.constraints.timestep;
  const Labels found{r.solution.modes, r.solution.facets};
  const auto take = [&r](const Labels& labels) {
    r.solution.modes = labels.modes;
    r.solution.facets = labels.facets;
  };

  // The modes as they are found; either cotangent may be the one returned.
  exact_->vjp(dq1, dv1, out, set);
  StepCotangent candidate;
  candidate.parameter_set = out.parameter_set;
  candidate.wants_fext = out.wants_fext;
  Labels best = found;

  // Other modes are kept if their gradient is larger. current: the linearisation is that of `best`.
  bool current = true;
  const auto try_labels = [&](const Labels& flipped) {
    take(flipped);
    exact_->prepare(*model_, options, r, *memory_);
    exact_->vjp(dq1, dv1, candidate, set);
    current = size(candidate, h) > size(out, h);
    if (!current) return;
    std::swap(out, candidate);
    best = flipped;
  };

  // All blocks of a list change sides together.
  const double tie_margin = options.gradient.tie_margin;
  const auto try_flip = [&](const std::vector<int>& blocks) {
    Labels flipped = best;
    Labels parted = best;
    bool parts = false;
    for (int b : blocks) {
      flip(r, b, flipped);
      if (!may_part(r, b, best.modes[b], tie_margin)) continue;
      parted.modes[b] = Mode::separating;
      parts = true;
    }
    try_labels(flipped);
    if (parts && !(parted == flipped)) {
      try_labels(parted);
    }
  };

  // All the ties between two bodies together (four corners slide as one) ...
  std::vector<std::vector<int>> groups;
  std::vector<int> ties;
  for (int b = 0; b < r.rows.num_blocks; ++b)
    if (r.solution.margin[b] < tie_margin) {
      ties.push_back(b);
    }
  for (std::size_t i = 0; i < r.rows.body_rows.size(); ++i) {
    const BodyRows& first = r.rows.body_rows[i];
    std::vector<int> group;
    bool seen = false;
    for (const BodyRows& b : r.rows.body_rows) {
      if (b.body_a != first.body_a || b.body_b != first.body_b ||
          !std::binary_search(ties.begin(), ties.end(), b.block))
        continue;
      seen = seen || (&b < &first);
      group.push_back(b.block);
    }
    if (group.size() > 1 && !seen) {
      groups.push_back(group);
    }
  }
  for (const auto& group : groups) {
    try_flip(group);

    // Redundant points that share unequally stick and slide side by side: all of them may as well slide, or stick.
    for (const Mode mode : {Mode::sticking, Mode::sliding}) {
      std::vector<int> alike;
      for (int b : group)
        if (best.modes[b] == mode) {
          alike.push_back(b);
        }
      if (!alike.empty() && alike.size() < group.size()) {
        try_flip(alike);
      }
    }
  }

  // ... then one by one.
  for (int b : ties)
    try_flip({b});
  if (best == found && current) return;

  // The record stays what the step found.
  take(found);
  exact_->prepare(*model_, options, r, *memory_);
}

}  // namespace coulomb
