// The Lorentz cone x_0 >= ||(x_1, x_2)|| and its algebra, of the interior-point method (docs/theory.md (C12), [Nesterov1997]).
#pragma once

#include <algorithm>
#include <cmath>

namespace coulomb {

/// Positive inside, zero on the boundary.
inline double determinant(const double* x) {
  const double t = std::sqrt(x[1] * x[1] + x[2] * x[2]);
  return (x[0] - t) * (x[0] + t);
}

/// z with l o z = d.
inline void arrow_solve(const double* l, const double* d, double* z) {
  const double inner = l[1] * d[1] + l[2] * d[2];
  z[0] = (l[0] * d[0] - inner) / determinant(l);
  z[1] = (d[1] - z[0] * l[1]) / l[0];
  z[2] = (d[2] - z[0] * l[2]) / l[0];
}

/// out = a o b: the product whose squares are the cone.
inline void jordan_product(const double* a, const double* b, double* out) {
  const double first = a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const double second = a[0] * b[1] + b[0] * a[1];
  const double third = a[0] * b[2] + b[0] * a[2];
  out[0] = first;
  out[1] = second;
  out[2] = third;
}

/// out = Q(w)^(1/2) z, det w = 1: the hyperbolic rotation with first column w.
inline void rotate_by(const double* w, const double* z, double* out) {
  const double inner = w[1] * z[1] + w[2] * z[2];
  const double along = inner / (1 + w[0]) + z[0];
  out[0] = w[0] * z[0] + inner;
  out[1] = z[1] + along * w[1];
  out[2] = z[2] + along * w[2];
}

/// The longest step from x along d inside the Lorentz cone (infinite: any).
inline double cone_step(const double* x, const double* d) {
  const double a = d[0] * d[0] - d[1] * d[1] - d[2] * d[2];
  const double b = x[0] * d[0] - x[1] * d[1] - x[2] * d[2];
  const double c = determinant(x);

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
