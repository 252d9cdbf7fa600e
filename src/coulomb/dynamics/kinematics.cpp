// Forward kinematics: body poses by MuJoCo's rules, Jacobian columns and spatial inertias about each tree's reference point.
//
//   column of a rotation about a through p: ((p - o) x a, a);  of a translation along a: (a, 0)
//   inertia row of a body: m, m c, S = R S_com R^T + m c c^T with S_com = tr(I)/2 1 - I and c relative to o
//
// The reference point o is where the tree's root body is at this q, so that nothing loses digits far from the origin.
#include <algorithm>

#include "coulomb/base/simd.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/spatial.hpp"

namespace coulomb {
namespace {

COULOMB_INLINE void store_rotation_column(double* column, Vector3 axis, Vector3 point) {
  store6(column, {cross(point, axis), axis});
}

/// A body's frame while its joints move it. Anchors are kept in world coordinates in `columns` until the reference point is known,
/// which for a root body is only after its last joint.
struct Frame {
  Vector3 position;
  double quaternion[4];
  double rotation[9];
};

/// Turns the frame by `local`, in its own axes, about the anchor, which is the point joint_pos of the body.
COULOMB_INLINE void rotate_about(Frame& frame, const double* local, Vector3 anchor, const double* joint_pos) {
  double product[4];
  quaternion_multiply(frame.quaternion, local, product);
  for (int i = 0; i < 4; ++i)
    frame.quaternion[i] = product[i];
  quaternion_to_matrix(frame.quaternion, frame.rotation);
  frame.position = anchor - multiply3(frame.rotation, load3(joint_pos));
}

/// Body axes as three rotation columns; the linear part holds the anchor for now.
COULOMB_INLINE void store_body_axes(double* columns, const double* r, Vector3 anchor) {
  for (int i = 0; i < 3; ++i)
    store6(columns + 8 * i, {anchor, {r[i], r[3 + i], r[6 + i]}});
}

/// Moves the frame by joint j and stores the joint's columns (D4).
COULOMB_INLINE void move_by_joint(const Model& model, int j, const double* q_all, Frame& frame, double* columns_all) {
  const double* q = q_all + model.joint_q[j];
  const double* pos = &model.joint_pos[3 * j];
  const Vector3 anchor = frame.position + multiply3(frame.rotation, load3(pos));
  double* columns = columns_all + 8 * model.joint_v[j];
  double local[4];
  switch (model.joint_type[j]) {
    case JointType::hinge: {
      const Vector3 axis = load3(&model.joint_axis[3 * j]);
      store6(columns, {anchor, multiply3(frame.rotation, axis)});

      const double half = 0.5 * (q[0] - model.q_neutral[model.joint_q[j]]);
      const double s = std::sin(half);
      local[0] = std::cos(half);
      local[1] = s * axis.x;
      local[2] = s * axis.y;
      local[3] = s * axis.z;
      rotate_about(frame, local, anchor, pos);
      break;
    }
    case JointType::slide: {
      const Vector3 axis = multiply3(frame.rotation, load3(&model.joint_axis[3 * j]));
      store6(columns, {axis, {}});
      frame.position = frame.position + (q[0] - model.q_neutral[model.joint_q[j]]) * axis;
      break;
    }
    case JointType::ball:
      quaternion_normalize(q, local);
      rotate_about(frame, local, anchor, pos);
      store_body_axes(columns, frame.rotation, anchor);
      break;
    case JointType::free:
      frame.position = load3(q);
      quaternion_normalize(q + 3, frame.quaternion);
      quaternion_to_matrix(frame.quaternion, frame.rotation);
      for (int i = 0; i < 3; ++i)
        store6(columns + 8 * i, {{i == 0 ? 1.0 : 0.0, i == 1 ? 1.0 : 0.0, i == 2 ? 1.0 : 0.0}, {}});
      store_body_axes(columns + 24, frame.rotation, frame.position);
      break;
  }
}

/// Turns the anchors left in the rotation columns of a body into moments about o; a translation has no angular part.
COULOMB_INLINE void finish_columns(const Model& model, int b, Vector3 o, double* columns_all) {
  const int end = model.body_first_dof[b] + model.body_num_dofs[b];
  for (int d = model.body_first_dof[b]; d < end; ++d) {
    double* column = columns_all + 8 * d;
    const Vector3 axis = load3(column + 3);
    if (axis.x == 0 && axis.y == 0 && axis.z == 0) continue;
    store_rotation_column(column, axis, load3(column) - o);
  }
}

/// The inertia row (D6) of body b, r its rotation: S = R S_com R^T + m c c^T.
COULOMB_INLINE void store_inertia(const Model& model, int b, const double* r, Vector3 from_reference, double* out) {
  // S about the centre of mass, in the axes of the body.
  const double m = model.body_mass[b];
  const double* i = &model.body_inertia[6 * b];  // xx xy yy xz yz zz
  const double half = 0.5 * (i[0] + i[2] + i[5]);
  const double s[6] = {half - i[0], -i[1], half - i[2], -i[3], -i[4], half - i[5]};

  const Vector3 c = from_reference + multiply3(r, load3(&model.body_com[3 * b]));

  // R S_com, then its product with R^T.
  double rs[9];
  for (int k = 0; k < 3; ++k) {
    const double x = r[3 * k];
    const double y = r[3 * k + 1];
    const double z = r[3 * k + 2];
    rs[3 * k] = x * s[0] + y * s[1] + z * s[3];
    rs[3 * k + 1] = x * s[1] + y * s[2] + z * s[4];
    rs[3 * k + 2] = x * s[3] + y * s[4] + z * s[5];
  }
  const auto entry = [&](int k, int l) {
    return rs[3 * k] * r[3 * l] + rs[3 * k + 1] * r[3 * l + 1] + rs[3 * k + 2] * r[3 * l + 2];
  };

  // Moved to the reference point.
  const Vector3 mc = m * c;
  out[0] = m;
  store3(out + 1, mc);
  out[4] = entry(0, 0) + mc.x * c.x;
  out[5] = entry(0, 1) + mc.x * c.y;
  out[6] = entry(1, 1) + mc.y * c.y;
  out[7] = entry(0, 2) + mc.x * c.z;
  out[8] = entry(1, 2) + mc.y * c.z;
  out[9] = entry(2, 2) + mc.z * c.z;
}

/// From the root to the leaves: poses, columns, inertias.
COULOMB_SIMD void kinematics_sweep(const Model& model, const double* q, DynamicsWorkspace& ws) {
  // A body hangs on its parent, but a free joint leaves its first frame to q.
  for (const int b : model.moving_bodies) {
    Frame frame{{}, {1, 0, 0, 0}, {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    const int first = model.body_first_joint[b];
    const int end = first + model.body_num_joints[b];
    if (!(first < end && model.joint_type[first] == JointType::free)) {
      const int parent = model.body_parent[b];
      frame.position = load3(&ws.body_position[3 * parent]) +
                       multiply3(&ws.body_rotation[9 * parent], load3(&model.body_pos[3 * b]));
      quaternion_multiply(&ws.body_quaternion[4 * parent], &model.body_quat[4 * b], frame.quaternion);
      quaternion_to_matrix(frame.quaternion, frame.rotation);
    }

    // Its joints move it, in order.
    for (int j = first; j < end; ++j)
      move_by_joint(model, j, q, frame, ws.columns.data());

    store3(&ws.body_position[3 * b], frame.position);
    for (int i = 0; i < 4; ++i)
      ws.body_quaternion[4 * b + i] = frame.quaternion[i];
    for (int i = 0; i < 9; ++i)
      ws.body_rotation[9 * b + i] = frame.rotation[i];

    // The first body of a tree that moves sets the reference point.
    const int tree = model.body_tree[b];
    double* reference = &ws.reference[3 * tree];
    if (model.body_tree[model.body_parent[b]] < 0) {
      store3(reference, frame.position);
    }

    finish_columns(model, b, load3(reference), ws.columns.data());
    store_inertia(model, b, frame.rotation, frame.position - load3(reference), &ws.inertia[12 * b]);
  }
}

/// Fixed bodies are where the model has them.
void place_fixed_bodies(const FixedPoses& poses, DynamicsWorkspace& ws) {
  for (std::size_t i = 0; i < poses.bodies.size(); ++i) {
    const int b = poses.bodies[i];
    std::copy_n(&poses.position[3 * i], 3, &ws.body_position[3 * b]);
    std::copy_n(&poses.quaternion[4 * i], 4, &ws.body_quaternion[4 * b]);
    std::copy_n(&poses.rotation[9 * i], 9, &ws.body_rotation[9 * b]);
  }
}

}  // namespace

void kinematics(const Model& model, const double* q, DynamicsWorkspace& ws) {
  if (ws.fixed_poses != model.fixed_poses) {
    place_fixed_bodies(*model.fixed_poses, ws);
    ws.fixed_poses = model.fixed_poses;
  }
  kinematics_sweep(model, q, ws);
}

}  // namespace coulomb
