// detect_contacts: from body poses to contact points. Broad phase (spheres, oriented boxes) -> narrow phase by pair of
// shapes -> at most four points per pair. Reads the model, the poses and the cache; writes contacts and the cache; does
// not depend on constraints.
#pragma once

#include <cstddef>
#include <vector>

#include "coulomb/collision/broad_phase/filter.hpp"
#include "coulomb/collision/collision_options.hpp"
#include "coulomb/collision/contact.hpp"
#include "coulomb/collision/shape.hpp"
#include "coulomb/collision_cache.hpp"
#include "coulomb/model.hpp"

namespace coulomb {

/// Room for contacts that models are given at first; scenes with more of them grow it.
std::size_t usual_contacts(const Model& model);

/// Buffers of the collision stage, sized once from the model.
struct CollisionWorkspace {
  /// swept_from: see FilterTables.
  explicit CollisionWorkspace(const Model& model, int swept_from = least_swept_geometries);
  /// Makes room for this many pairs in the box test.
  void reserve_boxes(std::size_t count);

  std::vector<double> pose;       ///< 15 rows of padded geometries, world: rotation row major, position, centre
  std::vector<Contact> contacts;  ///< result, ordered by pair then feature

  std::vector<float> filter_center;  ///< 3 rows x padded geometries
  std::vector<float> filter_radius;  ///< padded geometries
  std::vector<int> candidates;       ///< pairs that passed the filter, ascending
  double least_margin = 0;           ///< of the detection
  bool travels = false;              ///< the two below count
  std::vector<double> shift;         ///< num_geometries x 3: how the centres may move, metres
  std::vector<double> turn;          ///< and by how far the surfaces may move besides, as they turn
  std::vector<double> reach;         ///< FilterTables::reach and the two above
  FilterTables filter;               ///< what the filter knows of the model
  SphereSweep sweep;                 ///< of many geometries
  FixedPlaces fixed;                 ///< of those that the sweep has as still
  std::vector<std::uint8_t> hits;    ///< one row's hits

  /// Geometries and pairs on their way to the box test
  std::vector<int> box_first;
  std::vector<int> box_second;
  std::vector<int> box_pair;

  std::vector<double> box_margin;                ///< and how near it has to be
  std::vector<int> touch;                        ///< result of the box test, and of that of half-spaces
  std::vector<int> merged;                       ///< candidates while two lists become one
  std::vector<CollisionCache::Pair> next_cache;  ///< the cache while its pairs change
  std::vector<double> plane_margin;              ///< of the test of half-spaces
  std::vector<Contact> staging;                  ///< one pair's contacts, overwritten by the next
};

/// body_position: num_bodies x 3, body_rotation: num_bodies x 9 row major (world from body).
/// travel: num_bodies x 6, how the bodies' origins may move (m) and the bodies turn (rad), world axes: pairs that this may bring
/// together have contacts beyond their margin too, which change no other contact. nullptr: none.
void detect_contacts(const Model& model, const double* body_position, const double* body_rotation,
                     const CollisionOptions& options, CollisionCache& cache, CollisionWorkspace& workspace,
                     const double* travel = nullptr);

/// Pose of a geometry, after the filter.
void pose_shape(const Model& model, const CollisionWorkspace& workspace, int geometry, Shape& shape);

/// Exchanges the roles of A and B: the normal still points from B to A.
void flip_contact(Contact& contact);

/// One candidate pair by its routine, contacts up to `margin` appended, without memory.
void collide_pair_stateless(const Model& model, int pair, double margin, CollisionWorkspace& workspace,
                            std::vector<Contact>& out);

/// How geometry A of a pair is moved for a look at it, in the world; null: not shifted, not turned.
struct RigidShift {
  const double* centre;           ///< 3: what it turns about
  const double* shift = nullptr;  ///< 3
  const double* turn = nullptr;   ///< 3: rotation vector
};

/// Geometry A of a pair is moved while this lives; the workspace's pose is restored afterwards.
class MovedShape {
 public:
  MovedShape(const Model& model, int pair, const RigidShift& move, CollisionWorkspace& workspace);
  ~MovedShape();
  MovedShape(const MovedShape&) = delete;
  MovedShape& operator=(const MovedShape&) = delete;

 private:
  double* pose_;
  int stride_;
  double saved_[12];
};

/// One pair with A moved, without a cache: contacts nearer than its margin plus `reach`.
void collide_moved_pair(const Model& model, int pair, const RigidShift& move, double reach,
                        CollisionWorkspace& workspace, std::vector<Contact>& out);

/// A face of one shape of a pair (face_plane.hpp).
struct FaceOfPair {
  bool on_a = false;
  int face = 0;
};

/// Contacts of the pair's other shape with the plane of that face, as far as it goes, nearer than `margin`.
void collide_face(const Model& model, int pair, const FaceOfPair& face, double margin, CollisionWorkspace& workspace,
                  std::vector<Contact>& out);

}  // namespace coulomb
