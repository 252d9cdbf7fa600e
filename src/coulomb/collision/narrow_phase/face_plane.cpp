#include "coulomb/collision/narrow_phase/face_plane.hpp"

#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/continuous/signed_distance.hpp"

namespace coulomb {
namespace {

constexpr double on_border = 1e-9;  // m: a point so near to the side belongs to it

}  // namespace

bool face_towards(const Shape& s, const double direction[3], int& face, double& cosine) {
  if (has_faces(s)) {
    face = best_face(s, direction, cosine);
    return true;
  }
  if (s.type != ShapeType::cylinder) return false;
  const double along = s.rotation[2] * direction[0] + s.rotation[5] * direction[1] + s.rotation[8] * direction[2];
  face = along >= 0 ? 0 : 1;
  cosine = std::abs(along);
  return true;
}

void face_plane(const Shape& s, int face, double normal[3], double point[3]) {
  if (has_faces(s)) {
    face_normal(s, face, normal);
    core_vertex(s, face_vertex(s, face, 0), point);
    return;
  }

  // The middle of a cap.
  const double sign = face == 0 ? 1.0 : -1.0;
  for (int i = 0; i < 3; ++i) {
    normal[i] = sign * s.rotation[3 * i + 2];
    point[i] = s.position[i] + s.size[1] * normal[i];
  }
}

bool is_on_face(const Shape& s, const double x[3]) {
  constexpr double no_size[3] = {0, 0, 0};
  Shape point;
  point.size = no_size;
  copy3(x, point.position);
  SignedDistance d;
  signed_distance(point, s, d);
  return d.distance <= on_border;
}

}  // namespace coulomb
