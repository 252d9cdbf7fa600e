// The rows of the constraint problem of one step, as geometry: which bodies move them, and how they change with the
// motion of these bodies. Two kinds cover every law: rows on the relative twist of two bodies (contact, connect, weld)
// and rows on a few joint velocities (limit, dry friction, equality of joints or tendons). The laws (cone, limit, box, equality) are
// the blocks of solvers/constraint_problem.hpp. contact_rows, equality_rows and joint_rows compute the values of rows,
// row_derivatives their derivatives.
#pragma once

#include <cstdint>
#include <vector>

#include "coulomb/base/small_math.hpp"
#include "coulomb/constraints/constraint_options.hpp"
#include "coulomb/solvers/constraint_problem.hpp"

namespace coulomb {

struct Contact;
struct DynamicsWorkspace;
struct Model;

/// m, rad: an impact is found to rounding; gaps this small are closed whatever the speed.
inline constexpr double closed_gap = 1e-8;

/// Friction: more only loses the digits of what parts a contact, c_N beside mu |c_T|.
inline constexpr double rough = 1e5;

/// GapRule held and impact: is a gap that opens at `rate` closed and, between impacts, held?
inline bool is_held(const ConstraintOptions& options, double phi, double rate) {
  const bool closed = phi <= closed_gap && !options.lets_in;
  if (!(closed || (phi <= options.touching && rate >= -options.held_speed))) return false;
  return options.gaps == GapRule::impact || rate < options.separating_speed;
}

/// Impact: has a contact at this distance sunk while it was held? What was deeper before is only let out.
inline bool sank(const ConstraintOptions& options, double phi) {
  return options.gaps == GapRule::impact && phi < -options.rebound_depth && phi > -2.4 * options.rebound_depth;
}

/// Rows on the relative motion of two bodies at two material points: `size` = 3 (axes on the velocity difference) or more, then on the
/// difference of angular velocities: equalities have 6, contacts one more for torsional friction and two for rolling.
struct BodyRows {
  int row = 0;  ///< the first one
  int size = 3;
  int block = 0;
  int body_a = 0;
  int body_b = 0;
  int contact = -1;   ///< index into the step's contacts; -1: equality
  double point_a[3];  ///< world; equal for a contact
  double point_b[3];
  double axes[3][3];        ///< row directions in world axes (t1, t2, n for a contact)
  double torque_scale = 1;  ///< equality: weight of the angular rows
  double torsion = 0;       ///< m: contact: weight of the row about the normal; 0: there is none
  double rolling = 0;       ///< m: of the two rows about the tangents, the last ones
  double dbias_dphi = 0;    ///< normal row (contact) or every row (equality): bias change per change of position error
  /// Share of their velocity before the step that biases have: of a contact's normal row that bounces its coefficient e, of rows that a
  /// mass moves along with (of a soft equality: of all) negative; else 0.
  double restitution = 0;
  int soft = -1;        ///< equality: index into soft_blocks; -1: it is rigid
  double approach = 0;  ///< of a spring: velocity of the normal row before the step
  /// Equality, linear and angular rows: unit direction of an error that goes at the largest speed whatever its size; else zero. The bias
  /// changes with the error across it alone.
  double fastest[6] = {0, 0, 0, 0, 0, 0};
  double bias_slope[2] = {0, 0};       ///< equality: dbias_dphi of its linear and of its angular rows
  double phi[6] = {0, 0, 0, 0, 0, 0};  ///< position error of the rows (contact: distance in phi[2])
  double rotation_error[9];            ///< weld: R_a R_b^T of the two frames, row major

  /// The rows whose bias has a share of their velocity before the step: first_kept() up to end_kept().
  int first_kept() const { return contact < 0 ? 0 : 2; }
  int end_kept() const { return restitution == 0 ? first_kept() : contact < 0 ? size : 3; }
  /// Row i as a covector on the twist of a body about its reference, of which it acts at r.
  void covector(int i, const double* r, double* out) const {
    if (i >= 3) {
      out[0] = out[1] = out[2] = 0;
      return angular_row(i, out + 3);
    }
    for (int k = 0; k < 3; ++k)
      out[k] = axes[i][k];
    cross3(r, axes[i], out + 3);
  }

  /// Of a contact's row i >= 3: which of the axes it turns about, and its weight.
  int turning_axis(int i) const { return torsion > 0 ? (i == 3 ? 2 : i - 4) : i - 3; }
  double turning_weight(int i) const { return turning_axis(i) == 2 ? torsion : rolling; }
  /// Row i >= 3 as a covector on the difference of angular velocities.
  void angular_row(int i, double* out) const {
    out[0] = out[1] = out[2] = 0;
    if (contact < 0) {
      out[i - 3] = torque_scale;
      return;
    }
    const double* axis = axes[turning_axis(i)];
    for (int k = 0; k < 3; ++k)
      out[k] = turning_weight(i) * axis[k];
  }
};

/// Torque of a block's impulses on its angular rows, on body A (`impulses`: those of the block).
inline void block_torque(const BodyRows& b, const double* impulses, double* torque) {
  torque[0] = torque[1] = torque[2] = 0;
  for (int i = 3; i < b.size; ++i) {
    if (b.contact < 0) {
      torque[i - 3] = b.torque_scale * impulses[i];
      continue;
    }
    const double weighted = b.turning_weight(i) * impulses[i];
    for (int k = 0; k < 3; ++k)
      torque[k] += weighted * b.axes[b.turning_axis(i)][k];
  }
}

/// A row on a few joint velocities: three of a ball, those of a tendon, or of two that an equality couples.
struct DofRow {
  static constexpr int max_dofs = 16;
  int row = 0;
  int block = 0;
  int num = 1;       ///< of dofs
  int tendon = -1;   ///< whose limit it is; -1: no tendon's
  int spring = -1;   ///< of which tendon's spring, damper or dry friction it is; -1: of none
  int slopes = -1;   ///< where its part of ConstraintRows::bias_slopes begins; -1: its bias changes with phi alone
  int turning = -1;  ///< where its part of ConstraintRows::turning begins; -1: its coefficients do not change with q
  int dof[max_dofs] = {0};
  double coefficient[max_dofs] = {0};
  double dbias_dphi = 0;  ///< dphi/dq is the row of coefficients
  double phi = 0;
  double bounce = 0;    ///< share of the row's velocity before the step that the bias has
  double approach = 0;  ///< of a spring: that velocity
  double bend = 0;      ///< of a tendon with an armature: the rate of the row's rate at constant v
};

/// An equality of bodies that is soft: its numbers depend on the size of its error.
struct SoftBlock {
  double error = 0;                      ///< m: of a weld, with the turn's sine of half the angle times torque_scale
  double slope[6] = {0, 0, 0, 0, 0, 0};  ///< after the solution, by row: how R lambda + beta changes with it
};

/// All rows of a step, written by the functions at the end of this file, law by law.
struct ConstraintRows {
  std::vector<BodyRows> body_rows;
  std::vector<DofRow> dof_rows;
  std::vector<std::uint64_t> keys;  ///< per block: identity from step to step (constraint_keys.hpp)
  std::vector<Block> blocks;
  std::vector<double> bias;         ///< per row: beta
  std::vector<double> compliance;   ///< per row: R; none where it ends
  std::vector<double> weight;       ///< per row: ConstraintProblem::W
  std::vector<double> bias_slopes;  ///< of rows on dofs: num by q, beside dbias_dphi, then num by v
  std::vector<double> turning;      ///< of rows on dofs: num x num each, d coefficient_i / dq_(dof j)
  std::vector<SoftBlock> soft_blocks;
  int num_rows = 0;
  int num_blocks = 0;
  void clear();
  /// Leaves these blocks; the others stay in their order.
  void keep(const std::vector<unsigned char>& blocks_kept);

  /// d bias / dq_(dof j) beside that by phi, and d bias / dv_(dof j)
  double dbias_dq(const DofRow& row, int j) const { return row.slopes < 0 ? 0.0 : bias_slopes[row.slopes + j]; }
  double dbias_dv(const DofRow& row, int j) const {
    return row.slopes < 0 ? 0.0 : bias_slopes[row.slopes + row.num + j];
  }

  /// The coefficients of a row on dofs begin to turn: num x num, zero.
  double* turn(DofRow& row) {
    row.turning = int(turning.size());
    turning.resize(turning.size() + std::size_t(row.num) * row.num, 0.0);
    return turning.data() + row.turning;
  }
  /// d coefficient_i / dq_(dof j)
  double dcoefficient(const DofRow& row, int i, int j) const {
    return row.turning < 0 ? 0.0 : turning[row.turning + i * row.num + j];
  }
  /// d(coefficient . v) / dq_(dof j)
  double drate_dq(const DofRow& row, int j, const double* v) const {
    if (row.turning < 0) return 0;
    double sum = 0;
    for (int i = 0; i < row.num; ++i)
      sum += turning[row.turning + i * row.num + j] * v[row.dof[i]];
    return sum;
  }
};

/// Velocity of every dof's link: link_twist[8 d ..] = sum of J_i x_i over i <= d, about the tree's reference point.
void link_twists(const Model& model, const DynamicsWorkspace& dynamics, const double* x, double* link_twist);

/// Twist (8 doubles) of a body out of link_twists; a zero twist for bodies fixed to the world.
const double* body_link_twist(const Model& model, const double* link_twist, int body);

/// r = p - (reference point of the body's tree); the world's reference is the origin.
void relative_point(const Model& model, const DynamicsWorkspace& dynamics, int body, const double* p, double* r);

/// Velocity (m/s, world) of A's point against B's at a contact, for the link twists of that velocity.
void contact_velocity(const Model& model, const DynamicsWorkspace& dynamics, const double* link_twist, const Contact& c,
                      double* velocity);

/// Its part along the normal: how fast the gap opens.
double normal_velocity(const Model& model, const DynamicsWorkspace& dynamics, const double* link_twist,
                       const Contact& c);

/// The velocity of row i of a block on bodies.
double row_velocity(const Model& model, const DynamicsWorkspace& dynamics, const double* link_twist, const BodyRows& b,
                    int i);

/// J (nv) += row i of a block on bodies.
void add_body_row(const Model& model, const DynamicsWorkspace& dynamics, const BodyRows& b, int i, double* J);

/// out[row] = J x for every row, x given by its link twists and itself.
void apply_rows(const Model& model, const DynamicsWorkspace& dynamics, const ConstraintRows& rows, const double* x,
                const double* link_twist, double* out);

/// out (nv) += J^T lambda. wrench: scratch, nv x 8.
void apply_rows_transposed(const Model& model, const DynamicsWorkspace& dynamics, const ConstraintRows& rows,
                           const double* lambda, double* wrench, double* out);

/// One constraint law adds its rows, blocks and biases (velocities before the step and free velocities are known).
struct RowContext {
  const Model& model;
  const DynamicsWorkspace& dynamics;
  const ConstraintOptions& options;
  const double* q;                      ///< nq
  const double* v;                      ///< nv
  const double* v_free;                 ///< nv
  const double* twist;                  ///< nv x 8: link twists at v
  const unsigned char* without_limits;  ///< by tree; null: all have them
};
void add_contact_rows(const RowContext& context, const std::vector<Contact>& contacts, ConstraintRows& rows);
void add_equality_rows(const RowContext& context, ConstraintRows& rows);
void add_joint_limit_rows(const RowContext& context, ConstraintRows& rows);
void add_dry_friction_rows(const RowContext& context, ConstraintRows& rows);
void add_tendon_spring_rows(const RowContext& context, ConstraintRows& rows);

/// m, rad: gaps up to this close as overlaps are corrected, by a share per step: what lies still lies at phi = 0 to rounding, and its
/// bias has one slope there. Gaps of open_gap and more close at once; between, the bias goes from the one to the other, so gently that
/// what a step leaves of a gap hardly falls as the gap grows: along a curve the gaps of successive steps settle, and do not alternate.
inline constexpr double smooth_gap = 1e-6;
inline constexpr double open_gap = 4e-6;

/// m, rad: nearer to a change of slope the state is at it.
inline constexpr double corner_width = 1e-12;

/// Bias of a one-sided position error (negative: violated) and its slope: speculative +phi/h when open (but see smooth_gap), share
/// of the violation beyond the slop when violated. Where two slopes meet it is that of the smaller phi; corner says so.
struct Bias {
  double value = 0;
  double slope = 0;
  bool corner = false;
};
Bias one_sided_bias(const ConstraintOptions& options, double phi);

}  // namespace coulomb
