// The exact finish of a convex pair: from a GJK or EPA simplex to the features that touch, and from these the normal,
// depth and witnesses to rounding: closed forms for vertices, edges and faces, Newton's method on the optimality of the
// support functions for smooth ones, (F_A + F_B + Phi) dn + E l = P (p_A - p_B) (docs/theory.md (G1), (G4)).
#pragma once

#include "coulomb/collision/motion/support_patch.hpp"
#include "coulomb/collision/narrow_phase/epa.hpp"

namespace coulomb {

/// A feature of a core near its witness.
struct CoreFeature {
  Feature kind = Feature::vertex;
  double point[3] = {0, 0, 0};      ///< witness on the core
  double direction[3] = {0, 0, 0};  ///< edge, line: unit direction

  /// Edge, line: extent along direction, from `point`
  double low = 0;
  double high = 0;

  double normal[3] = {0, 0, 0};  ///< face: outward normal
  int face = -1;                 ///< face: index (cylinder cap: 0 up, 1 down)
  int id = 0;                    ///< the same for the same physical feature at every step
};

/// Normal from B to A, signed distance and surface witnesses (radii included) of a pair.
struct Witness {
  double normal[3];
  double distance;
  double point_a[3];
  double point_b[3];
  CoreFeature a;
  CoreFeature b;
  bool exact = true;  ///< the features passed the checks; false: values of the simplex
};

/// Exact witness from the simplex (its closest point set) and the approximate normal, whose distance is known to
/// `doubt`; false when no choice of features passes the checks (supports agree, witness inside its feature), and then
/// `out` holds the simplex' own values.
bool refine_witness(const Shape& a, const Shape& b, const Simplex& simplex, const double normal[3], double doubt,
                    Witness& out);

bool has_line(const CoreFeature& f);  ///< an edge, or the side of a capsule or cylinder
void align_witnesses(const double normal[3],
                     Witness& w);        ///< removes what rounding left of p_A - p_B across the normal
bool face_of_a_leads(const Witness& w);  ///< of two faces the one along n carries it: is it A's?

/// One end of a line or edge as a feature of its own: 0 the low one.
CoreFeature end_of(const Shape& shape, const CoreFeature& line, int end);

/// Finishes a given pair of features; `normal` is the first guess. No checks beyond convergence.
bool solve_features(const Shape& a, const Shape& b, const double normal[3], Witness& w);

/// The SurfacePatch of one side: outward normal and feature to the other area's routine.
void witness_patches(const Shape& a, const Shape& b, const Witness& w, Contact& contact);

}  // namespace coulomb
