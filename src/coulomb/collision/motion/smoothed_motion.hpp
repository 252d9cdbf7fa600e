// SmoothedMotion: how a contact moves on average when the poses of its two shapes are blurred (randomised smoothing of collision
// detection, [Montaut2023]). It sees the next vertex or edge where the exact rule sees only the one that touches.
#pragma once

#include <cstdint>
#include <vector>

namespace coulomb {

struct CollisionWorkspace;
struct Contact;
struct ContactMotion;
struct Model;

class SmoothedMotion {
 public:
  /// scale: standard deviation of the pose of A against B, metres (and radians times the shapes' size). The workspace is that of the
  /// contacts; its buffers are used and restored.
  SmoothedMotion(const Model& model, CollisionWorkspace& workspace, int samples, double scale, std::uint64_t seed)
      : model_(model), workspace_(workspace), samples_(samples), scale_(scale), seed_(seed) {}

  /// Mean of contact_motion over the perturbed poses in which the pair touches or nearly does; the exact one if there is none.
  void operator()(const Contact& contact, ContactMotion& motion) const;

 private:
  const Contact* carrier(const Contact& contact, const std::vector<Contact>& found) const;

  const Model& model_;
  CollisionWorkspace& workspace_;
  int samples_;
  double scale_;
  std::uint64_t seed_;
};

}  // namespace coulomb
