// The friction pyramid: a regular polygon P replaces Coulomb's disc (docs/theory.md (Q1)).
//
//   0 <= lambda_N  orthogonal to  c_N >= 0
//   lambda_T in mu lambda_N P,  -c_T in the normal cone of mu lambda_N P at lambda_T
//
// P has `facets` = m sides. Its 2 m features, sides and vertices in turn, lie at the angles pi f / m from t1, f = 0 ..
// 2 m - 1.
//   circumscribed  sides at even f, at distance 1 from the centre; m = 4 is the boxed LCP |lambda_1|, |lambda_2| <= mu
//                  lambda_N
//   inscribed      vertices at even f, at distance 1; m = 4 is the diamond |lambda_1| + |lambda_2| <= mu lambda_N
// The disc lies between the two. A contact slides on a side (lambda_T anywhere on it, c_T along its normal) or at a
// vertex. With z = lambda - c and r = mu z_N, the modes are: separating if z_N <= 0; sticking if z_T is in r P; else
// sliding on the feature of r P nearest to z_T.
//
// Further tangents (spinning, rolling) have intervals of their own, |lambda_k| <= mu lambda_N: the section of the pyramid is
// the product of the polygon and these. Each part sticks or is at its border by itself, and the contact slides where any is.
#pragma once

#include "coulomb/solvers/constraint_problem.hpp"

namespace coulomb {

struct FrictionPolygon {
  int sides = 4;
  int first_side = 0;                   ///< sides are the features of its parity
  double apothem = 1, half_side = 1;    ///< distance of a side from the centre; half its length
  double direction[2 * max_facets][2];  ///< unit, of every feature
  double point[2 * max_facets][2];      ///< a side's foot point; the vertex itself

  bool is_side(int feature) const { return (feature & 1) == first_side; }
  int neighbour(int feature, int by) const { return (feature + by + 2 * sides) % (2 * sides); }
  int nearest_side(double x, double y) const;
};

/// Of a block's facets (4, 6, .. max_facets) and kind; made once.
const FrictionPolygon& friction_polygon(const Block& block);

/// Mode of a pyramid, and which facet where it slides (else -1): the feature of its polygon; with further tangents all its
/// parts in one number (facet_of).
struct PyramidMode {
  Mode mode = Mode::separating;
  int facet = -1;
};

/// Where the parts of a sliding pyramid are.
struct PyramidParts {
  int feature = -1;                ///< of the polygon; -1: inside, it sticks
  int end[max_tangents - 2] = {};  ///< of each further tangent: 1, -1 at an end of its interval; 0: inside, it sticks
  bool operator==(const PyramidParts& other) const = default;
};

PyramidParts parts_of(const Block& block, int facet);         ///< facet >= 0
int facet_of(const Block& block, const PyramidParts& parts);  ///< -1: every part sticks
/// The point of the pyramid's section that a facet's impulse is at, one number per tangent: lambda_k = mu lambda_N n_k where the
/// part is at its border (a side's foot point, a vertex, an end), zero where it sticks.
void pyramid_point(const Block& block, int facet, double* n);

PyramidMode pyramid_mode(const Block& block, const double* lambda, const double* c);
/// Distance of z to the border of its mode, and the label: ties below `tie` go to separating before sticking before a side before a
/// vertex.
double pyramid_margin(const Block& block, double tie, const double* lambda, const double* c, PyramidMode& label);
/// ||lambda - projection of z||: zero exactly at the admissible pairs.
double pyramid_residual(const Block& block, const double* lambda, const double* c);
void project_pyramid(const Block& block, double* lambda);        ///< on the cone of admissible impulses
int facet_of_impulse(const Block& block, const double* lambda);  ///< the facet that a sliding impulse is on; -1: none
/// `facet` with the parts that the impulse tells otherwise: at a vertex to rounding, or on a side and farther than `clear` from
/// its ends; of a part that may stick, on its border to rounding, or inside and farther than `clear` from it.
int facet_of_clear_impulse(const Block& block, const double* lambda, double clear, int facet);
int facet_at_border(const Block& block, double share,
                    const double* lambda);  ///< -1: inside, farther than that share of its size
/// max of direction . w over the points w of the section, one number per tangent
double pyramid_support(const Block& block, const double* direction);
/// The mode on the other side of the border that a tie is nearest to. weight: velocity per impulse.
PyramidMode pyramid_other_side(const Block& block, double weight, PyramidMode mode, const double* lambda,
                               const double* c);

}  // namespace coulomb
