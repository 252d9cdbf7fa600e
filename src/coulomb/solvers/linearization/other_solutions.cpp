// A few starts of Newton's method, and whether one of them ends at other velocities.
#include "coulomb/solvers/linearization/other_solutions.hpp"

#include <algorithm>
#include <cmath>

namespace coulomb {
namespace {

constexpr double solved = 1e-10;     // scaled: a residual that is a solution's; that of the solver's level 0
constexpr double same_speed = 1e-6;  // m/s, rad/s, and scaled: velocities that differ by no more are one solution
constexpr double no_slip = 1e-8;     // scaled: what the levels and rounding leave of sticking
constexpr double damping = 1e-2;     // of a step, over the residual, as the solver's first search has it
constexpr double row_bound = 5;      // more than sqrt(3 * 6): a contact has a trace of 3, a weld of 6
constexpr double polygon = 1.5;      // more than sqrt(2): a square around the disc
constexpr double intervals = 2.3;    // more than sqrt(5): a cube of five dimensions around the ball
constexpr double pressing = 1e-2;    // of the largest normal impulse: what presses less may part in another motion
constexpr int most_iterations = 12;  // what takes more seldom arrives

}  // namespace

/// docs/theory.md (C17): where every contact sticks, or parts faster than it slips times mu, others differ by no more than tangential impulses
/// move.
bool OtherSolutions::is_unique(const ScaledProblem& problem, const double* lambda, const double* velocity) {
  double friction = 0;
  double fastest = 0;  // m/s, rad/s of a scaled velocity
  for (int b = 0; b < problem.num_blocks; ++b) {
    const Block& block = problem.blocks[b];
    fastest = std::max(fastest, problem.ref / problem.inverse_root[block.row]);
    if (!block.is_contact()) continue;
    const double* c = velocity + block.row;
    const double* l = lambda + block.row;
    const double section = block.size > 3 ? intervals : polygon;
    const double mu = block.type == BlockType::pyramid ? section * block.mu : block.mu;
    if (mu * tangential_norm(block, c) > std::max(c[2], 0.0) + no_slip) return false;
    friction += tangential_norm(block, l);
  }
  return row_bound * friction * std::min(1.0, fastest) <= same_speed;
}

bool OtherSolutions::finds_another(const ScaledProblem& problem, bool from_modes) {
  NewtonOptions options;
  options.tolerance = solved;
  options.least_damping = 0;
  options.kappa = damping;
  options.max_iterations = most_iterations;
  if (from_modes) {
    options.undamped_first = true;
    options.known = known_.data();
    options.modes = modes_.data();
  }
  int iterations = 0;
  other_.clear(problem);
  newton_.forget_factor();
  if (!newton_.solve(problem, options, other_, iterations)) return false;

  // Bodies move otherwise if some row does: impulses alone may differ where contacts are redundant.
  for (int i = 0; i < problem.n; ++i) {
    const double difference = std::abs(other_.c[i] - solution_.c[i]);
    if (difference > same_speed && difference * problem.ref > same_speed * problem.inverse_root[i]) return true;
  }
  return false;
}

bool OtherSolutions::exist(const ScaledProblem& problem, const double* lambda, const std::vector<int>& groups) {
  solution_.resize(problem.ld);
  other_.resize(problem.ld);
  std::copy_n(lambda, problem.ld, solution_.lambda.begin());
  solution_.evaluate(problem);

  // As a step without memory begins.
  if (finds_another(problem, false)) return true;

  // All contacts stick.
  const int count = problem.num_blocks;
  known_.resize(static_cast<std::size_t>(count));
  modes_.assign(static_cast<std::size_t>(count), Mode::sticking);
  for (int b = 0; b < count; ++b)
    known_[b] = groups[b] >= 0;
  if (finds_another(problem, true)) return true;

  // Those that press stick, and what barely presses, or does not, parts.
  double most = 0;
  const auto normal = [&](int b) { return groups[b] >= 0 ? lambda[problem.blocks[b].row + 2] : 0.0; };
  for (int b = 0; b < count; ++b)
    most = std::max(most, normal(b));
  for (int b = 0; b < count; ++b)
    modes_[b] = normal(b) > pressing * most ? Mode::sticking : Mode::separating;
  if (finds_another(problem, true)) return true;

  // All but those of one pair of bodies.
  for (int b = 0; b < count; ++b) {
    if (groups[b] < 0 || std::find(groups.begin(), groups.begin() + b, groups[b]) != groups.begin() + b) continue;
    for (int other = 0; other < count; ++other)
      modes_[other] = groups[other] == groups[b] ? Mode::separating : Mode::sticking;
    if (finds_another(problem, true)) return true;
  }
  return false;
}

}  // namespace coulomb
