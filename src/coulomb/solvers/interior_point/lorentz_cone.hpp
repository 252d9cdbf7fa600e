// The Lorentz cone x_0 >= ||(x_1, ..., x_m)|| and its algebra, of the interior-point method (docs/theory.md (C12), [Nesterov1997]).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "coulomb/solvers/constraint_problem.hpp"

namespace coulomb {

/// A point of the cone; m of its tangential components count.
using LorentzPoint = std::array<double, 1 + max_tangents>;

/// Of the tangential parts.
inline double tangential_product(int m, const LorentzPoint& a, const LorentzPoint& b) {
  double sum = a[1] * b[1] + a[2] * b[2];
  for (int i = 3; i <= m; ++i)
    sum += a[i] * b[i];
  return sum;
}

/// Positive inside, zero on the boundary.
inline double determinant(int m, const LorentzPoint& x) {
  const double t = std::sqrt(tangential_product(m, x, x));
  return (x[0] - t) * (x[0] + t);
}

/// z with l o z = d.
inline void arrow_solve(int m, const LorentzPoint& l, const LorentzPoint& d, LorentzPoint& z) {
  const double inner = tangential_product(m, l, d);
  z[0] = (l[0] * d[0] - inner) / determinant(m, l);
  for (int i = 1; i <= m; ++i)
    z[i] = (d[i] - z[0] * l[i]) / l[0];
}

/// a o b: the product whose squares are the cone.
inline LorentzPoint jordan_product(int m, const LorentzPoint& a, const LorentzPoint& b) {
  LorentzPoint out = {};
  out[0] = a[0] * b[0];
  for (int i = 1; i <= m; ++i) {
    out[0] += a[i] * b[i];
    out[i] = a[0] * b[i] + b[0] * a[i];
  }
  return out;
}

/// The tangential part turned round.
inline LorentzPoint reflected(int m, const LorentzPoint& x) {
  LorentzPoint out = x;
  for (int i = 1; i <= m; ++i)
    out[i] = -x[i];
  return out;
}

/// Q(w)^(1/2) z, det w = 1: the hyperbolic rotation with first column w.
inline LorentzPoint rotated_by(int m, const LorentzPoint& w, const LorentzPoint& z) {
  const double inner = tangential_product(m, w, z);
  const double along = inner / (1 + w[0]) + z[0];
  LorentzPoint out = {};
  out[0] = w[0] * z[0] + inner;
  for (int i = 1; i <= m; ++i)
    out[i] = z[i] + along * w[i];
  return out;
}

/// The longest step from x along d inside the Lorentz cone (infinite: any).
inline double cone_step(int m, const LorentzPoint& x, const LorentzPoint& d) {
  double a = d[0] * d[0];
  double b = x[0] * d[0];
  for (int i = 1; i <= m; ++i) {
    a -= d[i] * d[i];
    b -= x[i] * d[i];
  }
  const double c = determinant(m, x);

  // The first root of det(x + s d) = 0; without one, only the tip can be in the way.
  const double discriminant = b * b - a * c;
  if (a >= 0 && (b >= 0 || discriminant < 0)) return d[0] >= 0 ? INFINITY : -x[0] / d[0];
  const double root = -b + std::sqrt(std::max(0.0, discriminant));
  return root > 0 ? c / root : INFINITY;
}

/// De Saxce's term: |y_T|, smooth at zero, without cancellation.
inline double slip_term(double speed2, double theta) {
  const double smooth = std::sqrt(speed2 + theta * theta);
  return smooth > theta ? speed2 / (smooth + theta) : 0.0;
}

}  // namespace coulomb
