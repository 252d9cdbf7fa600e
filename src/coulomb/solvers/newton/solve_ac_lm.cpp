// AC-LM. Every step solves (A + delta D)(x - x_old) = -(A x_old + B g) with the matrix A of the current modes, docs/theory.md (C10);
// delta falls with the residual, so the last steps are Newton's and the first ones cannot run away along null spaces of A.
#include <algorithm>
#include <cmath>

#include "coulomb/solvers/friction_pyramid.hpp"
#include "coulomb/solvers/newton/newton.hpp"

namespace coulomb {
namespace {

constexpr double tie = 1e-7;  // of a remembered impulse beside a border
constexpr double slow = 0.1;  // of the residual: an old factor that leaves more is worth no further step
constexpr double diverges = 10;
constexpr int patience = 12;  // steps without lowering the best residual by a third

bool possible(const Block& block, Mode mode) {
  switch (block.type) {
    case BlockType::cone:
    case BlockType::pyramid:
      return mode == Mode::separating || mode == Mode::sliding || (mode == Mode::sticking && block.mu > 0);
    case BlockType::limit: return mode == Mode::separating || mode == Mode::active;
    case BlockType::box:
      return mode == Mode::lower || mode == Mode::upper || (mode == Mode::sticking && block.bound > 0);
    default: return mode == Mode::active;
  }
}

}  // namespace

void Iterate::resize(int ld) {
  if (static_cast<int>(lambda.size()) >= ld) return;
  lambda.resize(static_cast<std::size_t>(ld));
  c.resize(static_cast<std::size_t>(ld));
}

void Iterate::evaluate(const ScaledProblem& problem) {
  problem.velocity(lambda.data(), c.data());
  judge(problem);
}

void Iterate::judge(const ScaledProblem& problem) { residual = problem.residual(lambda.data(), c.data()); }

void Iterate::copy(const Iterate& from, int ld) {
  std::copy_n(from.lambda.begin(), ld, lambda.begin());
  std::copy_n(from.c.begin(), ld, c.begin());
  residual = from.residual;
}

void Iterate::clear(const ScaledProblem& problem) {
  std::fill_n(lambda.begin(), problem.ld, 0.0);
  evaluate(problem);
}

/// The mode that a block had at the impulse at hand, as far as it says so.
void NewtonSolver::recall(const ScaledProblem& problem, int b, Mode remembered) {
  const Block& block = problem.blocks[b];
  if (!possible(block, remembered)) return;
  const double* l = current_.lambda.data() + block.row;

  if (block.type == BlockType::pyramid && block.mu > 0) {
    // a tie between sticking and a side, as redundant contacts have it, takes the side: the regular system
    const bool sticking = remembered == Mode::sticking;
    const bool sliding = remembered == Mode::sliding;
    const int facet = sticking ? facet_at_border(block, tie, l) : sliding ? facet_of_impulse(block, l) : -1;
    if (sliding && facet < 0) return;
    if (facet >= 0) {
      problem.set_facet(b, facet, modes_[b]);
    }
    modes_[b].mode = facet >= 0 ? Mode::sliding : remembered;
    return;
  }

  // A box that sticks at its bound is a tie, too.
  if (block.type == BlockType::box && remembered == Mode::sticking && std::abs(l[0]) >= (1 - tie) * problem.bound[b]) {
    modes_[b].mode = l[0] > 0 ? Mode::upper : Mode::lower;
    return;
  }

  if (block.type == BlockType::cone && remembered == Mode::sliding && block.mu > 0) {
    // the direction of the remembered impulse is surer than that of z, whose c is of another step
    const double t = tangential_norm(block, l);
    if (!(t > 0)) return;
    if (modes_[b].mode != Mode::sliding) {
      modes_[b].k = 1;
    }
    tangential_direction(block, l, t, modes_[b].n);
  }
  modes_[b].mode = remembered;
}

void NewtonSolver::choose_modes(const ScaledProblem& problem, const NewtonOptions& options, bool first) {
  for (int b = 0; b < problem.num_blocks; ++b) {
    modes_[b] = problem.mode(b, current_.lambda.data(), current_.c.data());
    if (first && options.known != nullptr && options.known[b]) {
      recall(problem, b, options.modes[b]);
    }
  }
}

/// A sliding cone's direction turns with every step: no modes hold there.
bool NewtonSolver::holds(const ScaledProblem& problem, const Iterate& at) const {
  for (int b = 0; b < problem.num_blocks; ++b) {
    const BlockMode m = problem.mode(b, at.lambda.data(), at.c.data());
    if (m.mode != modes_[b].mode || m.facet != modes_[b].facet) return false;
    if (m.mode == Mode::sliding && problem.blocks[b].type == BlockType::cone && problem.blocks[b].mu > 0) return false;
  }
  return true;
}

bool NewtonSolver::same_labels(const ScaledProblem& problem) const {
  for (int b = 0; b < problem.num_blocks; ++b)
    if (modes_[b].mode != factor_modes_[b].mode || modes_[b].facet != factor_modes_[b].facet) return false;
  return true;
}

// With an old factor, too, the equations are those of the modes at hand: directions that turn a little do converge.
bool NewtonSolver::step(const ScaledProblem& problem, double delta, bool reuse) {
  if (reuse && !same_labels(problem)) return false;
  if (!reuse) factorised_ = false;
  system_.set_modes(problem, modes_.data());
  if (!reuse) {
    if (system_.size > 0 && !system_.factorise(problem, delta)) return false;
    std::copy_n(modes_.begin(), problem.num_blocks, factor_modes_.begin());
    factorised_ = true;
  }

  system_.step(problem, current_.lambda.data(), current_.c.data(), next_.lambda.data(), next_.c.data(), reuse ? 1 : 2);
  next_.evaluate(problem);
  return std::isfinite(next_.residual);
}

bool NewtonSolver::solve(const ScaledProblem& problem, const NewtonOptions& options, Iterate& iterate,
                         int& iterations) {
  // A start that is good enough needs no step.
  if (options.reuse_steps == 0) factorised_ = false;
  if (iterate.residual <= std::min(options.tolerance, options.start_tolerance)) return true;

  // `iterate` keeps the best impulses, current_ those at hand.
  current_.resize(problem.ld);
  next_.resize(problem.ld);
  if (static_cast<int>(modes_.size()) < problem.num_blocks) {
    modes_.resize(static_cast<std::size_t>(problem.num_blocks));
  }
  if (factor_modes_.size() < modes_.size()) {
    factor_modes_.resize(modes_.size());
  }
  current_.copy(iterate, problem.ld);
  first_residual = iterate.residual;
  first_held = false;

  double boost = 1;
  double reached = iterate.residual;
  int since = 0;
  int reuse_left = factorised_ && reuse_pays_ ? options.reuse_steps : 0;
  for (int it = 0; it < options.max_iterations;) {
    // The proximal term falls with the residual; where the matrix was singular, it grows.
    double delta = std::max(options.least_damping, std::min(options.kappa * current_.residual, options.delta_max));
    if (it == 0 && options.undamped_first) {
      delta = options.least_damping;
    }
    if (boost > 1) {
      delta = std::max(delta, 1e-9);
    }

    // The last factorisation first, as long as it is worth it: such steps are not counted.
    const bool reuse = reuse_left > 0;
    if (!reuse && options.only_reuse) break;
    if (reuse)
      --reuse_left;
    else
      ++iterations;

    // The step; without one, more damping.
    choose_modes(problem, options, it == 0 && !reuse);
    const bool first = it == 0;
    if (!reuse) ++it;
    if (!step(problem, delta * boost, reuse)) {
      reuse_left = 0;
      if (reuse) continue;
      boost *= 100;
      if (boost > 1e12) break;
      continue;
    }

    // How the step with the modes of the warm start went.
    boost = 1;
    if (first) {
      first_residual = next_.residual;
      first_held = options.known != nullptr && holds(problem, next_);
    }

    // An old factor that gains nothing goes; unless there was nothing to gain.
    const bool stalled = !(next_.residual <= 0.5 * current_.residual);
    if (reuse && next_.residual > slow * current_.residual) {
      reuse_left = 0;
    }
    if (reuse && stalled) {
      reuse_pays_ = reuse_pays_ && next_.residual <= diverges * current_.residual;
      if (iterate.residual <= options.tolerance) return true;
      continue;
    }

    // Late steps that do not halve the residual are halved themselves.
    if (stalled && it > 4 && next_.residual > 1e-7) {
      for (int i = 0; i < problem.ld; ++i)
        next_.lambda[i] = 0.5 * (next_.lambda[i] + current_.lambda[i]);
      next_.evaluate(problem);
    }

    // The best iterate is kept; a residual that has stopped falling ends the search.
    std::swap(current_, next_);
    if (current_.residual < iterate.residual) {
      iterate.copy(current_, problem.ld);
      if (iterate.residual <= options.tolerance) return true;
    }
    if (stalled && iterate.residual <= options.stall_below) break;
    if (iterate.residual < 0.7 * reached) {
      reached = iterate.residual;
      since = 0;
    } else if (++since >= patience) {
      break;
    }
  }
  return false;
}

}  // namespace coulomb
