// Pair kernel of the inverse-dynamics derivatives, docs/theory.md (D14), for every k <= d:
//
//   row d, column k:      dq = psi_ddot_k . a_d + psi_dot_k,w . b_d + J_k,w . c_d      dv = chi_k . a_d + J_k,w . b_d
//   row k, column d != k: dq = J_k . u_d                                              dv = J_k . w_d
//
// Inside one ball (or the rotations of one free joint), for k < d, J_k . (J_d x* F) is subtracted from the upper dq entry: both
// rotations act on the same frame, so the order of a stack of hinges does not apply.
//
// The outputs hold a row per differentiated dof r. Its entries at the dofs that r moves are lower ones, those at its ancestors
// upper ones, with r's own vectors the same throughout and the other factor in structure-of-arrays form over all dofs: eight
// entries at once, written where they belong. The lanes of unrelated dofs are masked to zero.
#include "coulomb/base/lanes.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/spatial.hpp"

namespace coulomb {
namespace {

// Rows of DynamicsWorkspace::streams, each of length ld: columns J, and a, b, c of (D13).
constexpr int at_column = 0;
constexpr int at_a = 6;
constexpr int at_b = 12;
constexpr int at_c = 15;

/// Structure of arrays: the columns and a, b, c of all dofs of a tree, one entry a row.
COULOMB_SIMD void gather_streams(const double* __restrict columns, const double* __restrict vectors, int nv, int ld,
                                 double* __restrict streams) {
  for (int d = 0; d < nv; ++d) {
    for (int i = 0; i < 6; ++i)
      streams[i * ld + d] = columns[8 * d + i];
    for (int i = 0; i < 12; ++i)
      streams[(at_a + i) * ld + d] = vectors[24 * d + i];
  }
}

/// sum_i x_i stream_i over one block; the first `count` streams from `at`.
template <int width, int count>
COULOMB_INLINE Lanes<width> combine(const double* __restrict x, const double* __restrict at, int ld) {
  Lanes<width> sum = x[0] * load_lanes<width>(at);
#pragma GCC unroll 6
  for (int i = 1; i < count; ++i)
    sum += x[i] * load_lanes<width>(at + i * ld);
  return sum;
}

/// The vectors of a tree's dofs that pair_rows broadcasts, by dof; rows of 8, `vectors` of 24.
struct DofVectors {
  const double* column;
  const double* rate;
  const double* ddot;
  const double* chi;
  const double* vectors;
  const int* subtree_end;
  int first;  ///< of the tree's dofs
};

/// Rows of dID/dq and dID/dv, transposed, of one tree: row r has the derivatives by dof r. nv, ld: size of the tree
/// and stride.
template <int width>
COULOMB_INLINE void pair_rows_lanes(DofVectors dofs, const unsigned char* __restrict ancestors, int nv, int ld,
                                    const double* __restrict streams, double* __restrict dq, double* __restrict dv) {
  for (int r = 0; r < nv; ++r) {
    // Row r starts at its ancestors; the block of eight that holds r itself is shared by ancestors and subtree.
    const int own = r & ~7;
    const int end = dofs.subtree_end[r] - dofs.first;

    // What this row has by itself: u, w for its ancestors' entries, psi_dot_w, psi_ddot, chi for those of its
    // subtree.
    const double* u = dofs.vectors + 24 * r + 12;
    const double* w = u + 6;
    const double* axis = dofs.column + 8 * r + 3;
    const double* rate = dofs.rate + 8 * r + 3;
    const double* ddot = dofs.ddot + 8 * r;
    const double* chi = dofs.chi + 8 * r;

    double* out_q = dq + r * ld;
    double* out_v = dv + r * ld;
    auto own_q = broadcast<width>(0.0);
    auto own_v = broadcast<width>(0.0);

    // Upper entries J_k . u_r and J_k . w_r at the ancestors k; those in the shared block wait for the lower
    // ones.
    for (int block = 0; block <= own; block += 8) {
      const unsigned char bits = ancestors[(r * ld + block) >> 3];
      if (bits == 0) continue;
      const auto mask = lanes_of_bits<width>(bits);
      const auto upper_q = keep(mask, combine<width, 6>(u, streams + block, ld));
      const auto upper_v = keep(mask, combine<width, 6>(w, streams + block, ld));
      if (block == own) {
        own_q = upper_q;
        own_v = upper_v;
      } else {
        store_lanes(out_q + block, upper_q);
        store_lanes(out_v + block, upper_v);
      }
    }

    // Lower entries of (D14) at the dofs that r moves, r among them.
    for (int block = own; block < end; block += 8) {
      const double* a = streams + at_a * ld + block;
      const double* b = streams + at_b * ld + block;
      const double* c = streams + at_c * ld + block;
      auto lower_q = combine<width, 6>(ddot, a, ld) + (combine<width, 3>(rate, b, ld) + combine<width, 3>(axis, c, ld));
      auto lower_v = combine<width, 6>(chi, a, ld) + combine<width, 3>(axis, b, ld);

      // Lanes before r and behind its subtree belong to others.
      const unsigned bits = bits_below(end - block) & ~(block == own ? bits_below(r - own) : 0u);
      const auto mask = lanes_of_bits<width>(bits);
      lower_q = keep(mask, lower_q);
      lower_v = keep(mask, lower_v);
      if (block == own) {
        lower_q += own_q;
        lower_v += own_v;
      }

      store_lanes(out_q + block, lower_q);
      store_lanes(out_v + block, lower_v);
    }
  }
}

COULOMB_SIMD_BY_WIDTH(void, pair_rows,
                      (DofVectors dofs, const unsigned char* __restrict ancestors, int nv, int ld,
                       const double* __restrict streams, double* __restrict dq, double* __restrict dv),
                      (dofs, ancestors, nv, ld, streams, dq, dv))

/// Within a ball or the rotations of a free joint, J_k . (J_d x* F) is taken back for k < d.
void correct_balls(const Model& model, DynamicsWorkspace& ws) {
  for (int joint = 0; joint < model.num_joints; ++joint) {
    const JointType type = model.joint_type[joint];
    if (type != JointType::ball && type != JointType::free) continue;

    // F of all that the joint carries.
    const int first = model.joint_v[joint] + (type == JointType::free ? 3 : 0);
    const Spatial force = load6(&ws.link[32 * model.joint_body[joint] + 12]);
    const DofBlock& tree = ws.trees[model.body_tree[model.joint_body[joint]]];

    for (int d = first + 1; d < first + 3; ++d) {
      double* row = &ws.id_dq_T[tree.matrix + static_cast<std::size_t>(d - tree.first) * tree.ld];
      const Spatial carried = cross_force(load6(&ws.columns[8 * d]), force);
      for (int k = first; k < d; ++k)
        row[k - tree.first] -= dot(load6(&ws.columns[8 * k]), carried);
    }
  }
}

}  // namespace

void derivative_pairs(const Model& model, DynamicsWorkspace& ws) {
  for (const DofBlock& tree : ws.trees) {
    const std::size_t first = static_cast<std::size_t>(tree.first);
    const DofVectors dofs{&ws.columns[8 * first],
                          &ws.column_rate[8 * first],
                          &ws.column_acceleration[8 * first],
                          &ws.column_chi[8 * first],
                          &ws.vectors[24 * first],
                          &model.dof_subtree_end[first],
                          tree.first};

    double* streams = &ws.streams[tree.streams];
    gather_streams(dofs.column, dofs.vectors, tree.size, tree.ld, streams);
    pair_rows(dofs, &ws.ancestors[tree.matrix / 8], tree.size, tree.ld, streams, &ws.id_dq_T[tree.matrix],
              &ws.id_dv_T[tree.matrix]);
  }
  correct_balls(model, ws);
}

void inverse_dynamics_derivatives(const Model& model, DynamicsWorkspace& ws, const double* a,
                                  const BodyForces* forces) {
  prepare_derivatives(model, ws, a, forces);
  derivative_pairs(model, ws);
}

}  // namespace coulomb
