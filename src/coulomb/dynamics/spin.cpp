#include "coulomb/dynamics/spin.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/simd.hpp"
#include "coulomb/base/small_math.hpp"
#include "coulomb/dynamics/end_shift.hpp"

namespace coulomb {
namespace {

constexpr double inverse_sqrt_3 = 0.5773502691896258;

/// Of the terms of one part.
constexpr double largest_ratio = 0.125;

/// Terms below 2^-53 of w are left out.
constexpr int bits = 53;

/// Of |w|: the last term of a series that converges as it should.
constexpr double converged = 0x1p-44;

constexpr int most_doublings = 6;

/// rad/s: beyond, squares overflow, and so does the step.
constexpr double largest_speed = 1e150;

/// det K, relative to the product of its diagonal.
constexpr double singular = 1e-13;

/// False: not positive definite.
// Cofactors of the first row, and the determinant that they give.
bool invert_symmetric(const double* K, double* inverse) {
  const double a = K[4] * K[8] - K[5] * K[5];
  const double b = K[2] * K[5] - K[1] * K[8];
  const double c = K[1] * K[5] - K[2] * K[4];
  const double determinant = K[0] * a + K[1] * b + K[2] * c;

  if (!(determinant > singular * K[0] * K[4] * K[8]) || !(K[0] > 0) || !(K[4] > 0)) return false;

  const double s = 1 / determinant;
  inverse[0] = s * a;
  inverse[1] = inverse[3] = s * b;
  inverse[2] = inverse[6] = s * c;
  inverse[4] = s * (K[0] * K[8] - K[2] * K[2]);
  inverse[5] = inverse[7] = s * (K[1] * K[2] - K[0] * K[5]);
  inverse[8] = s * (K[0] * K[4] - K[1] * K[1]);
  return true;
}

/// Moves K and I from the origin to the centre of mass: less m (c.c 1 - c c^T).
void move_to_centre(RigidSpin& out) {
  const double squared = dot3(out.c, out.c);
  if (squared == 0) return;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      const double steiner = out.mass * ((i == j ? squared : 0.0) - out.c[i] * out.c[j]);
      out.K[3 * i + j] -= steiner;
      out.I[3 * i + j] -= steiner;
    }
}

/// The Taylor series of rigid_spin.hpp from w on: its terms, and their sum.
COULOMB_SIMD void sum_terms(const RigidSpin& body, const double* w, SpinSeries& series, double* after) {
  copy3(w, series.x[0]);
  copy3(w, after);
  for (int k = 0; k < series.order; ++k) {
    rotate(body.I, series.x[k], series.m[k]);

    // x_(k+1) = -t / (k + 1) K^-1 sum x_i x m_(k - i)
    double product[3] = {0, 0, 0};
    for (int i = 0; i <= k; ++i)
      add_cross3(series.x[i], series.m[k - i], product);
    double* next = series.x[k + 1];
    rotate(body.K_inverse, product, next);
    for (int i = 0; i < 3; ++i)
      next[i] *= -series.part / (k + 1);
    add3(after, next, after);
  }
}

/// Delta of one joint, from h and w(h).
void store_shift(const DynamicsWorkspace& ws, const Model& model, int joint, const RigidSpin& body, double h,
                 const double* after, double* shift) {
  double* angular = shift + body.dof;
  for (int i = 0; i < 3; ++i)
    angular[i] = after[i] - body.w[i] - h * body.a_0[i];
  if (body.linear < 0) return;

  // (w - w(h) + h a_0) x c = -Delta_w x c, and what the turn of the body adds.
  double n[3];
  double x[3];
  double turned[3];
  double d[3];
  double orbit[3];
  cross3(after, body.c, n);
  for (int i = 0; i < 3; ++i)
    x[i] = h * after[i];
  turn_minus_one(x, n, turned);

  cross3(body.w, body.c, orbit);
  cross3(body.w, orbit, orbit);

  cross3(body.c, angular, d);
  for (int i = 0; i < 3; ++i)
    d[i] += h * orbit[i] - turned[i];
  rotate(&ws.body_rotation[9 * model.joint_body[joint]], d, shift + body.linear);
}

/// The same with the forces at the end.
void store_end_shift(const DynamicsWorkspace& ws, const Model& model, int joint, const RigidSpin& body, double h,
                     const double* after, double* shift) {
  double change[6];
  end_shift(body, h, after, change);
  copy3(change + 3, shift + body.dof);
  if (body.linear >= 0) rotate(&ws.body_rotation[9 * model.joint_body[joint]], change, shift + body.linear);
}

}  // namespace

/// One body alone, that no joint turns inside, with equal moments of inertia about where it turns.
bool turns_evenly(const Model& model, int joint) {
  const int body = model.joint_body[joint];
  const int last = model.joint_v[joint] + (model.joint_type[joint] == JointType::free ? 5 : 2);
  if (model.body_subtree_end[body] != body + 1 || model.dof_subtree_end[last] != last + 1) return false;

  // Equal principal moments,
  const double* I = &model.body_inertia[6 * body];
  if (I[0] != I[2] || I[2] != I[5] || I[1] != 0 || I[3] != 0 || I[4] != 0) return false;

  // about the anchor: then w x I w = 0 at every spin.
  const double* c = &model.body_com[3 * body];
  const double still[3] = {0, 0, 0};
  const double* anchor = model.joint_type[joint] == JointType::free ? still : &model.joint_pos[3 * joint];
  return c[0] == anchor[0] && c[1] == anchor[1] && c[2] == anchor[2];
}

bool rigid_spin(const Model& model, const DynamicsWorkspace& ws, int joint, const double* v, RigidSpin& out) {
  // The joint's rotation; without a spin there is nothing to shift.
  const bool free = model.joint_type[joint] == JointType::free;
  out.linear = free ? model.joint_v[joint] : -1;
  out.dof = model.joint_v[joint] + (free ? 3 : 0);
  copy3(v + out.dof, out.w);
  if (out.w[0] == 0 && out.w[1] == 0 && out.w[2] == 0) return false;
  if (!(norm3(out.w) < largest_speed)) return false;

  // The joint's block of M is K about its origin.
  for (int i = 0; i < 3; ++i) {
    const double* row = &ws.mass[model.dof_row[out.dof + i]] + model.dof_depth[out.dof];
    for (int j = 0; j <= i; ++j)
      out.K[3 * i + j] = out.K[3 * j + i] = row[j];
  }

  // The rotors do not turn with the body's frame: I is K without armature.
  for (int i = 0; i < 9; ++i)
    out.I[i] = out.K[i];
  for (int i = 0; i < 3; ++i)
    out.I[4 * i] -= model.dof_armature[out.dof + i];

  // A free joint turns about the centre of mass; its tree's reference point is its origin.
  if (free) {
    const int body = model.joint_body[joint];
    const double* composite = &ws.composite[12 * body];
    out.mass = composite[0];
    if (!(out.mass > 0)) return false;
    rotate_transposed(&ws.body_rotation[9 * body], composite + 1, out.c);
    for (double& x : out.c)
      x /= out.mass;
    move_to_centre(out);
  }

  if (!invert_symmetric(out.K, out.K_inverse)) return false;

  // a_0 = -K^-1 (w x I w), which the explicit step has.
  double momentum[3];
  rotate(out.I, out.w, momentum);
  cross3(out.w, momentum, out.gyroscopic);
  rotate(out.K_inverse, out.gyroscopic, out.a_0);
  for (double& x : out.a_0)
    x = -x;
  return true;
}

SpinParts spin_parts(const RigidSpin& body, double time) {
  SpinParts out;
  const double speed = norm3(body.w);
  out.limited = speed * time > largest_turn;
  out.time = out.limited ? largest_turn / speed : time;

  // Parts of a ratio of at most 1/8; a ratio below 2^e asks for bits / -e terms.
  const double ratio = inverse_sqrt_3 * speed * out.time;
  out.count = std::max(1, static_cast<int>(std::ceil(ratio / largest_ratio)));
  int e = 0;
  std::frexp(std::min(ratio / out.count, largest_ratio * (1 - 1e-15)), &e);
  out.order = std::clamp((bits - e - 1) / std::max(1, -e), 2, largest_order);

  return out;
}

bool follow_spin(const RigidSpin& body, SpinParts& parts, double* after) {
  // Files round their moments of inertia, and what is left of the smallest one may violate the triangle inequality: more parts.
  SpinSeries series;
  for (int doublings = 0; doublings <= most_doublings; ++doublings) {
    series.order = parts.order;
    series.part = parts.time / parts.count;
    sum_series(body, body.w, series, after);
    if (norm3(series.x[parts.order]) <= converged * norm3(body.w)) {
      for (int k = 1; k < parts.count; ++k)
        sum_series(body, after, series, after);
      return true;
    }

    parts.count *= 2;
    parts.order = largest_order;
  }
  return false;
}

void sum_series(const RigidSpin& body, const double* w, SpinSeries& series, double* after) {
  sum_terms(body, w, series, after);
}

void turn_minus_one(const double* x, const double* n, double* out) {
  // exp(x) = 1 + sin(t)/t [x] + 2 sin^2(t/2)/t^2 [x]^2
  const double angle = norm3(x);
  const double half = std::sin(0.5 * angle);
  const double a = angle > 0 ? std::sin(angle) / angle : 1.0;
  const double b = angle > 1e-150 ? 2 * (half / angle) * (half / angle) : 0.5;
  double once[3];
  double twice[3];

  cross3(x, n, once);
  cross3(x, once, twice);
  for (int i = 0; i < 3; ++i)
    out[i] = a * once[i] + b * twice[i];
}

void SpinShift::clear() {
  if (any) std::fill(velocity.begin(), velocity.end(), 0.0);
  any = limited = false;
}

const char* spin_limit_reason(const SpinShift& spin) {
  return spin.limited
             ? "spin_limit: a body turns by more than 64 rad in one step; its spin was followed so far, without loss "
               "of energy, but where it points is of no meaning: take a shorter step"
             : nullptr;
}

bool may_spin(const Model& model, const double* v) {
  for (int joint = 0; joint < model.num_joints; ++joint) {
    const JointType type = model.joint_type[joint];
    if (type != JointType::free && type != JointType::ball) continue;
    const double* w = v + model.joint_v[joint] + (type == JointType::free ? 3 : 0);
    const bool still = w[0] == 0 && w[1] == 0 && w[2] == 0;
    if (!still && !turns_evenly(model, joint)) return true;
  }
  return false;
}

void spin_shift(const Model& model, const DynamicsWorkspace& ws, const double* v, double h, SpinShift& out,
                const SpinRule& rule) {
  out.clear();
  for (int joint = 0; joint < model.num_joints; ++joint) {
    const JointType type = model.joint_type[joint];
    if (type != JointType::free && type != JointType::ball) continue;
    if (rule.left_out && rule.left_out[model.body_tree[model.joint_body[joint]]]) continue;
    RigidSpin body;
    if (turns_evenly(model, joint) || !rigid_spin(model, ws, joint, v, body)) continue;

    SpinParts parts = spin_parts(body, h);
    double after[3];
    if (!follow_spin(body, parts, after)) continue;

    out.any = true;
    out.limited = out.limited || parts.limited;
    if (rule.law == SpinLaw::at_end)
      store_end_shift(ws, model, joint, body, h, after, out.velocity.data());
    else
      store_shift(ws, model, joint, body, h, after, out.velocity.data());
  }
}

}  // namespace coulomb
