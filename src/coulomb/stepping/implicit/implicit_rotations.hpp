// What the derivatives of implicit steps do to the rotations of free and ball joints, in rows of nv numbers: all other dofs stay.
#pragma once

#include "coulomb/base/small_math.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/stepping/implicit/implicit_equation.hpp"

namespace coulomb {

/// Rotation blocks of rows (count x ld): row := row B^T, with B = J_r^-1(sign xi).
inline void times_inverse_right_jacobian(const Model& model, const double* xi, double sign, double* rows, int ld,
                                         int count) {
  for_each_rotation(model, [&](int at) {
    const double vector[3] = {sign * xi[at], sign * xi[at + 1], sign * xi[at + 2]};
    double B[9];
    inverse_right_jacobian(vector, B);
    for (int r = 0; r < count; ++r) {
      double* x = rows + std::size_t(r) * ld + at;
      rotate(B, x, x);
    }
  });
}

/// Rotation blocks: rows += scale u x x_row.
inline void add_cross_rows(const Model& model, double scale, const double* u, const double* x, int ld, int count,
                           double* rows) {
  for_each_rotation(model, [&](int at) {
    const double scaled[3] = {scale * u[at], scale * u[at + 1], scale * u[at + 2]};
    for (int r = 0; r < count; ++r)
      add_cross3(scaled, x + std::size_t(r) * ld + at, rows + std::size_t(r) * ld + at);
  });
}

}  // namespace coulomb
