// A scene for penalty contact: an arm of two hinged links and a free body, a geometry each, above a tilted half-space. States are drawn
// so that something overlaps a little.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "coulomb/base/small_math.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/constraints/penalty/penalty_contact.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/scene.hpp"
#include "random_model.hpp"

namespace coulomb::test {

/// No four corners in a plane: a bent face breaks, and its derivative is that of the face kept flat.
inline const std::vector<double> wedge = {-.06, -.05, -.04, .07,  -.04, -.05, 0,   .06, -.05, -.05, -.04, .05,
                                          .06,  -.05, .04,  .013, .05,  .06,  .02, -.1, .01,  0,    0,    .09};

inline std::array<double, 3> size_of(ShapeType type, double scale) {
  switch (type) {
    case ShapeType::sphere: return {0.06 * scale, 0, 0};
    case ShapeType::capsule: return {0.03 * scale, 0.07 * scale, 0};
    case ShapeType::cylinder: return {0.05 * scale, 0.06 * scale, 0};
    case ShapeType::box: return {0.05 * scale, 0.06 * scale, 0.07 * scale};
    case ShapeType::ellipsoid: return {0.05 * scale, 0.06 * scale, 0.08 * scale};
    default: return {0, 0, 0};
  }
}

struct PenaltyScene {
  std::shared_ptr<const Model> model;
  int arm = 0, other = 0, ground = -1;  ///< geometries

  /// points: contact points per geometry of the arm's end and of the free body; none: the whole surface.
  PenaltyScene(ShapeType arm_type, ShapeType other_type, int arm_points, int other_points, Random& random) {
    SceneParts parts;
    parts.bodies.emplace_back();  // the world
    const auto body = [&](const char* name, int parent) {
      BodyPart b;
      b.name = name, b.parent = parent, b.mass = random.uniform(0.3, 1);
      for (int i = 0; i < 3; ++i) b.placement.pos[i] = parent == 0 ? 0 : random.uniform(-0.2, 0.2);
      const auto quat = random.unit(4);
      if (parent != 0) b.placement.quat = {quat[0], quat[1], quat[2], quat[3]};
      for (int i = 0; i < 3; ++i) b.com[i] = random.uniform(-0.03, 0.03);
      b.inertia = {0.003, 0, 0.004, 0, 0, 0.005};
      parts.bodies.push_back(b);
      return static_cast<int>(parts.bodies.size()) - 1;
    };
    const auto hinge = [&](const char* name, int of) {
      JointPart j;
      j.name = name, j.type = JointType::hinge, j.body = of;
      const auto axis = random.unit(3);
      for (int i = 0; i < 3; ++i) j.axis[i] = axis[i], j.pos[i] = random.uniform(-0.1, 0.1);
      parts.joints.push_back(j);
    };
    const auto geometry = [&](const char* name, ShapeType type, int of, int points) {
      GeometryPart g;
      g.name = name, g.type = type, g.body = of, g.size = size_of(type, of == 0 ? 1 : random.uniform(0.8, 1.2));
      if (type == ShapeType::mesh) g.mesh = static_cast<int>(parts.meshes.size()), parts.meshes.push_back(hull());
      const auto quat = random.unit(4);
      for (int i = 0; i < 3; ++i) g.placement.pos[i] = random.uniform(-0.05, 0.05);
      for (int i = 0; i < 4; ++i) g.placement.quat[i] = quat[i];
      if (of == 0) {  // below the arm
        double R[9];
        quaternion_to_matrix(quat.data(), R);
        for (int i = 0; i < 3; ++i) g.placement.pos[i] = -0.25 * R[3 * i + 2];
      }
      g.friction = random.uniform(0.2, 1);
      g.penalty.stiffness = random.uniform(800, 2000), g.penalty.damping = random.uniform(500, 1500);
      g.penalty.friction_stiffness = random.uniform(5, 15), g.penalty.scale = random.uniform(0.7, 1.4);
      for (int k = 0; k < 3 * points; ++k) g.contact_points.push_back(random.uniform(-0.07, 0.07));
      parts.geometries.push_back(g);
      return static_cast<int>(parts.geometries.size()) - 1;
    };
    const int upper = body("upper", 0), lower = body("lower", upper), loose = body("loose", 0);
    hinge("shoulder", upper), hinge("elbow", lower);
    JointPart free;
    free.name = "float", free.type = JointType::free, free.body = loose, free.q_neutral = {0, 0, 0, 1, 0, 0, 0};
    free.q_spring = free.q_neutral;
    parts.joints.push_back(free);
    arm = geometry("hand", arm_type, lower, arm_points);
    other = geometry("thing", other_type, loose, other_points);
    ground = geometry("ground", ShapeType::half_space, 0, 0);
    Scene scene;
    scene.append(parts, "penalty");
    model = scene.build();
  }

  static std::shared_ptr<const ConvexMesh> hull() {
    static const auto mesh = [] {
      Scene scene;
      scene.add_mesh(wedge);
      return scene.build()->meshes.front();
    }();
    return mesh;
  }
};

/// Q at (q, v), nothing kept.
struct PenaltyEvaluation {
  explicit PenaltyEvaluation(const Model& model) : dynamics(model), forces(model), Q(model.nv) {}
  DynamicsWorkspace dynamics;
  PenaltyForces forces;
  std::vector<double> Q;
  void operator()(const Model& model, const std::vector<double>& q, const std::vector<double>& v) {
    kinematics(model, q.data(), dynamics);
    velocities(model, v.data(), dynamics);
    std::fill(Q.begin(), Q.end(), 0.0);
    penalty_forces(model, dynamics, v.data(), nullptr, forces, Q.data());
  }
};

/// What must stay the same for a difference to see one smooth piece.
inline bool same_piece(const PenaltyForces& a, const PenaltyForces& b) {
  const auto &ca = a.collision.contacts, &cb = b.collision.contacts;
  if (ca.size() != cb.size()) return false;
  for (std::size_t i = 0; i < ca.size(); ++i) {
    if (ca[i].pair != cb[i].pair || ca[i].feature != cb[i].feature || ca[i].rule != cb[i].rule) return false;
    if (ca[i].a.num_flat != cb[i].a.num_flat || ca[i].b.num_flat != cb[i].b.num_flat) return false;
    if (ca[i].reference_on_a != cb[i].reference_on_a || a.modes[i] != b.modes[i]) return false;
    if (dot3(ca[i].normal, cb[i].normal) < 0.999) return false;
  }
  return true;
}

/// A state with a contact of the wanted pair between 1 and 15 mm deep; false after many tries.
inline bool draw_state(const PenaltyScene& scene, bool with_ground, Random& random, PenaltyEvaluation& at,
                       std::vector<double>& q, std::vector<double>& v) {
  const Model& m = *scene.model;
  for (int attempt = 0; attempt < 4000; ++attempt) {
    q = m.q_neutral;
    q[0] = random.uniform(-1, 1), q[1] = random.uniform(-1, 1);
    const auto quat = random.unit(4);
    for (int i = 0; i < 4; ++i) q[5 + i] = quat[i];
    kinematics(m, q.data(), at.dynamics);
    const double* hand = &at.dynamics.body_position[3 * m.geometry_body[scene.arm]];
    const double* floor = &m.geometry_pos[3 * scene.ground];
    for (int i = 0; i < 3; ++i) q[2 + i] = (with_ground ? 0.8 * floor[i] : hand[i]) + random.uniform(-0.12, 0.12);
    const double speed = random.integer(0, 2) == 0 ? 3.0 : 0.3;
    v = random.vector(m.nv, speed);
    at(m, q, v);
    bool wanted = false, shallow = true;
    for (const Contact& c : at.forces.collision.contacts) {
      wanted |= (c.geometry_b == scene.ground) == with_ground && c.distance < -1e-3;
      shallow &= c.distance > -0.015;
    }
    if (wanted && shallow) return true;
  }
  return false;
}

}  // namespace coulomb::test
