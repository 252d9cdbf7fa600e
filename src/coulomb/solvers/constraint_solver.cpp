// The automatic method: levels and their starts. solve() is the place to start reading; level_search.cpp solves one level, contradictions.cpp
// judges what they leave.
#include "coulomb/solvers/constraint_solver.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/solvers/solver_work.hpp"

namespace coulomb {
namespace {

constexpr double blurred_below = 30;  // compliances: margins of level 0 say nothing
constexpr double label_rho = 1e-3;    // over the compliance: micro-slip of that size is told from sticking
constexpr double sharp = 1e-5;  // an exact residual that calls for more proximal steps than usual, which stop at `good`
// Of these bounds, which follow the motion (range 1e-6 to 1e-4: less is rounding, more lets stacks sway).
constexpr double least_share = 1e-5;
constexpr double good_in_heaps = 3e-6;
constexpr double acceptable_in_large_heaps = 3e-5;
constexpr int large_heap = 300;  // blocks: a search for more costs seconds
// Blocks: smaller heaps are quick around zero, where no memory is in the motion (range 80 to 400: more leaves out piles of 100).
constexpr int least_for_centre = 100;
// With none too much of the memory is in the motion, two cost as much as around zero.
constexpr int levels_around_centre = 1;
// Scaled velocity that the centre adds (range 5e-5 to 5e-4: with 3e-5 piles of 100 mostly have none, with 1e-3 towers of 200 sway).
constexpr double most_of_centre = 1e-4;
constexpr double unsure_below = 10;  // residuals: nearer than that no border is known
constexpr int most_sharper_levels = 5;
constexpr double sharpening = 0.1;         // of the compliance, by one more level
constexpr double gentle_sharpening = 0.3;  // where it was raised this much or more
constexpr double much_larger = 1e3;
constexpr int most_gentle_levels = 12;

// No impulses, and the velocity without them: numbers that exist when a solution does not, or is too large for a double.
void give_up(const ConstraintProblem& problem, SolverResult& result) {
  result.status = SolveStatus::failed;
  std::fill(result.lambda.begin(), result.lambda.end(), 0.0);
  std::fill(result.lambda_0.begin(), result.lambda_0.end(), 0.0);
  std::fill(result.lambda_1.begin(), result.lambda_1.end(), 0.0);
  for (int i = 0; i < problem.n; ++i)
    result.c[i] = std::isfinite(problem.g[i]) ? problem.g[i] : 0.0;
  std::fill(result.modes.begin(), result.modes.end(), Mode::separating);
  std::fill(result.facets.begin(), result.facets.end(), -1);
  std::fill(result.margin.begin(), result.margin.end(), 0.0);
  // Relative: nothing of it is solved.
  result.residual = 1;
  result.exact_residual = 1;
  result.relaxation = 0;
}

template <class Vector>
void grow_to(Vector& v, int capacity, int size) {
  if (static_cast<int>(v.capacity()) < capacity) {
    v.reserve(capacity);
  }
  v.resize(size);
}

/// Is there a block of which something is remembered?
bool remembers(const WarmStart* warm) {
  return warm && std::any_of(warm->known.begin(), warm->known.end(), [](std::uint8_t known) { return known != 0; });
}

bool all_finite(const std::vector<double>& x) {
  return std::all_of(x.begin(), x.end(), [](double value) { return std::isfinite(value); });
}

}  // namespace

ConstraintSolver::ConstraintSolver() : work_(std::make_unique<Work>()) {}
ConstraintSolver::~ConstraintSolver() = default;
ConstraintSolver::ConstraintSolver(ConstraintSolver&& other) noexcept = default;
ConstraintSolver& ConstraintSolver::operator=(ConstraintSolver&& other) noexcept = default;

void ConstraintSolver::solve(const ConstraintProblem& problem, const SolverSettings& settings, const WarmStart* warm,
                             SolverResult& result) {
  work_->solve(problem, settings, warm, result);
}

/// What is not solved from memory is judged without: why is for the problem to say, and a start from nothing may solve it. A single method
/// says no more than that its budget is used up: what it has from memory stays, if nothing solves it, for the next step to go on from.
void ConstraintSolver::Work::solve(const ConstraintProblem& problem, const SolverSettings& settings,
                                   const WarmStart* warm, SolverResult& result) {
  iterations_ = 0;
  from_memory_ = remembers(warm);
  solve_from(warm, problem, settings, result);
  if (result.status == SolveStatus::solved || !from_memory_) return;

  const bool goes_on = settings.method != SolverMethod::automatic && result.status == SolveStatus::max_iterations;
  if (goes_on) {
    unfinished_ = result;
  }
  solve_from(nullptr, problem, settings, result);
  if (goes_on && result.status != SolveStatus::solved) {
    std::swap(result, unfinished_);
    result.iterations = iterations_;
  }
}

void ConstraintSolver::Work::solve_from(const WarmStart* warm, const ConstraintProblem& problem,
                                        const SolverSettings& settings, SolverResult& result) {
  result.status = SolveStatus::solved;
  result.relaxation = 0;
  result.compliance = 0;
  result.levels = result.sharper_levels = 0;
  for (auto* blocks : {&result.contradictory, &result.jammed, &result.unsolved, &result.badly_scaled})
    blocks->clear();
  result.scale_ratio = 0;
  result.classes_hit = false;
  result.interior_point = false;

  // The problem in scaled variables, without memory of factors.
  const bool automatic = settings.method == SolverMethod::automatic;
  tolerance_ = automatic ? std::max(settings.tolerance, exact) : settings.tolerance;
  newton_.forget_factor();
  scaled_.assign(problem);
  for (Iterate* iterate : {&first_, &second_, &last_, &previous_, &trial_, &best_})
    iterate->resize(scaled_.ld);
  for (auto* values : {&exact_, &centre_})
    grow_to(*values, scaled_.ld, scaled_.ld);
  leave_centre();
  std::fill_n(previous_.lambda.begin(), scaled_.ld, 0.0);

  // Not a problem at all: bad numbers in G or g.
  if (!std::all_of(scaled_.g.begin(), scaled_.g.begin() + scaled_.n, [](double x) { return std::isfinite(x); })) {
    trial_.clear(scaled_);
    finish(trial_, trial_, result);
    return give_up(problem, result);
  }
  if (automatic) {
    solve_levels(problem, settings, warm, result);
    if (settings.levels > 0) find_contradictions(problem, settings, result);
  } else {
    solve_single_method(settings, warm, result);
  }
  finish(first_, last_, result);

  // Solved in scaled variables, but not representable.
  const bool representable =
      all_finite(result.lambda) && all_finite(result.c) && all_finite(result.lambda_0) && all_finite(result.lambda_1);
  if (!representable) give_up(problem, result);
}

/// Impulses of the step before, where there are any, in scaled variables.
void ConstraintSolver::Work::load(const std::vector<double>& lambda, const WarmStart* warm, Iterate& iterate) {
  std::fill_n(iterate.lambda.begin(), scaled_.ld, 0.0);
  for (int b = 0; warm && b < scaled_.num_blocks; ++b) {
    if (!warm->known[b]) continue;
    for (int i = scaled_.blocks[b].row; i < scaled_.blocks[b].row + scaled_.blocks[b].size; ++i)
      iterate.lambda[i] = lambda[i] / (scaled_.inverse_root[i] * scaled_.ref);
  }
  iterate.evaluate(scaled_);
  if (!std::isfinite(iterate.residual)) {
    iterate.clear(scaled_);
  }
}

/// Those of level 0.
void ConstraintSolver::Work::load_level_0(const WarmStart* warm, Iterate& iterate) {
  static const std::vector<double> none;
  load(!warm ? none : warm->lambda_0.empty() ? warm->lambda : warm->lambda_0, warm, iterate);
}

/// The path of the compliance as asked may fold where many contacts wedge one another; with a larger one it does not, and more proximal
/// steps then lead to smaller ones. Many paths are the last resort. Before more is tried it is seen whether there is anything to find.
void ConstraintSolver::Work::solve_levels(const ConstraintProblem& problem, const SolverSettings& settings,
                                          const WarmStart* warm, SolverResult& result) {
  struct Attempt {
    double factor;  // of the compliance
    int searches;   // of the interior-point method
  };
  static constexpr int all = most_searches;
  static constexpr Attempt of_few_trees[] = {{1, 1},   {1, 2},    {10, 2},    {100, 2},
                                             {1, all}, {10, all}, {100, all}, {1000, all}};
  static constexpr Attempt of_heaps[] = {{1, 0},   {10, 0},  {100, 0}, {1, 2},   {10, 1},
                                         {100, 1}, {1e3, 1}, {1e4, 1}, {1, all}, {100, all}};
  // Around a centre a larger compliance leaves little to take out again, and many paths of the one that was asked for lead nowhere.
  static constexpr Attempt around_centre[] = {{1, 0}, {10, 0}, {100, 0}, {1e3, 0},   {1e4, 0}, {100, 1},
                                              {1, 2}, {10, 1}, {1e3, 1}, {100, all}, {1, all}};
  find_centre(settings, warm);
  const bool heap = is_heap();
  const Attempt* attempts = centred_ ? around_centre : heap ? of_heaps : of_few_trees;
  const std::size_t count = centred_ ? std::size(around_centre) : heap ? std::size(of_heaps) : std::size(of_few_trees);

  // A heap that needed a larger compliance begins with the next smaller one.
  const double remembered = heap && warm ? warm->compliance / settings.compliance : 1;
  const auto passed_over = [&](const Attempt& attempt) {
    return attempt.searches < all && attempt.factor < 0.05 * remembered;
  };
  const auto attempt_solves = [&](const Attempt& attempt) {
    searches_ = attempt.searches;
    softened_ = heap && attempt.factor > 1;
    return solve_levels_with(problem, attempt.factor * settings.compliance, settings.levels, warm, result);
  };

  // What contradicted itself a step before mostly still does.
  looked_from_above_ = settings.levels == 0;
  verdict_ = Verdict::unknown;
  relaxed_ = false;
  if (warm && warm->contradictory && !looked_from_above_) {
    load_level_0(warm, first_);
    from_memory_ = false;  // a proof holds whatever led to it
    if (look_from_above(problem, warm, result) == Verdict::contradictory) return;

    // Of friction that jams, memory proves nothing: another solution may have come. Impulses that gave way are no start for it.
    warm = nullptr;
    result.jammed.clear();
    result.classes_hit = result.interior_point = false;
    looked_from_above_ = false;
    verdict_ = Verdict::unknown;
    relaxed_ = false;
  }

  // The first attempt that leaves little enough; else the one that left least.
  double enough = good;
  if (heap) enough = scaled_.num_blocks >= large_heap ? acceptable_in_large_heaps : acceptable;
  const Attempt* best = nullptr;
  double least = heap ? tolerable : acceptable;
  bool solved = false;
  for (const Attempt* attempt = attempts; attempt != attempts + count; ++attempt) {
    if (passed_over(*attempt)) continue;

    // Before a search that takes long: what contradicts itself is told by the largest compliance.
    const bool long_search = attempt->searches == (heap ? all : 2);
    if (long_search && !looked_from_above_) {
      first_.clear(scaled_);
      if (look_from_above(problem, nullptr, result) != Verdict::unknown) return;
    }

    // Before the last resorts: the best that there was.
    if (attempt->searches == all && best) {
      if (attempt_solves(*best)) return;
      best = nullptr;
    }
    solved = attempt_solves(*attempt);
    if (!solved) continue;
    if (verdict_ != Verdict::unknown) return;
    if (attempt->factor == 1 || settings.levels == 0) return;
    const double left = exact_residual();
    if (left <= enough || (attempt->searches == all && left <= acceptable)) return;
    if (left <= least) {
      least = left;
      best = attempt;
    }
  }
  if (!solved) result.status = SolveStatus::failed;
}

/// What many contacts share is nearly what they shared a step before: in a large heap level 0 has its compliance around the impulses that are
/// remembered, docs/theory.md (C18), as far as these do not drive the motion. Of rows that gave way there is nothing to begin with.
void ConstraintSolver::Work::find_centre(const SolverSettings& settings, const WarmStart* warm) {
  const bool wanted = settings.centred && settings.levels > 0 && is_heap() && scaled_.num_blocks >= least_for_centre;
  if (!wanted || !from_memory_ || !warm || warm->contradictory || !(warm->compliance > 0)) return;
  scaled_.set_compliance(settings.compliance);
  double largest = 0;
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    if (!warm->known[b]) continue;
    for (int i = scaled_.blocks[b].row; i < scaled_.blocks[b].row + scaled_.blocks[b].size; ++i) {
      centre_[i] = warm->lambda[i] / (scaled_.inverse_root[i] * scaled_.ref);
      largest = std::max(largest, std::abs(scaled_.E[i] * centre_[i]));
    }
  }
  centred_ = largest <= most_of_centre;
  if (!centred_) leave_centre();
}

void ConstraintSolver::Work::leave_centre() {
  centred_ = false;
  std::fill(centre_.begin(), centre_.end(), 0.0);
}

/// Levels 0, 1, ... with this compliance, docs/theory.md (C5), (C6). False: one of them was not found.
bool ConstraintSolver::Work::solve_levels_with(const ConstraintProblem& problem, double compliance, int levels,
                                               const WarmStart* warm, SolverResult& result) {
  result.compliance = compliance;
  result.levels = result.sharper_levels = 0;
  scaled_.set_compliance(compliance);
  newton_.forget_factor();
  floor_ = std::max(3 * rounding, sum_rounding * scaled_.n);

  // Level 0, from what the step before had there, or from its centre.
  if (centred_) {
    scaled_.set_level(centre_.data());
    load(warm->lambda, warm, first_);
    levels = std::min(levels, levels_around_centre);
  } else {
    load_level_0(warm, first_);
  }
  std::copy_n(centre_.begin(), scaled_.ld, previous_.lambda.begin());
  const bool solved = solve_level(warm, first_, result);
  last_.copy(first_, scaled_.ld);
  find_exact_velocity();
  if (!solved) return false;

  // Each level starts from what the step before had there, as far as it is remembered.
  for (; result.levels < levels; ++result.levels) {
    const bool first = result.levels == 0;
    const std::vector<double>* memory = nullptr;
    if (warm) {
      memory = first && !warm->lambda_1.empty() ? &warm->lambda_1 : &warm->lambda;
    }
    if (!sharpen(compliance, memory, warm, true)) return false;
    if (first) second_.copy(last_, scaled_.ld);

    // What grows without end is not worth another level.
    verdict_ = judge_growth(problem, result);
    if (verdict_ != Verdict::unknown) {
      ++result.levels;
      return true;
    }
  }
  if (levels > 0) sharpen_further(problem, result);
  return true;
}

/// The bounds on exact residuals are relative to how fast trees move, if this is known and slower than what is asked. By the scale of the
/// lightest, which sways first.
double ConstraintSolver::Work::share_of_bounds(const ConstraintProblem& problem) const {
  if (scaled_.n == 0 || !std::isfinite(problem.speed)) return 1;
  const double least = *std::min_element(scaled_.inverse_root.begin(), scaled_.inverse_root.begin() + scaled_.n);
  return std::clamp(problem.speed * least / scaled_.ref, least_share, 1.0);
}

/// Badly scaled masses and larger compliances leave more than the usual levels take out; smaller compliances do. What contradicts itself
/// gains nothing by them.
void ConstraintSolver::Work::sharpen_further(const ConstraintProblem& problem, SolverResult& result) {
  left_ = exact_residual();
  const bool larger = result.compliance > SolverSettings().compliance;
  const double share = share_of_bounds(problem);
  const double wanted = (softened_ ? good_in_heaps : good) * share;
  if (!(left_ > (larger ? wanted : sharp * share))) return;

  // Each further level has a smaller compliance, until the exact residual is small or no longer falls.
  double compliance = result.compliance;
  const bool gentle = softened_ && compliance >= much_larger * SolverSettings().compliance;
  result.sharpening = gentle ? gentle_sharpening : sharpening;
  const int most = gentle ? most_gentle_levels : most_sharper_levels;
  while (left_ > wanted && result.sharper_levels < most) {
    compliance *= result.sharpening;
    scaled_.set_compliance(compliance);
    newton_.forget_factor();
    if (!sharpen(compliance, nullptr, nullptr, larger)) return;
    ++result.sharper_levels;
    const double before = left_;
    left_ = exact_residual();
    // Rows that all but depend on one another do not move yet: only what stays after a second one never will.
    if (left_ > persistent * before && result.sharper_levels > 1) return;
  }
}

/// Scaled results to physical ones. Modes are those of level 0, where micro-slip tells what redundant contacts do.
void ConstraintSolver::Work::finish(const Iterate& first, const Iterate& last, SolverResult& result) {
  const int ld = scaled_.ld;
  const int num_blocks = scaled_.num_blocks;
  for (auto* values : {&result.lambda, &result.lambda_0, &result.lambda_1, &result.c})
    grow_to(*values, ld, scaled_.n);
  grow_to(result.modes, num_blocks, num_blocks);
  grow_to(result.margin, num_blocks, num_blocks);
  grow_to(result.facets, num_blocks, num_blocks);

  // Labels magnify velocities to tell micro-slip from sticking.
  result.residual = last.residual;
  scaled_.rho = result.compliance > 0 ? std::max(1.0, label_rho / result.compliance) : 1;
  for (int b = 0; b < num_blocks; ++b)
    result.margin[b] = scaled_.margin(b, first.lambda.data(), first.c.data(), result.modes[b], &result.facets[b]);
  scaled_.rho = 1;

  // A border further than the compliance is as far as the problem's own scale says. Nor does level 0 know borders any better than its
  // compliance: nearer ones are the last level's.
  for (int b = 0; b < num_blocks; ++b) {
    double& margin = result.margin[b];
    Mode mode;
    const double natural = scaled_.margin(b, first.lambda.data(), first.c.data(), mode);
    const bool blurred = margin < blurred_below * result.compliance;
    if (mode == result.modes[b] && natural >= blurred_below * result.compliance) {
      margin = natural;
    }
    if (blurred) {
      margin = std::min(margin, scaled_.margin(b, last.lambda.data(), last.c.data(), mode));
    }
    if (std::isnan(margin)) margin = 0;  // of a friction whose square is no double
  }

  // Nor where its residual is not rounding, as in ties that no modes solve. Heaps that were softened are judged by their last level.
  const double solved_to = std::max(first.residual, last.residual);
  const bool tied = result.compliance > 0 && !softened_ && solved_to > tolerance_;
  for (int b = 0; tied && b < num_blocks; ++b)
    if (result.margin[b] < unsure_below * solved_to) {
      result.margin[b] = 0;
    }

  // Impulses and velocities, and the levels that the next step starts from.
  result.exact_residual = scaled_.residual(last.lambda.data(), exact_.data());
  scaled_.from_scaled(last.lambda.data(), exact_.data(), result.lambda.data(), result.c.data());
  grow_to(result.centre, scaled_.num_blocks >= least_for_centre ? ld : 0, centred_ ? scaled_.n : 0);
  for (std::size_t i = 0; i < result.centre.size(); ++i)
    result.centre[i] = centre_[i] * scaled_.inverse_root[i] * scaled_.ref;
  const Iterate& second = result.levels > 0 ? second_ : last;
  for (int i = 0; i < scaled_.n; ++i) {
    result.lambda_0[i] = first.lambda[i] * scaled_.inverse_root[i] * scaled_.ref;
    result.lambda_1[i] = second.lambda[i] * scaled_.inverse_root[i] * scaled_.ref;
  }
  result.iterations = iterations_;
}

}  // namespace coulomb
