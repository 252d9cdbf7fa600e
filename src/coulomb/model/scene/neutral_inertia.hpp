// The mass matrix at the neutral configuration, for what is computed once per build: dense and plain.
#pragma once

#include <vector>

#include "coulomb/model.hpp"
#include "coulomb/model/placement.hpp"

namespace coulomb {

/// M = sum_b J_b^T I_b J_b + armature = L^T D L, rows packed along root paths as in Model::dof_row.
struct NeutralInertia {
  explicit NeutralInertia(const Model& model);
  std::vector<Placement> body;   ///< of each body's frame in the world
  std::vector<double> columns;   ///< 6 nv: Jacobian columns (v, w) of every dof about the world's origin
  std::vector<double> diagonal;  ///< nv: of M

  /// Packed: row d holds D_d L_d, its last entry the pivot D_d: what is left to move dof d
  std::vector<double> factor;

  /// x M^-1 x of a row x (nv) that is zero but for the root path of dof `last`. Overwrites that path of x.
  double mobility(const Model& model, int last, double* x) const;
};

}  // namespace coulomb
