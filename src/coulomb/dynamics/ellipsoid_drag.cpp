#include "coulomb/dynamics/ellipsoid_drag.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"

namespace coulomb {
namespace {

/// M += scale [a]_x in the block of rows from `row` on and columns from `column` on: the derivative of a x b by b.
void add_cross_slope(double scale, const double* a, int row, int column, double (*M)[6]) {
  const double skew[3][3] = {{0, -a[2], a[1]}, {a[2], 0, -a[0]}, {-a[1], a[0], 0}};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      M[row + i][column + j] += scale * skew[i][j];
}

/// (m a) x b and its derivatives by a and b, in the same way.
void add_momentum(double scale, const double* m, const double* a, const double* b, int row, int column_a, int column_b,
                  double* wrench, double (*M)[6]) {
  const double momentum[3] = {m[0] * a[0], m[1] * a[1], m[2] * a[2]};
  double product[3];
  cross3(momentum, b, product);
  for (int i = 0; i < 3; ++i)
    wrench[row + i] += scale * product[i];
  add_cross_slope(scale, momentum, row, column_b, M);

  // By a: (m_j e_j) x b = -m_j b x e_j.
  double columns[6][6] = {};
  add_cross_slope(-scale, b, 0, 0, columns);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      M[row + i][column_a + j] += m[j] * columns[i][j];
}

/// What depends on the ellipse across the velocity, with slopes. All in the unit vector u along the velocity and in semi-axes that are divided
/// by the longest one: nothing under- or overflows, however small or slow the ellipsoid. At rest, forces and slopes are zero.
struct CrossSection {
  double area = 0;            ///< A
  double area_slope[3] = {};  ///< n dA / dv
  double lift[3] = {};        ///< (cos alpha) A ((p v) x v) x v
  double lift_slope[3][3] = {};

  CrossSection(const std::array<double, 3>& s, double longest, const double* v, double speed) {
    if (!(speed > 0)) return;

    // p, N and D of the unit vector.
    double u[3];
    double p[3];
    double num = 0;
    double den = 0;
    for (int i = 0; i < 3; ++i) {
      const double product = s[(i + 1) % 3] / longest * (s[(i + 2) % 3] / longest);
      u[i] = v[i] / speed;
      p[i] = product * product;
      num += p[i] * u[i] * u[i];
      den += p[i] * p[i] * u[i] * u[i];
    }

    // The area depends on the direction alone, as does the relative change of sqrt(D / N).
    const double unit = M_PI * longest * longest;
    area = unit * std::sqrt(den / num);
    double change[3];
    for (int j = 0; j < 3; ++j) {
      change[j] = p[j] * p[j] * u[j] / den - p[j] * u[j] / num;
      area_slope[j] = area * change[j];
    }

    // Lift is n^2 pi sqrt(N / D) T(u), where T(v) / n = ((p v) x v) x v / n = (N v - n^2 (p v)) / n.
    const double scale = unit * std::sqrt(num / den);
    for (int i = 0; i < 3; ++i) {
      const double across = (num - p[i]) * u[i];
      lift[i] = speed * speed * scale * across;
      for (int j = 0; j < 3; ++j)
        lift_slope[i][j] = speed * scale * (2 * (p[j] - p[i]) * u[j] * u[i] - (change[j] + u[j]) * across);
      lift_slope[i][i] += speed * scale * (num - p[i]);
    }
  }
};

}  // namespace

EllipsoidDrag ellipsoid_drag(const MediumEllipsoid& ellipsoid, const Medium& medium, const double* twist) {
  const std::array<double, 3>& s = ellipsoid.semiaxes;
  const auto& [blunt, slender, angular, kutta, magnus] = ellipsoid.coefficients;
  const double* v = twist;
  const double* w = twist + 3;
  const double speed = std::sqrt(dot3(v, v));
  EllipsoidDrag out{};
  double(&M)[6][6] = out.slope;  // by density, until the end

  // The mass that moves along.
  add_momentum(1, ellipsoid.virtual_mass.data(), v, w, 0, 0, 3, out.by_density, M);
  add_momentum(1, ellipsoid.virtual_mass.data(), v, v, 3, 0, 0, out.by_density, M);
  add_momentum(1, ellipsoid.virtual_inertia.data(), w, w, 3, 3, 3, out.by_density, M);

  // Drag along the velocity.
  const double longest = std::max({s[0], s[1], s[2]});
  const double shortest = std::min({s[0], s[1], s[2]});
  const double middle = s[0] + s[1] + s[2] - longest - shortest;
  const double largest = M_PI * longest * middle;
  const CrossSection section(s, longest, v, speed);
  const double area = blunt * section.area + slender * (largest - section.area);
  for (int i = 0; i < 3; ++i) {
    out.by_density[i] -= speed * area * v[i];
    M[i][i] -= speed * area;
    for (int j = 0; j < 3; ++j) {
      const double along = speed > 0 ? v[j] / speed : 0.0;
      M[i][j] -= (along * area + (blunt - slender) * section.area_slope[j]) * v[i];
    }
    out.by_coefficients[0][i] = -speed * section.area * v[i];
    out.by_coefficients[1][i] = -speed * (largest - section.area) * v[i];
  }

  // Kutta lift.
  for (int i = 0; i < 3; ++i) {
    out.by_coefficients[3][i] = section.lift[i];
    out.by_density[i] += kutta * section.lift[i];
    for (int j = 0; j < 3; ++j)
      M[i][j] += kutta * section.lift_slope[i][j];
  }

  // Magnus lift.
  const double volume = 4.0 / 3.0 * M_PI * s[0] * s[1] * s[2];
  double lifted[3];
  cross3(w, v, lifted);
  for (int i = 0; i < 3; ++i) {
    out.by_coefficients[4][i] = volume * lifted[i];
    out.by_density[i] += magnus * volume * lifted[i];
  }
  add_cross_slope(magnus * volume, w, 0, 0, M);
  add_cross_slope(-magnus * volume, v, 0, 3, M);

  // Drag of the rotation.
  const auto power4 = [](double x) { return x * x * x * x; };
  const double largest_moment = 8.0 / 15.0 * M_PI * middle * power4(longest);
  double moment[3];
  double c[3];
  double size = 0;
  for (int i = 0; i < 3; ++i) {
    moment[i] = 8.0 / 15.0 * M_PI * s[i] * power4(std::max(s[(i + 1) % 3], s[(i + 2) % 3]));
    c[i] = angular * moment[i] + slender * (largest_moment - moment[i]);
    size += c[i] * w[i] * c[i] * w[i];
  }
  size = std::sqrt(size);
  double by_angular = 0;
  double by_slender = 0;
  for (int i = 0; i < 3 && size > 0; ++i) {
    const double share = c[i] * w[i] * w[i] / size;
    by_angular += share * moment[i];
    by_slender += share * (largest_moment - moment[i]);
  }
  for (int i = 0; i < 3; ++i) {
    out.by_density[3 + i] -= size * w[i];
    M[3 + i][3 + i] -= size;
    for (int j = 0; j < 3 && size > 0; ++j)
      M[3 + i][3 + j] -= c[j] * c[j] * w[j] / size * w[i];
    out.by_coefficients[1][3 + i] = -by_slender * w[i];
    out.by_coefficients[2][3 + i] = -by_angular * w[i];
  }

  // Density and viscosity together.
  const double d = 2.0 / 3.0 * (s[0] + s[1] + s[2]);
  const double viscous = 3 * M_PI * d;
  const double viscous_turn = M_PI * d * d * d;
  const double density = ellipsoid.scale * medium.density;
  const double viscosity = ellipsoid.scale * medium.viscosity;
  for (int i = 0; i < 6; ++i) {
    const double resistance = i < 3 ? viscous : viscous_turn;
    out.by_viscosity[i] = -ellipsoid.scale * resistance * twist[i];
    out.by_density[i] *= ellipsoid.scale;
    for (int j = 0; j < 6; ++j)
      M[i][j] *= density;
    M[i][i] -= viscosity * resistance;
  }
  for (double(&column)[6] : out.by_coefficients)
    for (double& value : column)
      value *= density;
  return out;
}

}  // namespace coulomb
