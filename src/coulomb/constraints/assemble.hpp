// assemble_problem: from constraint rows to G = Y Y^T and g = J v_free + beta, Y = J U_hat^T (KERNELS "Factor": no solves, only products
// along root paths).
#pragma once

#include <vector>

#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/dense_kernels.hpp"

namespace coulomb {

struct AssemblyWorkspace {
  explicit AssemblyWorkspace(const Model& model);
  int path_ld = 0;                ///< longest root path, padded
  std::vector<double> body_rows;  ///< num_bodies x 6 x path_ld: sum over path dofs of J_d (x) u_row_d
  std::vector<unsigned char> body_done;
  std::vector<double> Y;   ///< rows x ld(nv)
  std::vector<double> Yt;  ///< nv x ld(rows)
  ProductScratch product;
  std::vector<double> twist_free;  ///< nv x 8
};

/// Fills the whole problem from the rows and the free velocity.
void assemble_problem(const Model& model, const DynamicsWorkspace& dynamics, const ConstraintRows& rows,
                      const double* v_free, AssemblyWorkspace& workspace, ConstraintProblem& problem);

}  // namespace coulomb
