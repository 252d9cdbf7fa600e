// One floor of several shapes. A body that lies on two tiles has contact points with each of them where their border
// crosses its face. These points add no support to that of its corners, but they take a share of the force, and of
// friction, that depends on the position of the border. So if every contact point of the body with the common plane
// lies over one of the tiles, its contacts are those with the plane.
#pragma once

#include <cstdint>
#include <vector>

#include "coulomb/collision/contact.hpp"

namespace coulomb {

struct CollisionCache;
struct CollisionWorkspace;
struct Model;

/// Buffers of unite_faces, sized once from the model; storage grows only.
struct UnitedFaces {
  explicit UnitedFaces(const Model& model);

  /// The contacts of one pair.
  struct Group {
    int pair;
    int begin;
    int end;
    int next[2];  ///< the next group of its geometry A, and of B; -1: none
    bool united;
  };
  /// A group whose other shape is a tile: its side that faces the body.
  struct Tile {
    int group;
    int geometry;
    int face;
    double normal[3];
    double point[3];
  };

  std::vector<Group> groups;
  std::vector<int> first;  ///< per geometry: its first group; -1: none
  std::vector<int>
      last_seen;  ///< per last dof of a link, from the world's -1 on: the geometry that it was last seen beside
  std::vector<Tile> tiles;    ///< of one floor
  std::vector<Contact> own;   ///< the body's contacts with their plane
  std::vector<Contact> kept;  ///< the contacts to be
};

/// Contacts of the workspace are ordered by pair, and stay so. True: some are others now. After detect_contacts, for the same poses.
/// cache: forgets what the pairs knew of their faces; nullptr: it may not change.
bool unite_faces(const Model& model, CollisionCache* cache, CollisionWorkspace& workspace, UnitedFaces& buffers);

}  // namespace coulomb
