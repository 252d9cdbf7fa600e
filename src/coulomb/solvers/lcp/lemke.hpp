// Lemke's method for w = M z + q, 0 <= w, 0 <= z, w . z = 0: a walk along the edges of the problem with q + d z0, d > 0, from a large z0
// to z0 = 0 ([Cottle1992, algorithm 4.4.5], as a dictionary).
//
// Where M is copositive, and q . v >= 0 for every v >= 0 with M v >= 0 and v . M v = 0, the walk ends at a solution (there, theorem
// 4.4.12). Friction pyramids have such an M, and such a q where the contacts do not contradict each other [Anitescu1997]. Pivots
// that tie are chosen in lexicographic order, so that the walk does not go round in circles.
#pragma once

#include <vector>

namespace coulomb {

class Lemke {
 public:
  void resize(int size);  ///< zeroes M and q, d = 1; storage only grows
  /// True: z is a solution, up to the rounding of the walk. False: a ray, or out of pivots; z0 tells how much is left.
  bool solve(int max_pivots);

  int n = 0, ld = 0;
  std::vector<double> M, q, d;  ///< n x ld row major, n, n
  std::vector<double> z;        ///< n
  double z0 = 0;                ///< of the last solve
  bool ray = false;
  std::vector<double> direction;  ///< n: of z along the ray
  int pivots = 0;

 private:
  double inverse_entry(int row, int j) const;  ///< of the basis' inverse, as the dictionary holds it
  bool before(int row, int other, int column) const;
  int leaving_row(int column) const;
  void pivot(int row, int column);
  void begin();

  // basic = value - T nonbasic. Variables: w_i is i, z_i is n + i, z0 is 2 n
  std::vector<double> T_, value_;
  std::vector<int> basic_, nonbasic_;
  std::vector<int> place_;  ///< of a variable: its column, or -1 - its row
};

}  // namespace coulomb
