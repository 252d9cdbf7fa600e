// Solves with the two triangles of a factor: one vector by blocks of four rows, many columns by tiles that stay in registers, large
// triangles by blocks of rows. dense.hpp says which triangles a factor has.
#pragma once

namespace coulomb::dense {

/// T(i, k) = T[i * row_stride + k * column_stride]; one of the strides is 1. unit: its diagonal is 1, whatever is stored there.
struct Triangle {
  const double* T;
  long row_stride;
  long column_stride;
  bool unit;
};

/// The lower triangle first, then the upper one.
struct Triangles {
  Triangle lower;
  Triangle upper;
};

inline Triangles triangles_of_cholesky(const double* U, int ld) { return {{U, 1, ld, false}, {U, ld, 1, false}}; }
inline Triangles triangles_of_lu(const double* LU, int ld) { return {{LU, ld, 1, true}, {LU, ld, 1, false}}; }
inline Triangles triangles_of_transposed_lu(const double* LU, int ld) {
  return {{LU, 1, ld, false}, {LU, 1, ld, true}};
}

void solve_vector(const Triangles& factor, int n, double* x);
void solve_columns(const Triangles& factor, int n, double* X, int ldx, int cols);

}  // namespace coulomb::dense
