// Scenes that move, for the tests of continuous collision detection: bodies with any joint, one shape each; and a reference that
// places them by the engine's own integrate and kinematics at any time of a path.
#pragma once

#include <string>
#include <vector>

#include "collision/all_pairs.hpp"
#include "coulomb/collision/continuous/signed_distance.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/model/scene/topology.hpp"
#include "coulomb/stepping/impacts/first_impact.hpp"

namespace coulomb::test {

struct MovingScene {
  Model model;
  std::vector<double> q, v, a;

  MovingScene() { add_body(-1); }

  int add_body(int parent, const double* position = nullptr, const double* quaternion = nullptr) {
    for (int i = 0; i < 3; ++i) model.body_pos.push_back(position ? position[i] : 0.0), model.body_com.push_back(0);
    for (int i = 0; i < 4; ++i) model.body_quat.push_back(quaternion ? quaternion[i] : i == 0 ? 1.0 : 0.0);
    for (int i = 0; i < 6; ++i) model.body_inertia.push_back(i == 0 || i == 2 || i == 5);
    model.body_parent.push_back(parent), model.body_mass.push_back(1);
    model.body_gravity_compensation.push_back(0);
    model.body_names.push_back("body" + std::to_string(model.num_bodies));
    return model.num_bodies++;
  }

  void add_joint(JointType type, const double* axis = nullptr, const double* anchor = nullptr) {
    model.joint_names.push_back("joint"), model.joint_type.push_back(type);
    model.joint_body.push_back(model.num_bodies - 1);
    for (int i = 0; i < 3; ++i) {
      model.joint_axis.push_back(axis ? axis[i] : i == 2 ? 1.0 : 0.0);
      model.joint_pos.push_back(anchor ? anchor[i] : 0.0);
    }
    const int nq = type == JointType::free ? 7 : type == JointType::ball ? 4 : 1;
    for (int i = 0; i < nq; ++i) model.q_neutral.push_back(nq > 1 && i == nq - 4 ? 1.0 : 0.0);
    for (auto* list : {&model.joint_lower, &model.joint_upper, &model.joint_stiffness, &model.joint_limit_stiffness,
                       &model.joint_limit_dashpot})
      list->push_back(0);
    model.joint_limit_curve.emplace_back();
    model.joint_limited.push_back(0);
  }

  int add_shape(const Geometry& g, const double* position = nullptr, const double* quaternion = nullptr) {
    model.geometry_type.push_back(g.type), model.geometry_body.push_back(model.num_bodies - 1);
    model.geometry_mesh.push_back(g.mesh ? static_cast<int>(model.meshes.size()) : -1);
    if (g.mesh) model.meshes.push_back(g.mesh);
    for (int i = 0; i < 3; ++i) {
      model.geometry_pos.push_back(position ? position[i] : 0.0);
      model.geometry_size.push_back(g.size[i]);
    }
    for (int i = 0; i < 4; ++i) model.geometry_quat.push_back(quaternion ? quaternion[i] : i == 0 ? 1.0 : 0.0);
    return model.num_geometries++;
  }

  /// A free body with one shape at its origin.
  int add_free(const Geometry& g) {
    const int body = add_body(0);
    add_joint(JointType::free);
    add_shape(g);
    return body;
  }

  void finish(double margin = 1e-6) {
    finalize_topology(model);
    for (int g = 0; g < model.num_geometries; ++g)
      for (int h = g + 1; h < model.num_geometries; ++h)
        if (model.geometry_body[g] != model.geometry_body[h]) {
          model.pair_a.push_back(g), model.pair_b.push_back(h), model.pair_margin.push_back(margin);
        }
    q = model.q_neutral, v.assign(model.nv, 0), a.assign(model.nv, 0);
  }

  double* free_q(int body) { return &q[model.joint_q[model.body_first_joint[body]]]; }
  double* free_v(int body) { return &v[model.joint_v[model.body_first_joint[body]]]; }
  double* free_a(int body) { return &a[model.joint_v[model.body_first_joint[body]]]; }
  void place(int body, double x, double y, double z) {
    double* p = free_q(body);
    p[0] = x, p[1] = y, p[2] = z;
  }
  MotionPath path(double duration) const { return {q.data(), v.data(), a.data(), duration}; }

  Impact first(double duration, const ImpactOptions& options = {}) const {
    ImpactSearch search(model);
    return search.first(model, options, path(duration));
  }
};

/// Distances along a path, by the engine's kinematics.
class PathReference {
 public:
  explicit PathReference(const MovingScene& scene)
      : scene_(scene), workspace_(scene.model), q_(scene.model.nq), w_(scene.model.nv) {}

  void move_to(double t) {
    const Model& m = scene_.model;
    for (int d = 0; d < m.nv; ++d) w_[d] = t * scene_.v[d] + 0.5 * t * t * scene_.a[d];
    integrate(m, scene_.q.data(), w_.data(), q_.data());
    kinematics(m, q_.data(), workspace_);
  }
  Shape shape(int g) const {
    const Model& m = scene_.model;
    const int body = m.geometry_body[g];
    double local[9];
    Shape s;
    s.type = m.geometry_type[g], s.size = &m.geometry_size[3 * g];
    s.mesh = s.type == ShapeType::mesh ? m.meshes[m.geometry_mesh[g]].get() : nullptr;
    const double* R = &workspace_.body_rotation[9 * body];
    quaternion_to_matrix(&m.geometry_quat[4 * g], local);
    multiply3(R, local, s.rotation);
    rotate(R, &m.geometry_pos[3 * g], s.position);
    add3(s.position, &workspace_.body_position[3 * body], s.position);
    return s;
  }
  SignedDistance pair(int p) const {
    SignedDistance d;
    signed_distance(shape(scene_.model.pair_a[p]), shape(scene_.model.pair_b[p]), d);
    return d;
  }
  double distance(int p, double t) {
    move_to(t);
    return pair(p).distance;
  }
  const DynamicsWorkspace& dynamics() const { return workspace_; }

 private:
  const MovingScene& scene_;
  DynamicsWorkspace workspace_;
  std::vector<double> q_, w_;
};

}  // namespace coulomb::test
