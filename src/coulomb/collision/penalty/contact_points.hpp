// Contacts of penalty contact: where surfaces overlap, as a function of the poses alone (no memory from step to step).
//
//   a pair with contact points (Scene's contact_points=)   each of them inside the other shape, by its signed distance
//   a half-space and a box or mesh                         every corner below the plane
//   boxes and meshes                                       the common outline of two faces, in shares (contact_share.hpp)
//   every other pair                                       the narrow phase of hard contact
#pragma once

#include "coulomb/collision/penalty/contact_share.hpp"

namespace coulomb {

struct CollisionWorkspace;

/// workspace.contacts: those with distance < 0, ordered by pair; and the share of each. left_out: by tree, those that touch nothing; or
/// null.
void detect_penalty_contacts(const Model& model, const double* body_position, const double* body_rotation,
                             const unsigned char* left_out, CollisionWorkspace& workspace,
                             std::vector<ContactShare>& shares);

/// The contact of a point (body A, a vertex) with the nearest place of the surface of b. False, and nothing written, where the point is
/// outside. A routine writes every field but pair, geometry_*, body_*, contact_point and size.
bool collide_point(const double point[3], const Shape& b, Contact& out);

}  // namespace coulomb
