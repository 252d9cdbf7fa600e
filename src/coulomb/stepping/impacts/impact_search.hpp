// The workspace of ImpactSearch: motion and geometries at the start of the path, and the pairs that it follows along
// the path.
#pragma once

#include <utility>
#include <vector>

#include "coulomb/collision/continuous/separation_bound.hpp"
#include "coulomb/collision/continuous/surface_advance.hpp"
#include "coulomb/collision/continuous/swept_filter.hpp"
#include "coulomb/dynamics/body_motion.hpp"
#include "coulomb/stepping/impacts/first_impact.hpp"

namespace coulomb {

/// A pair on its way, and how far it is known to be safe.
struct PairTrack {
  int pair = 0;
  int top = 0;           ///< body that it is followed from; 0: the world
  bool held = false;     ///< in contact since the start
  double time = 0;       ///< s: safe until then
  double threshold = 0;  ///< m: the distance that it comes down on
  double lift = 0;       ///< m: farther apart it is held no more
  MotionBounds a, b;     ///< relative to top
  bool seen = false;     ///< the normal was evaluated before, at
  double seen_at = 0;    ///< this time, and was
  double seen_normal[3] = {0, 0, 0};
};

/// The distance of two shapes that move.
struct PairDistance {
  const MovingShape* a;
  const MovingShape* b;
  SignedDistance now;
  double closing = 0;  ///< m/s: how fast the distance shrinks
  double guard = 0;    ///< m: bound of its rounding
};

/// A geometry in the frame of its body.
struct LocalGeometry {
  double rotation[9];
  double position[3];
  double centre[3];  ///< of the bounding sphere
  double arm;        ///< |centre|
  double core;       ///< from the centre to the core's farthest point
};

/// A geometry at the start of the path, in the world.
struct StartGeometry {
  bool placed = false;
  MovingShape moving;
  double velocity[3];  ///< of the centre
  double bend;         ///< bound of the centre's acceleration
};

inline bool has_half_space(const MovingShape& a, const MovingShape& b) {
  return a.shape.type == ShapeType::half_space || b.shape.type == ShapeType::half_space;
}

/// The rest of an evaluation, whose distance is known.
void measure(const MovingShape& a, const MovingShape& b, PairDistance& e);

struct ImpactSearch::Workspace {
  explicit Workspace(const Model& model);

  SweptFilter filter;
  std::vector<LocalGeometry> local;
  std::vector<BodyMotion> motion;    ///< of all bodies at the start, relative to the world
  std::vector<MotionBounds> bounds;  ///< the same
  std::vector<StartGeometry> starts;
  std::vector<double> axes;  ///< num_pairs x 3: what separated each pair last; saves time and changes no answer
  std::vector<double> up;    ///< num_geometries x 3: outward normals of half-spaces
  std::vector<PairTrack> tracks;
  std::vector<std::pair<double, int>> queue;  ///< heap: safe until, index into tracks (in the order of pairs)
  MovingShape shape_a, shape_b;               ///< of the evaluation
  SurfaceAdvance surface;
  int evaluations = 0;
  int followed = 0;  ///< without those of the start, which depend on `axes`

  bool prepare(const Model& model, const MotionPath& path, const ImpactStart& start);
  bool take_motion(const Model& model, const MotionPath& path, const ImpactStart& start);
  StartGeometry& start_of(const Model& model, int g);
  bool straight_paths_meet(const StartGeometry& a, const StartGeometry& b, int ga, int gb, double duration) const;
  bool apart_at_start(const Model& model, int pair, double duration, const StartGeometry& a, const StartGeometry& b);
  bool measure_start(const Model& model, const ImpactOptions& options, double duration, int pair,
                     const Contact* contact, PairDistance& e);
  void look(const Model& model, const ImpactOptions& options, const MotionPath& path, int pair, const Contact* contact,
            const ImpactStart& start);
  void look_at_all(const Model& model, const ImpactOptions& options, const MotionPath& path, const ImpactStart& start);
  PairTrack track_from_start(const Model& model, int pair) const;
  void place(const Model& model, int g, const BodyMotion& motion, const MotionBounds& bounds, MovingShape& out) const;
  void evaluate(const Model& model, const MotionPath& path, const PairTrack& track, int top, PairDistance& out);
  bool advance(const MotionPath& path, const PairDistance& e, PairTrack& track);
  void report(const Model& model, const MotionPath& path, const PairTrack& track, Impact& impact);
};

}  // namespace coulomb
