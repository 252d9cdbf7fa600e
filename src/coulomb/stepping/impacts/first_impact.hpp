// The first impact of a motion: the time along q(t) = q (+) (t v + t^2/2 a) at which the distance of some pair of
// shapes falls to its threshold.
//
// Swept spheres exclude nearly every pair, and one evaluation at the start excludes most of the others. The remaining
// pairs advance by steps that no point of the two shapes can cross (directed bound of second order,
// collision/continuous/separation_bound.hpp). The time found is therefore never late, and early by rounding only, since
// the steps converge to the impact like Newton's method.
#pragma once

#include <memory>

#include "coulomb/collision/contact.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/motion_path.hpp"
#include "coulomb/model.hpp"

namespace coulomb {

struct ImpactOptions {
  double tolerance = 1e-5;      ///< m, > 0: how much deeper pairs in contact may get
  double deeper = 0.5;          ///< share of the tolerance by which a pair that has used it up may get deeper still
  int max_evaluations = 20000;  ///< distances of one search, without the first of each pair
};

/// What the caller knows of the start of the path already; it saves time and changes results by rounding at most.
struct ImpactStart {
  const DynamicsWorkspace* dynamics = nullptr;  ///< kinematics at the path's q, then velocities at its v
  const Contact* contacts = nullptr;            ///< detected there, ordered by pair; some may be left out
  int num_contacts = 0;
  bool all_held =
      false;  ///< the contacts are all that is held: other pairs that come down from above, however near, come down on 0
  const unsigned char* elsewhere = nullptr;  ///< by tree: the dynamics are those of another place; null: none
};

enum class ImpactStatus {
  complete,          ///< the answer is the first impact, or that there is none
  evaluation_limit,  ///< nothing happens before `time`, the rest of the motion was not looked at
  not_finite,        ///< the motion overflows: time = 0
};

/// Thresholds of the signed distance: 0 for pairs that start farther apart than their contact margin (Model::pair_margin). Nearer
/// pairs, and those that the caller holds, are in contact: -tolerance, but at least `deeper` tolerances below where they start; and 0
/// once such a pair has lifted off by more than its margin (held ones: by more than the tolerance).
struct Impact {
  bool found = false;
  double time = 0;       ///< seconds from the start of the path; found: of the impact; else: nothing happens before
  int pair = -1;         ///< index into Model::pair_*; evaluation_limit: of the pair that was followed last
  double threshold = 0;  ///< m: the signed distance is this at `time`, to rounding
  double distance = 0;   ///< m: at `time`, >= threshold to rounding
  double normal[3] = {0, 0, 1}, point[3] = {0, 0, 0};     ///< world, at `time`; normal from geometry b to a of the pair
  double point_a[3] = {0, 0, 0}, point_b[3] = {0, 0, 0};  ///< of the shapes, `point` is half way
  double closing_speed = 0;                               ///< m/s: -dPhi/dt at `time`
  bool grazing = false;  ///< closing_speed is next to nothing: the time has no derivative
  int evaluations = 0;   ///< of the signed distance
  ImpactStatus status = ImpactStatus::complete;
};

/// Workspace and search; no allocation after construction.
class ImpactSearch {
 public:
  explicit ImpactSearch(const Model& model);
  ~ImpactSearch();
  ImpactSearch(ImpactSearch&&) noexcept;
  ImpactSearch& operator=(ImpactSearch&&) noexcept;

  /// The earliest impact along the path; of equal times, the one that is found first: the same for the same input.
  Impact first(const Model& model, const ImpactOptions& options, const MotionPath& path, const ImpactStart& start = {});

  /// When a pair that overlaps at the start of the path touched on its way: its last zero at a time <= 0, by Newton's method. Not
  /// found: not at `earliest` or later, or the pair does not approach.
  Impact touch(const Model& model, const MotionPath& path, int pair, double earliest);

  /// The pair where the path starts, whether it touches or not: its signed distance, normal and points.
  Impact at_start(const Model& model, const MotionPath& path, int pair);

 private:
  struct Workspace;
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace coulomb
