// What surrounds the methods: the start, the canonical one of several solutions, a last step that takes out what is left, the result.
#include "coulomb/solvers/constraint_solver.hpp"

#include <algorithm>
#include <cmath>

namespace coulomb {
namespace {

constexpr double canonical_compliance = 1e-6;          // relative to G, centred at zero: makes the impulses unique
constexpr double least_compliance = 1e-8;              // where the modes at that one do not hold without it
constexpr double canonical_path[] = {1, 1e3, 3e1, 1};  // of it: at once, or where Newton cycles from larger ones down
constexpr double large_pivot = 1e-2;                   // no magnified proximal term gets here
constexpr double unique_pivot = 1e-6;                  // pivots above this: the impulses are unique
constexpr double vanishing_pivot = 1e-8;               // of an undamped LU
constexpr double corner = 1e-8;                        // lambda_N and c_N both below: a tie
constexpr double exact = 1e-13;                        // a residual that no further step improves
constexpr double rounding = 1e-15;

// No impulses, and the velocity without them: numbers that exist when a solution does not, or is too large for a double.
void give_up(const ConstraintProblem& problem, SolverResult& result) {
  result.status = SolveStatus::failed;
  std::fill(result.lambda.begin(), result.lambda.end(), 0.0);
  for (int i = 0; i < problem.n; ++i) result.c[i] = std::isfinite(problem.g[i]) ? problem.g[i] : 0.0;
  std::fill(result.modes.begin(), result.modes.end(), Mode::separating);
  std::fill(result.facets.begin(), result.facets.end(), -1);
  std::fill(result.margin.begin(), result.margin.end(), 0.0);
  result.residual = 1;  // relative: nothing of it is solved
  result.relaxation = 0;
}

}  // namespace

void ConstraintSolver::keep_if_better(const Iterate& candidate) {
  if (candidate.residual < best_.residual) best_.copy(candidate, scaled_.ld);
}

void ConstraintSolver::start(const SolverSettings& settings, const WarmStart* warm) {
  tolerance_ = settings.tolerance;
  iterations_ = 0;
  newton_.pivot_ratio = 1;
  newton_.last_delta = 0;
  for (Iterate* iterate : {&start_, &best_, &trial_}) iterate->resize(scaled_.ld);
  std::fill(start_.lambda.begin(), start_.lambda.begin() + scaled_.ld, 0.0);
  if (warm != nullptr) {
    for (int b = 0; b < scaled_.num_blocks; ++b) {
      if (!warm->known[b]) continue;
      for (int i = scaled_.blocks[b].row; i < scaled_.blocks[b].row + scaled_.blocks[b].size; ++i)
        start_.lambda[i] = warm->lambda[i] / (scaled_.inverse_root[i] * scaled_.ref);
    }
  }
  start_.evaluate(scaled_);
  if (!std::isfinite(start_.residual)) start_.clear(scaled_);
  best_.copy(start_, scaled_.ld);
}

bool ConstraintSolver::run_method(const SolverSettings& settings, const WarmStart* warm, SolverResult& result) {
  bool solved = best_.residual <= tolerance_;
  if (settings.method == SolverMethod::automatic) return climb(settings, warm, result);
  if (!solved && settings.method == SolverMethod::ac_lm)
    solved = newton(best_, 1, 0.03, std::min(settings.max_iterations, 100));
  if (!solved && settings.method == SolverMethod::pgs) {
    solved = sweep_pgs(scaled_, settings.max_iterations, tolerance_, best_, iterations_);
  }
  if (!solved && settings.method == SolverMethod::admm) {
    admm_.start(scaled_, start_);
    solved = admm_.run(scaled_, settings.max_iterations, tolerance_, best_, iterations_);
  }
  if (!solved && settings.method == SolverMethod::dantzig) {
    result.classes_hit = false;
    solved = dantzig_.solve(scaled_, tolerance_, best_, iterations_) ||
             (BlockDantzig::suits(scaled_) && newton(best_, 0.01, 0.03, 25));
  }
  if (!solved) {  // what is left may be less than one more step takes out
    polish_best();
    solved = best_.residual <= tolerance_;
  }
  if (!solved) result.status = SolveStatus::max_iterations;
  return solved;
}

// A small pivot, or a contact that touches without an impulse: the corner of a set of solutions has no small pivot.
bool ConstraintSolver::surely_redundant() const {
  if (newton_.last_delta > 0 && newton_.pivot_ratio < unique_pivot + 1000 * newton_.last_delta) return true;
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    const Block& block = scaled_.blocks[b];
    const int normal = block.row + block.size - 1;
    if (!block.is_contact() && block.type != BlockType::limit) continue;
    if (std::abs(best_.lambda[normal]) < corner && std::abs(best_.c[normal]) < corner) return true;
  }
  return false;
}

// Where impulses are not unique: the limit of a vanishing compliance centred at zero, whatever the start was.
void ConstraintSolver::choose_canonical(SolverResult& result) {
  result.canonical = approach(canonical_compliance) || (scaled_.has_pyramids && approach(least_compliance));
}

bool ConstraintSolver::approach(double compliance) {
  trial_.copy(best_, scaled_.ld);
  NewtonOptions options;
  options.tolerance = exact;
  options.kappa = 0.01;
  options.undamped_first = true;
  options.stall_below = 1e-11;
  bool found = false;
  options.max_iterations = 5;
  for (double factor : canonical_path) {
    scaled_.set_compliance(factor * compliance * scaled_.typical);
    trial_.evaluate(scaled_);
    newton_.solve(scaled_, options, trial_, iterations_);
    found = factor == 1 && trial_.residual <= 1e-10;
    if (!found && scaled_.has_pyramids) {  // where Newton's steps go round in circles, Lemke's walk does not
      if (lemke_.solve(scaled_, trial_, iterations_) == BlockLemke::End::solved)
        newton_.solve(scaled_, options, trial_, iterations_);
      found = trial_.residual <= 1e-10;
      break;
    }
    if (found) break;
    options.max_iterations = 10;
  }
  scaled_.set_shift(0);
  trial_.evaluate(scaled_);
  options.kappa = 1e-4;
  options.max_iterations = 10;
  newton_.solve(scaled_, options, trial_, iterations_);
  const bool solved = trial_.residual <= tolerance_;
  found = found && solved && canonical_.centre(scaled_, tolerance_, trial_);
  if (solved) best_.copy(trial_, scaled_.ld);
  return found;
}

// Where modes are linear, what is left is the proximal term, and one more solve takes it out.
double ConstraintSolver::exact_residual() const { return scaled_.has_pyramids ? rounding : exact; }

void ConstraintSolver::polish_best() {
  const double enough = exact_residual();
  if (best_.residual <= enough) return;
  NewtonOptions options;
  options.tolerance = enough;
  options.max_iterations = 1;
  options.undamped_first = true;
  newton_.solve(scaled_, options, best_, iterations_);
}

// The last stage: the canonical one of several solutions, and a residual that no step improves, so that gradients find a point as
// accurate as they need and switching them on changes no bit.
void ConstraintSolver::refine(bool choose, SolverResult& result, SolutionFactor* factor) {
  if (!choose) return polish_best();
  bool redundant = surely_redundant();
  if (!redundant) {
    // LU magnifies the proximal term that fills a vanishing pivot, 1e5 times and more: where something slides, look without it
    const bool unknown = newton_.last_delta == 0;  // the start solved the problem, or a method that takes no such steps
    const bool look = unknown || newton_.pivot_ratio<large_pivot, polish = best_.residual> exact_residual();
    if (look || polish) {
      const bool deficient =
          canonical_.deficient(scaled_, best_, unknown || polish, unknown ? 2 * unique_pivot : vanishing_pivot);
      redundant = look && deficient;
      if (!redundant && !canonical_.polish(scaled_, exact_residual(), best_)) polish_best();
      if (!redundant && factor) canonical_.hand_over(scaled_, best_, *factor);
    }
  }
  if (!redundant) return;
  choose_canonical(result);
  if (!(result.canonical && canonical_.moved)) polish_best();
}

void ConstraintSolver::finish(SolverResult& result) {
  const int ld = scaled_.ld, num_blocks = scaled_.num_blocks;
  if (static_cast<int>(result.lambda.capacity()) < ld) result.lambda.reserve(ld), result.c.reserve(ld);
  if (static_cast<int>(result.modes.capacity()) < num_blocks)
    result.modes.reserve(num_blocks), result.margin.reserve(num_blocks), result.facets.reserve(num_blocks);
  result.lambda.resize(scaled_.n);
  result.c.resize(scaled_.n);
  result.modes.resize(num_blocks);
  result.facets.resize(num_blocks);
  result.margin.resize(num_blocks);
  scaled_.from_scaled(best_.lambda.data(), best_.c.data(), result.lambda.data(), result.c.data());
  for (int b = 0; b < num_blocks; ++b)
    result.margin[b] = scaled_.margin(b, best_.lambda.data(), best_.c.data(), result.modes[b], &result.facets[b]);
  result.residual = best_.residual;
  result.iterations = iterations_;
}

void ConstraintSolver::solve(const ConstraintProblem& problem, const SolverSettings& settings, const WarmStart* warm,
                             SolverResult& result, SolutionFactor* factor) {
  result.status = SolveStatus::solved;
  result.relaxation = 0;
  result.rung = 0;
  result.canonical = true;
  result.classes_hit = false;
  if (factor) factor->valid = false;
  scaled_.assign(problem);
  start(settings, warm);
  if (!std::isfinite(best_.residual)) {  // not a problem at all: bad numbers in G or g
    finish(result);
    give_up(problem, result);
    return;
  }
  const bool solved = run_method(settings, warm, result);
  refine(solved && settings.canonical, result, solved ? factor : nullptr);
  finish(result);
  const auto finite = [](double x) { return std::isfinite(x); };
  if (!std::all_of(result.lambda.begin(), result.lambda.end(), finite) ||
      !std::all_of(result.c.begin(), result.c.end(), finite))
    give_up(problem, result);  // solved in scaled variables, but not representable
}

bool ConstraintSolver::solve_compliant(const ConstraintProblem& problem, double compliance, SolverResult& result) {
  scaled_.assign(problem);
  scaled_.set_compliance(compliance * scaled_.typical);
  for (Iterate* iterate : {&start_, &best_, &trial_}) iterate->resize(scaled_.ld);
  scaled_.to_scaled(result.lambda.data(), best_.lambda.data());
  best_.evaluate(scaled_);
  iterations_ = 0;
  NewtonOptions options;
  options.tolerance = 1e-16;
  options.kappa = 1e-4;
  options.undamped_first = true;
  options.stall_below = 1e-13;
  newton_.solve(scaled_, options, best_, iterations_);
  result.relaxation = compliance * scaled_.typical;
  finish(result);
  return best_.residual <= 1e-12;
}

}  // namespace coulomb
