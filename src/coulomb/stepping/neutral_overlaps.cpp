#include "coulomb/stepping/neutral_overlaps.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <utility>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/detect.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/model/joint_equality.hpp"
#include "coulomb/simulator.hpp"

namespace coulomb {

namespace {

constexpr int num_poses = 64;           // beside the neutral one: a few ms for shells of meshes
constexpr double reach = M_PI;          // rad, m: of joints without limits, to both sides
constexpr double least_overlap = 1e-6;  // m: the margin of contacts; what is less deep touches
constexpr double touch = 1e-3;          // of the smaller shape's size: how far neighbours may be apart and still touch

/// The body that a robot is: its floating base, or what is fixed to the world and carries its links. World: none.
int robot_of(const Model& model, int body) {
  while (body > 0 && model.body_parent[body] > 0)
    body = model.body_parent[body];
  return body;
}

/// Bodies of the same one.
bool of_one_robot(const Model& model, int body_a, int body_b) {
  const int robot = robot_of(model, body_a);
  return robot > 0 && robot == robot_of(model, body_b);
}

/// Whether a single body's joints are all that is between two bodies.
bool are_neighbours(const Model& model, int body_a, int body_b) {
  // Bodies are numbered after their parents: the later one steps up until they meet.
  int moving = 0;
  while (body_a != body_b) {
    int& later = body_a > body_b ? body_a : body_b;
    moving += model.body_num_joints[later] > 0;
    later = model.body_parent[later];
  }
  return moving == 1;
}

/// Smaller size of a shape, from its centre.
double size_of(const Model& model, int geometry) {
  const double* size = &model.geometry_size[3 * geometry];
  switch (model.geometry_type[geometry]) {
    case ShapeType::half_space:
    case ShapeType::surface: return INFINITY;
    case ShapeType::sphere:
    case ShapeType::capsule: return size[0];
    case ShapeType::cylinder: return std::min(size[0], size[1]);
    case ShapeType::box:
    case ShapeType::ellipsoid: return std::min({size[0], size[1], size[2]});
    case ShapeType::mesh: {
      const ConvexMesh& mesh = *model.meshes[model.geometry_mesh[geometry]];
      return *std::min_element(mesh.aabb_half.begin(), mesh.aabb_half.end());
    }
  }
  return 0;
}

/// A pair that may be left out, and up to which distance it counts as overlapping.
struct Candidate {
  int pair = -1;
  double distance = 0;
};

/// Pairs of one robot's own that nobody asked for.
std::vector<Candidate> own_pairs(const Model& model) {
  std::vector<Candidate> out;
  for (std::size_t p = 0; p < model.pair_a.size(); ++p) {
    const int a = model.pair_a[p];
    const int b = model.pair_b[p];
    const int body_a = model.geometry_body[a];
    const int body_b = model.geometry_body[b];
    const PairOverride& own = model.pair_overrides[p];
    const bool asked_for = own.friction || own.restitution || own.torsional_friction || own.rolling_friction;
    if (asked_for || !of_one_robot(model, body_a, body_b)) continue;

    const bool near = are_neighbours(model, body_a, body_b);
    const double touching = touch * std::min(size_of(model, a), size_of(model, b));
    out.push_back({int(p), near ? touching : -least_overlap});
  }
  return out;
}

/// The model with these pairs alone.
Model with_pairs(const Model& model, const std::vector<Candidate>& pairs) {
  Model out = model;
  const auto keep = [&](auto& values) {
    auto kept = values;
    kept.clear();
    for (const Candidate& candidate : pairs)
      kept.push_back(values[candidate.pair]);
    values = std::move(kept);
  };
  keep(out.pair_a);
  keep(out.pair_b);
  keep(out.pair_friction);
  keep(out.pair_restitution);
  keep(out.pair_compliance);
  keep(out.pair_torsional_friction);
  keep(out.pair_rolling_friction);
  keep(out.pair_overrides);
  keep(out.pair_penalty);
  keep(out.pair_margin);
  keep(out.pair_weight);
  keep(out.pair_torsional_weight);
  keep(out.pair_rolling_weight);
  return out;
}

/// Those of the candidates that overlap at q.
class Overlaps {
 public:
  Overlaps(const Model& model, const std::vector<Candidate>& candidates)
      : model_(with_pairs(model, candidates)), dynamics_(model_), workspace_(model_) {
    options_.stateless = true;
    for (const Candidate& candidate : candidates)
      options_.least_margin = std::max(options_.least_margin, candidate.distance);
  }

  std::vector<Candidate> operator()(const double* q, const std::vector<Candidate>& candidates) {
    kinematics(model_, q, dynamics_);
    detect_contacts(model_, dynamics_.body_position.data(), dynamics_.body_rotation.data(), options_, cache_,
                    workspace_);

    // The deepest point of each.
    deepest_.assign(candidates.size(), INFINITY);
    for (const Contact& contact : workspace_.contacts)
      deepest_[contact.pair] = std::min(deepest_[contact.pair], contact.distance);
    std::vector<Candidate> out;
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (deepest_[i] <= candidates[i].distance) out.push_back(candidates[i]);
    return out;
  }

 private:
  Model model_;
  DynamicsWorkspace dynamics_;
  CollisionWorkspace workspace_;
  CollisionCache cache_;
  CollisionOptions options_;
  std::vector<double> deepest_;
};

/// Poses of all joints but free ones: all at their lower limits, all at their upper ones, then anywhere between.
class Poses {
 public:
  explicit Poses(const Model& model) : model_(model), start_(model.nq), q_(model.nq) { neutral(model, start_.data()); }
  const std::vector<double>& start() const { return start_; }

  const std::vector<double>& next() {
    ++count_;
    q_ = start_;
    for (int j = 0; j < model_.num_joints; ++j) {
      const JointType type = model_.joint_type[j];
      double* q = q_.data() + model_.joint_q[j];
      if (type == JointType::hinge || type == JointType::slide) {
        place(j, q[0]);
      } else if (type == JointType::ball) {
        turn(j, q);
      }
    }

    // Coupled joints follow.
    for (const Equality& equality : model_.equalities)
      if (equality.type == EqualityType::joint && equality.active)
        q_[model_.joint_q[equality.joint_a]] = coupled_value(model_, equality, q_.data());
    return q_;
  }

 private:
  double uniform() { return double(engine_() >> 11) * 0x1p-53; }

  void place(int joint, double& q) {
    const bool limited = model_.joint_limited[joint];
    const double lower = limited ? std::max(model_.joint_lower[joint], q - reach) : q - reach;
    const double upper = limited ? std::min(model_.joint_upper[joint], q + reach) : q + reach;
    const double share = count_ <= 2 ? count_ - 1 : uniform();
    q = lower + share * (upper - lower);
  }

  /// About an axis of any direction.
  void turn(int joint, double* q) {
    const double height = 2 * uniform() - 1;
    const double around = 2 * M_PI * uniform();
    const double most = model_.joint_limited[joint] ? std::min(model_.joint_upper[joint], M_PI) : M_PI;
    const double half = 0.5 * most * uniform();
    const double across = std::sqrt(1 - height * height);
    q[0] = std::cos(half);
    q[1] = std::sin(half) * across * std::cos(around);
    q[2] = std::sin(half) * across * std::sin(around);
    q[3] = std::sin(half) * height;
  }

  const Model& model_;
  std::vector<double> start_;
  std::vector<double> q_;
  std::mt19937_64 engine_{1};  // the same poses every time, on every platform
  int count_ = 0;
};

}  // namespace

std::vector<int> neutral_overlaps(const Model& model) {
  // Scenes of single bodies have no pair to look at; few pairs overlap at the start.
  const std::vector<Candidate> all = own_pairs(model);
  if (all.empty()) return {};
  Poses poses(model);
  std::vector<Candidate> left = Overlaps(model, all)(poses.start().data(), all);
  if (left.empty()) return {};

  // One pose in which a pair is apart is enough for it to stay.
  auto overlaps = std::make_unique<Overlaps>(model, left);
  for (int k = 0; k < num_poses && !left.empty(); ++k) {
    std::vector<Candidate> still = (*overlaps)(poses.next().data(), left);
    if (still.size() == left.size()) continue;
    left = std::move(still);
    overlaps = std::make_unique<Overlaps>(model, left);
  }
  std::vector<int> out;
  for (const Candidate& candidate : left)
    out.push_back(candidate.pair);
  return out;
}

std::vector<std::string> overlap_lines(const Model& model, const std::vector<int>& pairs) {
  std::vector<std::string> out;
  for (const int pair : pairs)
    out.push_back("pair " + model.geometry_names[model.pair_a[pair]] + ", " + model.geometry_names[model.pair_b[pair]] +
                  ": overlaps in the neutral pose and in " + std::to_string(num_poses) +
                  " others of the joints between, left out of simulations");
  return out;
}

/// These lines of the model, and what simulators leave out of it.
static std::vector<std::string> with_overlaps(const Model& model, std::vector<std::string> lines) {
  for (std::string& line : overlap_lines(model, neutral_overlaps(model)))
    lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> ignored_lines(const Model& model) { return with_overlaps(model, model.ignored); }

std::vector<std::string> deviation_lines(const Model& model) { return with_overlaps(model, model.deviations); }

std::shared_ptr<const Model> without_pairs(std::shared_ptr<const Model> model, const std::vector<int>& pairs) {
  if (pairs.empty()) return model;
  auto out = std::make_shared<Model>(*model);

  // Every array by pairs, without them.
  const auto drop = [&](auto& values) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!std::binary_search(pairs.begin(), pairs.end(), int(i))) {
        values[kept++] = values[i];
      }
    values.resize(kept);
  };
  drop(out->pair_a);
  drop(out->pair_b);
  drop(out->pair_friction);
  drop(out->pair_restitution);
  drop(out->pair_compliance);
  drop(out->pair_torsional_friction);
  drop(out->pair_rolling_friction);
  drop(out->pair_overrides);
  drop(out->pair_penalty);
  drop(out->pair_margin);
  drop(out->pair_weight);
  drop(out->pair_torsional_weight);
  drop(out->pair_rolling_weight);

  // Told to whoever asks the model.
  for (const std::string& line : overlap_lines(*model, pairs)) {
    out->ignored.push_back(line);
    out->deviations.push_back(line);
  }
  return out;
}

}  // namespace coulomb
