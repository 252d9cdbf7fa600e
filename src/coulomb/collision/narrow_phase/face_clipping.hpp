// Contact manifolds of a convex pair: the features around the common normal are clipped against one another and give
// several points, each with its own depth under the common normal (docs/theory.md (G6), (G7)).
#pragma once

#include "coulomb/collision/narrow_phase/convex_witness.hpp"

namespace coulomb {

constexpr int max_candidates = 96;

/// A manifold point before the selection: what is needed to choose, and to fill a Contact afterwards.
struct Candidate {
  double distance;
  double normal[3];
  double point_a[3];
  double point_b[3];
  double direction_a[3],
      direction_b[3];  ///< support: edge directions; edge_crossing: edge, side; reference_vertex: incident normal
  MotionRule rule;

  Feature kind_a;  ///< support
  Feature kind_b;  ///< support
  bool reference_on_a;
  bool two_normals = false;  ///< as of Contact
  bool on_border =
      false;  ///< of a closed outline: some corner of it lies on a side, so the other outline has other corners
  int feature;

  // Of a closed outline of polygons: the incident face's edge and the reference's side that cross; or the side that begins at a corner of
  // the reference.
  int edge = -1;
  int side = -1;
  bool is_leaving = false;  ///< the edge goes out of the reference there
};

/// Points where faces meet: by what is found of each feature, of which those that all but coincide may be left out; or the closed outline
/// that two polygons have in common. A corner on the border of the other face belongs to the wider outline, and not to the narrower one.
enum class FacePoints : unsigned char { features, outline, narrower_outline };

/// Within this sine of the witness normal a face (or a line, with the plane across it) counts as aligned; a cylinder's
/// cap counts as the incident face within cap_sine.
constexpr double alignment_sine = 0.05;
constexpr double cap_sine = 0.02;
/// A reference face of the last step stays while it is worse by no more than this.
constexpr double most_kept_sine = 0.02;

/// Points of the manifold closer than `margin`, at most max_candidates; 0 when the pair has no aligned features and the
/// witness stands alone. `reference`: CollisionCache::Pair::reference, read and written; kept_sine: it stays while it leans no more than so
/// much farther from the witness normal than the other one.
int clip_manifold(const Shape& a, const Shape& b, const Witness& w, double margin, double kept_sine, int& reference,
                  Candidate* out, FacePoints points = FacePoints::features);

/// The contact of a chosen candidate.
void fill_contact(const Shape& a, const Shape& b, const Candidate& candidate, Contact& contact);

}  // namespace coulomb
