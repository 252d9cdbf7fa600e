// Gaussian elimination with complete pivoting: which rows and columns carry the rank of a square matrix.
#pragma once

namespace coulomb::dense {

/// Eliminates A (n x n, row major, ld a multiple of 8; overwritten) until all that is left is at most `threshold` times the first pivot.
/// Returns the rank; rows and columns (n each): the original indices in the order of the pivots, then the dependent ones.
int complete_pivoting(double* A, int n, int ld, double threshold, int* rows, int* columns);

}  // namespace coulomb::dense
