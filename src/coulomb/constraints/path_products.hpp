// Products along root paths, eight dofs at a time: a six-vector per row against the Jacobian columns of a path, and the change of the
// generalised force of one path with the dofs of another. What makes derivatives of constraint rows dense along paths.
#pragma once

namespace coulomb {

/// The dofs of a body's root path.
struct Path {
  const int* dof;
  int length;
};

/// s[row * ld + d] += J_d . G[row] + rate_d . e[row] for the path's dofs d and `rows` rows. columns, rates: rows of 8.
void add_path_rows(const double* columns, const double* rates, Path path, int rows, const double G[][6], const double e[][6], double* s,
                   int ld);

/// r_T[k * ld + d] += J_d . (M J_k) for k on `by`, d on `on`.
void add_path_forces(const double* columns, Path by, Path on, const double M[6][6], double* r_T, int ld);

}  // namespace coulomb
