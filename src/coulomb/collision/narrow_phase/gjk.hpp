// GJK on the cores of two convex shapes: the point of A - B closest to the origin, as a simplex of support points whose
// vertex indices name the features [Gilbert1988].
#pragma once

#include "coulomb/collision/shape.hpp"

namespace coulomb {

/// A point of A - B with the two support points it comes from.
struct MinkowskiVertex {
  double w[3];
  double a[3];
  double b[3];
  int ia;
  int ib;
};

enum class GjkStatus { beyond, apart, overlap };

struct Simplex {
  MinkowskiVertex v[4];
  double weight[4];
  int count = 0;
  double closest[3] = {0, 0, 0};  ///< sum of weight * w
};

/// Support point of A - B along `direction`; hints as in core_support.
void minkowski_support(const Shape& a, const Shape& b, const double direction[3], int hints[2], MinkowskiVertex& out);

/// beyond: the cores are farther apart than `reach`, `axis` separates them. apart: `simplex` is the closest one, to the
/// relative `tolerance` (0: until no progress, exact for polyhedral cores). overlap: the simplex holds the origin.
/// `axis`: first guess of the direction from B to A; on return the last one (unnormalised).
GjkStatus gjk(const Shape& a, const Shape& b, double reach, double tolerance, double axis[3], int hints[2],
              Simplex& simplex);

}  // namespace coulomb
