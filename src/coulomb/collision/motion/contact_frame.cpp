// Tangents of a contact and how they turn with its normal ([Duff2017]; docs/theory.md (G8), (G9)). The pole, and with it the jump, is
// chosen for where few contacts are: not at walls, n_z = 0, whose normals would flicker between two frames by rounding.
#include "coulomb/collision/contact.hpp"

namespace coulomb {
namespace {

/// s of (G8): +1, or -1 where n points down.
double pole(const double* normal) { return normal[2] < -0.5 ? -1.0 : 1.0; }

}  // namespace

void contact_frame(const double normal[3], double t1[3], double t2[3]) {
  // (G8)
  const double x = normal[0];
  const double y = normal[1];
  const double s = pole(normal);
  const double c = -1.0 / (s + normal[2]);
  const double d = x * y * c;
  t1[0] = 1.0 + s * x * x * c;
  t1[1] = s * d;
  t1[2] = -s * x;
  t2[0] = d;
  t2[1] = s + y * y * c;
  t2[2] = -y;
}

double contact_frame_spin(const double normal[3], const double dnormal[3]) {
  // psi of (G9)
  const double s = pole(normal);
  return (normal[1] * dnormal[0] - normal[0] * dnormal[1]) / (s + normal[2]);
}

}  // namespace coulomb
