// How w(h) moves with the spin, with the inertia and with the time.
//
// The series is differentiated in reverse, once per component of w(h): cotangents x' of the terms and m' of their momenta start from
// that component's unit vector g,
//
//   x'_k = g + I m'_k + sum_(j >= k) (m_(j - k) x u_j),   m'_k = sum_(j >= k) (u_j x x_(j - k)),   u_j = -t / (j + 1) K^-1 x'_(j + 1)
//   by I: sum m'_k x_k^T,   by K: -sum K^-1 x'_k x_k^T,   by w: x'_0
//
// and parts follow one another by the chain rule.
#include "coulomb/dynamics/turned_spin.hpp"

#include <algorithm>

#include "coulomb/base/simd.hpp"
#include "coulomb/base/small_math.hpp"

namespace coulomb {
namespace {

/// out += scale * sym(a b^T), by the six entries of a symmetric matrix.
void add_symmetric(double scale, const double* a, const double* b, double* out) {
  for (int k = 0; k < 6; ++k) {
    out[k] += scale * a[row_of[k]] * b[column_of[k]];
    if (row_of[k] != column_of[k]) out[k] += scale * a[column_of[k]] * b[row_of[k]];
  }
}

/// One component's derivative over one part: by_w (3), by_I and by_K (6).
COULOMB_SIMD void series_cotangent(const RigidSpin& body, const SpinSeries& s, const double* g, double* by_w,
                                   double* by_I, double* by_K) {
  // Every term is in the sum w(h).
  double x_bar[largest_order + 1][3];
  double m_bar[largest_order + 1][3] = {};
  for (int k = 0; k <= s.order; ++k)
    copy3(g, x_bar[k]);
  std::fill_n(by_I, 6, 0.0);
  std::fill_n(by_K, 6, 0.0);

  for (int k = s.order - 1; k >= -1; --k) {
    // All that depends on term k + 1 is known.
    double* bar = x_bar[k + 1];
    if (k + 1 < s.order) {
      double momentum[3];
      rotate(body.I, m_bar[k + 1], momentum);
      add3(bar, momentum, bar);
      add_symmetric(1, m_bar[k + 1], s.x[k + 1], by_I);
    }
    if (k < 0) break;

    // It is -t / (k + 1) K^-1 times a sum of products of earlier terms.
    double u[3];
    rotate(body.K_inverse, bar, u);
    add_symmetric(-1, u, s.x[k + 1], by_K);
    for (double& value : u)
      value *= -s.part / (k + 1);
    for (int i = 0; i <= k; ++i) {
      add_cross3(s.m[k - i], u, x_bar[i]);
      add_cross3(u, s.x[i], m_bar[k - i]);
    }
  }
  copy3(x_bar[0], by_w);
}

}  // namespace

double parallel_axes_by_moment(const double* c, int n, int k) {
  const int i = row_of[n];
  const int j = column_of[n];
  return (i == j ? 2 * c[k] : 0.0) - (j == k ? c[i] : 0.0) - (i == k ? c[j] : 0.0);
}

double parallel_axes_by_mass(const double* c, int n) {
  const int i = row_of[n];
  const int j = column_of[n];
  return c[i] * c[j] - (i == j ? dot3(c, c) : 0.0);
}

void torque_by_inertia(int k, const double* w, const double* a, double* out) {
  const int i = row_of[k];
  const int j = column_of[k];
  double momentum[3] = {0, 0, 0};
  double braked[3] = {0, 0, 0};
  momentum[i] = w[j];
  momentum[j] = w[i];
  braked[i] = a[j];
  braked[j] = a[i];
  cross3(momentum, w, out);
  sub3(out, braked, out);
}

/// w(h) and its derivatives over all parts.
TurnedSpin turned_spin(const RigidSpin& body, const SpinParts& parts) {
  // The identity at the start.
  TurnedSpin out{};
  copy3(body.w, out.w);
  out.by_w[0] = out.by_w[4] = out.by_w[8] = 1;

  SpinSeries series;
  series.order = parts.order;
  series.part = parts.time / parts.count;

  for (int part = 0; part < parts.count; ++part) {
    sum_series(body, out.w, series, out.w);
    const TurnedSpin before = out;

    // One row of the derivative per component of w.
    for (int i = 0; i < 3; ++i) {
      double g[3] = {0, 0, 0};
      double by_w[3];
      g[i] = 1;
      series_cotangent(body, series, g, by_w, out.by_I[i], out.by_K[i]);

      // The part starts from what the earlier ones made of w, I and K.
      for (int k = 0; k < 3; ++k) {
        out.by_w[3 * i + k] = by_w[0] * before.by_w[k] + by_w[1] * before.by_w[3 + k] + by_w[2] * before.by_w[6 + k];
      }
      for (int k = 0; k < 6; ++k) {
        for (int j = 0; j < 3; ++j) {
          out.by_I[i][k] += by_w[j] * before.by_I[j][k];
          out.by_K[i][k] += by_w[j] * before.by_K[j][k];
        }
      }
    }
  }

  // The rate at the end is that of a body without torque: K dw/dt = (I w) x w.
  double momentum[3];
  double torque[3];
  rotate(body.I, out.w, momentum);
  cross3(momentum, out.w, torque);
  rotate(body.K_inverse, torque, out.rate);
  return out;
}

}  // namespace coulomb
