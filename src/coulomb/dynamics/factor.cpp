// docs/theory.md (D16): M + diag = L^T D L with the tree's sparsity (no fill-in: row d of L lives on d's root path), and U = L^-1, which
// has the same pattern: u_rows is U D^(-1/2) packed, u_hat[k][i] = U[i][k] D_k^(-1/2), so (M + diag)^-1 = u_hat^T u_hat. An ancestor's
// row is a prefix of its descendant's, so every inner loop runs over contiguous memory.
#include "coulomb/base/lanes.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/implicit_gains.hpp"

#include <cmath>
#include <limits>

namespace coulomb {
namespace {

/// The blocks of eight up to the one that holds entry `last`.
template <int width>
COULOMB_INLINE void copy_blocks(const double* from, int last, double* to) {
  for (int block = 0; block <= last; block += 8)
    store_lanes(to + block, load_lanes<width>(from + block));
}

/// M + diag = L^T D L: from the leaves to the root every dof is eliminated from its ancestors. False: a pivot is not
/// positive.
///
/// Rows are worked on with a stride of `capacity`, a multiple of 8: the lanes behind a row's own entries fill with numbers nobody
/// reads, and no loop has a remainder.
template <int width>
COULOMB_INLINE bool factor_rows_lanes(const int* __restrict row_start, const int* __restrict path_all, int nv,
                                      const double* __restrict mass, const double* __restrict extra, int capacity,
                                      double* __restrict work, double* __restrict diagonal) {
  bool positive = true;

  // Packed rows run over into their neighbours; with a stride of their own they do not.
  for (int d = 0; d < nv; ++d) {
    const int depth = row_start[d + 1] - row_start[d] - 1;
    copy_blocks<width>(mass + row_start[d], depth, work + d * capacity);
  }

  for (int k = nv - 1; k >= 0; --k) {
    const int depth = row_start[k + 1] - row_start[k] - 1;
    double* row = work + k * capacity;

    // The pivot is complete: all dofs beyond k have been eliminated.
    const int* path = path_all + row_start[k];
    double pivot = row[depth] + (extra ? extra[k] : 0.0);
    if (!(pivot > 0 && pivot <= std::numeric_limits<double>::max())) {
      positive = false;
      pivot = 1e-12;
    }
    diagonal[k] = pivot;

    // Row i of an ancestor loses L_ki times row k. Long rows take several blocks each,
    const double inverse = 1.0 / pivot;
    int i = depth - 1;
    for (; i >= 8; --i) {
      double* target = work + path[i] * capacity;
      const double scale = row[i] * inverse;
      for (int block = 0; block <= i; block += 8)
        store_lanes(target + block, load_lanes<width>(target + block) - scale * load_lanes<width>(row + block));
    }

    // short ones a single one, which is read once.
    const auto first = load_lanes<width>(row);
    for (; i >= 0; --i) {
      double* target = work + path[i] * capacity;
      store_lanes(target, load_lanes<width>(target) - (row[i] * inverse) * first);
    }

    // What is left of row k is its row of L.
    for (int block = 0; block < depth; block += 8)
      store_lanes(row + block, inverse * load_lanes<width>(row + block));
    row[depth] = 1.0;
  }
  return positive;
}

COULOMB_SIMD_BY_WIDTH(bool, factor_rows,
                      (const int* __restrict row_start, const int* __restrict path_all, int nv,
                       const double* __restrict mass, const double* __restrict extra, int capacity,
                       double* __restrict work, double* __restrict diagonal),
                      (row_start, path_all, nv, mass, extra, capacity, work, diagonal))

/// Packs L and computes U D^(-1/2) row by row. `stack` holds the rows of U on the current root path, zero behind their diagonal;
/// `scales` the D^(-1/2) of that path.
template <int width>
COULOMB_INLINE void invert_rows_lanes(const int* __restrict row_start, int nv, const double* __restrict work,
                                      const double* __restrict diagonal, int capacity, double* __restrict stack,
                                      double* __restrict scales, double* __restrict l, double* __restrict u_rows) {
  for (int d = 0; d < nv; ++d) {
    // The row of L as elimination left it.
    const int start = row_start[d];
    const int depth = row_start[d + 1] - start - 1;
    const int own = depth & ~7;
    const double* row = work + d * capacity;
    copy_blocks<width>(row, depth, l + start);

    // D^(-1/2) of this dof, blended into its lane: a scalar store would stall the vector load after it.
    const double scale = 1.0 / std::sqrt(diagonal[d]);
    const auto diagonal_lane = lanes_of_bits<width>(1u << (depth - own));
    store_lanes(scales + own, select(diagonal_lane, broadcast<width>(scale), load_lanes<width>(scales + own)));

    // Row d of U = L^-1, by the rows of its ancestors: U_d = e_d - sum_i L_di U_i.
    double* out = stack + depth * capacity;
    for (int block = 0; block <= own; block += 8) {
      Lanes<width> sum = block == own ? keep(diagonal_lane, broadcast<width>(1.0)) : broadcast<width>(0.0);
      for (int i = block; i < depth; ++i)
        sum -= row[i] * load_lanes<width>(stack + i * capacity + block);
      store_lanes(out + block, sum);
      store_lanes(u_rows + start + block, sum * load_lanes<width>(scales + block));
    }
  }
}

COULOMB_SIMD_BY_WIDTH(void, invert_rows,
                      (const int* __restrict row_start, int nv, const double* __restrict work,
                       const double* __restrict diagonal, int capacity, double* __restrict stack,
                       double* __restrict scales, double* __restrict l, double* __restrict u_rows),
                      (row_start, nv, work, diagonal, capacity, stack, scales, l, u_rows))

}  // namespace

bool factor(const Model& model, const double* extra_diagonal, DynamicsWorkspace& ws) {
  const int* start = model.dof_row.data();
  const int capacity = ws.path_capacity;
  double* work = ws.factor_work.data();
  double* stack = ws.scratch.data();
  const bool positive = factor_rows(start, model.dof_path.data(), model.nv, ws.mass.data(), extra_diagonal, capacity,

                                    work, ws.factor_d.data());
  invert_rows(start, model.nv, work, ws.factor_d.data(), capacity, stack, stack + capacity * capacity,
              ws.factor_l.data(), ws.u_rows.data());
  return positive;
}

bool factor(const Model& model, const JointMatrix& extra, DynamicsWorkspace& ws) {
  if (extra.below.empty()) return factor(model, extra.diagonal.data(), ws);

  // A joint's dofs are neighbours on their root path, so their entries stand side by side. M gets its own numbers back, to the bit.
  const auto at = [&](const JointMatrix::Entry& e) -> double& {
    return ws.mass[model.dof_row[e.row] + model.dof_depth[e.row] - (e.row - e.column)];
  };
  ws.mass_without.clear();
  for (const JointMatrix::Entry& e : extra.below) {
    ws.mass_without.push_back(at(e));
    at(e) += e.value;
  }
  const bool positive = factor(model, extra.diagonal.data(), ws);
  for (std::size_t i = extra.below.size(); i-- > 0;)
    at(extra.below[i]) = ws.mass_without[i];
  return positive;
}

void expand_factor(const Model& model, DynamicsWorkspace& ws) {
  const double* __restrict rows = ws.u_rows.data();
  const int* start = model.dof_row.data();

  const int* path = model.dof_path.data();
  for (const DofBlock& tree : ws.trees) {
    // Row d of U becomes column d of u_hat.
    double* __restrict u_hat = ws.u_hat.data() + tree.matrix;
    for (int d = tree.first; d < tree.first + tree.size; ++d)
      for (int i = start[d]; i < start[d + 1]; ++i)
        u_hat[(path[i] - tree.first) * tree.ld + d - tree.first] = rows[i];
  }
}

void solve_mass(const Model& model, const DynamicsWorkspace& ws, double* __restrict x) {
  const double* __restrict l = ws.factor_l.data();
  const double* __restrict diagonal = ws.factor_d.data();
  const int* __restrict start = model.dof_row.data();

  const int* __restrict path = model.dof_path.data();
  const int nv = model.nv;

  // x = L^-T x
  for (int d = nv - 1; d >= 0; --d) {
    const double value = x[d];
    for (int i = start[d]; i < start[d + 1] - 1; ++i)
      x[path[i]] -= l[i] * value;
  }

  for (int d = 0; d < nv; ++d)
    x[d] /= diagonal[d];

  // x = L^-1 x
  for (int d = 0; d < nv; ++d) {
    double value = x[d];
    for (int i = start[d]; i < start[d + 1] - 1; ++i)
      value -= l[i] * x[path[i]];
    x[d] = value;
  }
}

}  // namespace coulomb
