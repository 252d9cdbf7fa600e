#include "coulomb/stepping/outputs/motion_sensors.hpp"

#include <algorithm>
#include <string>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/contact.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/constraints/row_derivatives.hpp"
#include "coulomb/dynamics/acceleration.hpp"
#include "coulomb/parameters/frame_motion.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/parameters/right_hand_side.hpp"
#include "coulomb/stepping/step_record.hpp"

namespace coulomb {
namespace {

/// F = I A + V x* I V.
Spatial body_force(const double* inertia, Spatial V, Spatial A) {
  return inertia_times(inertia, A) + cross_force(V, inertia_times(inertia, V));
}

/// Its change.
Spatial body_force_change(const double* inertia, Spatial V, Spatial dV, Spatial dA) {
  return inertia_times(inertia, dA) + cross_force(dV, inertia_times(inertia, V)) +
         cross_force(V, inertia_times(inertia, dV));
}

bool is_kind(const ParameterSet::Item& item, const char* name) { return std::string(item.kind->name()) == name; }

}  // namespace

void MotionSensors::move_to(const double* q, const double* v, const double* a) {
  kinematics(*model_, q, ws_);
  velocities(*model_, v, ws_);
  mass_matrix(*model_, ws_);
  prepare_derivatives(*model_, ws_, a, nullptr);
}

/// Zero for what is fixed to the world.
Spatial MotionSensors::twist(int body) const {
  return model_->body_tree[body] < 0 ? Spatial{} : load6(&ws_.body_twist[8 * body]);
}

/// With -g, at rest too.
Spatial MotionSensors::acceleration(int body) const {
  if (model_->body_tree[body] >= 0) return load6(&ws_.body_acceleration[8 * body]);
  return {-load3(model_->gravity.data()), {}};
}

bool MotionSensors::inside(int root, int body) const { return body >= root && body < model_->body_subtree_end[root]; }

bool MotionSensors::feels(const Row& row, int body) const { return row.of_forces && inside(row.body, body); }

/// A translation along the axis moves every point alike, a turn about it as its arm says.
void MotionSensors::screw_at(const Row& row, const double* point, double* by_f, double* by_n) const {
  double arm[3];
  sub3(point, row.position, arm);
  for (int i = 0; i < 3; ++i) {
    by_f[i] = row.turns ? 0 : row.c[i];
    by_n[i] = row.turns ? row.c[i] : 0;
  }
  if (row.turns) cross3(row.c, arm, by_f);
}

/// S about the reference point of a body's tree.
Spatial MotionSensors::screw_about(const Row& row, int body) const {
  const double origin[3] = {0, 0, 0};
  const int tree = model_->body_tree[body];
  Spatial out;
  double by_f[3];
  double by_n[3];
  screw_at(row, tree < 0 ? origin : &ws_.reference[3 * tree], by_f, by_n);
  out.linear = load3(by_f);
  out.angular = load3(by_n);
  return out;
}

/// The reading, and what the frame's body has of it.
MotionSensors::Row MotionSensors::row(const Sensor& sensor, int k) const {
  const FrameState at = frame_state(*model_, ws_, sensor.frame);
  Row out;
  out.of_forces = !is_acceleration(sensor.type);
  out.turns = sensor.type == SensorType::interaction_torque;
  out.body = sensor.frame.body;
  copy3(at.position, out.position);
  const bool own_axes = out.of_forces || sensor.type == SensorType::accelerometer;
  for (int i = 0; i < 3; ++i)
    out.c[i] = own_axes ? at.rotation[3 * i + k] : (i == k ? 1.0 : 0.0);

  // What the subtree needs to move as it does, and to be held against gravity.
  if (out.of_forces) {
    for (int b = std::max(out.body, 1); b < model_->body_subtree_end[out.body]; ++b) {
      if (model_->body_tree[b] >= 0) {
        out.value += dot(screw_about(out, b), body_force(&ws_.inertia[12 * b], twist(b), acceleration(b)));
        continue;
      }

      // What is fixed to the world has weight alone.
      Frame centre;
      centre.body = b;
      centre.at_com = true;
      double by_f[3];
      double by_n[3];
      screw_at(out, frame_state(*model_, ws_, centre).position, by_f, by_n);
      out.value -= model_->body_mass[b] * dot3(by_f, model_->gravity.data());
    }
    return out;
  }

  // c . A_w
  if (sensor.type == SensorType::frame_angular_acceleration) {
    const Vector3 axis = load3(out.c);
    out.value = dot(axis, acceleration(out.body).angular);
    store6(out.G, {});
    store6(out.H, {});
    store6(out.K, {{}, axis});
    return out;
  }

  // c . a_p with a_p = A_v + A_w x arm + w x v_p, where arm, c and v_p change as well.
  const Spatial V = twist(out.body);
  const Spatial A = acceleration(out.body);
  const double origin[3] = {0, 0, 0};
  const int tree = model_->body_tree[out.body];
  const Vector3 p = load3(out.position);
  const Vector3 o = load3(tree < 0 ? origin : &ws_.reference[3 * tree]);
  const Vector3 arm = p - o;
  const Vector3 c = load3(out.c);
  const Vector3 w = V.angular;
  const Vector3 velocity = load3(at.velocity);
  const Vector3 a_p = A.linear + cross(A.angular, arm) + cross(w, velocity);
  out.value = dot(c, a_p);

  // Its derivatives by displacement, dV and dA.
  const Vector3 cw = cross(c, w);
  const Vector3 by_p = cross(c, A.angular) + cross(cw, w);
  store6(out.K, {c, cross(arm, c)});
  store6(out.H, {cw, cross(velocity, c) + cross(arm, cw)});
  const Vector3 turned = own_axes ? cross(c, a_p) : Vector3{};
  store6(out.G, {by_p, cross(arm, by_p) + turned});
  return out;
}

/// The frame alone moves, its body does not.
double MotionSensors::frame_displaced(const Row& row, const std::vector<OutsideForce>& outside, Spatial xi) const {
  if (!row.of_forces) return dot(load6(row.G), xi);

  // The screw moves, what it is applied to does not.
  double sum = 0;
  for (int b = std::max(row.body, 1); b < model_->body_subtree_end[row.body]; ++b) {
    if (model_->body_tree[b] < 0) continue;
    const Spatial F = body_force(&ws_.inertia[12 * b], twist(b), acceleration(b));
    sum += dot(cross_motion(xi, screw_about(row, b)), F);
  }
  const Spatial moved = cross_motion(xi, screw_about(row, row.body));
  for (const OutsideForce& o : outside) {
    if (!feels(row, o.body)) continue;
    double arm[3];
    relative_point(*model_, ws_, o.body, o.point, arm);
    const Vector3 at_point = moved.linear + cross(moved.angular, load3(arm));
    sum -= dot(at_point, load3(o.f)) + dot(moved.angular, load3(o.n));
  }
  return sum;
}

/// A subtree moves, and with it its frames, bodies and their forces.
double MotionSensors::displaced(const Row& row, const std::vector<OutsideForce>& outside, const Displacement& d) const {
  const bool with_frame = inside(d.root, row.body);

  // An accelerometer feels its own body.
  if (!row.of_forces) {
    if (!with_frame) return 0;
    const Spatial V = twist(row.body);
    const Spatial A = acceleration(row.body);
    const Spatial dV = d.rate + cross_motion(d.xi, V);
    const Spatial dA = d.acceleration + cross_motion(d.rate, V) + cross_motion(d.xi, A);
    return dot(load6(row.G), d.xi) + dot(load6(row.H), dV) + dot(load6(row.K), dA);
  }
  if (!with_frame && !inside(row.body, d.root)) return 0;

  // Bodies, their forces and the screw that are displaced together do the same work as before.
  double sum = 0;
  const int first = with_frame ? row.body : d.root;
  for (int b = first; b < model_->body_subtree_end[first]; ++b) {
    const double* inertia = &ws_.inertia[12 * b];
    const Spatial V = twist(b);
    const Spatial S = screw_about(row, b);
    sum += dot(S, body_force_change(inertia, V, d.rate, d.acceleration + cross_motion(d.rate, V)));
    if (!with_frame) {
      sum += dot(S, cross_force(d.xi, body_force(inertia, V, acceleration(b))));
    }
  }

  // Outside forces keep their direction: the screw turns against them, their points move.
  const Spatial moved = with_frame ? cross_motion(d.xi, screw_about(row, row.body)) : Spatial{};
  for (const OutsideForce& o : outside) {
    if (!feels(row, o.body)) continue;
    double arm[3];
    relative_point(*model_, ws_, o.body, o.point, arm);
    const Vector3 at_point = moved.linear + cross(moved.angular, load3(arm));
    sum -= dot(at_point, load3(o.f)) + dot(moved.angular, load3(o.n));
    if (!o.material || !inside(d.root, o.body) || !row.turns) continue;
    const Vector3 shift = d.xi.linear + cross(d.xi.angular, load3(arm));
    sum -= dot(cross(load3(o.f), load3(row.c)), shift);
  }
  return sum;
}

/// A subtree whose twists and accelerations change by dV and dA + dV x V.
double MotionSensors::sped_up(const Row& row, int root, Spatial dV, Spatial dA) const {
  if (!row.of_forces) {
    if (!inside(root, row.body)) return 0;
    return dot(load6(row.H), dV) + dot(load6(row.K), dA + cross_motion(dV, twist(row.body)));
  }
  const bool with_frame = inside(root, row.body);
  if (!with_frame && !inside(row.body, root)) return 0;

  // Others the bodies of the subtree that both move.
  double sum = 0;
  const int first = with_frame ? row.body : root;
  for (int b = first; b < model_->body_subtree_end[first]; ++b) {
    const Spatial V = twist(b);
    sum += dot(screw_about(row, b), body_force_change(&ws_.inertia[12 * b], V, dV, dA + cross_motion(dV, V)));
  }
  return sum;
}

void MotionSensors::add_columns(const Row& row, const std::vector<OutsideForce>& outside, double* by_q, double* by_v,
                                double* by_a) const {
  for (int k = 0; k < model_->nv; ++k) {
    // A dof displaces all beyond it by J_k.
    const int root = model_->dof_body[k];
    const Spatial J = load6(&ws_.columns[8 * k]);
    by_q[k] +=
        displaced(row, outside, {root, J, load6(&ws_.column_rate[8 * k]), load6(&ws_.column_acceleration[8 * k])});
    by_v[k] += sped_up(row, root, J, load6(&ws_.column_chi[8 * k]));
    by_a[k] += sped_up(row, root, {}, J);
  }
}

/// What kinds of parameters see of the step, at the sensors' state, with these constraints.
ParameterContext MotionSensors::parameter_context(const ConstraintOptions& options, const StepRecord& record,
                                                  const ConstraintRows& rows, const std::vector<Contact>& contacts,
                                                  const double* lambda, const std::vector<Mode>& modes) const {
  static const RowDerivatives no_derivatives;
  static const std::vector<unsigned char> none_inactive;
  const double* rate = ws_.column_rate.data();
  const double* twists = ws_.body_twist.data();

  return {.model = *model_,
          .dynamics = ws_,
          .options = options,
          .rows = rows,
          .contacts = contacts,
          .derivatives = no_derivatives,
          .inactive = none_inactive,
          .velocities = {nullptr, rate, nullptr, rate},
          .body_twist = twists,
          .body_twist_plus = twists,
          .q = record.q.data(),
          .v = record.v.data(),
          .u = record.u.data(),
          .v_plus = record.v_next.data(),
          .acceleration = record.acceleration.data(),
          .lambda = lambda,
          .fext = record.fext,
          .modes = modes,
          .joint_forces = record.joint_forces};
}

/// A displaced subtree, or a displaced frame.
double MotionSensors::moved_by(const Row& row, const Sensor& sensor, const std::vector<OutsideForce>& outside,
                               const FrameMotion& m) const {
  double change = 0;
  if (m.subtree >= 0) {
    const Spatial xi = load6(m.xi);
    const Spatial V = twist(model_->body_parent[m.subtree]);
    const Spatial A = parent_acceleration(*model_, ws_, m.subtree);
    const Spatial xi_rate = cross_motion(V, xi);
    change += displaced(row, outside, {m.subtree, xi, xi_rate, cross_motion(A, xi) + cross_motion(V, xi_rate)});
  }

  // The frame of a geometry moves with it, that of a centre of mass with the com.
  if (m.geometry >= 0 && sensor.frame.geometry == m.geometry) {
    change += frame_displaced(row, outside, load6(m.xi));
  }
  if (m.body == row.body && sensor.frame.at_com) {
    double shift[3];
    rotate(&ws_.body_rotation[9 * m.body], m.dcom, shift);
    change += frame_displaced(row, outside, {load3(shift), {}});
  }
  return change;
}

/// By gravity: bodies of the subtree that are fixed to the world.
void MotionSensors::add_weight(const Row& row, const ParameterSet::Item& item, double scale, double* out) const {
  for (int b = std::max(row.body, 1); b < model_->body_subtree_end[row.body]; ++b) {
    if (model_->body_tree[b] >= 0) continue;
    Frame centre;
    centre.body = b;
    centre.at_com = true;
    double by_f[3];
    double by_n[3];
    screw_at(row, frame_state(*model_, ws_, centre).position, by_f, by_n);
    for (int k = 0; k < 3; ++k)
      out[item.first + k] -= scale * model_->body_mass[b] * by_f[k];
  }
}

void MotionSensors::add_parameters(const Row& row, const Sensor& sensor, const std::vector<OutsideForce>& outside,
                                   const ParameterRequest& request, double* out) const {
  const StepRecord& record = request.record;
  const double scale = request.scale;
  const ParameterContext context = parameter_context(request.options, record, record.rows, record.collision.contacts,
                                                     record.solution.lambda.data(), record.solution.modes);
  std::vector<FrameMotion> motions;
  std::vector<RightHandSide> sides;
  for (const ParameterSet::Item& item : request.set.items()) {
    // Displaced subtrees, or the frame alone.
    motions.clear();
    item.kind->frame_motions(*model_, ws_, item.element, motions);
    for (std::size_t k = 0; k < motions.size(); ++k)
      out[item.first + k] += scale * moved_by(row, sensor, outside, motions[k]);

    // Gravity is in what an accelerometer reads.
    const bool gravity = is_kind(item, "gravity");
    if (gravity && !row.of_forces)
      for (int k = 0; k < 3; ++k)
        out[item.first + k] -= scale * row.K[k];
    const bool inertial = gravity || is_kind(item, "mass") || is_kind(item, "com") || is_kind(item, "inertia");
    if (!row.of_forces || !inertial) continue;

    // Inertia and weight: those of the subtree.
    sides.assign(item.element.size, RightHandSide{});
    item.kind->right_hand_sides(context, item.element, sides.data());
    for (std::size_t k = 0; k < sides.size(); ++k)
      for (const RightHandSide::Wrench& w : sides[k].wrenches)
        if (feels(row, w.body))
          out[item.first + k] -= scale / request.options.timestep * dot(screw_about(row, w.body), load6(w.value));
    if (gravity) add_weight(row, item, scale, out);
  }
}

/// M dDelta is what the right-hand sides have more with the spins than without them.
void MotionSensors::add_spin_parameters(const std::vector<SpinDerivative>& spins, std::vector<double> by_shift,
                                        const ParameterRequest& request, double* out) {
  static const ConstraintRows no_rows;
  static const std::vector<Contact> no_contacts;
  static const std::vector<Mode> no_modes;

  // Delta from M Delta.
  factor(*model_, nullptr, ws_);
  solve_mass(*model_, ws_, by_shift.data());

  // Twice, with and without.
  ParameterContext context =
      parameter_context(request.options, request.record, no_rows, no_contacts, nullptr, no_modes);
  std::vector<RightHandSide> sides;
  for (const ParameterSet::Item& item : request.set.items()) {
    if (is_kind(item, "timestep")) continue;
    for (const double sign : {1.0, -1.0}) {
      context.spins = sign > 0 ? &spins : nullptr;
      sides.assign(item.element.size, RightHandSide{});
      item.kind->right_hand_sides(context, item.element, sides.data());
      for (std::size_t k = 0; k < sides.size(); ++k)
        for (const RightHandSide::Entry& entry : sides[k].dofs)
          out[item.first + k] += sign * request.scale * by_shift[entry.index] * entry.value;
    }
  }
}

}  // namespace coulomb
