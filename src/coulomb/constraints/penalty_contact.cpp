// The value of penalty contact: contacts of (q, v), the law of each, J^T f.
#include "coulomb/constraints/penalty_contact.hpp"

#include <cmath>

#include "coulomb/small_math.hpp"

namespace coulomb {
namespace {

void add_row(const Model& model, const Contact& contact, int index, ConstraintRows& rows) {
  BodyRows b;
  b.row = 3 * index, b.block = b.contact = index;
  b.body_a = contact.body_a, b.body_b = contact.body_b;
  copy3(contact.point, b.point_a);
  copy3(contact.point, b.point_b);
  contact_frame(contact.normal, b.axes[0], b.axes[1]);
  copy3(contact.normal, b.axes[2]);
  b.phi[2] = contact.distance;
  Block block;
  block.type = BlockType::cone, block.row = b.row, block.size = 3;
  block.mu = model.pair_friction[contact.pair];
  rows.blocks.push_back(block);
  rows.body_rows.push_back(b);
}

/// Friction at the sliding velocity u (2): the force and its law.
Mode friction(double mu, double viscosity, double normal_force, const double* u, double* f, PenaltyLaw& law) {
  const double speed = std::hypot(u[0], u[1]), bound = mu * normal_force;
  if (viscosity * speed < bound) {
    for (int i = 0; i < 2; ++i) f[i] = -viscosity * u[i], law.T[i][i] = -viscosity;
    return Mode::sticking;
  }
  if (!(speed > 0)) return Mode::sliding;
  const double t[2] = {u[0] / speed, u[1] / speed};
  for (int i = 0; i < 2; ++i) {
    f[i] = -bound * t[i], law.N[i] = -mu * t[i];
    for (int j = 0; j < 2; ++j) law.T[i][j] = -bound / speed * ((i == j) - t[i] * t[j]);
  }
  return Mode::sliding;
}

/// Force and law of one contact at the velocity u (3). Its normal row then differentiates to df_N = w d(J v)_N + slope dd: a row with
/// restitution e sees (1 + e) v where both of its velocities are v, so e = w - 1.
/// share: of the whole, which every force is proportional to.
Mode contact_law(const PairPenalty& pair, const PenaltyDefaults& defaults, double mu, double distance, double share,
                 const double* u, BodyRows& b, double* f, PenaltyLaw& law) {
  const double s = pair.scale, kn = pair.stiffness.value_or(defaults.stiffness),
               kd = pair.damping.value_or(defaults.damping),
               kt = pair.friction_stiffness.value_or(defaults.friction_stiffness);
  law = PenaltyLaw{};
  f[0] = f[1] = f[2] = 0;
  const double push = s * distance * (kd * u[2] - kn);
  b.dbias_dphi = 0, b.restitution = -1;
  if (!(push > 0)) return Mode::separating;
  f[2] = push;
  b.dbias_dphi = share * s * (kd * u[2] - kn), b.restitution = share * s * kd * distance - 1;
  const Mode mode = friction(mu, s * kt, push, u, f, law);
  for (int i = 0; i < 3; ++i) law.share_slope[i] = f[i], f[i] *= share;
  for (auto& row : law.T)
    for (double& x : row) x *= share;
  return mode;
}

}  // namespace

PenaltyForces::PenaltyForces(const Model& model) : collision(model), twist(8 * model.nv), wrench(8 * model.nv + 8) {}

void penalty_forces(const Model& model, const DynamicsWorkspace& dynamics, const double* v, PenaltyForces& out,
                    double* Q) {
  detect_penalty_contacts(model, dynamics.body_position.data(), dynamics.body_rotation.data(), out.collision,
                          out.shares);
  const std::vector<Contact>& contacts = out.collision.contacts;
  const int count = static_cast<int>(contacts.size());
  out.rows.clear();
  out.force.resize(3 * contacts.size()), out.velocity.resize(3 * contacts.size());
  out.modes.resize(contacts.size()), out.inactive.resize(contacts.size()), out.laws.resize(contacts.size());
  if (count == 0) return;
  for (int i = 0; i < count; ++i) add_row(model, contacts[i], i, out.rows);
  out.rows.num_rows = 3 * count, out.rows.num_blocks = count;
  out.rows.bias.assign(out.force.size(), 0.0);
  link_twists(model, dynamics, v, out.twist.data());
  apply_rows(model, dynamics, out.rows, v, out.twist.data(), out.velocity.data());
  for (int i = 0; i < count; ++i) {
    const int pair = contacts[i].pair;
    out.modes[i] =
        contact_law(model.pair_penalty[pair], model.penalty, model.pair_friction[pair], contacts[i].distance,
                    out.shares[i].value, &out.velocity[3 * i], out.rows.body_rows[i], &out.force[3 * i], out.laws[i]);
    out.inactive[i] = out.modes[i] == Mode::separating;
  }
  apply_rows_transposed(model, dynamics, out.rows, out.force.data(), out.wrench.data(), Q);
}

void add_penalty_body_forces(const Model& model, const DynamicsWorkspace& dynamics, const PenaltyForces& forces,
                             BodyForces& out) {
  for (const BodyRows& b : forces.rows.body_rows) {
    if (forces.inactive[b.block]) continue;
    double f[3] = {0, 0, 0}, minus[3];
    for (int i = 0; i < 3; ++i) axpy3(forces.force[b.row + i], b.axes[i], f);
    for (int i = 0; i < 3; ++i) minus[i] = -f[i];
    add_body_force(model, dynamics, out, b.body_a, b.point_a, f);
    add_body_force(model, dynamics, out, b.body_b, b.point_b, minus);
  }
}

}  // namespace coulomb
