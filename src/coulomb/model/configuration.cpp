// q (+) w and its Jacobians: docs/theory.md (D1), (D2). With [w] the cross-product matrix and t = |w|:
//   exp(-[w])           = 1 - sin t / t [w] + (1 - cos t) / t^2 [w]^2                (d integrate / dq)
//   right Jacobian J_r  = 1 - (1 - cos t) / t^2 [w] + (t - sin t) / t^3 [w]^2        (d integrate / dw)
#include "coulomb/configuration.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "coulomb/base/small_math.hpp"
#include "coulomb/model/joint_equality.hpp"

namespace coulomb {
namespace {

/// out = a b of quaternions (w, x, y, z).
void quaternion_product(const double* a, const double* b, double* out) {
  out[0] = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
  out[1] = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
  out[2] = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
  out[3] = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0];
}

/// Length of a quaternion.
double norm4(const double* q) { return std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]); }

/// Unit length; the identity where there is no direction.
void normalize_quaternion(double* q) {
  const double n = norm4(q);
  if (n < 1e-150) {
    q[0] = 1;
    q[1] = q[2] = q[3] = 0;
    return;
  }
  for (int i = 0; i < 4; ++i)
    q[i] /= n;
}

/// out = q exp[w], rotations as quaternions (D1).
void integrate_quaternion(const double* q, const double* w, double* out) {
  const double t2 = dot3(w, w);
  const double t = std::sqrt(t2);

  // sin(t/2)/t; below 1e-4 the series' next term, t^4/3840, is under rounding.
  const double s = t < 1e-4 ? 0.5 - t2 / 48 : std::sin(0.5 * t) / t;
  const double turn[4] = {std::cos(0.5 * t), s * w[0], s * w[1], s * w[2]};
  double product[4];
  quaternion_product(q, turn, product);
  normalize_quaternion(product);
  for (int i = 0; i < 4; ++i)
    out[i] = product[i];
}

/// w with q1 = q0 exp[w], at most half a turn.
void quaternion_difference(const double* q0, const double* q1, double* w) {
  const double inverse[4] = {q0[0], -q0[1], -q0[2], -q0[3]};
  double d[4];
  quaternion_product(inverse, q1, d);
  const double s = norm3(d + 1);
  const double c = d[0];
  const double sign = c < 0 ? -1.0 : 1.0;

  // Angle / sin(angle/2), also for quaternions that are not quite unit; the nearer of the two ways round.
  double ratio = 0;
  if (s > 1e-4 * std::abs(c)) {
    ratio = 2 * std::atan2(s, std::abs(c)) / s;
  } else if (c != 0) {
    ratio = (2 - 2 * s * s / (3 * c * c)) / std::abs(c);
  }
  for (int i = 0; i < 3; ++i)
    w[i] = sign * ratio * d[1 + i];
}

/// E(w) or J_r(w) of (D2), row major.
void rotation_block(const double* w, IntegrateArgument argument, double* j) {
  const double t2 = dot3(w, w);
  const double t = std::sqrt(t2);

  // Series where cancellation would cost digits: the first term left out is below 1e-17.
  const bool small = t < 0.03;
  const double sin_1 = small ? 1 - t2 / 6 * (1 - t2 / 20 * (1 - t2 / 42)) : std::sin(t) / t;
  const double half = std::sin(0.5 * t);
  const double cos_2 = small ? 0.5 - t2 / 24 * (1 - t2 / 30 * (1 - t2 / 56)) : 2 * half * half / t2;
  const double sin_3 = t < 0.3 ? 1.0 / 6 - t2 / 120 * (1 - t2 / 42 * (1 - t2 / 72 * (1 - t2 / 110 * (1 - t2 / 156))))
                               : (t - std::sin(t)) / (t2 * t);

  // Coefficients of -[w] and of [w]^2 = w w^T - t^2 1.
  const bool by_q = argument == IntegrateArgument::q;
  const double first = by_q ? sin_1 : cos_2;
  const double second = by_q ? cos_2 : sin_3;
  const double cross[9] = {0, -w[2], w[1], w[2], 0, -w[0], -w[1], w[0], 0};
  for (int r = 0; r < 3; ++r) {
    for (int c = 0; c < 3; ++c) {
      const double diagonal = r == c ? 1 - second * t2 : 0.0;
      j[3 * r + c] = diagonal - first * cross[3 * r + c] + second * w[r] * w[c];
    }
  }
}

/// visit(first coordinate, first dof) of every rotation.
template <class Visit>
void for_each_rotation(const Model& model, Visit visit) {
  for (int j = 0; j < model.num_joints; ++j) {
    const int iq = model.joint_q[j];
    const int iv = model.joint_v[j];
    if (model.joint_type[j] == JointType::free) {
      visit(iq + 3, iv + 3);
    }
    if (model.joint_type[j] == JointType::ball) {
      visit(iq, iv);
    }
  }
}

[[noreturn]] void refuse_infinite(const char* argument, int entry, double value) {
  const std::string where = std::string(argument) + "[" + std::to_string(entry) + "]";
  throw std::invalid_argument(where + " = " + std::to_string(value) + " is not finite");
}

void transpose(double* m) {
  std::swap(m[1], m[3]);
  std::swap(m[2], m[6]);
  std::swap(m[5], m[7]);
}

}  // namespace

void neutral(const Model& model, double* q_out) {
  for (int i = 0; i < model.nq; ++i)
    q_out[i] = model.q_neutral[i];

  // Hinges and slides within their limits; a ball's quaternion is 1, which all limits of its angle allow.
  const auto within_limits = [&](int joint) {
    double& q = q_out[model.joint_q[joint]];
    const double before = q;
    const JointType type = model.joint_type[joint];
    const bool is_scalar = type == JointType::hinge || type == JointType::slide;
    if (model.joint_limited[joint] && is_scalar) q = std::clamp(q, model.joint_lower[joint], model.joint_upper[joint]);
    return q != before;
  };
  std::vector<char> moved(model.num_joints, 0);
  for (int joint = 0; joint < model.num_joints; ++joint)
    moved[joint] = within_limits(joint);

  // What is coupled to a joint that had to move follows it.
  for (const Equality& equality : model.equalities) {
    const bool follows = equality.type == EqualityType::joint && equality.active && equality.joint_b >= 0;
    if (!follows || !moved[equality.joint_b]) continue;
    q_out[model.joint_q[equality.joint_a]] = coupled_value(model, equality, q_out);
    within_limits(equality.joint_a);
    moved[equality.joint_a] = 1;
  }
}

void integrate(const Model& model, const double* q, const double* w, double* q_out) {
  for (int j = 0; j < model.num_joints; ++j) {
    int iq = model.joint_q[j];
    int iv = model.joint_v[j];
    switch (model.joint_type[j]) {
      // A free joint is a shift, then a ball joint.
      case JointType::free:
        for (int i = 0; i < 3; ++i)
          q_out[iq + i] = q[iq + i] + w[iv + i];
        integrate_quaternion(q + iq + 3, w + iv + 3, q_out + iq + 3);
        break;
      case JointType::ball: integrate_quaternion(q + iq, w + iv, q_out + iq); break;
      default: q_out[iq] = q[iq] + w[iv];
    }
  }
}

void difference(const Model& model, const double* q0, const double* q1, double* w_out) {
  for (int j = 0; j < model.num_joints; ++j) {
    int iq = model.joint_q[j];
    int iv = model.joint_v[j];
    switch (model.joint_type[j]) {
      case JointType::free:
        for (int i = 0; i < 3; ++i)
          w_out[iv + i] = q1[iq + i] - q0[iq + i];
        quaternion_difference(q0 + iq + 3, q1 + iq + 3, w_out + iv + 3);
        break;
      case JointType::ball: quaternion_difference(q0 + iq, q1 + iq, w_out + iv); break;
      default: w_out[iv] = q1[iq] - q0[iq];
    }
  }
}

void check_configuration(const Model& model, const double* q, const char* argument, double tolerance) {
  // All finite, and every quaternion a rotation.
  for (int i = 0; i < model.nq; ++i) {
    if (!std::isfinite(q[i])) refuse_infinite(argument, i, q[i]);
  }

  for_each_rotation(model, [&](int iq, int) {
    const double* r = q + iq;
    const double n = norm4(r);
    if (std::abs(n - 1) <= tolerance) return;
    const std::string entries = "[" + std::to_string(iq) + ":" + std::to_string(iq + 4) + "]";
    const std::string got = "quaternion of norm " + std::to_string(n);
    throw std::invalid_argument(argument + entries + ": " + got + ", needs norm 1; Model.normalize scales it");
  });
}

void check_vector(const std::vector<double>& x, int size, const char* argument) {
  const auto got = static_cast<int>(x.size());
  if (got != size) {
    const std::string expected = " elements, expected " + std::to_string(size);
    throw std::invalid_argument(std::string(argument) + ": has " + std::to_string(got) + expected);
  }
  for (int i = 0; i < size; ++i) {
    if (!std::isfinite(x[i])) refuse_infinite(argument, i, x[i]);
  }
}

void normalize_configuration(const Model& model, double* q) {
  for_each_rotation(model, [&](int iq, int) { normalize_quaternion(q + iq); });
}

void integrate_jacobian_times(const Model& model, const double* w, IntegrateArgument argument, bool transposed,
                              double* a, int ld, int columns) {
  for_each_rotation(model, [&](int, int iv) {
    double j[9];

    // Three rows of `a` a rotation; all other rows stay as they are.
    integrate_rotation_block(w + iv, argument, transposed, j);
    double* r0 = a + static_cast<std::ptrdiff_t>(iv) * ld;
    double* r1 = r0 + ld;
    double* r2 = r1 + ld;
    for (int c = 0; c < columns; ++c) {
      const double x = r0[c];
      const double y = r1[c];
      const double z = r2[c];
      r0[c] = j[0] * x + j[1] * y + j[2] * z;
      r1[c] = j[3] * x + j[4] * y + j[5] * z;
      r2[c] = j[6] * x + j[7] * y + j[8] * z;
    }
  });
}

void times_integrate_jacobian(const Model& model, const double* w, IntegrateArgument argument, bool transposed,
                              double* a, int ld, int rows) {
  for_each_rotation(model, [&](int, int iv) {
    double j[9];
    integrate_rotation_block(w + iv, argument, transposed, j);
    for (int r = 0; r < rows; ++r) {
      double* row = a + static_cast<std::ptrdiff_t>(r) * ld + iv;
      const double x = row[0];
      const double y = row[1];
      const double z = row[2];
      row[0] = x * j[0] + y * j[3] + z * j[6];
      row[1] = x * j[1] + y * j[4] + z * j[7];
      row[2] = x * j[2] + y * j[5] + z * j[8];
    }
  });
}

void integrate_rotation_block(const double* w, IntegrateArgument argument, bool transposed, double* block) {
  rotation_block(w, argument, block);
  if (transposed) transpose(block);
}

void rotation_exp(const double* vector, double* quaternion) {
  const double identity[4] = {1, 0, 0, 0};
  integrate_quaternion(identity, vector, quaternion);
}

void rotation_right_jacobian(const double* vector, double* J) { rotation_block(vector, IntegrateArgument::w, J); }

}  // namespace coulomb
