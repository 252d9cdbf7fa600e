// Decides which of the gaps that would close within a step become contacts, and with which normal. A contact found at
// the current pose acts along the line of the current closest points, even where the bodies pass each other: it slows
// down a body that goes by, and stops a body that slides from one tile to the next at the side of that tile. So every
// closing gap is evaluated at the predicted pose:
//
//   - if the shapes do not touch there, it is no contact;
//   - if a flat side also separates the shapes, and the approach to it is slower, its plane is used, at the points that
//     will be over it.
//
// Any normal that separates two convex shapes now keeps them apart if the gap along it cannot close. The right one is
// therefore the one that obstructs the motion least (docs/theory.md (S10)).
//
// The free velocity does not include the effect of other contacts. After the solve, the gaps left out are tested again
// with the velocity found, and become contacts if the bodies meet after all.
#pragma once

#include <vector>

#include "coulomb/collision/contact.hpp"

namespace coulomb {

struct Model;
struct StepOptions;
struct StepRecord;
struct StepWorkspace;

/// Buffers of the judgement, sized once from the model (step_workspace.hpp).
struct ContactsToCome {
  explicit ContactsToCome(const Model& model);

  struct Poses {
    std::vector<double> position;    ///< num_bodies x 3
    std::vector<double> quaternion;  ///< num_bodies x 4
    bool known = false;
  };
  Poses by_free_velocity;  ///< after one step at v_free, and at v
  Poses by_velocity;
  Poses by_found_velocity;  ///< after one step at v_next
  std::vector<double> q;
  std::vector<int> first;               ///< index of each pair's first contact, and the number of contacts
  std::vector<unsigned char> left_out;  ///< per pair
  std::vector<Contact> kept;            ///< the contacts to be
  std::vector<Contact> missed;          ///< contacts of pairs that pass each other at v_free, ordered by pair
  std::vector<Contact> of_plane;        ///< of one pair: its points over a plane, now
  std::vector<Contact> over;            ///< and at the pose to come
};

/// Judges record.collision.contacts, ordered by pair; link twists of the record at v_free. Sets record.just_touches. True: some are
/// others now, or none.
bool judge_contacts_to_come(const Model& model, const StepOptions& options, StepRecord& record,
                            ContactsToCome& buffers);

/// After a solve: contacts of pairs that were to pass each other, and meet at v_next, act from now on. True: there are some, and the
/// problem is to be solved again. Every call that returns true leaves fewer in `missed`.
bool restore_contacts_that_meet(const Model& model, const StepOptions& options, StepRecord& record,
                                StepWorkspace& workspace);

}  // namespace coulomb
