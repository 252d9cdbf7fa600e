// The Delassus matrix G = Y Y^T, formed from the factor Y of a problem.
#pragma once

#include "coulomb/linalg/dense_kernels.hpp"
#include "coulomb/solvers/constraint_problem.hpp"

namespace coulomb {

/// What form_delassus works with; grows only.
struct DelassusScratch {
  std::vector<double> Yt;         ///< a tree's Y transposed: dofs x padded rows
  std::vector<double> Y, G;       ///< of the rows that move one tree of several
  std::vector<int> block, first;  ///< the blocks of these rows, and where they begin among them
  ProductScratch product;
};

/// Fills problem.G and sets has_G. One tree: one product. Several: for each tree the product of the rows that move it.
void form_delassus(ConstraintProblem& problem, DelassusScratch& scratch);

/// Are the velocities of an island's trees fewer unknowns than its rows, or their matrix so sparse, that systems are solved there (G is then
/// not needed)?
bool prefers_velocities(const ConstraintProblem& problem);

/// G_ii without G.
double delassus_diagonal(const ConstraintProblem& problem, int block, int row_of_block);

}  // namespace coulomb
