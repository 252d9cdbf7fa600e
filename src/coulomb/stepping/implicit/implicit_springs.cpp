#include "coulomb/stepping/implicit/implicit_springs.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/constraints/islands.hpp"
#include "coulomb/constraints/joint_limits.hpp"
#include "coulomb/constraints/one_sided_spring.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/model.hpp"
#include "coulomb/model/tendon.hpp"

namespace coulomb {
namespace {

/// A limit that is reached: f = -k phi - (d - b phi) phi'. Joints that have a stiffness have a dashpot d, all others the Simulator's k and
/// a damping b, which grows with the depth.
struct LimitLaw {
  double stiffness;  ///< k
  double damping;    ///< b
  double dashpot;    ///< d

  /// Negative: it would pull, and is none.
  double force(double phi, double rate) const {
    return phi < 0 ? -stiffness * phi + (damping * phi - dashpot) * rate : 0;
  }
};

/// joint: -1 for a tendon, whose limits have no numbers of their own.
LimitLaw limit_law(const Model& model, const ImplicitOptions& o, int joint) {
  if (joint >= 0)
    if (const auto spring = limit_spring(model, joint, 0)) return {spring->stiffness, 0, spring->dashpot};
  return {o.limit_stiffness, o.limit_damping, 0};
}

void apply_limit_law(const LimitLaw& law, double phi, double rate, SpringForces& out, const DofRow& row) {
  const double force = law.force(phi, rate);
  const bool active = force > 0;
  out.inactive[row.block] = !active;
  out.force[row.row] = active ? force : 0;
  out.dforce_dphi[row.row] = active ? -law.stiffness + law.damping * rate : 0;
  out.dforce_drate[row.row] = active ? law.damping * phi - law.dashpot : 0;
}

/// Rows of bodies know the force's change as d times that of phi' + (k / d) phi: there, a damping of zero is one without effect.
double damping_of_rows(const ImplicitOptions& o) { return std::max(o.equality_damping, 1e-30 * o.equality_stiffness); }

/// A spring and a damper on one row, with the same law for both signs.
void equality_law(const ImplicitOptions& o, double phi, double rate, SpringForces& out, int row) {
  out.force[row] = -o.equality_stiffness * phi - o.equality_damping * rate;
  out.dforce_dphi[row] = -o.equality_stiffness;
  out.dforce_drate[row] = -damping_of_rows(o);
}

/// Spring, damper or smoothed dry friction of a tendon.
void tendon_law(const Model& model, const ImplicitOptions& o, double rate, SpringForces& out, const DofRow& row) {
  const Tendon& tendon = model.tendons[row.spring];
  const BlockType type = out.rows.blocks[row.block].type;
  out.dforce_dphi[row.row] = -tendon_slope(tendon, type);
  if (type == BlockType::box) {
    const double s = o.dry_friction_velocity;
    const double length = std::hypot(rate, s);
    out.force[row.row] = -tendon.dry_friction * rate / length;
    out.dforce_drate[row.row] = -tendon.dry_friction * (s / length) * (s / length) / length;
    return;
  }
  const OneSidedSpring spring = tendon_spring(tendon, type == BlockType::equality);
  out.inactive[row.block] = type == BlockType::limit && !(row.phi < 0);
  if (out.inactive[row.block]) {
    out.dforce_dphi[row.row] = 0;
    return;
  }
  out.force[row.row] = -spring.stiffness * row.phi - spring.dashpot * rate;
  out.dforce_drate[row.row] = -spring.dashpot;
}

/// Smoothed around zero velocity; its direction is known without friction, too, for the parameter.
void dry_friction(const Model& model, const ImplicitOptions& o, const double* v, SpringForces& out, double* Q) {
  for (int d = 0; d < model.nv; ++d) {
    out.dry_slope[d] = out.dry_direction[d] = 0;
    const double f = model.dof_dry_friction[d];
    const double s = o.dry_friction_velocity;
    const double length = std::hypot(v[d], s);
    out.dry_direction[d] = -v[d] / length;
    if (!(f > 0)) continue;
    out.dry_slope[d] = -f * (s / length) * (s / length) / length;
    Q[d] += f * out.dry_direction[d];
  }
}

/// J^T f of a row on joints, whose coefficients turn with them.
void dof_row_derivatives(const DofRow& row, const double* v, const SpringForces& f, double* dQ_dq_T, double* dQ_dv_T,
                         int ld) {
  // How the force itself changes, and with it where it acts.
  const double force = f.force[row.row];
  const double by_phi = f.dforce_dphi[row.row];
  const double by_rate = f.dforce_drate[row.row];
  for (int k = 0; k < row.num; ++k) {
    const double dforce = by_phi * row.coefficient[k] + by_rate * f.rows.drate_dq(row, k, v);
    for (int d = 0; d < row.num; ++d) {
      const std::size_t at = std::size_t(row.dof[k]) * ld + row.dof[d];
      dQ_dq_T[at] += row.coefficient[d] * dforce + force * f.rows.dcoefficient(row, d, k);
      dQ_dv_T[at] += row.coefficient[d] * by_rate * row.coefficient[k];
    }
  }
}

/// The springs' rows at the velocity v, which both of their velocities are.
RowState row_state(const Model& model, const DynamicsWorkspace& dynamics, const SpringForces& f, const double* v) {
  const double* twist = f.twist.data();
  const double* rate = dynamics.column_rate.data();
  return {model, dynamics, f.rows, {twist, rate, twist, rate}, v, f.force.data(), f.inactive};
}

}  // namespace

SpringForces::SpringForces(const Model& model)
    : dry_slope(model.nv), dry_direction(model.nv), twist(8 * model.nv), wrench(8 * model.nv) {}

void spring_forces(const Model& model, const DynamicsWorkspace& dynamics, const ImplicitOptions& o, const double* q,
                   const double* v, SpringForces& out, double* Q) {
  dry_friction(model, o, v, out, Q);
  out.rows.clear();
  link_twists(model, dynamics, v, out.twist.data());

  // Rows as those of hard constraints. An equality's bias is (k / d) phi: phi' plus it is -f / d.
  ConstraintOptions options;
  options.baumgarte = 1;
  options.timestep = damping_of_rows(o) / o.equality_stiffness;
  options.max_correction_speed = INFINITY;
  const RowContext context{model, dynamics, options, q, v, v, out.twist.data(), nullptr};
  add_equality_rows(context, out.rows);
  const std::size_t equalities = out.rows.dof_rows.size();
  add_joint_limit_rows(context, out.rows);
  add_tendon_spring_rows(context, out.rows);
  const int n = out.rows.num_rows;
  if (n == 0) return;

  // Their rates, and the forces.
  for (auto* x : {&out.force, &out.dforce_dphi, &out.dforce_drate, &out.rate})
    x->assign(n, 0.0);
  out.inactive.assign(out.rows.num_blocks, 0);
  apply_rows(model, dynamics, out.rows, v, out.twist.data(), out.rate.data());
  for (const BodyRows& b : out.rows.body_rows)
    for (int i = 0; i < b.size; ++i)
      equality_law(o, b.phi[i], out.rate[b.row + i], out, b.row + i);
  for (std::size_t i = 0; i < out.rows.dof_rows.size(); ++i) {
    DofRow& row = out.rows.dof_rows[i];
    row.dbias_dphi = 1;
    if (i < equalities)
      equality_law(o, row.phi, out.rate[row.row], out, row.row);
    else if (row.spring >= 0)
      tendon_law(model, o, out.rate[row.row], out, row);
    else
      apply_limit_law(limit_law(model, o, row.tendon < 0 ? model.dof_joint[row.dof[0]] : -1), row.phi,
                      out.rate[row.row], out, row);
  }

  // Q += J^T f
  apply_rows_transposed(model, dynamics, out.rows, out.force.data(), out.wrench.data(), Q);
}

namespace {

/// Limits of one tendon: is the force that pushes at one state gone at the other?
bool tendon_limits_differ(const Model& model, const ImplicitOptions& o, int tendon, const TendonState& a,
                          const double* v_a, const TendonState& b, const double* v_b) {
  const LimitLaw law = limit_law(model, o, -1);
  const Tendon& t = model.tendons[tendon];
  for (const bool upper : {false, true}) {
    if (!std::isfinite(upper ? t.upper : t.lower)) continue;
    const DofRow row_a = tendon_limit_row(model, tendon, upper, a);
    const DofRow row_b = tendon_limit_row(model, tendon, upper, b);
    if (row_a.phi >= 0 && row_b.phi >= 0) continue;
    const bool pushes_a = law.force(row_a.phi, rate_of(row_a, v_a)) > 0;
    const bool pushes_b = law.force(row_b.phi, rate_of(row_b, v_b)) > 0;
    if (pushes_a != pushes_b) return true;
  }
  return false;
}

/// The state of a tendon away from the step's own workspaces.
TendonState tendon_state_at(const Model& model, int tendon, const double* q, std::optional<DynamicsWorkspace>& at) {
  if (!at) at.emplace(model);
  if (is_spatial(model.tendons[tendon])) kinematics(model, q, *at);
  TendonState out;
  tendon_state(model, *at, tendon, q, false, out);
  return out;
}

}  // namespace

void mark_limits_met(const Model& model, const ImplicitOptions& o, const double* q_a, const double* v_a,
                     const double* q_b, const double* v_b, std::optional<DynamicsWorkspace>& at, unsigned char* met) {
  for_each_limit(model, [&](int joint, bool upper) {
    const JointLimit a = joint_limit(model, joint, upper, q_a);
    const JointLimit b = joint_limit(model, joint, upper, q_b);
    if (a.phi >= 0 && b.phi >= 0) return;
    const LimitLaw law = limit_law(model, o, joint);
    const bool pushes_a = law.force(a.phi, a.rate(v_a)) > 0;
    const bool pushes_b = law.force(b.phi, b.rate(v_b)) > 0;
    if (pushes_a != pushes_b) met[model.body_tree[model.joint_body[joint]]] = 1;
  });
  for (int t = 0; t < int(model.tendons.size()); ++t) {
    if (!model.tendons[t].limited) continue;
    const TendonState a = tendon_state_at(model, t, q_a, at);
    const TendonState b = tendon_state_at(model, t, q_b, at);
    if (!tendon_limits_differ(model, o, t, a, v_a, b, v_b)) continue;
    for (int dof : model.tendons[t].dofs)
      met[model.body_tree[model.dof_body[dof]]] = 1;
  }
}

void add_body_torque(const Model& model, BodyForces& forces, int body, const double* torque) {
  if (model.body_last_dof[body] < 0) return;
  double* wrench = forces.wrench.data() + 8 * body;
  double* E = forces.moment.data() + 9 * body;
  for (int i = 0; i < 3; ++i)
    wrench[3 + i] += torque[i];
  E[1] -= torque[2];
  E[2] += torque[1];
  E[3] += torque[2];
  E[5] -= torque[0];
  E[6] -= torque[1];
  E[7] += torque[0];
}

void add_spring_body_forces(const Model& model, const DynamicsWorkspace& dynamics, const SpringForces& forces,
                            BodyForces& out) {
  for (const BodyRows& b : forces.rows.body_rows) {
    // On body A, and the opposite on body B.
    double f[3] = {0, 0, 0};
    double minus[3];
    double torque[3];
    for (int i = 0; i < 3; ++i)
      axpy3(forces.force[b.row + i], b.axes[i], f);
    for (int i = 0; i < 3; ++i)
      minus[i] = -f[i];
    add_body_force(model, dynamics, out, b.body_a, b.point_a, f);
    add_body_force(model, dynamics, out, b.body_b, b.point_b, minus);

    // A weld has a torque as well.
    if (b.size == 3) continue;
    for (int i = 0; i < 3; ++i)
      torque[i] = b.torque_scale * forces.force[b.row + 3 + i];
    add_body_torque(model, out, b.body_a, torque);
    for (double& t : torque)
      t = -t;
    add_body_torque(model, out, b.body_b, torque);
  }
}

void spring_row_derivatives(const Model& model, const DynamicsWorkspace& dynamics, SpringForces& f) {
  static const std::vector<Contact> no_contacts;
  if (f.rows.body_rows.empty()) return;
  row_derivatives(row_state(model, dynamics, f, nullptr), no_contacts, f.derivatives);
}

void spring_derivatives(const Model& model, const DynamicsWorkspace& dynamics, const double* v, SpringForces& f,
                        double* dQ_dq_T, double* dQ_dv_T, int ld) {
  // Dry friction, and rows on joints.
  for (int d = 0; d < model.nv; ++d)
    dQ_dv_T[std::size_t(d) * ld + d] += f.dry_slope[d];
  for (const DofRow& row : f.rows.dof_rows)
    if (!f.inactive[row.block]) {
      dof_row_derivatives(row, v, f, dQ_dq_T, dQ_dv_T, ld);
    }
  if (f.rows.body_rows.empty()) return;

  // Rows on bodies: J^T times the change of the force, row by row.
  const std::size_t size = std::size_t(f.rows.num_rows) * ld;
  f.s.assign(size, 0.0);
  f.J.assign(size, 0.0);
  fill_row_columns(row_state(model, dynamics, f, v), f.derivatives, RowMatrix(f.s.data(), ld));
  for (const BodyRows& b : f.rows.body_rows)
    for (int i = 0; i < b.size; ++i) {
      double* J = f.J.data() + std::size_t(b.row + i) * ld;
      double* s = f.s.data() + std::size_t(b.row + i) * ld;
      add_body_row(model, dynamics, b, i, J);
      for (int k = 0; k < model.nv; ++k) {
        const double by_q = f.dforce_drate[b.row + i] * s[k];
        const double by_v = f.dforce_drate[b.row + i] * J[k];
        if (by_q == 0 && by_v == 0) continue;
        for (int d = 0; d < model.nv; ++d) {
          dQ_dq_T[std::size_t(k) * ld + d] += by_q * J[d];
          dQ_dv_T[std::size_t(k) * ld + d] += by_v * J[d];
        }
      }
    }
}

double spring_force_change(const SpringForces& f, int row, double s) {
  for (const DofRow& d : f.rows.dof_rows)
    if (d.row == row) return f.dforce_dphi[row] * s;
  return f.dforce_drate[row] * s;
}

}  // namespace coulomb
