// Storage of a ConstraintProblem: grows only, so that a step with fewer contacts allocates nothing.
#include "coulomb/solvers/constraint_problem.hpp"

#include <algorithm>
#include <limits>

namespace coulomb {

void ConstraintProblem::resize(int rows) {
  n = rows;
  ld = (rows + 7) & ~7;
  has_G = false;
  least_velocity = 0;
  speed = std::numeric_limits<double>::infinity();
  if (g.size() < static_cast<std::size_t>(ld)) {
    g.resize(ld);
  }
  if (R.size() < static_cast<std::size_t>(ld)) {
    R.resize(ld);
  }
  std::fill(g.begin(), g.begin() + ld, 0.0);
  std::fill(R.begin(), R.begin() + ld, 0.0);
  blocks.clear();
}

void ConstraintProblem::resize_matrix() {
  const std::size_t size = static_cast<std::size_t>(ld) * static_cast<std::size_t>(n);
  if (G.size() < size) G.resize(size);
  std::fill(G.begin(), G.begin() + static_cast<std::ptrdiff_t>(size), 0.0);
  has_G = true;
}

}  // namespace coulomb
