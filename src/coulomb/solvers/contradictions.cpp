// What the levels could not reduce: rows that contradict one another, docs/theory.md (C13), (C15), or whose numbers are too far apart to tell. They give
// way, and are named.
#include <algorithm>
#include <cmath>

#include "coulomb/solvers/solver_work.hpp"

namespace coulomb {
namespace {

constexpr double contradiction = 3e-4;  // of what a constraint asked: what contradictory ones leave
constexpr double relaxed_compliance = 1e-3;
constexpr double least_compliance = 1e-14;  // less is rounding beside the scaled diagonal
constexpr double large_share = 1e-3;        // of the largest impulse
constexpr double too_fast = 1e3;            // of the velocities at hand

}  // namespace

/// Rows whose violation is as large after the last proximal step as before, docs/theory.md (C13): nothing can satisfy them together, or only
/// impulses that are too large for the compliance at hand. Larger impulses are looked for until it is known.
void ConstraintSolver::Work::find_contradictions(const ConstraintProblem& problem, SolverResult& result) {
  if (result.status != SolveStatus::solved || result.levels == 0) return;
  for (int b = 0; b < scaled_.num_blocks; ++b)
    if (is_persistent(scaled_.blocks[b])) result.contradictory.push_back(b);
  if (!result.contradictory.empty()) {
    const Verdict verdict = judge_contradiction(problem, result);
    if (verdict == Verdict::contradictory) {
      result.scale_ratio = 0;
      return relax(result);
    }

    // Those that hold are none, and of others nothing is known.
    if (verdict == Verdict::badly_scaled) std::swap(result.badly_scaled, result.contradictory);
    result.contradictory.clear();
  }

  // Impulses so large that velocities are their rounding solve nothing.
  if (result.badly_scaled.empty() && last_.residual > tolerable) {
    cancellation_.assign(problem, scaled_.inverse_root.data(), last_.lambda.data());
    result.scale_ratio = cancellation_.ratio();
    collect_largest(result.badly_scaled);
  }
  if (result.badly_scaled.empty()) {
    result.scale_ratio = 0;
    return;
  }
  relax(result);
}

/// The blocks with the impulses that the others are rounding of.
void ConstraintSolver::Work::collect_largest(std::vector<int>& blocks) const {
  double largest = 0;
  for (int i = 0; i < scaled_.n; ++i)
    largest = std::max(largest, std::abs(last_.lambda[i]));

  blocks.clear();
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    const double* impulse = last_.lambda.data() + scaled_.blocks[b].row;
    const auto large = [&](double x) { return std::abs(x) > large_share * largest; };
    if (std::any_of(impulse, impulse + scaled_.blocks[b].size, large)) blocks.push_back(b);
  }
}

/// (C13) for a block: the last level left of what it lacks as much as there was.
bool ConstraintSolver::Work::is_persistent(const Block& block) const {
  if (block.type == BlockType::box) return false;
  const int begin = block.is_contact() ? block.row + 2 : block.row;
  for (int i = begin; i < block.row + block.size; ++i) {
    const double before = previous_.c[i];  // -E times the step of the level before
    const double after = scaled_.E[i] * (last_.lambda[i] - previous_.lambda[i]);
    if (std::abs(after) > contradiction && std::abs(after) > persistent * std::abs(before)) return true;
  }
  return false;
}

/// The impulses grow along a direction. If that moves nothing, the constraints contradict one another; else they arrive, at smaller
/// compliances, where rounding does not come first.
ConstraintSolver::Work::Verdict ConstraintSolver::Work::judge_contradiction(const ConstraintProblem& problem,
                                                                            SolverResult& result) {
  double compliance = result.compliance * std::pow(result.sharpening, result.sharper_levels);
  double reached = exact_residual();
  double before = reached;
  searches_ = 0;  // Newton's method from the level below is enough
  for (bool first = true; reached > tolerable || (reached > good && reached <= 0.5 * before); first = false) {
    // What impulses of any size leave as it is.
    const auto persists = [&](const Block& block) { return is_persistent(block); };
    if (std::any_of(scaled_.blocks, scaled_.blocks + scaled_.num_blocks, persists)) {
      for (int i = 0; i < scaled_.n; ++i)
        trial_.lambda[i] = last_.lambda[i] - previous_.lambda[i];
      cancellation_.assign(problem, scaled_.inverse_root.data(), trial_.lambda.data());
      if (first) result.scale_ratio = cancellation_.ratio();
      if (cancellation_.complete()) return Verdict::contradictory;
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
  if (reached > tolerable) return Verdict::badly_scaled;

  // Rows that all but exclude one another are satisfied at speeds that nobody asked for.
  const auto fast = [](double velocity) { return std::abs(velocity) > too_fast; };
  const bool flees = std::any_of(exact_.begin(), exact_.begin() + scaled_.n, fast);
  return flees ? Verdict::contradictory : Verdict::solved;
}

/// Level 0 alone with a compliance that keeps impulses finite, from impulses that lack the same velocities.
void ConstraintSolver::Work::relax(SolverResult& result) {
  scaled_.set_compliance(relaxed_compliance);
  newton_.forget_factor();
  for (int i = 0; i < scaled_.n; ++i)
    first_.lambda[i] *= result.compliance / relaxed_compliance;
  first_.evaluate(scaled_);
  result.compliance = relaxed_compliance;
  result.relaxation = relaxed_compliance;
  result.levels = 0;
  result.sharper_levels = 0;
  searches_ = most_searches;
  std::fill_n(previous_.lambda.begin(), scaled_.ld, 0.0);
  const bool solved = solve_level(nullptr, first_, result);
  result.status = solved ? SolveStatus::relaxed : SolveStatus::failed;
  last_.copy(first_, scaled_.ld);
  find_exact_velocity();
}

}  // namespace coulomb
