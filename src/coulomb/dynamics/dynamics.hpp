// Rigid-body kernels on raw arrays: the workspace they share and their order of use.
//
//   kinematics -> velocities -> mass_matrix -> factor -> bias            (a step)
//   inverse_dynamics_derivatives                                         (forward mode)
//   inverse_dynamics_vjp                                                 (reverse mode)
//
// Twists are (v, w), wrenches (f, n): linear part first, world axes, about the reference point of the body's tree.
// i <= j means dof i is j or an ancestor of j. Matrices over dofs couple the dofs of one tree only, so they are kept by tree
// (DofBlock): with one tree an ordinary dense matrix. They are zero in their padding; matrices with suffix _T hold one contiguous row
// per column of the mathematical matrix.
#pragma once

#include <memory>
#include <vector>

#include "coulomb/model.hpp"

namespace coulomb {

struct JointMatrix;

/// Where a tree lies in the matrices over dofs: its entry (k, d), dofs counted from `first`, is [matrix + k * ld + d].
struct DofBlock {
  int first = 0;            ///< its first dof
  int size = 0;             ///< number of its dofs
  int ld = 0;               ///< size rounded up to 8
  std::size_t matrix = 0;   ///< of its first entry
  std::size_t streams = 0;  ///< of its part of DynamicsWorkspace::streams
};

/// Everything that kinematics and dynamics compute at one (q, v). Sized once from the model; no allocation afterwards.
struct DynamicsWorkspace {
  explicit DynamicsWorkspace(const Model& model);

  int nv = 0;
  int ld = 0;                   ///< nv rounded up to 8
  std::vector<DofBlock> trees;  ///< of matrices "by tree"

  /// num_trees x 3: each tree's root body position at this q; held fixed in every derivative
  std::vector<double> reference;

  std::shared_ptr<const FixedPoses> fixed_poses;  ///< of the model whose fixed bodies are placed here

  // Kinematics.
  std::vector<double> body_rotation;  ///< num_bodies x 9, row major, world from body
  std::vector<double> body_position;  ///< num_bodies x 3, world
  std::vector<double> columns;  ///< nv x 8: Jacobian column J_k = (v, w) about the tree's reference point (2 pads)

  // Velocities, at the v given last.
  std::vector<double> body_twist;   ///< num_bodies x 8: V of each body about the tree's reference point
  std::vector<double> column_rate;  ///< nv x 8: psi_dot_k
  std::vector<double> column_chi;   ///< nv x 8: chi_k

  // Mass matrix: rows packed along root paths (Model::dof_row).
  std::vector<double> mass;      ///< packed M (armature included, joint damping not)
  std::vector<double> factor_l;  ///< packed L, unit diagonal implied in the last entry of a row
  std::vector<double> factor_d;  ///< nv: D
  std::vector<double> u_rows;    ///< packed rows: U[d][k] D_k^(-1/2) for k on d's root path, U = L^-1

  /// by tree, by expand_factor: U_hat[k][i] = u_rows of i at k, row k non-zero for i in [k, dof_subtree_end[k]);
  /// M_hat^-1 = U_hat^T U_hat
  std::vector<double> u_hat;

  std::vector<double> bias;  ///< nv: b(q, v) = ID(q, v, 0), gravity included

  // Derivatives of inverse dynamics.
  std::vector<double> id_dq_T;  ///< by tree: [k][d] = d ID'_d / dq_k   (tangent space of q)
  std::vector<double> id_dv_T;  ///< by tree: [k][d] = d ID_d / dv_k

  /// per tree 18 x ld: components of the dofs' vectors side by side, J_d (6) first; by derivative_pairs
  std::vector<double> streams;

  /// by tree, a byte for 8 entries: bit i of byte (d, block): dof 8 block + i is a strict ancestor of d
  std::vector<unsigned char> ancestors;

  // Private to the kernels.
  std::vector<double> body_quaternion;  ///< num_bodies x 4, world from body

  /// num_bodies x 12: spatial inertia about the reference point (spatial.hpp, inertia_times)
  std::vector<double> inertia;

  std::vector<double> composite;            ///< num_bodies x 12: the same of the body's subtree (mass_matrix)
  std::vector<double> velocity;             ///< nv: the v given last to velocities()
  std::vector<double> body_acceleration;    ///< num_bodies x 8: A, with -gravity at the root
  std::vector<double> column_acceleration;  ///< nv x 8: psi_ddot_k
  int path_capacity = 0;                    ///< longest root path rounded up to 8
  std::vector<double> factor_work;          ///< nv x path_capacity: rows of the factor while it is computed
  std::vector<double> mass_without;         ///< entries of M that factor changes meanwhile
  std::vector<double> scratch;
  std::vector<double> link;     ///< per-body composites and additive quantities
  std::vector<double> vectors;  ///< per-dof vectors a, b, c, u, w of the derivative kernel
};

/// out (nv x ld) += a matrix of the workspace that is kept by tree.
void add_by_tree(const DynamicsWorkspace& ws, const std::vector<double>& matrix, double* out, int ld);

/// A wrench that acts on a body: fixed in the world at its application points while q varies (docs/theory.md (D12)). Accumulated per
/// body by add_body_force.
struct BodyForces {
  explicit BodyForces(const Model& model);
  void clear();
  std::vector<double> wrench;  ///< num_bodies x 8: sum of (f, (p - o) x f), o the tree's reference point
  std::vector<double> moment;  ///< num_bodies x 9, row major: E = sum f (p - o)^T - ((p - o).f) 1
};

/// Adds the world force f at the world point p (a material point) of a body. Bodies fixed to the world are ignored.
void add_body_force(const Model& model, const DynamicsWorkspace& ws, BodyForces& forces, int body,
                    const double point_world[3], const double force_world[3]);

/// Poses, Jacobian columns and inertias at q (nq). Quaternions are normalised when used.
void kinematics(const Model& model, const double* q, DynamicsWorkspace& ws);

/// body_twist, column_rate, column_chi at v (nv). After kinematics.
void velocities(const Model& model, const double* v, DynamicsWorkspace& ws);
/// The same at another velocity into the caller's buffers: body_twist (num_bodies x 8), column_rate (nv x 8), both fully written.
void velocities(const Model& model, const DynamicsWorkspace& ws, const double* v, double* body_twist,
                double* column_rate);

/// Composite inertias and packed M. After kinematics.
void mass_matrix(const Model& model, DynamicsWorkspace& ws);
/// y = M x. After mass_matrix; y may not alias x.
void multiply_mass(const Model& model, const DynamicsWorkspace& ws, const double* x, double* y);
/// Factor of M + diag(extra_diagonal) (nv, or nullptr for M) and its u_rows. After mass_matrix. False when a pivot is not
/// positive (M is not positive definite): that pivot is replaced by a tiny positive one and the factor stays finite.
bool factor(const Model& model, const double* extra_diagonal, DynamicsWorkspace& ws);
/// The same of M + extra.
bool factor(const Model& model, const JointMatrix& extra, DynamicsWorkspace& ws);
/// u_hat, the dense form of u_rows. After factor.
void expand_factor(const Model& model, DynamicsWorkspace& ws);
/// x = (M + diag)^-1 x by the sparse factor. After factor.
void solve_mass(const Model& model, const DynamicsWorkspace& ws, double* x);

/// ws.bias = b(q, v) = ID(q, v, 0). After velocities.
void bias(const Model& model, DynamicsWorkspace& ws);
/// tau = ID(q, v, a), armature and gravity included. After velocities.
void inverse_dynamics(const Model& model, DynamicsWorkspace& ws, const double* a, double* tau);
/// 1/2 v^T M v (armature included) at the v given last to velocities.
double kinetic_energy(const Model& model, const DynamicsWorkspace& ws);
/// -sum m g . c in world coordinates. After kinematics.
double potential_energy(const Model& model, const DynamicsWorkspace& ws);

/// Link and dof vectors that the assembled derivatives and the vjp share, for ID'(q, v, a) = ID(q, v, a) - sum J^T f. After
/// velocities and mass_matrix. forces may be nullptr.
void prepare_derivatives(const Model& model, DynamicsWorkspace& ws, const double* a, const BodyForces* forces);
/// id_dq_T and id_dv_T by the pair kernel. After prepare_derivatives.
void derivative_pairs(const Model& model, DynamicsWorkspace& ws);
/// prepare_derivatives, then derivative_pairs.
void inverse_dynamics_derivatives(const Model& model, DynamicsWorkspace& ws, const double* a, const BodyForces* forces);
/// out_q[k] = sum_d y_d dID'_d/dq_k, out_v[k] = sum_d y_d dID_d/dv_k in O(nv). After prepare_derivatives (or
/// inverse_dynamics_derivatives); outputs may not alias y.
void inverse_dynamics_vjp(const Model& model, DynamicsWorkspace& ws, const double* y, double* out_q, double* out_v);
/// prepare_derivatives, then the sweeps.
void inverse_dynamics_vjp(const Model& model, DynamicsWorkspace& ws, const double* a, const BodyForces* forces,
                          const double* y, double* out_q, double* out_v);
}  // namespace coulomb
