#include "coulomb/constraints/path_products.hpp"

#include <bit>

#include "coulomb/base/lanes.hpp"

namespace coulomb {
namespace {

constexpr int block = 8;

/// Components of up to eight dofs' vectors side by side (6 x 8), zero behind the path's end.
COULOMB_INLINE void gather(const double* vectors, const int* dof, int count, double* __restrict out) {
  for (int k = 0; k < block; ++k) {
    const double* from = vectors + 8 * dof[k < count ? k : 0];
    const double keep = k < count ? 1.0 : 0.0;
    for (int i = 0; i < 6; ++i)
      out[block * i + k] = keep * from[i];
  }
}

/// x . the six-vectors of eight dofs; streams: their components, rows of ld.
template <int width>
COULOMB_INLINE Lanes<width> combine(const double* x, const double* streams, int ld = block) {
  const auto a = x[0] * load_lanes<width>(streams) + x[1] * load_lanes<width>(streams + ld) +
                 x[2] * load_lanes<width>(streams + 2 * ld);
  streams += 3 * ld;
  const auto b = x[3] * load_lanes<width>(streams) + x[4] * load_lanes<width>(streams + ld) +
                 x[5] * load_lanes<width>(streams + 2 * ld);
  return a + b;
}

/// Adds the lanes to the entries of up to eight dofs.
template <int width>
COULOMB_INLINE void scatter_add(const Lanes<width>& x, const int* dof, int first, int count, double* out) {
  double value[block];
  store_lanes(value, x);
  for (int k = 0; k < count; ++k)
    out[dof[k] - first] += value[k];
}

template <int width>
COULOMB_INLINE void path_rows_lanes(const double* columns, const double* rates, Path path, const RowCovectors& rows,
                                    double* s, int ld) {
  double column[6 * block];
  double rate[6 * block];
  for (int k = 0; k < path.length; k += block) {
    // Eight dofs' columns side by side serve all rows.
    const int* dof = path.dof + k;
    const int count = path.length - k < block ? path.length - k : block;
    gather(columns, dof, count, column);
    gather(rates, dof, count, rate);
    for (int i = 0; i < rows.count; ++i)
      scatter_add(combine<width>(rows.G[i], column) + combine<width>(rows.e[i], rate), dof, path.first, count,
                  s + long(i) * ld);
  }
}

/// The dofs of block `first` that are on the path.
COULOMB_INLINE unsigned path_bits(const TreePath& path, int first) {
  // The last dof itself is none of its ancestors.
  const unsigned own = first == (path.last & ~7) ? 1u << (path.last & 7) : 0u;
  return path.ancestors[(long(path.last) * path.ld + first) >> 3] | own;
}

/// Adds eight entries to a row that may end before them.
template <int width>
COULOMB_INLINE void add_in_row(const Lanes<width>& x, double* row, int width_left) {
  if (width_left >= block) return store_lanes(row, load_lanes<width>(row) + x);
  double value[block];
  store_lanes(value, x);
  for (int i = 0; i < width_left; ++i)
    row[i] += value[i];
}

template <int width>
COULOMB_INLINE void path_forces_lanes(const TreePath& by, const TreePath& on, const double (*M)[6],
                                      const PathTarget& r_T) {
  double wrench[6 * block];
  for (int k = 0; k <= by.last; k += block) {
    unsigned bits = path_bits(by, k);
    if (bits == 0) continue;

    // M J_k for eight dofs k at once.
    for (int i = 0; i < 6; ++i)
      store_lanes(wrench + block * i, combine<width>(M[i], by.columns + k, by.ld));

    // Each of those on the path is a force on the other path's dofs.
    for (; bits != 0; bits &= bits - 1) {
      const int l = std::countr_zero(bits);
      const double f[6] = {wrench[l], wrench[8 + l], wrench[16 + l], wrench[24 + l], wrench[32 + l], wrench[40 + l]};
      double* row = r_T.data + long(k + l) * r_T.ld;
      for (int d = 0; d <= on.last; d += block) {
        const unsigned moved = path_bits(on, d);
        if (moved == 0) continue;
        add_in_row<width>(keep(lanes_of_bits<width>(moved), combine<width>(f, on.columns + d, on.ld)), row + d,
                          r_T.width - d);
      }
    }
  }
}

template <int width>
COULOMB_INLINE void path_outer_lanes(const double* J, const double* u, int length, double* __restrict rows, int ld) {
  for (int k = 0; k < length; k += block) {
    const auto own = keep(lanes_of_bits<width>(bits_below(length - k)), load_lanes<width>(u + k));
    for (int i = 0; i < 6; ++i)
      store_lanes(rows + i * ld + k, load_lanes<width>(rows + i * ld + k) + J[i] * own);
  }
}

template <int width>
COULOMB_INLINE void path_row_lanes(const double* e, const double* rows, int ld, Path path, double* out) {
  for (int k = 0; k < path.length; k += block)
    scatter_add(combine<width>(e, rows + k, ld), path.dof + k, path.first,
                path.length - k < block ? path.length - k : block, out);
}

/// One clone of each for every width of a register.
COULOMB_SIMD_BY_WIDTH(void, path_outer, (const double* J, const double* u, int length, double* rows, int ld),
                      (J, u, length, rows, ld))
COULOMB_SIMD_BY_WIDTH(void, path_row, (const double* e, const double* rows, int ld, Path path, double* out),
                      (e, rows, ld, path, out))
COULOMB_SIMD_BY_WIDTH(void, path_rows,
                      (const double* columns, const double* rates, Path path, const RowCovectors& rows, double* s,
                       int ld),
                      (columns, rates, path, rows, s, ld))
COULOMB_SIMD_BY_WIDTH(void, path_forces,
                      (const TreePath& by, const TreePath& on, const double (*M)[6], const PathTarget& r_T),
                      (by, on, M, r_T))

}  // namespace

void add_path_rows(const double* columns, const double* rates, Path path, const RowCovectors& rows, double* s, int ld) {
  path_rows(columns, rates, path, rows, s, ld);
}

void add_path_forces(const TreePath& by, const TreePath& on, const double M[6][6], const PathTarget& r_T) {
  path_forces(by, on, M, r_T);
}

void add_path_outer(const double J[6], const double* u, int length, double* rows, int ld) {
  path_outer(J, u, length, rows, ld);
}

void add_path_row(const double e[6], const double* rows, int ld, Path path, double* out) {
  path_row(e, rows, ld, path, out);
}

}  // namespace coulomb
