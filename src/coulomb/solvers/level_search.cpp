// How one level is solved: Newton's method from what is remembered, then the interior-point method and its paths; and the proximal
// step from one level to the next. constraint_solver.cpp decides which levels there are.
#include <algorithm>
#include <cmath>

#include "coulomb/solvers/solver_work.hpp"

namespace coulomb {
namespace {

constexpr double classes_held = 1e-8;  // a first step of the right modes leaves no more
constexpr double stalls = 1e-10;       // near a solution a step takes most of this, or it is rounding
constexpr double near_rho = 3e-3;      // over the compliance: reads modes off velocities, near a solution
constexpr double nearly = 1e-4;        // a residual from which Newton's method may still get there
constexpr double handed_over = 1e-7;   // from here on modes are read off velocities
constexpr double close = 1e-7;         // of a tie whose modes all contradict themselves
constexpr int path_iterations = 300;
constexpr double impulse_rounding = 4e-15;  // of the largest impulse: residuals are not known better

}  // namespace

/// Velocities of last_ without the compliance, from those of its level: c - E (lambda - previous). The next level starts from them.
void ConstraintSolver::Work::find_exact_velocity() {
  for (int i = 0; i < scaled_.ld; ++i)
    exact_[i] = last_.c[i] + (i < scaled_.n ? scaled_.E[i] * (previous_.lambda[i] - last_.lambda[i]) : 0.0);
}

double ConstraintSolver::Work::exact_residual() { return scaled_.residual(last_.lambda.data(), exact_.data()); }

/// Residuals smaller than what rounding makes of large impulses say nothing.
double ConstraintSolver::Work::reachable(const Iterate& iterate, double tolerance) const {
  double largest = 0;
  for (int i = 0; i < scaled_.n; ++i)
    largest = std::max(largest, std::abs(iterate.lambda[i]));
  return std::max(tolerance, impulse_rounding * largest);
}

/// Level 0. A: Newton's method from memory, B: the interior-point method, C: for pyramids, Lemke's. Impulses of redundant contacts are known to what is left of
/// the velocities over the compliance, so both end with steps that read modes off velocities and leave nothing but rounding.
bool ConstraintSolver::Work::solve_level(const WarmStart* warm, Iterate& iterate, SolverResult& result) {
  const double rho = near_rho / result.compliance;
  newton_from_memory(warm, iterate, result);
  best_.copy(iterate, scaled_.ld);
  if (iterate.residual <= nearly && newton_near(iterate, rho, 8)) return true;
  if (newton_near(iterate, 300, 8)) {
    newton_near(iterate, rho, 4);
    return true;
  }

  // The interior-point method starts from nothing.
  if (searches_ == 0) return false;
  result.interior_point = true;
  trial_.clear(scaled_);
  if (interior(trial_, result.compliance)) {
    iterate.copy(trial_, scaled_.ld);
    return true;
  }
  if (trial_.residual < iterate.residual) {
    iterate.copy(trial_, scaled_.ld);
  }
  if (iterate.residual <= reachable(iterate, std::max(tolerance_, close))) return true;

  // Pivoting takes time, but with a compliance it always ends at a solution of pyramids.
  if (!scaled_.has_pyramids || scaled_.factored) return false;
  lemke_.solve(scaled_, trial_, iterations_);
  if (!(newton_near(trial_, rho, 8) || newton_near(trial_, 300, 8))) return false;
  iterate.copy(trial_, scaled_.ld);
  return true;
}

/// Newton's method with the modes that the step before ended with.
void ConstraintSolver::Work::newton_from_memory(const WarmStart* warm, Iterate& iterate, SolverResult& result) {
  bool remembered = false;
  for (int b = 0; warm && b < scaled_.num_blocks; ++b)
    remembered = remembered || warm->known[b];
  result.classes_hit = remembered;

  // A proximal term tied to the residual, but none in the first step from memory: its modes are likely to hold.
  NewtonOptions options;
  options.tolerance = handed_over;
  options.least_damping = 0;
  options.kappa = 1e-2;
  options.max_iterations = 10;
  if (remembered) {
    options.undamped_first = true;
    options.known = warm->mode.empty() ? nullptr : warm->known.data();  // impulses alone are a warm start too
    options.modes = warm->mode.data();
  }
  if (iterate.residual <= handed_over) return;
  newton_.solve(scaled_, options, iterate, iterations_);
  result.classes_hit =
      remembered && (newton_.first_held || newton_.first_residual <= std::max(tolerance_, classes_held));
}

/// Newton's method with modes read off rho times the velocities; residuals are of rho = 1 again afterwards.
bool ConstraintSolver::Work::newton_near(Iterate& iterate, double rho, int max_iterations) {
  NewtonOptions options;
  options.tolerance = reachable(iterate, exact) * rho;
  options.start_tolerance = floor_ * rho;  // a step converges quadratically and ends far below its own tolerance
  options.least_damping = 0;
  options.kappa = 0;  // a proximal term larger than the compliance would only creep along what the compliance decides
  options.max_iterations = max_iterations;
  options.stall_below = stalls * rho;
  scaled_.rho = rho;
  iterate.judge(scaled_);
  options.reuse_steps = newton_.has_factor() ? 6 : 0;
  newton_.solve(scaled_, options, iterate, iterations_);

  // The last factor once more: what is left are digits. Where it gains none, that is how well residuals are known here.
  if (iterate.residual <= options.tolerance && iterate.residual > floor_ * rho && newton_.has_factor()) {
    const double before = iterate.residual;
    options.tolerance = rounding * rho;
    options.start_tolerance = 0;
    options.reuse_steps = 3;
    options.only_reuse = true;
    newton_.solve(scaled_, options, iterate, iterations_);
    if (!(iterate.residual <= 0.5 * before)) {
      floor_ = std::max(floor_, before / rho);
    }
  }
  scaled_.rho = 1;
  iterate.judge(scaled_);
  return iterate.residual <= reachable(iterate, tolerance_);
}

/// The interior-point method, which is quick, then the paths that it may not follow. False: `iterate` is the best of what they and those
/// before them, in best_, have found.
bool ConstraintSolver::Work::interior(Iterate& iterate, double compliance) {
  for (int i = 0; i < searches_; ++i) {
    if (search(i, iterate, compliance)) return true;
    if (iterate.residual < best_.residual) {
      best_.copy(iterate, scaled_.ld);
    }
  }
  iterate.copy(best_, scaled_.ld);
  return false;
}

/// One of them, and Newton's method from where it ends.
bool ConstraintSolver::Work::search(int number, Iterate& iterate, double compliance) {
  InteriorPoint::Options options;
  bool reached = false;
  if (number == 0) {
    reached = interior_.solve(scaled_, options, iterate, iterations_);
  } else {
    options.max_iterations = path_iterations;
    reached = interior_.follow(scaled_, options, number - 1, iterate, iterations_);
  }
  if (!reached && iterate.residual > nearly) return false;
  if (newton_near(iterate, near_rho / compliance, 8)) return true;

  // Nearer to the boundary the modes are told better.
  options.gap = 1e-12;
  options.residual = 1e-10;
  options.max_iterations = 10;
  interior_.resume(scaled_, options, iterate, iterations_);
  for (const double rho : {near_rho / compliance, 0.1 * near_rho / compliance})
    if (newton_near(iterate, rho, 8)) return true;
  return false;
}

/// One proximal step from last_, which stays where none is found. One that is not usual is not worth much search.
bool ConstraintSolver::Work::sharpen(double compliance, const std::vector<double>* memory, const WarmStart* warm,
                                     bool usual) {
  // The level's own start is the one below, without its compliance.
  scaled_.set_level(last_.lambda.data());
  previous_.copy(last_, scaled_.ld);
  std::copy_n(exact_.begin(), scaled_.ld, previous_.c.begin());
  trial_.copy(previous_, scaled_.ld);
  trial_.judge(scaled_);

  // The same level of the step before may be nearer than the level below.
  if (memory) {
    load(*memory, warm, last_);
    if (last_.residual < trial_.residual) {
      std::swap(last_, trial_);
    }
  }
  best_.copy(trial_, scaled_.ld);

  // What redundant contacts do is told by velocities of the order of the compliance.
  const double rho = near_rho / compliance;
  bool solved = newton_near(trial_, rho, usual ? 12 : 6);
  if (!solved && usual) {
    solved = newton_near(trial_, 300, 12);
  }

  // What a larger compliance leaves is judged by its last level: its other ones need not be exact.
  solved = solved || (softened_ && trial_.residual <= acceptable);
  if (!solved && trial_.residual < best_.residual) {
    best_.copy(trial_, scaled_.ld);
  }
  if (!solved && usual) {
    solved = interior(trial_, compliance) || trial_.residual <= (softened_ ? acceptable : close);
  }
  if (!solved) {
    last_.copy(previous_, scaled_.ld);
    return false;
  }
  last_.copy(trial_, scaled_.ld);
  find_exact_velocity();
  return true;
}

}  // namespace coulomb
