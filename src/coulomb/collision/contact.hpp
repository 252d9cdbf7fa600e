// The output of the collision stage: contact points with their normals and depths, and the motion of each with the two
// bodies (docs/theory.md (G1) to (G5)). Plain data, filled by detect_contacts and contact_motion.
#pragma once

#include <cstdint>

namespace coulomb {

/// One surface near its witness point, seen along a given normal: its support curvature S = F + infinity * E E^T.
struct SurfacePatch {
  double F[6] = {0, 0, 0, 0, 0, 0};  ///< finite part, symmetric: xx xy yy xz yz zz, world axes
  int num_flat = 0;  ///< 0 (vertex or smooth), 1 (edge, capsule line, cylinder side), 2 (face, half-space)
  double E[2][3] = {{0, 0, 0}, {0, 0, 0}};  ///< flat directions, world axes, unit, orthogonal to the normal
};

/// Which rule moves the contact.
enum class MotionRule : std::uint8_t {
  support,  ///< both surfaces by their patches: the general rule
  reference_vertex,  ///< n carried by the reference face; the point is a vertex of the reference face projected along n on the incident face
  edge_crossing,  ///< n carried by the reference face; the incident face's edge crosses a side plane of the reference face
  frozen,         ///< declared fall-back: point and normal carried by body A, no local derivative exists
};

struct Contact {
  int pair = -1;  ///< index into Model::pair_*
  int geometry_a = -1;
  int geometry_b = -1;
  int body_a = -1;
  int body_b = -1;
  int feature = 0;               ///< identifies the point within its pair from step to step (warm start)
  double distance = 0;           ///< Phi: > 0 apart, < 0 penetrating, metres
  double normal[3] = {0, 0, 1};  ///< unit, world, from B to A

  /// Witnesses on A and B: point_a - point_b = distance * normal
  double point_a[3];
  double point_b[3];

  double point[3];  ///< (point_a + point_b) / 2
  MotionRule rule = MotionRule::support;
  bool reference_on_a = false;  ///< for reference_vertex and edge_crossing: which body carries the reference face

  SurfacePatch a;  ///< support: of A's surface
  SurfacePatch b;  ///< support: of B's surface

  double incident_normal[3] = {0, 0, 0};  ///< reference_vertex: outward normal of the incident face
  double edge[3] = {0, 0, 0};             ///< edge_crossing: direction of the incident edge, fixed on the incident body
  double side[3] = {0, 0, 0};             ///< edge_crossing: normal of the side plane, fixed on the reference body
  int contact_point = -1;                 ///< index into Model::contact_points of the point that makes the contact
  bool point_on_a = false;                ///< and whose it is
  double lift = 0;           ///< m/s: an impact parts the bodies at least this fast; constant in derivatives
  bool turns_back = false;   ///< and at least as fast as they come
  bool stops = false;        ///< an impact lets the bodies come no nearer here, although there is room
  bool two_normals = false;  ///< of two faces that are parallel to rounding: either carries n, as they tilt
  double size = 0;           ///< smaller size of the two shapes, metres: scale of the test for a local optimum
};

/// First-order motion of a contact. Columns: twist of body A (velocity of the material point at `point`, angular
/// velocity), then the same of body B; world axes. dp moves `point`.
struct ContactMotion {
  double dnormal[3][12];
  double dpoint[3][12];
  double ddistance[12];
  bool frozen = false;  ///< the declared fall-back was taken (no local optimum: docs/theory.md (G4))
};

/// Tangents t1, t2 so that (t1, t2, n) is right-handed: docs/theory.md (G8). Jumps at n_z = -1/2: store forces in world
/// axes.
void contact_frame(const double normal[3], double t1[3], double t2[3]);

/// Spin psi of that frame about the normal while the normal moves by dn: dt1 = -(t1·dn) n + psi t2, dt2 = -(t2·dn) n -
/// psi t1. A circular cone does not see it; pyramids and anisotropic friction do.
double contact_frame_spin(const double normal[3], const double dnormal[3]);

/// The motion of a contact for unit twists of its two bodies (docs/theory.md (G4), (G5)).
void contact_motion(const Contact& contact, ContactMotion& motion);

}  // namespace coulomb
