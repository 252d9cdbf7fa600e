#include "coulomb/model/loaders/pin_coordinates.hpp"

#include <algorithm>
#include <cmath>

namespace coulomb {
namespace {

using Kind = PinocchioJoint::Kind;

/// out = a b of quaternions (w, x, y, z); out may be a or b.
void multiply(const double* a, const double* b, double* out) {
  const double w = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
  const double x = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
  const double y = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
  const double z = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0];
  out[0] = w;
  out[1] = x;
  out[2] = y;
  out[3] = z;
}

/// The rotation of a quaternion.
void matrix(const double* q, double (&R)[3][3]) {
  const double w = q[0];
  const double x = q[1];
  const double y = q[2];
  const double z = q[3];
  R[0][0] = 1 - 2 * (y * y + z * z);
  R[0][1] = 2 * (x * y - w * z);
  R[0][2] = 2 * (x * z + w * y);
  R[1][0] = 2 * (x * y + w * z);
  R[1][1] = 1 - 2 * (x * x + z * z);
  R[1][2] = 2 * (y * z - w * x);
  R[2][0] = 2 * (x * z - w * y);
  R[2][1] = 2 * (y * z + w * x);
  R[2][2] = 1 - 2 * (x * x + y * y);
}

/// out = R x or, transposed, R^T x.
void rotate(const double* q, bool transposed, const double* x, double* out) {
  double R[3][3];
  matrix(q, R);
  const double in[3] = {x[0], x[1], x[2]};
  for (int i = 0; i < 3; ++i) {
    out[i] = 0;
    for (int k = 0; k < 3; ++k)
      out[i] += (transposed ? R[k][i] : R[i][k]) * in[k];
  }
}

/// Pinocchio's free joint is placed in the axes of its base, with the scalar part of its quaternion last.
void free_to_pin(const PinocchioJoint& j, const double* q, double* q_pin) {
  const double conjugate[4] = {j.base_quat[0], -j.base_quat[1], -j.base_quat[2], -j.base_quat[3]};
  const double offset[3] = {q[0] - j.base_pos[0], q[1] - j.base_pos[1], q[2] - j.base_pos[2]};
  rotate(j.base_quat.data(), true, offset, q_pin);

  double turn[4];
  multiply(conjugate, q + 3, turn);
  q_pin[3] = turn[1];
  q_pin[4] = turn[2];
  q_pin[5] = turn[3];
  q_pin[6] = turn[0];
}

/// The other way.
void free_from_pin(const PinocchioJoint& j, const double* q_pin, double* q) {
  rotate(j.base_quat.data(), false, q_pin, q);
  for (int i = 0; i < 3; ++i)
    q[i] += j.base_pos[i];

  const double turn[4] = {q_pin[6], q_pin[3], q_pin[4], q_pin[5]};
  multiply(j.base_quat.data(), turn, q + 3);
}

/// Entries of a joint in the velocity.
int num_velocities(Kind kind) { return kind == Kind::free ? 6 : kind == Kind::ball || kind == Kind::planar ? 3 : 1; }

}  // namespace

void to_pinocchio(const PinocchioMap& map, const double* q, const double* v, double* q_pin, double* v_pin) {
  for (const PinocchioJoint& j : map.joints) {
    // Hinges that turn on and on, and planar joints, have a cosine and a sine instead of an angle.
    const double* from = q + j.q;
    double* to = q_pin + j.pin_q;
    if (j.kind == Kind::scalar) {
      to[0] = from[0];
    }
    if (j.kind == Kind::continuous) {
      to[0] = std::cos(from[0]);
      to[1] = std::sin(from[0]);
    }
    if (j.kind == Kind::free) {
      free_to_pin(j, from, to);
    }

    // The scalar part of a quaternion is the first here, the last there.
    if (j.kind == Kind::ball) {
      to[0] = from[1];
      to[1] = from[2];
      to[2] = from[3];
      to[3] = from[0];
    }

    if (j.kind == Kind::planar) {
      to[0] = from[0];
      to[1] = from[1];
      to[2] = std::cos(from[2]);
      to[3] = std::sin(from[2]);
    }

    // Pinocchio's velocities are in the axes of the body; here those of free and planar joints are in the
    // world's.
    if (!v) continue;
    const double* rate = v + j.v;
    double* rate_pin = v_pin + j.pin_v;
    std::copy_n(rate, num_velocities(j.kind), rate_pin);
    if (j.kind == Kind::free) {
      rotate(from + 3, true, rate, rate_pin);
    }
    if (j.kind == Kind::planar) {
      const double c = std::cos(from[2]);
      const double s = std::sin(from[2]);
      rate_pin[0] = c * rate[0] + s * rate[1];
      rate_pin[1] = -s * rate[0] + c * rate[1];
    }
  }
}

void from_pinocchio(const PinocchioMap& map, const double* q_pin, const double* v_pin, double* q, double* v) {
  for (const PinocchioJoint& j : map.joints) {
    // An angle from a cosine and a sine.
    const double* from = q_pin + j.pin_q;
    double* to = q + j.q;
    if (j.kind == Kind::scalar) {
      to[0] = from[0];
    }
    if (j.kind == Kind::continuous) {
      to[0] = std::atan2(from[1], from[0]);
    }
    if (j.kind == Kind::free) {
      free_from_pin(j, from, to);
    }

    // The scalar part of a quaternion is the last there, the first here.
    if (j.kind == Kind::ball) {
      to[0] = from[3];
      to[1] = from[0];
      to[2] = from[1];
      to[3] = from[2];
    }

    if (j.kind == Kind::planar) {
      to[0] = from[0];
      to[1] = from[1];
      to[2] = std::atan2(from[3], from[2]);
    }

    // Velocities, from the axes of the body to the world's.
    if (!v) continue;
    const double* rate_pin = v_pin + j.pin_v;
    double* rate = v + j.v;
    std::copy_n(rate_pin, num_velocities(j.kind), rate);
    if (j.kind == Kind::free) {
      rotate(to + 3, false, rate_pin, rate);
    }
    if (j.kind == Kind::planar) {
      rate[0] = from[2] * rate_pin[0] - from[3] * rate_pin[1];
      rate[1] = from[3] * rate_pin[0] + from[2] * rate_pin[1];
    }
  }
}

/// T (pin's nv x nv): dq of Pinocchio by dq here, as velocities are turned.
void pinocchio_tangent(const Model& model, const PinocchioMap& map, const double* q, double* T) {
  const auto nv = static_cast<std::size_t>(model.nv);
  std::fill_n(T, static_cast<std::size_t>(map.nv) * nv, 0.0);
  for (const PinocchioJoint& j : map.joints) {
    double* block = T + static_cast<std::size_t>(j.pin_v) * nv + j.v;
    for (std::size_t i = 0; i < static_cast<std::size_t>(num_velocities(j.kind)); ++i)
      block[i * nv + i] = 1;

    if (j.kind == Kind::free) {
      double R[3][3];
      matrix(q + j.q + 3, R);
      for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t k = 0; k < 3; ++k)
          block[i * nv + k] = R[k][i];
    }
    if (j.kind == Kind::planar) {
      const double c = std::cos(q[j.q + 2]);
      const double s = std::sin(q[j.q + 2]);
      block[0] = c;
      block[1] = s;
      block[nv] = -s;
      block[nv + 1] = c;
    }
  }
}

}  // namespace coulomb
