// The ladder of algorithms: cheap and usually sufficient first, each rung keeping the best iterate.
//   0 AC-LM from the warm start, or from two Gauss-Seidel sweeps where there is none
//   1 Gauss-Seidel sweeps, AC-LM   2 Lemke's walk where friction is a pyramid; AC-LM from zero, strongly damped
//   3 Lemke's walk on a polygon around each cone, ADMM, handing over to AC-LM   4 compliance homotopy   5 ADMM with the full budget
//   6 relaxed by the smallest compliance that solves   7 failed
#include <algorithm>
#include <cmath>

#include "coulomb/solvers/constraint_solver.hpp"

namespace coulomb {
namespace {

constexpr double stalled =
    10;  // tolerances: where redundant contacts contradict each other by rounding, steps end there
constexpr double classes_held = 1e-8;  // a first step of the right classes leaves its proximal term only

double norm(const std::vector<double>& v, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += v[i] * v[i];
  return std::sqrt(sum);
}

}  // namespace

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
      best_.copy(trial_, scaled_.ld);
      return true;
    }
    keep_if_better(trial_);
    if (budget - done <= chunk) break;
  }
  return false;
}

// Pivoting, and Newton's method from there, which also takes the walk's rounding out.
BlockLemke::End ConstraintSolver::pivot() {
  BlockLemke::End end = lemke_.solve(scaled_, trial_, iterations_);
  newton_.pivot_ratio = 1, newton_.last_delta = 0;  // nothing is known about this solution
  if (end != BlockLemke::End::solved) return end;
  if (!newton(trial_, 0.01, 0.03, 25)) end = BlockLemke::End::lost;
  keep_if_better(trial_);
  return end;
}

bool ConstraintSolver::homotopy() {
  trial_.clear(scaled_);
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
  trial_.copy(best_, scaled_.ld);
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
    trial_.copy(best_, scaled_.ld);
    trial_.evaluate(scaled_);
    if (!std::isfinite(trial_.residual)) trial_.clear(scaled_);
    bool solved = newton(trial_, shift, shift, 25);
    for (double kappa : {0.1, 0.3}) {
      if (solved) break;
      trial_.clear(scaled_);
      solved = newton(trial_, kappa, 1, 40);
    }
    if (!solved && shift > 1e-5) {
      start_.clear(scaled_);
      solved = admm(start_, 300, 30);
      if (solved) trial_.copy(best_, scaled_.ld);
    }
    if (!solved) continue;
    best_.copy(trial_, scaled_.ld);
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
  trial_.copy(start_, scaled_.ld);
  sweep_pgs(scaled_, sweeps, tolerance_, trial_, iterations_);
  if (!std::isfinite(trial_.residual)) trial_.clear(scaled_);
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
  result.classes_hit =
      remembered && (newton_.first_held || newton_.first_residual <= std::max(tolerance_, classes_held));
  if (solved) return true;

  result.rung = 1;
  if (sweep_and_solve(4, 25)) return true;
  if (accept_stalled()) return true;
  if (settings.last_rung < 2) {
    result.status = SolveStatus::max_iterations;
    return false;
  }
  return climb_on(settings, result);
}

/// No further step helps: contradictions of that size only drive impulses up.
bool ConstraintSolver::accept_stalled() {
  if (!(best_.residual <= stalled * tolerance_)) return false;
  tolerance_ *= stalled;
  return true;
}

bool ConstraintSolver::climb_on(const SolverSettings& settings, SolverResult& result) {
  const auto infeasible = [&] {
    if (settings.last_rung > 2) return relax(result, true), false;
    result.status = SolveStatus::infeasible;
    return false;
  };
  result.rung = 2;
  const bool pyramids = scaled_.has_pyramids;  // Newton's steps between sides and vertices can go round in circles
  const BlockLemke::End end = pyramids ? pivot() : BlockLemke::End::lost;
  if (end == BlockLemke::End::solved || (pyramids && accept_stalled())) return true;
  const bool ray = end == BlockLemke::End::ray;
  if (!ray && is_infeasible()) return infeasible();
  trial_.clear(scaled_);
  const bool damped = newton(trial_, 0.3, 1, 40);
  keep_if_better(trial_);
  if (damped) return true;
  if (ray) return infeasible();
  if (settings.last_rung <= 2) {
    result.status = SolveStatus::max_iterations;
    return false;
  }

  result.rung = 3;
  if (pyramids ? sweep_and_solve(100, 25) : pivot() == BlockLemke::End::solved) return true;
  if (admm(start_, std::min(300, settings.max_iterations), 30)) return true;
  result.rung = 4;
  if (homotopy()) return true;
  result.rung = 5;
  start_.clear(scaled_);
  if (settings.max_iterations > 300 && admm(start_, settings.max_iterations, 500)) return true;
  relax(result, false);
  return false;
}

}  // namespace coulomb
