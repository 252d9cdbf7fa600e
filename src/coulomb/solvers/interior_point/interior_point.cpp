// The interior-point method on all blocks: Newton steps towards the centre, and the linear system behind them. Start reading at resume().
#include "coulomb/solvers/interior_point/interior_point.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/linalg/dense.hpp"

namespace coulomb {
namespace {

constexpr double first_size = 0.01;  // of y, in sizes of g
constexpr double smoothing = 0.003;  // theta of De Saxce's term, in gaps
constexpr double to_boundary = 0.99;
constexpr double least_centring = 1e-4;
constexpr double short_step = 0.1;
// The gap must not outrun the residual, or cones reach the boundary before they fit.
constexpr double gap_per_residual = 0.003;
constexpr int frozen_steps = 4;  // without the turning of De Saxce's term, after a short step

template <class Vector>
void grow(Vector& v, std::size_t size) {
  if (v.size() < size) v.resize(size);
}

}  // namespace

void InteriorPoint::resize(const ScaledProblem& problem) {
  const auto ld = static_cast<std::size_t>(problem.ld);
  const auto blocks = static_cast<std::size_t>(problem.num_blocks);
  has_sides_ = problem.has_pyramids;
  for (Unknowns* unknowns : {&at_, &step_, &affine_}) {
    for (auto* v : {&unknowns->lambda, &unknowns->y, &unknowns->m})
      grow(*v, ld);
    if (has_sides_) grow(unknowns->side, max_sides * blocks);
  }
  for (auto* v : {&c_, &residual_})
    grow(*v, ld);
  grow(slope_, max_tangents * blocks);
  grow(scaling_, blocks);
  grow(weight_, blocks);
}

// x = e, y = the size of the velocities: well inside, and no memory of anything.
void InteriorPoint::start(const ScaledProblem& problem, double relative_size) {
  resize(problem);
  std::fill(weight_.begin(), weight_.end(), 1.0);

  // The size of the velocities that have to be reached.
  double size = 0;
  for (int i = 0; i < problem.n; ++i)
    size = std::max(size, std::abs(problem.g[i]));
  if (!(size > 0)) size = 1;
  size *= relative_size;

  // Every block in the middle of its sets.
  for (auto* v : {&at_.lambda, &at_.y, &at_.m})
    std::fill_n(v->begin(), problem.ld, 0.0);
  pairs_ = 0;
  theta_ = size;
  for (int b = 0; b < problem.num_blocks; ++b)
    start_block(problem, b, size);
}

double InteriorPoint::gap(const ScaledProblem& problem) const { return gap_after(problem, 0); }

/// The mean product of the pairs after a step along (dlambda, dy, dm, dside).
double InteriorPoint::gap_after(const ScaledProblem& problem, double step) const {
  double sum = 0;
  for (int b = 0; b < problem.num_blocks; ++b)
    add_gap(problem, b, step, sum);
  return pairs_ > 0 ? sum / pairs_ : 0;
}

/// c, what y lacks of fitting it, and the scaling of every cone.
void InteriorPoint::evaluate(const ScaledProblem& problem, bool frozen) {
  problem.velocity(at_.lambda.data(), c_.data());

  worst_residual_ = 0;
  for (int b = 0; b < problem.num_blocks; ++b) {
    const Block& block = problem.blocks[b];
    const int row = block.row;
    find_residual(problem, b, frozen);
    if (block.type == BlockType::cone && block.mu > 0) scale_cone(block, scaling_[b]);
    for (int i = row; i < row + block.size; ++i)
      worst_residual_ = std::max(worst_residual_, std::abs(residual_[i]));
  }
}

bool InteriorPoint::factorise(const ScaledProblem& problem) {
  D_.resize(problem.blocks, problem.num_blocks);
  for (int b = 0; b < problem.num_blocks; ++b)
    local_matrix(problem, b, D_[b]);

  // In velocities: K = (R + E + D)^-1.
  if (problem.factored) {
    K_.resize(problem.blocks, problem.num_blocks);
    for (int b = 0; b < problem.num_blocks; ++b) {
      const Block& block = problem.blocks[b];
      std::copy_n(D_[b], block.size * block.size, K_[b]);
      for (int i = 0; i < block.size; ++i)
        K_[b][i * block.size + i] += problem.rigid[block.row + i] + problem.E[block.row + i];
      if (!invert_small(K_[b], block.size)) return false;
    }
    return velocities_.factorise(problem.Y, problem.blocks, K_);
  }

  // In contact space: G + E + D, dense.
  const auto ld = static_cast<std::size_t>(problem.ld);
  const auto n = static_cast<std::size_t>(problem.n);
  grow(A_, ld * n);
  grow(pivot_, n);
  grow(work_, 2 * ld);
  std::copy_n(problem.G.begin(), ld * n, A_.begin());
  for (int b = 0; b < problem.num_blocks; ++b) {
    const Block& block = problem.blocks[b];
    for (int i = 0; i < block.size; ++i)
      for (int j = 0; j < block.size; ++j)
        A_[(block.row + i) * ld + block.row + j] += D_[b][i * block.size + j];
  }
  return dense::lu(A_.data(), problem.n, problem.ld, pivot_.data(), work_.data()) > 0;
}

/// out = K x.
void InteriorPoint::weigh(const ScaledProblem& problem, const double* x, double* out) const {
  for (int b = 0; b < problem.num_blocks; ++b) {
    const Block& block = problem.blocks[b];
    const double* K = K_[b];
    for (int i = 0; i < block.size; ++i) {
      double sum = 0;
      for (int j = 0; j < block.size; ++j)
        sum += K[i * block.size + j] * x[block.row + j];
      out[block.row + i] = sum;
    }
  }
}

/// change = K (r - Y H^-1 Y^T K r): the system's solution in velocities, docs/theory.md (C11).
void InteriorPoint::solve_in_velocities(const ScaledProblem& problem, const double* r, double* change) {
  weigh(problem, r, weighted_.data());
  problem.Y.times_transposed(weighted_.data(), w_.data());
  velocities_.solve(w_.data(), 1, 1);

  std::fill_n(weighted_.begin(), problem.ld, 0.0);
  problem.Y.add_times(w_.data(), weighted_.data());
  for (int i = 0; i < problem.n; ++i)
    weighted_[i] = r[i] - weighted_[i];
  weigh(problem, weighted_.data(), change);
}

/// dc = (Y Y^T + R + E) dlambda.
void InteriorPoint::find_velocity_change(const ScaledProblem& problem) {
  problem.Y.times_transposed(step_.lambda.data(), w_.data());
  std::fill_n(dc_.begin(), problem.ld, 0.0);
  problem.Y.add_times(w_.data(), dc_.data());
  for (int i = 0; i < problem.n; ++i)
    dc_[i] += (problem.rigid[i] + problem.E[i]) * step_.lambda[i];
}

/// out = asked - D dlambda: dc, as the system has it.
void InteriorPoint::take_local_part(const ScaledProblem& problem, const double* asked, double* out) const {
  for (int b = 0; b < problem.num_blocks; ++b) {
    const Block& block = problem.blocks[b];
    const double* D = D_[b];
    for (int i = 0; i < block.size; ++i) {
      double left = asked[block.row + i];
      for (int j = 0; j < block.size; ++j)
        left -= D[i * block.size + j] * step_.lambda[block.row + j];
      out[block.row + i] = left;
    }
  }
}

void InteriorPoint::solve_direction(const ScaledProblem& problem, double target, bool corrected) {
  for (auto* v : {&asked_, &dc_})
    grow(*v, static_cast<std::size_t>(problem.ld));

  // What the step has to bring, block by block, and the impulses that do.
  for (int b = 0; b < problem.num_blocks; ++b)
    right_hand_side(problem, b, weight_[b] * target, corrected, asked_.data() + problem.blocks[b].row);

  if (!problem.factored) {
    std::copy_n(asked_.begin(), problem.n, step_.lambda.begin());
    dense::lu_solve(A_.data(), problem.n, problem.ld, pivot_.data(), step_.lambda.data());
    take_local_part(problem, asked_.data(), dc_.data());
  } else {
    for (auto* v : {&weighted_, &rest_, &change_})
      grow(*v, static_cast<std::size_t>(problem.ld));
    grow(w_, static_cast<std::size_t>(problem.Y.columns()));
    solve_in_velocities(problem, asked_.data(), step_.lambda.data());

    // Once more for what rounding has left; D is large and small at a time near the boundary.
    find_velocity_change(problem);
    take_local_part(problem, asked_.data(), rest_.data());
    for (int i = 0; i < problem.n; ++i)
      rest_[i] -= dc_[i];
    solve_in_velocities(problem, rest_.data(), change_.data());
    for (int i = 0; i < problem.n; ++i)
      step_.lambda[i] += change_[i];

    // dc itself, since asked - D dlambda has lost its digits: then y fits lambda to rounding.
    find_velocity_change(problem);
  }

  // The rest of the unknowns follows the impulses.
  for (int b = 0; b < problem.num_blocks; ++b)
    expand(problem, b, weight_[b] * target, corrected);
}

double InteriorPoint::longest_step(const ScaledProblem& problem) const {
  double step = INFINITY;
  for (int b = 0; b < problem.num_blocks; ++b)
    step = std::min(step, longest_step_of(problem, b));
  return step;
}

/// A step along the direction.
void InteriorPoint::move(const ScaledProblem& problem, double step) {
  correct_slip(problem, step);
  const auto add = [&](const std::vector<double>& d, std::vector<double>& x) {
    for (std::size_t i = 0; i < x.size() && i < d.size(); ++i)
      x[i] += step * d[i];
  };
  add(step_.lambda, at_.lambda);
  add(step_.y, at_.y);
  add(step_.m, at_.m);
  if (has_sides_) add(step_.side, at_.side);
}

bool InteriorPoint::solve(const ScaledProblem& problem, const Options& options, Iterate& iterate, int& iterations) {
  start(problem, first_size);
  return resume(problem, options, iterate, iterations);
}

/// The step without centring, and the share of the gap to aim at after it [Mehrotra1992]. False: no finite step.
bool InteriorPoint::predict(const ScaledProblem& problem, double mean, double& centring) {
  solve_direction(problem, 0, false);
  const double affine = std::min(1.0, longest_step(problem));
  if (!std::isfinite(affine)) return false;

  const double ratio = pairs_ > 0 ? gap_after(problem, affine) / mean : 0;
  centring = std::max(least_centring, ratio * ratio * ratio);
  centring = std::max(centring, std::min(1.0, gap_per_residual * worst_residual_ / std::max(mean, 1e-300)));
  return true;
}

void InteriorPoint::keep_predictor(const ScaledProblem& problem) {
  std::swap(affine_.lambda, step_.lambda);
  std::swap(affine_.y, step_.y);
  std::swap(affine_.m, step_.m);
  if (has_sides_) std::swap(affine_.side, step_.side);
  std::fill_n(step_.y.begin(), problem.ld, 0.0);
  std::fill_n(step_.m.begin(), problem.ld, 0.0);
}

bool InteriorPoint::resume(const ScaledProblem& problem, const Options& options, Iterate& iterate, int& iterations) {
  for (auto* v : {&step_.lambda, &step_.y, &step_.m})
    std::fill(v->begin(), v->end(), 0.0);
  bool reached = false;
  int frozen = 0;
  double mean = gap(problem);
  double last_step = 1;
  std::copy_n(at_.lambda.begin(), problem.ld, iterate.lambda.begin());

  for (int it = 0; it < options.max_iterations; ++it) {
    // De Saxce's term sharpens with the gap.
    ++iterations;
    set_smoothing(problem, smoothing * mean);
    mean = gap(problem);

    // Near enough, or not going anywhere.
    evaluate(problem, frozen > 0);
    if (frozen > 0) --frozen;
    if (!std::isfinite(mean) || !std::isfinite(worst_residual_)) break;
    std::copy_n(at_.lambda.begin(), problem.ld, iterate.lambda.begin());
    reached = mean < options.gap && worst_residual_ < options.residual;
    if (reached) break;
    if (!factorise(problem)) break;

    // The predictor: where the step without centring would lead says how much centring is needed.
    double centring = 0;
    if (!predict(problem, mean, centring)) break;

    // The corrector: towards that centre, with the predictor's second-order term.
    keep_predictor(problem);
    solve_direction(problem, centring * mean, true);
    double step = std::min(1.0, to_boundary * longest_step(problem));

    // Stuck at the boundary: towards the centre, and for some steps without the turning of De Saxce's term.
    if (step < short_step) {
      solve_direction(problem, 0.8 * mean, false);
      step = std::min(1.0, to_boundary * longest_step(problem));
      if (frozen == 0 && last_step >= short_step) frozen = frozen_steps;
    }
    last_step = step;
    if (!std::isfinite(step)) break;
    move(problem, step);
    mean = gap(problem);
  }
  iterate.evaluate(problem);
  if (!std::isfinite(iterate.residual)) iterate.clear(problem);
  return reached;
}

}  // namespace coulomb
