// Methods that users ask for by name, each by itself, on the problem without compliance: Newton's, PGS, ADMM, pivoting.
#include <algorithm>
#include <cmath>

#include "coulomb/solvers/solver_work.hpp"

namespace coulomb {
namespace {

constexpr double exact = 1e-13;  // a residual that no further step improves

}  // namespace

void ConstraintSolver::Work::solve_single_method(const SolverSettings& settings, const WarmStart* warm,
                                                 SolverResult& result) {
  static const std::vector<double> none;
  load(warm ? warm->lambda : none, warm, first_);
  bool solved = first_.residual <= tolerance_;

  if (!solved && settings.method == SolverMethod::ac_lm) {
    NewtonOptions options;
    options.tolerance = tolerance_;
    options.max_iterations = std::min(settings.max_iterations, 100);
    solved = newton_.solve(scaled_, options, first_, iterations_);
  }
  if (!solved && settings.method == SolverMethod::pgs)
    solved = sweep_pgs(scaled_, settings.max_iterations, tolerance_, first_, iterations_);
  if (!solved && settings.method == SolverMethod::admm) {
    admm_.start(scaled_, first_);
    solved = admm_.run(scaled_, settings.max_iterations, tolerance_, first_, iterations_);
  }
  if (!solved && settings.method == SolverMethod::dantzig) {
    solved = dantzig_.solve(scaled_, tolerance_, first_, iterations_);
    if (!solved && BlockDantzig::suits(scaled_)) {
      NewtonOptions options;
      options.tolerance = tolerance_;
      options.kappa = 0.01;
      options.max_iterations = 25;
      solved = newton_.solve(scaled_, options, first_, iterations_);
    }
  }

  // Where numbers overflowed there is no iterate to keep.
  if (!std::isfinite(first_.residual)) {
    first_.clear(scaled_);
    solved = false;
  }

  // What is left may be less than one more step takes out.
  if (first_.residual > exact) {
    NewtonOptions options;
    options.tolerance = exact;
    options.max_iterations = 1;
    options.undamped_first = true;
    newton_.solve(scaled_, options, first_, iterations_);
  }
  solved = solved || first_.residual <= tolerance_;
  last_.copy(first_, scaled_.ld);
  find_exact_velocity();
  if (!solved) result.status = SolveStatus::max_iterations;
}

}  // namespace coulomb
