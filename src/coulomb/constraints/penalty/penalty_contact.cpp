// The value of penalty contact: contacts of (q, v), the law of each, J^T f.
#include "coulomb/constraints/penalty/penalty_contact.hpp"

#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/dynamics/dynamics.hpp"

namespace coulomb {
namespace {

/// Rows like those of hard contact: (t1, t2, n).
void add_row(const Model& model, const Contact& contact, int index, ConstraintRows& rows) {
  BodyRows b;
  b.row = 3 * index;
  b.block = index;
  b.contact = index;
  b.body_a = contact.body_a;
  b.body_b = contact.body_b;
  copy3(contact.point, b.point_a);
  copy3(contact.point, b.point_b);
  contact_frame(contact.normal, b.axes[0], b.axes[1]);
  copy3(contact.normal, b.axes[2]);
  b.phi[2] = contact.distance;

  Block block;
  block.type = BlockType::cone;
  block.row = b.row;
  block.size = 3;
  block.mu = model.pair_friction[contact.pair];
  rows.blocks.push_back(block);
  rows.body_rows.push_back(b);
}

/// Constants of one pair, its own or the scene's.
struct Stiffness {
  Stiffness(const PairPenalty& pair, const PenaltyDefaults& defaults)
      : scale(pair.scale), normal(pair.stiffness.value_or(defaults.stiffness)),
        damping(pair.damping.value_or(defaults.damping)),
        tangential(pair.friction_stiffness.value_or(defaults.friction_stiffness)) {}

  double scale;       // s
  double normal;      // k_n
  double damping;     // k_d
  double tangential;  // k_t
};

/// Friction at the sliding velocity u (2): the force and its law.
Mode friction(double mu, double viscosity, double normal_force, const double* u, double* f, PenaltyLaw& law) {
  const double speed = std::hypot(u[0], u[1]);
  const double bound = mu * normal_force;

  // Slow: viscous.
  if (viscosity * speed < bound) {
    for (int i = 0; i < 2; ++i) {
      f[i] = -viscosity * u[i];
      law.T[i][i] = -viscosity;
    }
    return Mode::sticking;
  }
  if (!(speed > 0)) return Mode::sliding;

  // Else as large as the cone allows, against the motion.
  const double t[2] = {u[0] / speed, u[1] / speed};
  for (int i = 0; i < 2; ++i) {
    f[i] = -bound * t[i];
    law.N[i] = -mu * t[i];
    for (int j = 0; j < 2; ++j)
      law.T[i][j] = -bound / speed * ((i == j) - t[i] * t[j]);
  }
  return Mode::sliding;
}

/// What the law (B10) is evaluated at.
struct LawInput {
  double mu;
  double distance;  // d < 0
  double share;     // of the whole, which every force is proportional to
  const double* u;  // 3: c = J v
};

/// Force and law of one contact. Its normal row then differentiates to df_N = w d(J v)_N + slope dd: a row with restitution e sees
/// (1 + e) v where both of its velocities are v, so e = w - 1.
Mode contact_law(const Stiffness& k, const LawInput& in, BodyRows& b, double* f, PenaltyLaw& law) {
  law = PenaltyLaw{};
  f[0] = f[1] = f[2] = 0;
  b.dbias_dphi = 0;
  b.restitution = -1;

  // Pulled apart faster than the spring pushes: nothing.
  const double push = k.scale * in.distance * (k.damping * in.u[2] - k.normal);
  if (!(push > 0)) return Mode::separating;

  f[2] = push;
  b.dbias_dphi = in.share * k.scale * (k.damping * in.u[2] - k.normal);
  b.restitution = in.share * k.scale * k.damping * in.distance - 1;
  const Mode mode = friction(in.mu, k.scale * k.tangential, push, in.u, f, law);

  // All of it for the contact's share of a flat side.
  for (int i = 0; i < 3; ++i) {
    law.share_slope[i] = f[i];
    f[i] *= in.share;
  }
  for (auto& row : law.T)
    for (double& x : row)
      x *= in.share;
  return mode;
}

}  // namespace

PenaltyForces::PenaltyForces(const Model& model) : collision(model), twist(8 * model.nv), wrench(8 * model.nv + 8) {}

void penalty_forces(const Model& model, const DynamicsWorkspace& dynamics, const double* v,
                    const unsigned char* left_out, PenaltyForces& out, double* Q) {
  detect_penalty_contacts(model, dynamics.body_position.data(), dynamics.body_rotation.data(), left_out, out.collision,
                          out.shares);
  const std::vector<Contact>& contacts = out.collision.contacts;
  const int count = int(contacts.size());
  out.rows.clear();
  out.force.resize(3 * contacts.size());
  out.velocity.resize(3 * contacts.size());
  out.modes.resize(contacts.size());
  out.inactive.resize(contacts.size());
  out.laws.resize(contacts.size());
  if (count == 0) return;

  // c = J v
  for (int i = 0; i < count; ++i)
    add_row(model, contacts[i], i, out.rows);
  out.rows.num_rows = 3 * count;
  out.rows.num_blocks = count;
  out.rows.bias.assign(out.force.size(), 0.0);
  link_twists(model, dynamics, v, out.twist.data());
  apply_rows(model, dynamics, out.rows, v, out.twist.data(), out.velocity.data());

  // f of c, contact by contact
  for (int i = 0; i < count; ++i) {
    const int pair = contacts[i].pair;
    const Stiffness stiffness(model.pair_penalty[pair], model.penalty);
    const LawInput in{model.pair_friction[pair], contacts[i].distance, out.shares[i].value, &out.velocity[3 * i]};
    out.modes[i] = contact_law(stiffness, in, out.rows.body_rows[i], &out.force[3 * i], out.laws[i]);
    out.inactive[i] = out.modes[i] == Mode::separating;
  }

  // Q += J^T f
  apply_rows_transposed(model, dynamics, out.rows, out.force.data(), out.wrench.data(), Q);
}

void add_penalty_body_forces(const Model& model, const DynamicsWorkspace& dynamics, const PenaltyForces& forces,
                             BodyForces& out) {
  for (const BodyRows& b : forces.rows.body_rows) {
    if (forces.inactive[b.block]) continue;

    // On body A, and the opposite on body B.
    double f[3] = {0, 0, 0};
    double minus[3];
    for (int i = 0; i < 3; ++i)
      axpy3(forces.force[b.row + i], b.axes[i], f);
    for (int i = 0; i < 3; ++i)
      minus[i] = -f[i];
    add_body_force(model, dynamics, out, b.body_a, b.point_a, f);
    add_body_force(model, dynamics, out, b.body_b, b.point_b, minus);
  }
}

}  // namespace coulomb
