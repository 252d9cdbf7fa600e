// joint_placement/<joint>: frame of the joint's body in its parent at zero joint motion, (x, y, z, rx, ry, rz), metres and rotation
// vector; everything beyond the joint moves along. r as of a virtual joint with the twist xi there (docs/theory.md (P6)):
//   descendants i: psi_ddot . a_i + psi_dot . b_i + xi_w . c_i,  ancestors: J_i . u,  psi_dot = V x xi, psi_ddot = A x xi + V x psi_dot
// with V, A of the parent. Free joints have no placement (q holds it); of a body's several joints the first has it.
//
// body_placement/<body>: the same of a body without joints.
//
// geometry_placement/<geometry>: the same six numbers for a geometry in its body: only its surface moves, not its body.
#include <algorithm>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/contact.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/constraints/penalty/penalty_contact.hpp"
#include "coulomb/constraints/row_derivatives.hpp"
#include "coulomb/dynamics/acceleration.hpp"
#include "coulomb/dynamics/body_wrenches.hpp"
#include "coulomb/dynamics/joint_forces.hpp"
#include "coulomb/dynamics/spin.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/model/scene/topology.hpp"
#include "coulomb/model/tendon.hpp"
#include "coulomb/parameters/frame_motion.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/parameters/penalty_sides.hpp"
#include "coulomb/parameters/right_hand_side.hpp"

namespace coulomb {
namespace {

constexpr const char* placement_unit = "m, rad";

/// Position and rotation vector of a frame.
void read_placement(const double* pos, const double* quat, double* values) {
  copy3(pos, values);
  quaternion_log(quat, values + 3);
}

/// The other way; a rotation vector of a whole turn would not be unique.
void write_placement(const double* values, const std::string& what, double* pos, double* quat) {
  const double angle = norm3(values + 3);
  if (!(angle < 2 * M_PI))
    checks::fail(what + "[3..5]", "rotation angle " + checks::text(angle) + " is not below 2 pi");
  copy3(values, pos);
  rotation_exp(values + 3, quat);
}

/// Twist (v of the frame's origin, w), world axes, per unit of the k-th number. parent: world from parent; vector: rotation vector.
void placement_twist(const double* parent, const double* vector, int k, double* v, double* w) {
  // A shift is along the axes of the parent.
  v[0] = v[1] = v[2] = w[0] = w[1] = w[2] = 0;
  if (k < 3) {
    for (int i = 0; i < 3; ++i)
      v[i] = parent[3 * i + k];
    return;
  }

  // exp(r + dr) = exp(r) exp(Jr dr) = exp(Jr(-r) dr) exp(r): the spin in the parent's axes is Jr(-r) e_k.
  double minus[3] = {-vector[0], -vector[1], -vector[2]};
  double J[9];
  rotation_right_jacobian(minus, J);
  const double column[3] = {J[k - 3], J[3 + k - 3], J[6 + k - 3]};
  rotate(parent, column, w);
}

/// The same as a twist about the reference point of `of`'s tree, for a frame placed in body `parent` by these values.
void placement_displacement(const Model& m, const DynamicsWorkspace& dynamics, int parent, int of, const double* values,
                            int k, double* xi) {
  // The frame's origin, from the reference point.
  const double* R = dynamics.body_rotation.data() + 9 * parent;
  double origin[3];
  rotate(R, values, origin);
  add3(origin, dynamics.body_position.data() + 3 * parent, origin);
  relative_point(m, dynamics, of, origin, origin);

  // The velocity at the reference point is v_origin - w x origin.
  placement_twist(R, values + 3, k, xi, xi + 3);
  add_cross3(origin, xi + 3, xi);
}

/// The surface of one side of a contact (first: 0 of A, 6 of B) has the twist, at the contact's point.
void add_moved_surface(const ParameterContext& context, const BodyRows& b, int first, const double* twist,
                       RightHandSide& out) {
  // As the contact moves with that body (G5).
  const ContactMotion& motion = context.derivatives.motions[b.contact];
  double dn[3];
  double dp[3];
  for (int i = 0; i < 3; ++i) {
    dn[i] = dp[i] = 0;
    for (int c = 0; c < 6; ++c) {
      dn[i] += motion.dnormal[i][first + c] * twist[c];
      dp[i] += motion.dpoint[i][first + c] * twist[c];
    }
  }
  double dphi = 0;
  for (int c = 0; c < 6; ++c)
    dphi += motion.ddistance[first + c] * twist[c];
  add_surface_motion(context, b, dn, dp, dphi, out);

  // A point of two faces' common outline has a share that turns with the geometry.
  if (context.penalty)
    add_share_change(context, b, (first == 0 ? 1.0 : -1.0) * dot3(context.penalty->shares[b.contact].turn, twist + 3),
                     out);
}

class GeometryPlacementKind : public ParameterKind {
  const char* name() const override { return "geometry_placement"; }
  const char* unit() const override { return placement_unit; }
  std::vector<ParameterElement> elements(const Model& model) const override { return all_geometries(model, 6); }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    read_placement(model.geometry_pos.data() + 3 * e.index, model.geometry_quat.data() + 4 * e.index, values);
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    write_placement(values, what, model.geometry_pos.data() + 3 * e.index, model.geometry_quat.data() + 4 * e.index);
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    // The frame, as values and as a point of the world.
    const Model& m = context.model;
    const double* R = context.dynamics.body_rotation.data() + 9 * m.geometry_body[e.index];
    double values[6];
    double origin[3];
    read(m, e, values);
    rotate(R, values, origin);
    add3(origin, context.dynamics.body_position.data() + 3 * m.geometry_body[e.index], origin);

    // Contacts that the geometry takes part in; it moves as body A or as body B.
    for (const BodyRows& b : context.rows.body_rows) {
      if (b.contact < 0 || context.inactive[b.block]) continue;
      const Contact& contact = context.contacts[b.contact];
      if (contact.geometry_a != e.index && contact.geometry_b != e.index) continue;
      const int first = contact.geometry_a == e.index ? 0 : 6;

      for (int k = 0; k < 6; ++k) {
        // The twist of the surface's material point at the contact.
        double twist[6];
        placement_twist(R, values + 3, k, twist, twist + 3);
        double arm[3];
        sub3(contact.point, origin, arm);
        add_cross3(twist + 3, arm, twist);

        add_moved_surface(context, b, first, twist, out[k]);
      }
    }
  }
  void frame_motions(const Model& m, const DynamicsWorkspace& dynamics, const ParameterElement& e,
                     std::vector<FrameMotion>& out) const override {
    const int body = m.geometry_body[e.index];
    double values[6];
    read(m, e, values);
    for (int k = 0; k < 6; ++k) {
      FrameMotion motion;
      motion.geometry = e.index;
      placement_displacement(m, dynamics, body, body, values, k, motion.xi);
      out.push_back(motion);
    }
  }
};

/// d force / d speed of an actuator at a site, whose force is that of the start of the step.
double speed_slope(const ParameterContext& c, int k) {
  const Actuator& actuator = c.model.actuators[k];
  if (c.joint_forces.clamps.actuators[k] != ForceBound::none) return 0;
  if (has_curves(actuator)) return unbounded_force(c.model, c.dynamics, k, c.q, c.v, c.u[k]).df_dspeed;
  const bool clamped = actuator.control_limited && actuator.activation == ActivationType::none;
  const double u = clamped ? std::clamp(c.u[k], actuator.control_range[0], actuator.control_range[1]) : c.u[k];
  return actuator.gain[2] * u + actuator.bias[2];
}

/// The virtual joint: r and s of displacing a body and all beyond it by the twist xi about the tree's reference point.
class Displacement {
 public:
  // V and A just before the virtual joint: those of the parent.
  Displacement(const ParameterContext& context, int body) : c_(context), m_(context.model), body_(body) {
    end_ = m_.body_subtree_end[body];
    const int parent = m_.body_parent[body];
    root_ = m_.body_tree[parent] < 0;
    if (!root_) {
      V_ = load6(c_.dynamics.body_twist.data() + 8 * parent);
      V_plus_ = load6(c_.body_twist_plus + 8 * parent);
    }
    A_ = parent_acceleration(m_, c_.dynamics, body);
  }

  void add(Spatial xi, RightHandSide& out) const {
    add_forces(xi, out);
    add_spin(xi, out);
    add_rows(xi, out);
    add_wrenches(xi, out);
    if (c_.own_forces) add_carried_wrenches(xi, out);
  }

 private:
  bool inside(int body) const { return body >= body_ && body < end_; }

  /// (P6): dofs beyond the virtual joint by psi_dot and psi_ddot, dofs before it by u.
  void add_forces(Spatial xi, RightHandSide& out) const {
    // psi_dot and psi_ddot of a joint whose column is xi.
    const DynamicsWorkspace& ws = c_.dynamics;
    const double h = c_.options.timestep;
    const Spatial rate = cross_motion(V_, xi);
    const Spatial acceleration = cross_motion(A_, xi) + cross_motion(V_, rate);

    // Dofs beyond.
    for (int d = 0; d < m_.nv; ++d) {
      if (!inside(m_.dof_body[d])) continue;

      // a, b, c of (D13)
      const double* x = ws.vectors.data() + 24 * d;
      const double value =
          dot(acceleration, load6(x)) + dot(rate.angular, load3(x + 6)) + dot(xi.angular, load3(x + 9));
      out.dofs.push_back({d, -h * value});
    }

    // Dofs before it: u of (D13) with what the body carries, as a wrench on the parent.
    const int parent = m_.body_parent[body_];
    if (m_.body_last_dof[parent] < 0) return;
    const double* link = ws.link.data() + 32 * body_;
    const double* inertia = ws.composite.data() + 12 * body_;

    const Vector3 momentum = load3(link);
    const Vector3 f = load3(link + 18);
    Spatial u = cross_force(xi, load6(link + 12)) + inertia_times(inertia, acceleration) +
                Spatial{-2.0 * cross(momentum, rate.angular), multiply3(link + 3, rate.angular)};
    u = u - Spatial{cross(f, xi.angular), multiply3(link + 21, xi.angular)};

    double wrench[6];
    store6(wrench, -h * u);
    out.add_wrench(parent, wrench, wrench + 3);
  }

  /// Wrenches that bodies carry (of sites, of the medium) turn with them, as seen by the dofs before; the medium sees another velocity.
  void add_carried_wrenches(Spatial xi, RightHandSide& out) const {
    const double h = c_.options.timestep;
    double displacement[6];
    double before[6];
    store6(displacement, xi);
    store6(before, V_);
    const auto turn = [&](const double* wrench) {
      const int parent = m_.body_parent[body_];
      if (m_.body_last_dof[parent] < 0) return;
      double turned[6];
      cross_force(displacement, wrench, turned);
      out.add_wrench(parent, turned, turned + 3, h);
    };
    for (int k = 0; k < m_.nu; ++k) {
      const Actuator& actuator = m_.actuators[k];
      if (actuator.body < 0 || actuator.reference_body >= 0 || !inside(actuator.body)) continue;
      double unit[6];
      double wrench[6];
      double turned[6];
      site_wrench(m_, c_.dynamics, actuator, unit);
      for (int i = 0; i < 6; ++i)
        wrench[i] = c_.joint_forces.actuator_force[k] * unit[i];
      turn(wrench);

      // Its force feels the speed along the wrench, of which the dofs before do not turn along.
      cross_force(displacement, unit, turned);
      const double change = h * speed_slope(c_, k) * dot6(before, turned);
      out.add_wrench(actuator.body, unit, unit + 3, change);
    }
    for (int b = body_; b < end_ && has_medium(m_); ++b) {
      if (m_.body_last_dof[b] < 0 || !feels_medium(m_, b)) continue;
      double seen[6];
      double change[6];
      const MediumOnBody medium(m_, c_.dynamics, b, c_.body_twist + 8 * b);
      turn(medium.wrench);
      medium.seen_change(displacement, before, seen);
      medium.respond(seen, change);
      out.add_wrench(b, change, change + 3, h);
    }
  }

  /// What the joints carry is displaced; the body's own joints move with it.
  void add_spin(Spatial xi, RightHandSide& out) const {
    double twist[6];
    double row[12];
    store6(twist, xi);
    displaced_inertia(c_.dynamics.composite.data() + 12 * body_, twist, row);
    add_spin_change(c_, m_.body_parent[body_], row, out);
  }

  /// s: rows by the displacement, and by the velocities that turn with it.
  void add_rows(Spatial xi, RightHandSide& out) const {
    // xi, and its rates at v+ and at v.
    double x[6];
    double rate[6];
    double before[6];
    store6(x, xi);
    store6(rate, cross_motion(V_plus_, xi));
    store6(before, cross_motion(V_, xi));

    for (std::size_t i = 0; i < c_.rows.body_rows.size(); ++i) {
      const BodyRows& b = c_.rows.body_rows[i];
      if (c_.inactive[b.block]) continue;
      if (b.contact >= 0) add_fixed_surfaces(xi, b, out);
      const auto moves = [&](int body) { return inside(body) && (b.contact < 0 || m_.body_last_dof[body] >= 0); };

      const BodyRowDerivative& block = c_.derivatives.blocks[i];
      for (int row = 0; row < b.size; ++row) {
        double value = 0;
        const double bounce = row >= b.first_kept() && row < b.end_kept() ? b.restitution : 0.0;
        if (moves(b.body_a))
          value += dot6(block.G_a[row], x) + dot6(block.e_a[row], rate) + bounce * dot6(block.e_a[row], before);
        if (moves(b.body_b))
          value += dot6(block.G_b[row], x) + dot6(block.e_b[row], rate) + bounce * dot6(block.e_b[row], before);
        if (value != 0) {
          out.rows.push_back({b.row + row, value});
        }
      }

      // Shares of two faces' common outline turn with the one that moves.
      if (c_.penalty && b.contact >= 0)
        add_share_change(
            c_, b, (int(moves(b.body_a)) - int(moves(b.body_b))) * dot3(c_.penalty->shares[b.contact].turn, x + 3),
            out);
    }
  }

  /// What is fixed to the world has no rows in the derivative of a contact: its surface moves instead.
  void add_fixed_surfaces(Spatial xi, const BodyRows& b, RightHandSide& out) const {
    for (const bool of_a : {true, false}) {
      const int body = of_a ? b.body_a : b.body_b;
      if (!inside(body) || m_.body_last_dof[body] >= 0) continue;
      double twist[6];
      double arm[3];
      store6(twist, xi);
      relative_point(m_, c_.dynamics, body, c_.contacts[b.contact].point, arm);
      add_cross3(twist + 3, arm, twist);
      add_moved_surface(c_, b, of_a ? 0 : 6, twist, out);
    }
  }

  /// r: wrenches of contacts whose points or frames move.
  void add_wrenches(Spatial xi, RightHandSide& out) const {
    double x[6];
    store6(x, xi);

    for (const PairWrenchDerivative& p : c_.derivatives.wrenches) {
      const bool a = inside(p.body_a);
      const bool b = inside(p.body_b);
      if (!a && !b) continue;

      double on_a[6] = {0};
      double on_b[6] = {0};
      for (int i = 0; i < 6; ++i)
        for (int j = 0; j < 6; ++j) {
          on_a[i] += ((a ? p.aa[i][j] : 0.0) + (b ? p.ab[i][j] : 0.0)) * x[j];
          on_b[i] += ((a ? p.ba[i][j] : 0.0) + (b ? p.bb[i][j] : 0.0)) * x[j];
        }

      if (m_.body_last_dof[p.body_a] >= 0) {
        out.add_wrench(p.body_a, on_a, on_a + 3);
      }
      if (m_.body_last_dof[p.body_b] >= 0) {
        out.add_wrench(p.body_b, on_b, on_b + 3);
      }
    }
  }

  const ParameterContext& c_;
  const Model& m_;
  int body_;
  int end_;
  bool root_ = false;
  Spatial V_{};
  Spatial V_plus_{};
  Spatial A_{};
};

/// Paths of tendons do not know how they change with placements.
void check_paths(const Model& m, int body, const std::string& what) {
  const int tendon = tendon_of_subtree(m, body, m.body_subtree_end[body]);
  if (tendon >= 0)
    checks::fail(what, "it changes the path of tendon '" + m.tendons[tendon].name +
                           "', of which there is no derivative with respect to placements");

  // Nor do actuators between two bodies, of which one alone is displaced.
  const auto inside = [&](int b) { return b >= body && b < m.body_subtree_end[body]; };
  for (const Actuator& a : m.actuators)
    if (a.reference_body >= 0 && inside(a.body) != inside(a.reference_body))
      checks::fail(what, "it moves one end of actuator '" + a.name +
                             "', of which there is no derivative with respect to placements");
}

class JointPlacementKind : public ParameterKind {
  const char* name() const override { return "joint_placement"; }
  const char* unit() const override { return placement_unit; }
  std::vector<ParameterElement> elements(const Model& model) const override {
    // Free joints are placed by q; of a body's joints the first has the placement.
    std::vector<ParameterElement> out;
    for (int j = 0; j < model.num_joints; ++j)
      if (model.joint_type[j] != JointType::free && model.body_first_joint[model.joint_body[j]] == j)
        out.push_back({model.joint_names[j], j, 6});
    return out;
  }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    const int body = model.joint_body[e.index];
    read_placement(model.body_pos.data() + 3 * body, model.body_quat.data() + 4 * body, values);
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    const int body = model.joint_body[e.index];
    write_placement(values, what, model.body_pos.data() + 3 * body, model.body_quat.data() + 4 * body);
  }
  void check_derivative(const Model& model, const ParameterElement& e, const std::string& what) const override {
    check_paths(model, model.joint_body[e.index], what);
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    const Model& m = context.model;
    const int body = m.joint_body[e.index];
    const int parent = m.body_parent[body];
    double values[6];
    read(m, e, values);

    const Displacement displacement(context, body);
    for (int k = 0; k < 6; ++k) {
      double twist[6];
      placement_displacement(m, context.dynamics, parent, body, values, k, twist);
      displacement.add(load6(twist), out[k]);
    }
  }
  void frame_motions(const Model& m, const DynamicsWorkspace& dynamics, const ParameterElement& e,
                     std::vector<FrameMotion>& out) const override {
    const int body = m.joint_body[e.index];
    double values[6];
    read(m, e, values);
    for (int k = 0; k < 6; ++k) {
      FrameMotion motion;
      motion.subtree = body;
      placement_displacement(m, dynamics, m.body_parent[body], body, values, k, motion.xi);
      out.push_back(motion);
    }
  }
};

/// body_placement/<body>: the same of a body without joints, in its parent: scenery, mocap bodies, tools.
class BodyPlacementKind : public ParameterKind {
  const char* name() const override { return "body_placement"; }
  const char* unit() const override { return placement_unit; }
  std::vector<ParameterElement> elements(const Model& model) const override {
    std::vector<ParameterElement> out;
    for (int b = 1; b < model.num_bodies; ++b)
      if (model.body_num_joints[b] == 0) out.push_back({model.body_names[b], b, 6});
    return out;
  }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    read_placement(model.body_pos.data() + 3 * e.index, model.body_quat.data() + 4 * e.index, values);
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    write_placement(values, what, model.body_pos.data() + 3 * e.index, model.body_quat.data() + 4 * e.index);
    find_fixed_poses(model);
  }
  void check_derivative(const Model& model, const ParameterElement& e, const std::string& what) const override {
    check_paths(model, e.index, what);
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    const Model& m = context.model;
    double values[6];
    read(m, e, values);
    const Displacement displacement(context, e.index);
    for (int k = 0; k < 6; ++k) {
      double twist[6];
      placement_displacement(m, context.dynamics, m.body_parent[e.index], e.index, values, k, twist);
      displacement.add(load6(twist), out[k]);
    }
  }
  void frame_motions(const Model& m, const DynamicsWorkspace& dynamics, const ParameterElement& e,
                     std::vector<FrameMotion>& out) const override {
    double values[6];
    read(m, e, values);
    for (int k = 0; k < 6; ++k) {
      FrameMotion motion;
      motion.subtree = e.index;
      placement_displacement(m, dynamics, m.body_parent[e.index], e.index, values, k, motion.xi);
      out.push_back(motion);
    }
  }
};

}  // namespace

std::unique_ptr<ParameterKind> make_body_placement() { return std::make_unique<BodyPlacementKind>(); }
std::unique_ptr<ParameterKind> make_joint_placement() { return std::make_unique<JointPlacementKind>(); }
std::unique_ptr<ParameterKind> make_geometry_placement() { return std::make_unique<GeometryPlacementKind>(); }

}  // namespace coulomb
