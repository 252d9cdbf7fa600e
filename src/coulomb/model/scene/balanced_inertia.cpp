#include "coulomb/model/scene/balanced_inertia.hpp"

#include <algorithm>
#include <cmath>

namespace coulomb {
namespace {

/// Jacobi's rotations; S (3 x 3, symmetric) becomes diagonal, the columns of V its axes.
void diagonalise(double S[3][3], double V[3][3]) {
  constexpr int sweeps = 12;  // they converge quadratically: five are enough for double precision
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      V[i][j] = i == j;

  for (int sweep = 0; sweep < sweeps; ++sweep)
    for (int p = 0; p < 2; ++p)
      for (int q = p + 1; q < 3; ++q) {
        if (S[p][q] == 0) continue;

        // The smaller of the two angles that make S_pq zero.
        const double theta = (S[q][q] - S[p][p]) / (2 * S[p][q]);
        const double t = (theta >= 0 ? 1.0 : -1.0) / (std::abs(theta) + std::hypot(theta, 1.0));
        const double c = 1 / std::hypot(t, 1.0);
        const double s = t * c;
        for (int k = 0; k < 3; ++k) {
          const double a = S[k][p];
          const double b = S[k][q];
          S[k][p] = c * a - s * b;
          S[k][q] = s * a + c * b;
        }
        for (int k = 0; k < 3; ++k) {
          const double a = S[p][k];
          const double b = S[q][k];
          S[p][k] = c * a - s * b;
          S[q][k] = s * a + c * b;
        }
        for (int k = 0; k < 3; ++k) {
          const double a = V[k][p];
          const double b = V[k][q];
          V[k][p] = c * a - s * b;
          V[k][q] = s * a + c * b;
        }
      }
}

}  // namespace

std::array<double, 6> balanced_inertia(const std::array<double, 6>& inertia) {
  const auto& [xx, xy, yy, xz, yz, zz] = inertia;
  const double half = (xx + yy + zz) / 2;
  double S[3][3] = {{half - xx, -xy, -xz}, {-xy, half - yy, -yz}, {-xz, -yz, half - zz}};
  double V[3][3];
  diagonalise(S, V);

  // What is left of S, and the inertia that it belongs to.
  double kept[3][3] = {{0}};
  for (int axis = 0; axis < 3; ++axis) {
    if (!(S[axis][axis] > 0)) continue;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j)
        kept[i][j] += S[axis][axis] * V[i][axis] * V[j][axis];
  }
  const double trace = kept[0][0] + kept[1][1] + kept[2][2];
  return {trace - kept[0][0], -kept[0][1], trace - kept[1][1], -kept[0][2], -kept[1][2], trace - kept[2][2]};
}

PrincipalInertia principal_inertia(const std::array<double, 6>& inertia) {
  const auto& [xx, xy, yy, xz, yz, zz] = inertia;
  double S[3][3] = {{xx, xy, xz}, {xy, yy, yz}, {xz, yz, zz}};
  double V[3][3];
  diagonalise(S, V);

  // Right-handed axes, as a quaternion: the largest of its entries first.
  const double det = V[0][0] * (V[1][1] * V[2][2] - V[1][2] * V[2][1]) -
                     V[0][1] * (V[1][0] * V[2][2] - V[1][2] * V[2][0]) +
                     V[0][2] * (V[1][0] * V[2][1] - V[1][1] * V[2][0]);
  for (int i = 0; det < 0 && i < 3; ++i)
    V[i][2] = -V[i][2];
  const double diagonal[4] = {1 + V[0][0] + V[1][1] + V[2][2], 1 + V[0][0] - V[1][1] - V[2][2],
                              1 - V[0][0] + V[1][1] - V[2][2], 1 - V[0][0] - V[1][1] + V[2][2]};
  const int k = static_cast<int>(std::max_element(diagonal, diagonal + 4) - diagonal);
  const double a = V[2][1] - V[1][2];
  const double b = V[0][2] - V[2][0];
  const double c = V[1][0] - V[0][1];
  const double d = V[1][0] + V[0][1];
  const double e = V[0][2] + V[2][0];
  const double f = V[2][1] + V[1][2];
  const double rows[4][4] = {
      {diagonal[0], a, b, c}, {a, diagonal[1], d, e}, {b, d, diagonal[2], f}, {c, e, f, diagonal[3]}};
  PrincipalInertia out;
  double norm = 0;
  for (int i = 0; i < 4; ++i)
    norm += rows[k][i] * rows[k][i];
  for (int i = 0; i < 4; ++i)
    out.quat[i] = rows[k][i] / std::sqrt(norm);
  out.moments = {S[0][0], S[1][1], S[2][2]};
  return out;
}

std::array<double, 3> box_of_inertia(double mass, const std::array<double, 3>& moments) {
  std::array<double, 3> out;
  const double sum = moments[0] + moments[1] + moments[2];
  for (int i = 0; i < 3; ++i)
    out[i] = std::sqrt(std::max(1e-15, sum - 2 * moments[i]) / mass * 6);
  return out;
}

}  // namespace coulomb
