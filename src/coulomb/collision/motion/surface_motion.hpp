// The rules of contact_motion.cpp, given how the two surfaces move: unit twists of the bodies, or changes of their
// shapes.
#pragma once

namespace coulomb {

struct Contact;

/// Velocities of the two surfaces at a contact. u_a, u_b: of each surface at its own witness, at fixed outward
/// direction (a face's: its plane's, along its normal; a crossed side's: along the side's normal as well). a, b: how
/// the flat directions turn, w x n for a body that spins by w; a changing face gives the change of n, an edge that
/// turns by de gives -(n·de) e.
struct SurfaceMotion {
  double u_a[3] = {0, 0, 0};
  double u_b[3] = {0, 0, 0};
  double a[3] = {0, 0, 0};
  double b[3] = {0, 0, 0};
};

struct PointMotion {
  double dn[3];
  double dp[3];
  double dphi;
};

/// The contact's motion under its rule, bodies held. False: the declared fall-back (point and normal stay, the distance
/// moves).
bool move_contact(const Contact& contact, const SurfaceMotion& motion, PointMotion& out);

}  // namespace coulomb
