// Wedges: the islands in which friction can wedge. Their problem may have several solutions, which a few starts of the
// solver show (OtherSolutions).
#pragma once

#include <vector>

namespace coulomb {

struct BodyRows;
struct ConstraintRows;
struct Islands;
struct Model;

class Wedges {
 public:
  /// Islands in which two contacts hold one tree, or one body, from opposite sides: impulses in their friction cones can point against each
  /// other. Contacts between bodies of one tree hold these bodies alone. Only islands of few contacts.
  void find(const Model& model, const ConstraintRows& rows, const Islands& islands);
  const std::vector<int>& islands() const { return wedged_; }  ///< indices into the pool, ascending
  /// Per block of a wedged island: its pair of bodies; -1: no contact with friction.
  const std::vector<int>& pairs_of_bodies(const Islands& islands, int island);

 private:
  /// An impulse on a tree: its direction, the half angle of the contact's cone, and the contact's pair of bodies.
  struct Push {
    int tree = -1;
    int body = 0;
    int block = 0;
    int pair = 0;
    bool inner = false;  ///< both bodies of the contact belong to the tree
    double direction[3] = {0, 0, 0};
    double sine = 0, cosine = 1;
  };
  static bool oppose(const Push& a, const Push& b);
  static bool any_oppose(std::vector<Push>::const_iterator first, std::vector<Push>::const_iterator end);
  void add_push(const Model& model, const BodyRows& rows, int body, double sign, int pair, double mu);
  void leave_small(const ConstraintRows& rows, const Islands& islands);

  std::vector<Push> pushes_;  // by tree
  std::vector<int> wedged_;
  std::vector<int> pair_of_;   // per block of the step
  std::vector<int> contacts_;  // per island of the pool: those with friction
  std::vector<int> groups_;
};

}  // namespace coulomb
