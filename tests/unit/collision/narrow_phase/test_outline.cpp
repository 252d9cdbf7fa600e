// The outline of two flat sides under penalty contact keeps all its springs, however near to one another edges and sides lie: shares sum to
// the number of corners.
#include <cmath>
#include <cstdio>
#include <vector>

#include "../scene.hpp"
#include "check.hpp"
#include "coulomb/collision/contact.hpp"
#include "coulomb/collision/penalty/contact_share.hpp"
#include "coulomb/collision/shape.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

constexpr double pi = 3.14159265358979323846;
constexpr double half[3] = {0.1, 0.15, 0.05};
constexpr double depth = 1e-4;

/// Either sign, of any size from rounding to 1e-3; or zero.
double tiny(Random& random) {
  if (random.uniform(0, 1) < 0.2) return 0;
  const double size = std::pow(10, random.uniform(-17, -3));
  return random.uniform(0, 1) < 0.5 ? -size : size;
}

/// y = R x, R by rotations about x, y and z one after the other.
void turn(const double* angles, double* R) {
  double total[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  for (int axis = 0; axis < 3; ++axis) {
    const int i = (axis + 1) % 3;
    const int j = (axis + 2) % 3;
    const double c = std::cos(angles[axis]);
    const double s = std::sin(angles[axis]);
    for (int column = 0; column < 3; ++column) {
      const double x = total[3 * i + column];
      const double y = total[3 * j + column];
      total[3 * i + column] = c * x - s * y;
      total[3 * j + column] = s * x + c * y;
    }
  }
  for (int k = 0; k < 9; ++k) R[k] = total[k];
}

/// Sum of the shares of a box that lies on another one like it: shifted, turned by a multiple of a right angle and a bit, tilted.
double springs(Random& random, double far) {
  Shape a;
  Shape b;
  a.type = b.type = ShapeType::box;
  a.size = b.size = half;
  random.rotation(b.rotation);
  random.direction(b.position);
  for (double& x : b.position) x *= far;

  // The upper one, in the lower one's frame.
  const double angles[3] = {0.05 * tiny(random), 0.05 * tiny(random),
                            pi * std::floor(random.uniform(0, 2)) + tiny(random)};
  double R[9];
  turn(angles, R);
  const double at[3] = {tiny(random), tiny(random), 2 * half[2] - depth};
  for (int i = 0; i < 3; ++i) {
    a.position[i] = b.position[i] + dot3(b.rotation + 3 * i, at);
    for (int j = 0; j < 3; ++j) {
      a.rotation[3 * i + j] = 0;
      for (int k = 0; k < 3; ++k) a.rotation[3 * i + j] += b.rotation[3 * i + k] * R[3 * k + j];
    }
  }
  std::vector<Contact> contacts;
  std::vector<ContactShare> shares;
  collide_flat_sides(a, b, 0.1, contacts, shares);
  double sum = 0;
  for (const ContactShare& share : shares) sum += share.value;
  return sum;
}

}  // namespace

int main() {
  Random random;
  int lost = 0;
  for (const double far : {0.0, 1.0, 200.0})
    for (int trial = 0; trial < 20000; ++trial) lost += std::abs(springs(random, far) - 4) > 1e-6;
  std::printf("%d of 60000 outlines have lost a spring\n", lost);
  CHECK(lost == 0);
  return report();
}
