// SinkingContacts: contacts that sink to the penetration tolerance while they are held. If bodies slide or roll along
// each other's curved surfaces, no constraint on velocities preserves the distance: the bodies sink at once and turn
// back. If an impulse elsewhere keeps them at the tolerance, this repeats without end. Each impact therefore separates
// the pairs that sank. Their speed grows with the number of returns in this step without leaving the overlap, up to a
// hop of a few tolerances, which gives them room.
//
// Faster hops would add energy to pairs that return without end. If the impacts of the step run out, the other points
// of the pair stop (ImpactSplitter::stop_rattling), and only a pair without other points is separated faster still.
// Points of one pair that are hit one after the other with almost no motion in between (faces and edges that are almost
// parallel, of which the manifold has one point) are separated together.
#pragma once

#include <utility>
#include <vector>

#include "coulomb/constraints/constraint_rows.hpp"

namespace coulomb {

class SinkingContacts {
 public:
  /// A step begins.
  void clear();

  /// The pair of this contact came down on its threshold; moved: metres and radians of motion since the event before. held: contacts of
  /// that motion; only these sink, other points of the pair fall. Contacts of the place's list that the manifold left out are added,
  /// frozen.
  void hit(const Contact& contact, bool sank, double moved, const std::vector<Contact>& held,
           std::vector<Contact>& contacts);

  /// Is it one of these contacts, or the same feature of their pair? Round shapes roll on: their contact moves.
  static bool is_among(const std::vector<Contact>& contacts, const Contact& contact);

  /// Has this pair come down on its threshold in this step, while it was held?
  bool has_sunk(int pair) const;

  /// The step has few impacts left: what comes back again is lifted faster at once, and its pair is to be stopped.
  void hurry() { hurries_ = true; }
  bool hurries() const { return hurries_; }

  /// A pair so close to its threshold that the search does not get past.
  void creeps(int pair);

  /// This pair comes back without end at the only point that it has: from now on its speed grows further.
  void comes_back_alone(int pair);

  /// Contact::lift and turns_back, for the next impact, of what has sunk; false: no pair has come back. slowest: the first time.
  /// held: contacts of the motion before, nullptr if none; only these are parted, other points that come down stop.
  bool lift(const ConstraintOptions& impact, double slowest, const std::vector<Contact>* held,
            std::vector<Contact>& contacts);

 private:
  void forget(int pair);
  bool hurries_ = false;

  struct Returning {
    int pair;
    int count;   ///< how often it came back
    bool alone;  ///< and without end, at its only point
  };
  std::vector<Returning> returning_;
  std::vector<Contact> lifted_;  ///< that hop
  std::vector<Contact> chain_;   ///< hit one after the other with next to no motion between
};

}  // namespace coulomb
