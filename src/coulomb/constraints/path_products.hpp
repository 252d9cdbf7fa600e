// Products along root paths, eight dofs at a time: a six-vector per row times the Jacobian columns of a path, and the
// change of the generalised force of one path with the dofs of another. They make the derivatives of constraint rows
// dense along paths.
#pragma once

namespace coulomb {

/// The dofs of a body's root path. Outputs along it count them from `first`.
struct Path {
  const int* dof;
  int length;
  int first = 0;
};

/// Covectors of `count` rows: on the Jacobian columns and on their rates.
struct RowCovectors {
  int count;
  const double (*G)[6];
  const double (*e)[6];
};

/// s[row * ld + d - first] += J_d . G[row] + rate_d . e[row] for the path's dofs d. columns, rates: rows of 8.
void add_path_rows(const double* columns, const double* rates, Path path, const RowCovectors& rows, double* s, int ld);

/// The root path of a tree's dof `last`: the Jacobian columns of all the tree's dofs side by side (6 x ld), and who moves whom
/// (DynamicsWorkspace::streams, ancestors). Dofs count from the tree's first.
struct TreePath {
  const double* columns;
  const unsigned char* ancestors;
  int ld;
  int last;
};

/// Rows of a matrix, of which `width` columns from here on exist.
struct PathTarget {
  double* data;
  int ld;
  int width;
};

/// r_T[k * ld + d] += J_d . (M J_k) for k on the path `by`, d on the path `on`. Columns that other dofs of on's tree have, and up to
/// seven behind them, are touched: zero is added.
void add_path_forces(const TreePath& by, const TreePath& on, const double M[6][6], const PathTarget& r_T);

/// rows (6 x ld, entries along a path) += J (x) u, a path of `length` entries; ld and `rows` hold whole blocks of 8.
void add_path_outer(const double J[6], const double* u, int length, double* rows, int ld);

/// out[d - first] += sum_i e_i rows[i][k] for the path's dofs d = dof[k].
void add_path_row(const double e[6], const double* rows, int ld, Path path, double* out);

}  // namespace coulomb
