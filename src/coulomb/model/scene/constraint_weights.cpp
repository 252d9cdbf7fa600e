// Weights of constraint rows (Model::pair_weight and its kin; docs/theory.md (C5)): how easily an impulse along a row moves it, on
// average over directions.
#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/model/scene/build_model.hpp"
#include "coulomb/model/scene/neutral_inertia.hpp"
#include "coulomb/model/tendon.hpp"

namespace coulomb {
namespace {

/// tr([r] A [r]^T) / 3 over all directions of r, per r^2 tr A.
constexpr double rotation_share = 2.0 / 9;

/// A point at the surface of a body of uniform density turns no more easily than this over its mass; a slender body about its own axis
/// would, but contacts hardly do that.
constexpr double uniform_turning = 3;

/// m: of torsional and rolling friction where a model has none when it is built, but may be given some later.
constexpr double usual_contact_radius = 0.01;

/// A row that nothing moves has no mobility of its own; its weight is 1.
double positive_or_one(double weight) { return weight > 0 && std::isfinite(weight) ? weight : 1.0; }

/// Mobilities J M^-1 J^T at the neutral configuration.
class Mobility {
 public:
  Mobility(const Model& model, const NeutralInertia& neutral) : model_(model), neutral_(neutral), row_(model.nv, 0.0) {}

  /// tr J M^-1 J^T of the velocity of a body's material point (world), or of its angular velocity (point null).
  double trace(int body, const double* point) {
    const int last = model_.body_last_dof[body];
    double sum = 0;
    for (int axis = 0; axis < 3 && last >= 0; ++axis) {
      // The columns of the root path, one axis at a time.
      for (int i = model_.dof_row[last]; i <= model_.dof_row[last] + model_.dof_depth[last]; ++i) {
        const int d = model_.dof_path[i];
        const double* column = &neutral_.columns[6 * d];
        double velocity[3];
        copy3(point ? column : column + 3, velocity);
        if (point) add_cross3(column + 3, point, velocity);
        row_[d] = velocity[axis];
      }
      sum += neutral_.mobility(model_, last, row_.data());
    }
    return sum;
  }

  /// The same of one dof's velocity.
  double of_dof(int d) {
    for (int i = model_.dof_row[d]; i < model_.dof_row[d + 1]; ++i)
      row_[model_.dof_path[i]] = 0;
    row_[d] = 1;
    return neutral_.mobility(model_, d, row_.data());
  }

  /// A point of a body's frame in the world.
  void place(int body, const double* local, double* world) const {
    double R[9];
    quaternion_to_matrix(neutral_.body[body].quat.data(), R);
    rotate(R, local, world);
    add3(world, neutral_.body[body].pos.data(), world);
  }

 private:
  const Model& model_;
  const NeutralInertia& neutral_;
  std::vector<double> row_;
};

/// Radius of a ball about the geometry's middle, and that middle in the geometry's frame.
double bounding_radius(const Model& m, int g, double* middle) {
  const double* size = &m.geometry_size[3 * g];
  for (int i = 0; i < 3; ++i)
    middle[i] = 0;
  switch (m.geometry_type[g]) {
    case ShapeType::half_space:
    case ShapeType::surface: return 0;
    case ShapeType::sphere: return size[0];
    case ShapeType::capsule: return size[0] + size[1];
    case ShapeType::cylinder: return std::hypot(size[0], size[1]);
    case ShapeType::box: return norm3(size);
    case ShapeType::ellipsoid: return std::max({size[0], size[1], size[2]});
    case ShapeType::mesh: break;
  }
  const ConvexMesh& mesh = *m.meshes[m.geometry_mesh[g]];
  copy3(mesh.center.data(), middle);
  double radius = 0;
  for (int v = 0; v < mesh.num_vertices(); ++v) {
    double arm[3];
    sub3(&mesh.vertices[3 * v], middle, arm);
    radius = std::max(radius, norm3(arm));
  }
  return radius;
}

/// Bounding radius squared plus the distance of the geometry's middle from the body's centre of mass squared.
double squared_arm(const Model& m, int g) {
  double middle[3];
  double R[9];
  double arm[3];
  const double radius = bounding_radius(m, g, middle);

  if (m.geometry_type[g] == ShapeType::half_space || m.geometry_type[g] == ShapeType::surface) return 0;

  // The middle in the body's frame, less its centre of mass.
  quaternion_to_matrix(&m.geometry_quat[4 * g], R);
  rotate(R, middle, arm);
  add3(arm, &m.geometry_pos[3 * g], arm);
  sub3(arm, &m.body_com[3 * m.geometry_body[g]], arm);
  return radius * radius + dot3(arm, arm);
}

/// Of a path: as if each end of each of its pieces were held by itself.
double path_weight(Mobility& mobility, const Tendon& tendon) {
  double sum = 0;
  for_each_piece(tendon, [&](const TendonPiece& piece) {
    for (const TendonPoint* end : {piece.a, piece.b}) {
      double point[3];
      mobility.place(end->body, end->pos.data(), point);
      sum += piece.share * piece.share * mobility.trace(end->body, point) / 3;
    }
  });
  return sum;
}

void set_tendon_weights(Mobility& mobility, Model& m) {
  for (Tendon& tendon : m.tendons)
    tendon.weight =
        positive_or_one(is_spatial(tendon) ? path_weight(mobility, tendon) : sum_of_joints_weight(m, tendon));
}

/// Two weights an equality: of its linear and of its angular rows, means over axes.
void set_equality_weights(Mobility& mobility, Model& m) {
  m.equality_weight.clear();
  for (const Equality& e : m.equalities) {
    double linear = 0;
    double angular = 0;

    // A coupling of joints or tendons has one row only.
    if (e.type == EqualityType::joint) {
      linear = m.dof_weight[m.joint_v[e.joint_a]];
      if (e.joint_b >= 0) {
        linear += e.poly[1] * e.poly[1] * m.dof_weight[m.joint_v[e.joint_b]];
      }
      angular = linear;
    } else if (e.type == EqualityType::tendon) {
      linear = m.tendons[e.tendon_a].weight;
      if (e.tendon_b >= 0) {
        linear += e.poly[1] * e.poly[1] * m.tendons[e.tendon_b].weight;
      }
      angular = linear;
    } else {
      // Two bodies, held at a point of each; turning is scaled to metres.
      double point[3];
      mobility.place(e.body_a, e.pos_a.data(), point);
      linear = mobility.trace(e.body_a, point) / 3;
      mobility.place(e.body_b, e.pos_b.data(), point);
      linear += mobility.trace(e.body_b, point) / 3;
      angular =
          e.torque_scale * e.torque_scale * (mobility.trace(e.body_a, nullptr) + mobility.trace(e.body_b, nullptr)) / 3;
    }
    m.equality_weight.push_back(positive_or_one(linear));
    m.equality_weight.push_back(positive_or_one(angular));
  }
}

/// Mobilities of the angular velocity of every body.
std::vector<double> angular_mobilities(Mobility& mobility, const Model& m) {
  std::vector<double> out(m.num_bodies);
  for (int b = 1; b < m.num_bodies; ++b)
    out[b] = mobility.trace(b, nullptr);
  return out;
}

/// Rows of torsional and rolling friction: as long as their coefficient is beside that of sliding.
void set_turning_weights(const std::vector<double>& angular, Model& m) {
  m.pair_torsional_weight.clear();
  m.pair_rolling_weight.clear();
  for (std::size_t p = 0; p < m.pair_a.size(); ++p) {
    const double turning = (angular[m.geometry_body[m.pair_a[p]]] + angular[m.geometry_body[m.pair_b[p]]]) / 3;
    const auto weight = [&](double coefficient) {
      const double ratio = coefficient / m.pair_friction[p];
      const double length = ratio > 0 && std::isfinite(ratio) ? ratio : usual_contact_radius;
      return positive_or_one(length * length * turning);
    };
    m.pair_torsional_weight.push_back(weight(m.pair_torsional_friction[p]));
    m.pair_rolling_weight.push_back(weight(m.pair_rolling_friction[p]));
  }
}

}  // namespace

void set_turning_weights(const NeutralInertia& neutral, Model& m) {
  Mobility mobility(m, neutral);
  set_turning_weights(angular_mobilities(mobility, m), m);
}

std::vector<double> linear_mobilities(const NeutralInertia& neutral, const Model& m) {
  Mobility mobility(m, neutral);
  std::vector<double> out(m.num_bodies);
  for (int b = 1; b < m.num_bodies; ++b) {
    double com[3];
    mobility.place(b, &m.body_com[3 * b], com);
    out[b] = mobility.trace(b, com) / 3;
  }
  return out;
}

void set_constraint_weights(const NeutralInertia& neutral, Model& m) {
  // Dofs: limits and dry friction.
  Mobility mobility(m, neutral);
  m.dof_weight.resize(m.nv);
  for (int d = 0; d < m.nv; ++d)
    m.dof_weight[d] = positive_or_one(mobility.of_dof(d));

  // Pairs: the mobility of both bodies at the geometry's distance from the centre of mass, which turning adds to.
  const std::vector<double> linear = linear_mobilities(neutral, m);
  const std::vector<double> angular = angular_mobilities(mobility, m);
  std::vector<double> share(m.num_geometries);

  // A small geometry far out turns easily, but no more so than a body of uniform density.
  for (int g = 0; g < m.num_geometries; ++g) {
    const int body = m.geometry_body[g];
    const double turning = rotation_share * squared_arm(m, g) * angular[body];
    const double limit = m.body_mass[body] > 0 ? uniform_turning / m.body_mass[body] : turning;
    share[g] = linear[body] + std::min(turning, limit);
  }

  // Two bodies add up.
  m.pair_weight.clear();
  for (std::size_t p = 0; p < m.pair_a.size(); ++p)
    m.pair_weight.push_back(positive_or_one(share[m.pair_a[p]] + share[m.pair_b[p]]));
  set_turning_weights(angular, m);

  set_tendon_weights(mobility, m);
  set_equality_weights(mobility, m);
}

}  // namespace coulomb
