// Is the problem as it was given solved? If not, why: rows that contradict one another, docs/theory.md (C13), (C15), contacts that friction jams (C16), numbers
// that are too far apart to tell, or nothing that is known. Then they give way, and are named.
#include <algorithm>
#include <cmath>

#include "coulomb/solvers/solver_work.hpp"

namespace coulomb {
namespace {

constexpr double relaxed_compliance = 1e-3;
constexpr double least_compliance = 1e-14;  // less is rounding beside the scaled diagonal
constexpr double large_share = 1e-3;        // of the largest impulse
constexpr double too_fast = 1e3;            // of the velocities at hand
constexpr double far_apart = 1e8;           // the ratio of numbers from which on rounding may be what is seen
constexpr double tolerable_far_apart = 1e-3;
constexpr double most_lacking = 0.1;    // of the largest residual: blocks that are named with it
constexpr int searches_from_above = 2;  // the interior-point method, and a path
constexpr int steps_from_above = 8;     // proximal ones: each makes the direction of growth known many times better
constexpr int steps_of_one_size = 3;    // and the others with a tenth of the compliance each

}  // namespace

/// A step is solved if little is left of the problem without compliance. What leaves more is relaxed, and told apart as far as it can be.
void ConstraintSolver::Work::find_contradictions(const ConstraintProblem& problem, const SolverSettings& settings,
                                                 SolverResult& result) {
  Verdict verdict = verdict_;
  if (verdict == Verdict::unknown && result.status == SolveStatus::solved) verdict = judge(problem, result);
  if (verdict == Verdict::solved) {
    result.scale_ratio = 0;
    return;
  }

  // Where numbers are far apart more than usual is rounding.
  const double left = exact_residual();
  const bool lost = verdict == Verdict::unknown && left > tolerable;
  if (lost && left <= tolerable_far_apart && result.status == SolveStatus::solved) {
    cancellation_.assign(problem, scaled_.inverse_root.data(), last_.lambda.data());
    if (cancellation_.ratio() >= far_apart) verdict = Verdict::solved;
  }

  // Impulses that grow where a small compliance has lost its way, or a solution that a larger one leads to.
  if (lost && verdict == Verdict::unknown && !looked_from_above_) verdict = look_from_above(problem, nullptr, result);
  if (lost && verdict == Verdict::unknown) {
    const bool solved = solve_from_above(problem, settings, result);
    verdict = solved ? Verdict::solved : verdict_;
  }
  if (verdict != Verdict::badly_scaled) result.scale_ratio = 0;
  if (verdict == Verdict::solved || (verdict == Verdict::unknown && !lost)) return;

  // It gives way. Where nothing is known, what it lacks then is named.
  if (!relaxed_ && !relax(result)) {
    result.status = SolveStatus::failed;
    return;
  }
  result.status = SolveStatus::relaxed;
  if (verdict == Verdict::unknown) collect_unsolved(result.unsolved);
}

/// What the levels have left, judged by the last two of them. unknown: too much, for no reason that they show, or a search that failed.
ConstraintSolver::Work::Verdict ConstraintSolver::Work::judge(const ConstraintProblem& problem, SolverResult& result) {
  const bool enough = left_ <= tolerable && !any_persistent();
  const Verdict verdict = enough ? Verdict::solved : judge_further(problem, result);

  // Impulses so large that velocities are their rounding solve nothing.
  const bool judged = verdict != Verdict::unknown && verdict != Verdict::solved;
  if (judged || !(last_.residual > tolerable)) return verdict;
  cancellation_.assign(problem, scaled_.inverse_root.data(), last_.lambda.data());
  result.scale_ratio = cancellation_.ratio();
  if (verdict == Verdict::unknown && result.scale_ratio < far_apart) return verdict;
  collect_largest(last_.lambda, result.badly_scaled);
  return Verdict::badly_scaled;
}

/// The impulses grow along the last step, d. If that moves nothing, no size of them satisfies what is asked: by pressures alone, whatever moves, or with friction
/// that pressures hold.
ConstraintSolver::Work::Verdict ConstraintSolver::Work::judge_growth(const ConstraintProblem& problem,
                                                                     SolverResult& result) {
  for (int i = 0; i < scaled_.n; ++i)
    trial_.lambda[i] = last_.lambda[i] - previous_.lambda[i];
  double squared = 0;  // of what a block lacks, as residuals measure it
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    double sum = 0;
    for (int i = scaled_.blocks[b].row; i < scaled_.blocks[b].row + scaled_.blocks[b].size; ++i)
      sum += scaled_.E[i] * trial_.lambda[i] * scaled_.E[i] * trial_.lambda[i];
    squared = std::max(squared, sum);
  }
  if (!(squared > tolerable * tolerable)) return Verdict::unknown;
  cancellation_.assign(problem, scaled_.inverse_root.data(), trial_.lambda.data());
  const bool exactly = cancellation_.complete() && any_persistent();

  // Directions of slip may turn for long while impulses grow: next to nothing is enough, of impulses that the law allows.
  if (!exactly) {
    scaled_.project(trial_.lambda.data());
    cancellation_.assign(problem, scaled_.inverse_root.data(), trial_.lambda.data());
    if (!cancellation_.nearly_complete() || !works_against(problem, trial_.lambda)) return Verdict::unknown;
  }
  collect_largest(trial_.lambda, result.jammed);

  // Without friction.
  for (int b = 0; b < scaled_.num_blocks; ++b)
    for (int k = 0; scaled_.blocks[b].is_contact() && k < scaled_.blocks[b].tangents(); ++k)
      trial_.lambda[scaled_.blocks[b].tangent(k)] = 0;
  cancellation_.assign(problem, scaled_.inverse_root.data(), trial_.lambda.data());
  if (!(exactly ? cancellation_.complete() : cancellation_.nearly_complete())) return Verdict::jammed;

  // Pressures do not turn: where they cancel, more levels show all digits, or that levers and masses are far apart.
  if (exactly) result.contradictory.swap(result.jammed);
  result.jammed.clear();
  return exactly ? Verdict::contradictory : Verdict::unknown;
}

/// Do impulses d work against what is asked, d . g < 0, by more than a residual that is tolerated?
bool ConstraintSolver::Work::works_against(const ConstraintProblem& problem, const std::vector<double>& d) const {
  double work = 0;
  double largest = 0;
  for (int i = 0; i < scaled_.n; ++i) {
    work += d[i] * problem.g[i] * scaled_.inverse_root[i] / scaled_.ref;
    largest = std::max(largest, std::abs(d[i]));
  }
  return work < -tolerable * largest;
}

/// Level 0 with the compliance of relaxed steps, which hardly ever has a fold, and proximal steps of the same size from there: where something can satisfy the rows they
/// do, else they grow along one direction, whose digits each of them adds to. From first_; what is found leaves it relaxed.
ConstraintSolver::Work::Verdict ConstraintSolver::Work::look_from_above(const ConstraintProblem& problem,
                                                                        const WarmStart* warm, SolverResult& result) {
  looked_from_above_ = true;
  scaled_.set_compliance(relaxed_compliance);
  newton_.forget_factor();
  first_.evaluate(scaled_);
  std::fill_n(previous_.lambda.begin(), scaled_.ld, 0.0);
  result.compliance = relaxed_compliance;
  searches_ = searches_from_above;
  softened_ = false;
  bool solved = solve_level(warm, first_, result);
  last_.copy(first_, scaled_.ld);
  find_exact_velocity();

  double compliance = relaxed_compliance;
  for (int i = 0; solved && i < steps_from_above && verdict_ == Verdict::unknown && exact_residual() > tolerable; ++i) {
    if (i >= steps_of_one_size) {
      compliance *= 0.1;
      scaled_.set_compliance(compliance);
      newton_.forget_factor();
    }
    solved = sharpen(compliance, nullptr, nullptr, i < steps_of_one_size);
    if (solved) verdict_ = judge_growth(problem, result);
  }
  relaxed_ = verdict_ != Verdict::unknown;
  if (relaxed_) stay_relaxed(result);
  return verdict_;
}

/// Levels from the compliance of relaxed steps down to that of others.
bool ConstraintSolver::Work::solve_from_above(const ConstraintProblem& problem, const SolverSettings& settings,
                                              SolverResult& result) {
  first_.clear(scaled_);
  searches_ = searches_from_above;
  leave_centre();
  if (!solve_levels_with(problem, relaxed_compliance, settings.levels, nullptr, result)) return false;
  if (verdict_ != Verdict::unknown || !(exact_residual() <= tolerable)) return false;
  result.status = SolveStatus::solved;
  return true;
}

/// The blocks with the impulses that the others are rounding of.
void ConstraintSolver::Work::collect_largest(const std::vector<double>& impulses, std::vector<int>& blocks) const {
  double largest = 0;
  for (int i = 0; i < scaled_.n; ++i)
    largest = std::max(largest, std::abs(impulses[i]));

  blocks.clear();
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    const double* impulse = impulses.data() + scaled_.blocks[b].row;
    const auto large = [&](double x) { return std::abs(x) > large_share * largest; };
    if (std::any_of(impulse, impulse + scaled_.blocks[b].size, large)) blocks.push_back(b);
  }
}

/// Those that lack most.
void ConstraintSolver::Work::collect_unsolved(std::vector<int>& blocks) const {
  const double largest = scaled_.residual(last_.lambda.data(), exact_.data());
  for (int b = 0; b < scaled_.num_blocks; ++b)
    if (scaled_.block_residual(b, last_.lambda.data(), exact_.data()) >= most_lacking * largest) blocks.push_back(b);
}

bool ConstraintSolver::Work::any_persistent() const {
  const auto persists = [&](const Block& block) { return is_persistent(block); };
  return std::any_of(scaled_.blocks, scaled_.blocks + scaled_.num_blocks, persists);
}

/// (C13) for a block: the last level left of what it lacks as much as there was.
bool ConstraintSolver::Work::is_persistent(const Block& block) const {
  if (block.type == BlockType::box) return false;
  const int begin = block.is_contact() ? block.normal() : block.row;
  const int end = block.is_contact() ? begin + 1 : block.row + block.size;
  const double least =
      tolerable / std::sqrt(double(end - begin));  // a block that leaves more than is tolerable has such a row
  for (int i = begin; i < end; ++i) {
    const double before = previous_.c[i];  // -E times the step of the level before
    const double after = scaled_.E[i] * (last_.lambda[i] - previous_.lambda[i]);
    if (std::abs(after) > least && std::abs(after) > persistent * std::abs(before)) return true;
  }
  return false;
}

/// Rows whose violation is as large after the last proximal step as before, (C13), or not much smaller: nothing can satisfy them together, or only impulses that are
/// too large for the compliance at hand. They are looked for at smaller ones, until it is known or rounding comes first.
ConstraintSolver::Work::Verdict ConstraintSolver::Work::judge_further(const ConstraintProblem& problem,
                                                                      SolverResult& result) {
  for (int b = 0; b < scaled_.num_blocks; ++b)
    if (is_persistent(scaled_.blocks[b])) result.badly_scaled.push_back(b);
  if (result.badly_scaled.empty()) collect_unsolved(result.badly_scaled);
  for (int i = 0; i < scaled_.n; ++i)
    trial_.lambda[i] = last_.lambda[i] - previous_.lambda[i];
  cancellation_.assign(problem, scaled_.inverse_root.data(), trial_.lambda.data());
  result.scale_ratio = cancellation_.ratio();

  double compliance = result.compliance * std::pow(result.sharpening, result.sharper_levels);
  double reached = exact_residual();
  double before = reached;
  searches_ = 0;  // Newton's method from the level below is enough
  while (reached > tolerable || (reached > good && reached <= 0.5 * before)) {
    const Verdict verdict = judge_growth(problem, result);
    if (verdict != Verdict::unknown) {
      result.badly_scaled.clear();
      return verdict;
    }

    // One more level, as long as rounding leaves room for it.
    compliance *= result.sharpening;
    if (compliance < least_compliance) break;
    scaled_.set_compliance(compliance);
    newton_.forget_factor();
    if (!sharpen(compliance, nullptr, nullptr, true)) {
      // Less is left all the same, of impulses whose rounding is not much less: the next level begins there.
      last_.copy(trial_, scaled_.ld);
      find_exact_velocity();
      if (!(exact_residual() < reached)) {
        last_.copy(previous_, scaled_.ld);
        std::copy_n(previous_.c.begin(), scaled_.ld, exact_.begin());
        break;
      }
    }
    ++result.sharper_levels;
    before = reached;
    reached = exact_residual();
  }
  if (reached > tolerable && result.scale_ratio >= far_apart) return Verdict::badly_scaled;
  std::swap(result.badly_scaled, result.contradictory);
  result.badly_scaled.clear();
  if (reached <= tolerable) {
    // Rows that all but exclude one another are satisfied at speeds that nobody asked for.
    const auto fast = [](double velocity) { return std::abs(velocity) > too_fast; };
    if (std::any_of(exact_.begin(), exact_.begin() + scaled_.n, fast)) return Verdict::contradictory;
  }
  result.contradictory.clear();
  return reached <= tolerable ? Verdict::solved : Verdict::unknown;
}

/// Level 0 alone with a compliance that keeps impulses finite, from impulses that lack the same velocities.
bool ConstraintSolver::Work::relax(SolverResult& result) {
  for (int i = 0; i < scaled_.n; ++i)
    first_.lambda[i] *= result.compliance / relaxed_compliance;
  scaled_.set_compliance(relaxed_compliance);
  newton_.forget_factor();
  first_.evaluate(scaled_);
  result.compliance = relaxed_compliance;
  searches_ = most_searches;
  std::fill_n(previous_.lambda.begin(), scaled_.ld, 0.0);
  const bool solved = solve_level(nullptr, first_, result);
  stay_relaxed(result);
  return solved;
}

/// Level 0 is the result.
void ConstraintSolver::Work::stay_relaxed(SolverResult& result) {
  leave_centre();
  result.relaxation = relaxed_compliance;
  result.levels = 0;
  result.sharper_levels = 0;
  scaled_.set_compliance(relaxed_compliance);
  std::fill_n(previous_.lambda.begin(), scaled_.ld, 0.0);
  last_.copy(first_, scaled_.ld);
  find_exact_velocity();
}

}  // namespace coulomb
