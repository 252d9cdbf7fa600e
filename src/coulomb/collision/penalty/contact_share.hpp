// Flat sides under penalty contact: every point of the outline that two faces have in common, with a share of a spring that changes
// continuously when outlines change corners. Seen along the incident face, each of its corners turns the outline and is one spring:
//
//   M(direction)   springs from a fixed edge of the incident face to a direction in its plane, linear in the angle within a corner
//   share          M(direction after the point) - M(direction before it)
//
// so a corner inside has 1, a corner that a side of the other face cuts off is divided between the two new points by the angles of the
// cut, and the sum is the number of corners at all times. Directions along sides of the reference face: p x m, p the incident normal,
// m across the side: where its plane cuts the incident plane. Shares depend on the two orientations and, of meshes, on vertices.
//
// A corner that lies on a side of the other face, as of equal boxes on each other, moves with its own body if it moves inwards, and with
// the side if it moves outwards. Its outline then is both, the one with the corner and the one cut off along the side, and each of the two
// has half of the springs: forces are the same, and their derivative is the mean of those on both sides. A shift of equal faces moves the
// middle of what they have in common by half as much, to either side.
#pragma once

#include <vector>

#include "coulomb/collision/shape.hpp"

namespace coulomb {

struct Contact;

/// What a contact's force is multiplied by.
struct ContactShare {
  enum class Kind : unsigned char { whole, leaving, entering, corner };
  double value = 1;            ///< part times what the outline gives
  double part = 1;             ///< a half where a corner is on a border
  double turn[3] = {0, 0, 0};  ///< d value = turn . (w_A - w_B), angular velocities in world axes
  Kind kind = Kind::
      whole;  ///< whole: 1 in every pose. leaving, entering: an incident edge crosses a side. corner: the reference's
  bool reference_on_a = false;

  int reference = -1;  ///< face
  int incident = -1;   ///< face
  int edge = -1;       ///< of the incident face
  int side = -1;       ///< of the reference face; corner: the side that begins there
};

/// Contacts with distance < 0 of two boxes or meshes, and their shares: the outline of overlapping faces, or the one witness where no
/// faces meet. Appended. `size`: Contact::size.
void collide_flat_sides(const Shape& a, const Shape& b, double size, std::vector<Contact>& contacts,
                        std::vector<ContactShare>& shares);

/// d value by the place of a mesh's vertex, along the axes of its frame. of_a: the mesh is A's.
void share_by_vertex(const Shape& a, const Shape& b, const ContactShare& share, bool of_a, int vertex, double out[3]);

}  // namespace coulomb
