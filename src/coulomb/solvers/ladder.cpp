// The ladder of algorithms: cheap and usually sufficient first, each rung keeping the best iterate.
//   0 AC-LM from the warm start, or from two Gauss-Seidel sweeps where there is none
//   1 Gauss-Seidel sweeps, AC-LM   2 AC-LM from zero, strongly damped   3 ADMM handing over to AC-LM
//   4 compliance homotopy         5 ADMM with the full budget    6 relaxed by the smallest compliance that solves   7 failed
#include <algorithm>
#include <cmath>

#include "coulomb/solvers/constraint_solver.hpp"

namespace coulomb {
namespace {

constexpr double canonical_compliance = 1e-6;          // relative to G, centred at zero: makes the impulses unique
constexpr double canonical_path[] = {1, 1e3, 3e1, 1};  // of it: at once, or where Newton cycles from larger ones down
constexpr double stalled =
    10;  // tolerances: where redundant contacts contradict each other by rounding, steps end there
constexpr double large_pivot = 1e-2;      // no magnified proximal term gets here
constexpr double unique_pivot = 1e-6;     // pivots above this: the impulses are unique
constexpr double vanishing_pivot = 1e-8;  // of an undamped LU
constexpr double corner = 1e-8;           // lambda_N and c_N both below: a tie
constexpr double exact = 1e-13;           // a residual that no further step improves
constexpr double rounding = 1e-15;
constexpr double classes_held = 1e-8;  // a first step of the right classes leaves its proximal term only

double norm(const std::vector<double>& v, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += v[i] * v[i];
  return std::sqrt(sum);
}

void copy(const Iterate& from, Iterate& to, int ld) {
  std::copy(from.lambda.begin(), from.lambda.begin() + ld, to.lambda.begin());
  std::copy(from.c.begin(), from.c.begin() + ld, to.c.begin());
  to.residual = from.residual;
}

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

void zero(const ScaledProblem& problem, Iterate& iterate) {
  std::fill(iterate.lambda.begin(), iterate.lambda.begin() + problem.ld, 0.0);
  iterate.evaluate(problem);
}

}  // namespace

void ConstraintSolver::keep_if_better(const Iterate& candidate) {
  if (candidate.residual < best_.residual) copy(candidate, best_, scaled_.ld);
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
  if (!std::isfinite(start_.residual)) zero(scaled_, start_);
  copy(start_, best_, scaled_.ld);
}

bool ConstraintSolver::newton(Iterate& iterate, double kappa, double delta_max, int max_iterations) {
  NewtonOptions options;
  options.tolerance = tolerance_;
  options.kappa = kappa;
  options.delta_max = delta_max;
  options.max_iterations = max_iterations;
  return newton_.solve(scaled_, options, iterate, iterations_);
}

bool ConstraintSolver::admm(const Iterate& from, int budget, int first_milestone) {
  admm_.start(scaled_, from);
  for (int done = 0, chunk = first_milestone; done < budget; done += chunk, chunk = std::min(done, budget - done)) {
    if (admm_.run(scaled_, chunk, tolerance_, trial_, iterations_) || newton(trial_, 0.01, 0.03, 12)) {
      copy(trial_, best_, scaled_.ld);
      return true;
    }
    keep_if_better(trial_);
    if (budget - done <= chunk) break;
  }
  return false;
}

bool ConstraintSolver::homotopy() {
  zero(scaled_, trial_);
  for (double d = 1; d > 1e-7; d *= 0.3) {
    scaled_.set_shift(d);
    trial_.evaluate(scaled_);
    newton(trial_, 0.1, 1, 15);
  }
  scaled_.set_shift(0);
  trial_.evaluate(scaled_);
  const bool solved = newton(trial_, 0.01, 0.03, 25);
  keep_if_better(trial_);
  return solved;
}

// Impulses that grow as the inverse of the compliance, with a velocity that does not vanish, against g.
bool ConstraintSolver::is_infeasible() {
  copy(best_, trial_, scaled_.ld);
  double size[3];
  bool solved = true;
  const double shift[3] = {1e-3, 1e-5, 1e-7};
  for (int i = 0; i < 3 && solved; ++i) {
    scaled_.set_shift(shift[i]);
    trial_.evaluate(scaled_);
    solved = newton(trial_, shift[i], shift[i], 25);  // a larger proximal term than the compliance would only creep
    size[i] = norm(trial_.lambda, scaled_.n);
    if (i == 1) solved = solved && size[1] > 10 * size[0];
  }
  double work = 0;
  for (int i = 0; i < scaled_.n; ++i) work += scaled_.g[i] * trial_.lambda[i];
  scaled_.set_shift(0);
  return solved && size[2] > 50 * size[1] && size[2] * shift[2] > 1e-6 && work < 0;
}

void ConstraintSolver::relax(SolverResult& result, bool infeasible) {
  result.rung = 6;
  for (double shift : {1e-8, 1e-6, 1e-4, 1e-2, 1.0, 1e2}) {
    if (infeasible && shift < 1e-5) continue;  // impulses of the order of 1 / shift help nobody
    scaled_.set_compliance(shift * scaled_.typical);
    copy(best_, trial_, scaled_.ld);
    trial_.evaluate(scaled_);
    if (!std::isfinite(trial_.residual)) zero(scaled_, trial_);
    bool solved = newton(trial_, shift, shift, 25);
    for (double kappa : {0.1, 0.3}) {
      if (solved) break;
      zero(scaled_, trial_);
      solved = newton(trial_, kappa, 1, 40);
    }
    if (!solved && shift > 1e-5) {
      zero(scaled_, start_);
      solved = admm(start_, 300, 30);
      if (solved) copy(best_, trial_, scaled_.ld);
    }
    if (!solved) continue;
    copy(trial_, best_, scaled_.ld);
    result.relaxation = shift * scaled_.typical;
    result.status = infeasible ? SolveStatus::infeasible : SolveStatus::relaxed;
    return;
  }
  scaled_.set_shift(0);
  best_.evaluate(scaled_);
  result.rung = 7;
  result.status = infeasible ? SolveStatus::infeasible : SolveStatus::failed;
}

// Two sweeps find most modes of a problem without memory (three times fewer Newton steps than from zero on robots that stand).
bool ConstraintSolver::sweep_and_solve(int sweeps, int max_iterations) {
  copy(start_, trial_, scaled_.ld);
  sweep_pgs(scaled_, sweeps, tolerance_, trial_, iterations_);
  if (!std::isfinite(trial_.residual)) zero(scaled_, trial_);
  const bool solved = newton(trial_, 0.01, 0.03, max_iterations);
  keep_if_better(trial_);
  return solved;
}

bool ConstraintSolver::climb(const SolverSettings& settings, const WarmStart* warm, SolverResult& result) {
  bool remembered = false;
  for (int b = 0; warm != nullptr && b < scaled_.num_blocks; ++b) remembered = remembered || warm->known[b];
  result.classes_hit = remembered;
  if (best_.residual <= tolerance_) return true;
  NewtonOptions options;
  options.tolerance = tolerance_;
  if (!remembered && sweep_and_solve(2, 12)) return true;
  if (remembered) {
    options.undamped_first = true;
    options.known = warm->mode.empty() ? nullptr : warm->known.data();  // impulses alone are a warm start too
    options.modes = warm->mode.data();
  }
  const bool solved = newton_.solve(scaled_, options, best_, iterations_);
  result.classes_hit = remembered && newton_.first_residual <= std::max(tolerance_, classes_held);
  if (solved) return true;

  result.rung = 1;
  if (sweep_and_solve(4, 25)) return true;
  if (best_.residual <=
      stalled * tolerance_) {  // no further step helps: contradictions of that size only drive impulses up
    tolerance_ *= stalled;
    return true;
  }

  if (settings.last_rung < 2) {
    result.status = SolveStatus::max_iterations;
    return false;
  }

  if (is_infeasible()) {
    if (settings.last_rung <= 2) result.status = SolveStatus::infeasible;
    else relax(result, true);
    return false;
  }
  result.rung = 2;
  zero(scaled_, trial_);
  const bool damped = newton(trial_, 0.3, 1, 40);
  keep_if_better(trial_);
  if (damped) return true;
  if (settings.last_rung <= 2) {
    result.status = SolveStatus::max_iterations;
    return false;
  }

  result.rung = 3;
  if (scaled_.has_pyramids) {  // Newton's steps between sides and vertices can go round in circles
    if (sweep_and_solve(100, 25)) return true;
    copy(start_, trial_, scaled_.ld);
    const bool found = dantzig_.solve(scaled_, tolerance_, settings.max_iterations, trial_, iterations_) ||
                       newton(trial_, 0.01, 0.03, 25);
    keep_if_better(trial_);
    if (found) return true;
  }
  if (admm(start_, std::min(300, settings.max_iterations), 30)) return true;
  result.rung = 4;
  if (homotopy()) return true;
  result.rung = 5;
  zero(scaled_, start_);
  if (settings.max_iterations > 300 && admm(start_, settings.max_iterations, 500)) return true;
  relax(result, false);
  return false;
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
    solved = dantzig_.solve(scaled_, tolerance_, settings.max_iterations, best_, iterations_) ||
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
  copy(best_, trial_, scaled_.ld);
  NewtonOptions options;
  options.tolerance = exact;
  options.kappa = 0.01;
  options.undamped_first = true;
  options.stall_below = 1e-11;
  bool found = false;
  options.max_iterations = 5;
  for (double factor : canonical_path) {
    scaled_.set_compliance(factor * canonical_compliance * scaled_.typical);
    trial_.evaluate(scaled_);
    newton_.solve(scaled_, options, trial_, iterations_);
    found = factor == 1 && trial_.residual <= 1e-10;
    if (found) break;
    options.max_iterations = 10;
  }
  scaled_.set_shift(0);
  trial_.evaluate(scaled_);
  options.kappa = 1e-4;
  options.max_iterations = 10;
  newton_.solve(scaled_, options, trial_, iterations_);
  result.canonical = found && trial_.residual <= tolerance_ && canonical_.centre(scaled_, tolerance_, trial_);
  if (trial_.residual <= tolerance_) copy(trial_, best_, scaled_.ld);
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
