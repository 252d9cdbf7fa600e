// The table of support curvatures (docs/theory.md (G2)): what each feature of each shape contributes to the motion of
// a contact.
#include "coulomb/collision/motion/support_patch.hpp"

#include <cmath>

#include "coulomb/base/small_math.hpp"

namespace coulomb {
namespace {

/// Axis k of the shape.
void column(const Shape& shape, int k, double* out) {
  for (int i = 0; i < 3; ++i)
    out[i] = shape.rotation[3 * i + k];
}

/// F += s (1 - n n^T), the curvature of an offset by s.
void add_offset(double s, const double* n, double* F) {
  F[0] += s * (1 - n[0] * n[0]);
  F[1] -= s * n[0] * n[1];
  F[2] += s * (1 - n[1] * n[1]);
  F[3] -= s * n[0] * n[2];
  F[4] -= s * n[1] * n[2];
  F[5] += s * (1 - n[2] * n[2]);
}

/// F += s t t^T
void add_outer(double s, const double* t, double* F) {
  F[0] += s * t[0] * t[0];
  F[1] += s * t[0] * t[1];
  F[2] += s * t[1] * t[1];
  F[3] += s * t[0] * t[2];
  F[4] += s * t[1] * t[2];
  F[5] += s * t[2] * t[2];
}

/// One flat direction: d without its part along n. A direction along n leaves a vertex.
void set_flat_line(const double* d, const double* n, SurfacePatch& patch) {
  double e[3] = {d[0], d[1], d[2]};
  axpy3(-dot3(e, n), n, e);
  const double length = norm3(e);
  if (length < 1e-9 * norm3(d) || length == 0) return;
  for (int i = 0; i < 3; ++i)
    patch.E[0][i] = e[i] / length;
  patch.num_flat = 1;
}

/// F = (r / sin^p) t t^T with t along axis x n; returns sin of the angle between axis and normal.
double add_turning(const double* axis, const double* n, double radius, bool rim, double* F) {
  double t[3];
  cross3(axis, n, t);
  const double sine = norm3(t);
  if (sine < 1e-9) return sine;
  for (double& x : t)
    x /= sine;
  add_outer(rim ? radius / sine : radius, t, F);
  return sine;
}

/// Hessian of h(w) = sqrt(w^T Q w), Q = R diag(a^2) R^T.
// Q w in the frame, and h.
void add_ellipsoid(const Shape& shape, const double* w, double* F) {
  double local[3];
  double g[3];
  rotate_transposed(shape.rotation, w, local);
  double h2 = 0;
  for (int i = 0; i < 3; ++i) {
    const double a2 = shape.size[i] * shape.size[i];
    h2 += a2 * local[i] * local[i];
    g[i] = a2 * local[i];
  }

  const double h = std::sqrt(h2);
  double world[3];
  rotate(shape.rotation, g, world);

  // F += Q / h - (Q w)(Q w)^T / h^3
  for (int i = 0; i < 3; ++i) {
    double axis[3];
    column(shape, i, axis);
    add_outer(shape.size[i] * shape.size[i] / h, axis, F);
  }
  add_outer(-1.0 / (h2 * h), world, F);
}

}  // namespace

void support_patch(const Shape& shape, Feature feature, const double normal_out[3], const double* edge_direction,
                   SurfacePatch& patch) {
  patch = SurfacePatch{};
  double axis[3];
  column(shape, 2, axis);

  // By feature (G2): what is flat, and how the witness moves where the normal turns.
  switch (feature) {
    case Feature::vertex: return;
    case Feature::edge:
      if (edge_direction != nullptr) {
        set_flat_line(edge_direction, normal_out, patch);
      }
      return;
    case Feature::face:
      patch.num_flat = 2;
      contact_frame(normal_out, patch.E[0], patch.E[1]);
      return;
    case Feature::round:
      if (shape.type == ShapeType::ellipsoid)
        add_ellipsoid(shape, normal_out, patch.F);
      else
        add_offset(shape.size[0], normal_out, patch.F);
      return;
    case Feature::line:
      set_flat_line(axis, normal_out, patch);
      add_turning(axis, normal_out, shape.size[0], false, patch.F);
      return;
    case Feature::rim: add_turning(axis, normal_out, shape.size[0], true, patch.F); return;
  }
}

}  // namespace coulomb
