// assemble_problems: from constraint rows to the problem of each island in factored form, Y = J U_hat^T (docs/theory.md
// (D16): products along root paths, without a solve), and g = J v_free + beta.
#pragma once

#include <vector>

#include "coulomb/constraints/islands.hpp"
#include "coulomb/solvers/delassus.hpp"

namespace coulomb {

struct AssemblyWorkspace {
  explicit AssemblyWorkspace(const Model& model);
  int path_ld = 0;                ///< longest root path, padded
  std::vector<double> body_rows;  ///< num_bodies x 6 x path_ld: sum over path dofs of J_d (x) u_row_d
  std::vector<unsigned char> body_done;
  std::vector<double> twist_free;  ///< nv x 8
  std::vector<double> g;           ///< of all rows
  std::vector<double*> Y_of;       ///< by island
  DelassusScratch delassus;
};

/// Fills the problems of all islands from the rows and the free velocity. After Islands::find. dense: with G, whatever their size.
void assemble_problems(const Model& model, const DynamicsWorkspace& dynamics, const ConstraintRows& rows,
                       const double* v_free, bool dense, AssemblyWorkspace& workspace, Islands& islands);

}  // namespace coulomb
