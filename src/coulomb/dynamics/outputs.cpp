#include "coulomb/dynamics/outputs.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/energy_outputs.hpp"
#include "coulomb/dynamics/joint_forces.hpp"
#include "coulomb/dynamics/site_zone.hpp"
#include "coulomb/dynamics/spatial.hpp"
#include "coulomb/dynamics/tendon_state.hpp"

// A frame at p = o + arm on body X: dp = xi_v + xi_w x arm, dphi = xi_w, dv = dV_v + dV_w x arm + w x dp, dw = dV_w. A reading's
// change is written as a_p . dp + a_phi . dphi + a_v . dv + a_w . dw per frame, and taken to (G, H) by FrameCovector.

namespace coulomb {
namespace {

constexpr double zero3[3] = {0, 0, 0};

/// Point o about which the twists of a body's tree are taken; bodies that nothing moves use the world's origin.
const double* reference_point(const Model& model, const DynamicsWorkspace& ws, int body) {
  const int tree = model.body_tree[body];
  return tree < 0 ? zero3 : ws.reference.data() + 3 * tree;
}

/// The frame of a body's centre of mass, in the axes of the body.
Frame com_frame(int body) {
  Frame out;
  out.body = body;
  out.at_com = true;
  return out;
}

bool is_frame(SensorType type) { return type <= SensorType::gyro; }

/// Column of R that an axis sensor reports.
void axis_of(SensorType type, const double* R, double* out) {
  const int k = type == SensorType::x_axis ? 0 : type == SensorType::y_axis ? 1 : 2;
  for (int i = 0; i < 3; ++i)
    out[i] = R[3 * i + k];
}

/// Position, direction or velocity before it is turned into the axes of the reference frame (or of the frame itself); b: the
/// reference frame, null without one.
void world_reading(const Sensor& sensor, const FrameState& a, const FrameState* b, double* y) {
  // Relative to the world.
  switch (sensor.type) {
    case SensorType::position: copy3(a.position, y); break;
    case SensorType::velocity:
    case SensorType::velocimeter: copy3(a.velocity, y); break;
    case SensorType::angular_velocity:
    case SensorType::gyro: copy3(a.spin, y); break;
    default: axis_of(sensor.type, a.rotation, y);
  }
  if (!b) return;

  // Relative to the reference frame, which carries the point along.
  double d[3];
  double carried[3];
  sub3(a.position, b->position, d);
  if (sensor.type == SensorType::position) copy3(d, y);
  if (sensor.type == SensorType::angular_velocity) sub3(y, b->spin, y);
  if (sensor.type == SensorType::velocity) {
    cross3(b->spin, d, carried);
    sub3(y, b->velocity, y);
    sub3(y, carried, y);
  }
}

/// Reading of a sensor of a frame: the world's, in the axes in which it is reported.
void read_frame(const Model& model, const DynamicsWorkspace& ws, const Sensor& sensor, double* y) {
  const FrameState a = frame_state(model, ws, sensor.frame);
  FrameState b{};
  if (sensor.reference) b = frame_state(model, ws, *sensor.reference);

  // Orientations compose.
  if (sensor.type == SensorType::orientation) {
    if (sensor.reference)
      quaternion_conjugate_multiply(b.quaternion, a.quaternion, y);
    else
      std::copy_n(a.quaternion, 4, y);
    return;
  }

  // Vectors are differences, turned into axes.
  world_reading(sensor, a, sensor.reference ? &b : nullptr, y);
  const bool own_axes = sensor.type == SensorType::velocimeter || sensor.type == SensorType::gyro;
  if (own_axes)
    rotate_transposed(a.rotation, y, y);
  else if (sensor.reference)
    rotate_transposed(b.rotation, y, y);
}

/// Row r: the reading is c . y, c the r-th axis of the frame in which it is given.
void frame_row(const Sensor& sensor, int r, const FrameState& a, const FrameState* b, FrameCovector& on_a,
               FrameCovector& on_b) {
  double y[3];
  double d[3];
  double t[3];

  // The axis c along which row r reads.
  double c[3] = {0, 0, 0};
  const bool own_axes = sensor.type == SensorType::orientation || sensor.type == SensorType::velocimeter ||
                        sensor.type == SensorType::gyro;
  const double* R = own_axes ? a.rotation : b ? b->rotation : nullptr;
  for (int i = 0; i < 3; ++i)
    c[i] = R ? R[3 * i + r] : (i == r ? 1.0 : 0.0);

  // The orientation moves with the turns of both frames.
  if (sensor.type == SensorType::orientation) {
    copy3(c, on_a.phi);
    for (int i = 0; i < 3; ++i)
      on_b.phi[i] = -c[i];
    return;
  }

  // Reporting axes that turn by phi change the reading by -c . (phi x y).
  world_reading(sensor, a, b, y);
  cross3(y, c, t);
  FrameCovector& axes = own_axes ? on_a : on_b;
  for (int i = 0; i < 3; ++i)
    axes.phi[i] -= t[i];

  // The reading itself, and how the reference frame counts against it.
  switch (sensor.type) {
    case SensorType::position:
      for (int i = 0; i < 3; ++i) {
        on_a.p[i] = c[i];
        on_b.p[i] = -c[i];
      }
      break;
    case SensorType::velocity:
    case SensorType::velocimeter:
      for (int i = 0; i < 3; ++i) {
        on_a.v[i] = c[i];
        on_b.v[i] = -c[i];
      }

      // The reference frame carries the point along: the reading has - w_b x (p_a - p_b).
      if (!b) break;
      cross3(b->spin, c, t);
      for (int i = 0; i < 3; ++i) {
        on_a.p[i] = t[i];
        on_b.p[i] = -t[i];
      }
      sub3(a.position, b->position, d);
      cross3(d, c, t);
      for (int i = 0; i < 3; ++i)
        on_b.w[i] = -t[i];
      break;
    case SensorType::angular_velocity:
    case SensorType::gyro:
      for (int i = 0; i < 3; ++i) {
        on_a.w[i] = c[i];
        on_b.w[i] = -c[i];
      }
      break;
    default:
      // An axis turns with its frame.
      for (int i = 0; i < 3; ++i)
        on_a.phi[i] += t[i];
  }
}

/// How far a joint is beyond a limit, and how that moves.
struct Limit {
  int dof = -1;  // first of the joint's dofs; -1: none is violated
  int count = 0;
  double gap = 0;                     // rad or m, negative
  double rate = 0;                    // of the gap
  double coefficient[3] = {0, 0, 0};  // rate = coefficient . v
  double dcoefficient[3][3] = {{0}};  // of coefficient, by the joint's dofs
  bool upper = false;
};

/// The violated limit of a joint, if any (dof >= 0).
Limit violated_limit(const Model& model, const double* q, const double* v, int joint) {
  Limit out;
  if (!model.joint_limited[joint]) return out;

  // A ball joint's limit bounds the angle of its rotation vector phi.
  const double* qj = q + model.joint_q[joint];
  if (model.joint_type[joint] == JointType::ball) {
    double unit[4];
    double phi[3];
    double inverse[9];
    quaternion_normalize(qj, unit);
    quaternion_log(unit, phi);
    const double angle = norm3(phi);
    if (angle < 1e-9 || model.joint_upper[joint] - angle >= 0) return out;
    inverse_right_jacobian(phi, inverse);

    // The gap is upper - |phi|; its gradient -phi/|phi| is its own image under J_r^-1, and turns with phi across
    // itself.
    out.count = 3;
    out.upper = true;
    out.gap = model.joint_upper[joint] - angle;
    for (int i = 0; i < 3; ++i)
      out.coefficient[i] = -phi[i] / angle;
    for (int j = 0; j < 3; ++j) {
      const double column[3] = {inverse[j], inverse[3 + j], inverse[6 + j]};
      const double along = dot3(phi, column) / (angle * angle);
      for (int i = 0; i < 3; ++i)
        out.dcoefficient[i][j] = -(column[i] - phi[i] * along) / angle;
    }
  } else {
    // Hinges and slides: the side that is violated.
    const double below = qj[0] - model.joint_lower[joint];
    const double above = model.joint_upper[joint] - qj[0];
    if (!(below < 0) && !(above < 0)) return out;

    out.count = 1;
    out.upper = !(below < 0);
    out.gap = out.upper ? above : below;
    out.coefficient[0] = out.upper ? -1 : 1;
  }

  // The rate of the gap follows from the velocities.
  out.dof = model.joint_v[joint];
  for (int i = 0; i < out.count; ++i)
    out.rate += out.coefficient[i] * v[out.dof + i];
  return out;
}

/// The violated limit of a tendon: how far it is beyond, negative, and how fast that changes per dL/dt.
struct TendonLimit {
  double sign = 0;  // of the gap by the length; 0: none is violated
  double gap = 0;
};

TendonLimit violated_tendon_limit(const Model& model, int tendon, double length) {
  const Tendon& t = model.tendons[tendon];
  if (!t.limited) return {};
  if (length < t.lower) return {1, length - t.lower};
  if (length > t.upper) return {-1, t.upper - length};
  return {};
}

/// 1 or 0: the origin of the sensor's frame in the zone of its site.
double read_inside_site(const Model& model, const DynamicsWorkspace& ws, const Sensor& sensor) {
  const Site& site = model.sites[sensor.index];
  const FrameState at = frame_state(model, ws, site.frame);
  const FrameState point = frame_state(model, ws, sensor.frame);
  double arm[3];
  double p[3];
  sub3(point.position, at.position, arm);
  rotate_transposed(at.rotation, arm, p);
  return is_in_zone(site, p) ? 1 : 0;
}

/// Readings that are no motion of a frame: joints, tendons, subtrees, actuators, limits, fields, zones.
void read_others(const Model& model, const DynamicsWorkspace& ws, const double* q, const double* v,
                 const Sensor& sensor, double* y) {
  switch (sensor.type) {
    case SensorType::joint_position: {
      const int size = sensor_size(model, sensor);
      const int first = model.joint_q[sensor.index];
      std::copy_n(q + first, size, y);
      if (size >= 4) quaternion_normalize(q + first + size - 4, y + size - 4);
      break;
    }
    case SensorType::joint_velocity: std::copy_n(v + model.joint_v[sensor.index], sensor_size(model, sensor), y); break;
    case SensorType::subtree_com: copy3(subtree_state(model, ws, sensor.index).com, y); break;
    case SensorType::subtree_velocity: copy3(subtree_state(model, ws, sensor.index).velocity, y); break;
    case SensorType::subtree_angular_momentum: angular_momentum(model, ws, sensor.index, y); break;
    case SensorType::potential_energy: y[0] = potential_energy(model, ws, q); break;
    case SensorType::kinetic_energy: y[0] = kinetic_energy(model, ws, q, v); break;
    case SensorType::actuator_position: y[0] = actuator_force(model, ws, sensor.index, q, v, 0).length; break;
    case SensorType::actuator_velocity: y[0] = actuator_force(model, ws, sensor.index, q, v, 0).speed; break;
    case SensorType::tendon_length:
    case SensorType::tendon_velocity: {
      TendonState state;
      tendon_state(model, ws, sensor.index, q, false, state);
      y[0] = sensor.type == SensorType::tendon_length ? state.length : state.rate(v);
      break;
    }
    case SensorType::tendon_limit_position:
    case SensorType::tendon_limit_velocity: {
      TendonState state;
      tendon_state(model, ws, sensor.index, q, false, state);
      const TendonLimit limit = violated_tendon_limit(model, sensor.index, state.length);
      const bool is_position = sensor.type == SensorType::tendon_limit_position;
      y[0] = is_position ? limit.gap : limit.sign == 0 ? 0 : limit.sign * state.rate(v);
      break;
    }
    case SensorType::magnetometer:
      rotate_transposed(frame_state(model, ws, sensor.frame).rotation, sensor.field.data(), y);
      break;
    case SensorType::inside_site: y[0] = read_inside_site(model, ws, sensor); break;
    case SensorType::joint_limit_position: y[0] = violated_limit(model, q, v, sensor.index).gap; break;
    case SensorType::joint_limit_velocity: y[0] = violated_limit(model, q, v, sensor.index).rate; break;
    default: y[0] = 0;
  }
}

/// Rows of a subtree's centre of mass or its velocity: a mean over bodies, weighted by mass.
void subtree_rows(const Model& model, const DynamicsWorkspace& ws, const Sensor& sensor, std::vector<OutputRow>& rows) {
  const SubtreeState whole = subtree_state(model, ws, sensor.index);
  const double mass = whole.mass;
  const bool com = sensor.type == SensorType::subtree_com;

  // Without mass the subtree is its root.
  for (int b = sensor.index; b < model.body_subtree_end[sensor.index]; ++b) {
    const double weight = mass > 0 ? model.body_mass[b] / mass : (b == sensor.index ? 1.0 : 0.0);

    const Frame frame = com_frame(b);
    const FrameState at = frame_state(model, ws, frame);

    // Every body adds its own motion, and its mass moves the mean towards it.
    for (int r = 0; r < 3; ++r) {
      FrameCovector a;
      (com ? a.p : a.v)[r] = weight;
      add_frame_term(model, ws, frame, at, a, rows[r]);
      if (mass > 0)
        rows[r].terms.back().mass_slope =
            (com ? at.position[r] - whole.com[r] : at.velocity[r] - whole.velocity[r]) / mass;
    }
  }
}

/// Row of a tendon's length, or of its gap to a limit that is violated, or of the rate of either.
void tendon_row(const Model& model, const DynamicsWorkspace& ws, const double* q, const double* v, const Sensor& sensor,
                OutputRow& row) {
  const bool rate = sensor.type == SensorType::tendon_velocity || sensor.type == SensorType::tendon_limit_velocity;
  TendonState state;
  tendon_state(model, ws, sensor.index, q, rate, state);

  // The gap follows the length, or its opposite; the bound is a parameter.
  double sign = 1;
  if (sensor.type == SensorType::tendon_limit_position || sensor.type == SensorType::tendon_limit_velocity) {
    sign = violated_tendon_limit(model, sensor.index, state.length).sign;
    if (sign == 0) return;
    if (!rate) {
      row.tendon = sensor.index;
      (sign > 0 ? row.dlower : row.dupper) = -sign;
    }
  }

  for (int i = 0; i < state.num; ++i) {
    (rate ? row.dv : row.dq).push_back({state.dof[i], sign * state.J[i]});
    for (int j = 0; rate && state.turns && j < state.num; ++j)
      row.dq.push_back({state.dof[j], sign * state.dJ[i][j] * v[state.dof[i]]});
  }
}

/// Rows of a field, which is constant in the world: it turns against the frame.
void magnetometer_rows(const Model& model, const DynamicsWorkspace& ws, const Sensor& sensor,
                       std::vector<OutputRow>& rows) {
  const FrameState at = frame_state(model, ws, sensor.frame);
  for (int r = 0; r < 3; ++r) {
    const double axis[3] = {at.rotation[r], at.rotation[3 + r], at.rotation[6 + r]};
    FrameCovector a;
    cross3(axis, sensor.field.data(), a.phi);
    add_frame_term(model, ws, sensor.frame, at, a, rows[r]);
  }
}

/// Rows of joint, tendon, limit and actuator sensors.
void joint_rows(const Model& model, const DynamicsWorkspace& ws, const double* q, const double* v, const Sensor& sensor,
                std::vector<OutputRow>& rows) {
  // The dofs themselves.
  if (sensor.type == SensorType::joint_position || sensor.type == SensorType::joint_velocity) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      (sensor.type == SensorType::joint_position ? rows[i].dq : rows[i].dv)
          .push_back({model.joint_v[sensor.index] + static_cast<int>(i), 1});
    return;
  }

  if (sensor.type >= SensorType::tendon_length && sensor.type <= SensorType::tendon_limit_velocity) {
    tendon_row(model, ws, q, v, sensor, rows[0]);
    return;
  }

  // The violated limit: by velocities its gradient, by positions the gradient or how it turns.
  OutputRow& row = rows[0];
  const bool rate = sensor.type == SensorType::joint_limit_velocity;
  if (rate || sensor.type == SensorType::joint_limit_position) {
    const Limit limit = violated_limit(model, q, v, sensor.index);
    for (int i = 0; i < limit.count; ++i) {
      if (rate)
        row.dv.push_back({limit.dof + i, limit.coefficient[i]});
      else
        row.dq.push_back({limit.dof + i, limit.coefficient[i]});
      for (int j = 0; rate && j < limit.count; ++j)
        row.dq.push_back({limit.dof + j, limit.dcoefficient[i][j] * v[limit.dof + i]});
    }
    if (!rate && limit.dof >= 0) {
      // The bound is a parameter.
      row.joint = sensor.index;
      (limit.upper ? row.dupper : row.dlower) = limit.upper ? 1 : -1;
    }
    return;
  }

  // An actuator's length and speed.
  const ActuatorForce a = actuator_force(model, ws, sensor.index, q, v, 0);
  const ActuatorDofs dofs = actuator_dofs(model, sensor.index);
  for (int i = 0; i < dofs.num; ++i) {
    if (sensor.type == SensorType::actuator_position)
      row.dq.push_back({dofs.dof[i], a.dlength[i]});
    else {
      row.dq.push_back({dofs.dof[i], a.dspeed[i]});
      row.dv.push_back({dofs.dof[i], a.moment[i]});
    }
  }
}

}  // namespace

FrameState frame_state(const Model& model, const DynamicsWorkspace& ws, const Frame& frame) {
  // Pose of the frame in its body, from a geometry, the centre of mass or the caller.
  FrameState out;
  const double* R = ws.body_rotation.data() + 9 * frame.body;
  const double* pos = frame.geometry >= 0 ? model.geometry_pos.data() + 3 * frame.geometry
                      : frame.at_com      ? model.body_com.data() + 3 * frame.body
                                          : frame.pos.data();
  const double* quat = frame.geometry >= 0 ? model.geometry_quat.data() + 4 * frame.geometry : frame.quat.data();

  // Pose in the world.
  rotate(R, pos, out.position);
  add3(out.position, ws.body_position.data() + 3 * frame.body, out.position);
  quaternion_multiply(ws.body_quaternion.data() + 4 * frame.body, quat, out.quaternion);
  double local[9];
  quaternion_to_matrix(quat, local);
  multiply3(R, local, out.rotation);

  // The body's twist, moved from the reference point to the frame.
  double arm[3];
  const double* V = ws.body_twist.data() + 8 * frame.body;
  sub3(out.position, reference_point(model, ws, frame.body), arm);
  copy3(V, out.velocity);
  copy3(V + 3, out.spin);
  add_cross3(out.spin, arm, out.velocity);
  return out;
}

void add_frame_term(const Model& model, const DynamicsWorkspace& ws, const Frame& frame, const FrameState& at,
                    const FrameCovector& a, OutputRow& row) {
  OutputRow::Term term{frame.body, frame.geometry, frame.at_com, {}, {}, 0};
  double arm[3];
  sub3(at.position, reference_point(model, ws, frame.body), arm);

  // By the position and the turn of the body: a moment about o, and the velocity that the displaced point takes up.
  copy3(a.p, term.G);
  add_cross3(a.v, at.spin, term.G);
  copy3(a.phi, term.G + 3);
  add_cross3(arm, term.G, term.G + 3);

  // By the velocity of the body.
  copy3(a.v, term.H);
  copy3(a.w, term.H + 3);
  add_cross3(arm, a.v, term.H + 3);
  row.terms.push_back(term);
}

SubtreeState subtree_state(const Model& model, const DynamicsWorkspace& ws, int root) {
  SubtreeState out;

  // Sums over the bodies, weighted by mass.
  for (int b = root; b < model.body_subtree_end[root]; ++b) {
    const FrameState at = frame_state(model, ws, com_frame(b));
    out.mass += model.body_mass[b];
    axpy3(model.body_mass[b], at.position, out.com);
    axpy3(model.body_mass[b], at.velocity, out.velocity);
  }

  // Without mass, the root's own.
  if (out.mass > 0) {
    for (int i = 0; i < 3; ++i) {
      out.com[i] /= out.mass;
      out.velocity[i] /= out.mass;
    }
  } else {
    const FrameState at = frame_state(model, ws, com_frame(root));
    copy3(at.position, out.com);
    copy3(at.velocity, out.velocity);
  }
  return out;
}

bool is_clamped(const Sensor& sensor, double value) {
  return sensor.cutoff > 0 && (value > sensor.cutoff || value < -sensor.cutoff);
}

double clamp_reading(const Sensor& sensor, double value) {
  return is_clamped(sensor, value) ? std::copysign(sensor.cutoff, value) : value;
}

void read_output(const Model& model, const DynamicsWorkspace& ws, const double* q, const double* v,
                 const Sensor& sensor, double* reading) {
  if (is_frame(sensor.type))
    read_frame(model, ws, sensor, reading);
  else
    read_others(model, ws, q, v, sensor, reading);

  // Cut off at the sensor's range.
  if (sensor.cutoff <= 0) return;
  const int size = sensor_size(model, sensor);
  for (int i = 0; i < size; ++i)
    reading[i] = clamp_reading(sensor, reading[i]);
}

void linearize_output(const Model& model, const DynamicsWorkspace& ws, const double* q, const double* v,
                      const Sensor& sensor, std::vector<OutputRow>& rows) {
  rows.assign(sensor_tangent_size(model, sensor), OutputRow{});

  // A frame's rows, through the motion of one or two frames.
  if (is_frame(sensor.type)) {
    const FrameState a = frame_state(model, ws, sensor.frame);
    FrameState b{};
    if (sensor.reference) b = frame_state(model, ws, *sensor.reference);
    for (int r = 0; r < 3; ++r) {
      FrameCovector on_a;
      FrameCovector on_b;
      frame_row(sensor, r, a, sensor.reference ? &b : nullptr, on_a, on_b);
      add_frame_term(model, ws, sensor.frame, a, on_a, rows[r]);
      if (sensor.reference) {
        add_frame_term(model, ws, *sensor.reference, b, on_b, rows[r]);
      }
    }
  } else if (sensor.type == SensorType::subtree_com || sensor.type == SensorType::subtree_velocity) {
    subtree_rows(model, ws, sensor, rows);
  } else if (sensor.type == SensorType::subtree_angular_momentum) {
    angular_momentum_rows(model, ws, sensor.index, rows);
  } else if (sensor.type == SensorType::potential_energy) {
    potential_energy_row(model, ws, q, rows[0]);
  } else if (sensor.type == SensorType::kinetic_energy) {
    kinetic_energy_row(model, ws, q, v, rows[0]);
  } else if (sensor.type == SensorType::magnetometer) {
    magnetometer_rows(model, ws, sensor, rows);
  } else if (sensor.type != SensorType::inside_site) {
    joint_rows(model, ws, q, v, sensor, rows);
  }

  // Where the reading is cut off it does not move.
  if (sensor.cutoff <= 0) return;

  double unclamped[8];
  Sensor open = sensor;
  open.cutoff = 0;
  read_output(model, ws, q, v, open, unclamped);
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (is_clamped(sensor, unclamped[r])) rows[r] = OutputRow{};
}

void add_output_row(const Model& model, const DynamicsWorkspace& ws, const OutputRow& row, double scale, double* dq,
                    double* dv) {
  // Bodies: G . J_k by positions and H . J_k by velocities; H also meets what turns the twist (D9).
  for (const OutputRow::Term& term : row.terms) {
    const int last = model.body_last_dof[term.body];

    if (last < 0) continue;
    const int* path = model.dof_path.data() + model.dof_row[last];

    const Spatial V = load6(ws.body_twist.data() + 8 * term.body);
    const Spatial G = load6(term.G);
    const Spatial H = load6(term.H);
    for (int k = 0; k <= model.dof_depth[last]; ++k) {
      const Spatial J = load6(ws.columns.data() + 8 * path[k]);
      const Spatial rate = load6(ws.column_rate.data() + 8 * path[k]);
      if (dq) {
        dq[path[k]] += scale * (dot(G, J) + dot(H, cross_motion(J, V) + rate));
      }
      if (dv) dv[path[k]] += scale * dot(H, J);
    }
  }

  // Joints.
  for (const OutputRow::Entry& e : row.dq)
    if (dq) dq[e.dof] += scale * e.value;
  for (const OutputRow::Entry& e : row.dv)
    if (dv) dv[e.dof] += scale * e.value;
}

}  // namespace coulomb
