// Which of the contacts that would close within a step do so, and with which normal. A contact of now acts along the line of the
// closest points of now, on all that is before or behind it: a body that goes by is braked, and one that glides from one tile onto the
// next runs into the side of that tile. So what closes is judged at the pose to come:
//
//   - nothing touches there: it is no contact;
//   - the shapes are parted by a flat side as well, which is approached less: its plane holds, at the points that will be over it.
//
// A normal that parts two convex shapes now and is kept from closing keeps them apart whichever it is, so the one in whose way the
// motion is least is right (docs/theory.md (S10)).
//
// The free velocity does not know what other contacts will do. So what was left out is looked at again at the velocity that was found, and
// acts where the bodies meet all the same.
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
