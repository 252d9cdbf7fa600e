// A piece of a path goes from a point of body 1 to one of body 2, straight or around an obstacle on body g: its length is F(a, b) of the two
// points in the obstacle's frame (path_length.hpp), so that
//   J_i = f_a . A_i + f_b . B_i,   A_i = J1_i(p_a) - Jg_i(p_a),   B_i = J2_i(p_b) - Jg_i(p_b),
// with the forces f = R grad F, columns J1, J2, Jg of the bodies' points. Both turn:
//   dJ_i / dq_j = (A_i, B_i) F'' (A_j, B_j) + (w_j^g x f_a) . A_i + f_a . dA_i / dq_j + the same of b.
// A column of a body's own point, J_i(p), turns with w_j where dof j carries dof i, else it is w_i x J_j(p); and where the point moves against
// the body by A_j, it changes by w_i x A_j as well.
#include "coulomb/dynamics/tendon_state.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/dynamics/body_wrenches.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/path_length.hpp"
#include "coulomb/model/tendon.hpp"

namespace coulomb {
namespace {

constexpr double rounding = 1e-13;  // of a moment, relative to its terms

void place(const DynamicsWorkspace& at, int body, const double* local, double* world) {
  rotate(at.body_rotation.data() + 9 * body, local, world);
  add3(world, at.body_position.data() + 3 * body, world);
}

/// Where an obstacle is: R (3 x 3) and its middle.
struct Place {
  double R[9];
  double middle[3];
  void to_local(const double* p, double* out) const {
    double d[3];
    sub3(p, middle, d);
    rotate_transposed(R, d, out);
  }
};

Place place_of(const DynamicsWorkspace& at, const TendonPoint& point) {
  Place out;
  double local[9];
  quaternion_to_matrix(point.quat.data(), local);
  multiply3(at.body_rotation.data() + 9 * point.body, local, out.R);
  place(at, point.body, point.pos.data(), out.middle);
  return out;
}

/// A vector of two points, or a matrix of them, from the frame of an obstacle to the world.
void turn_to_world(const double* R, PathLength& path) {
  for (int k = 0; k < 6; k += 3) {
    double f[3];
    rotate(R, path.gradient + k, f);
    copy3(f, path.gradient + k);
  }
  double half[6][6];
  for (int i = 0; i < 6; ++i)
    for (int k = 0; k < 6; k += 3)
      rotate(R, path.hessian[i] + k, half[i] + k);
  for (int j = 0; j < 6; ++j)
    for (int k = 0; k < 6; k += 3) {
      const double column[3] = {half[k][j], half[k + 1][j], half[k + 2][j]};
      double turned[3];
      rotate(R, column, turned);
      for (int i = 0; i < 3; ++i)
        path.hessian[k + i][j] = turned[i];
    }
}

/// Length, forces and curvature of a piece, in world axes.
PathLength piece_length(const DynamicsWorkspace& at, const TendonPiece& piece, const double* p_a, const double* p_b) {
  if (!piece.around) return straight_path(p_a, p_b);
  const TendonPoint& obstacle = *piece.around;
  const Place frame = place_of(at, obstacle);
  double a[3];
  double b[3];
  double side[3];
  frame.to_local(p_a, a);
  frame.to_local(p_b, b);
  if (obstacle.side_body >= 0) {
    double world[3];
    place(at, obstacle.side_body, obstacle.side_pos.data(), world);
    frame.to_local(world, side);
  }

  if (obstacle.kind == TendonPoint::Kind::slider) {
    PathLength path = slider_path(obstacle.radius, a);
    turn_to_world(frame.R, path);
    return path;
  }
  const WrapShape shape = obstacle.kind == TendonPoint::Kind::sphere ? WrapShape::sphere : WrapShape::cylinder;
  PathLength path;
  const double* on_side = obstacle.side_body >= 0 ? side : nullptr;
  if (wrapped_path(shape, obstacle.radius, a, b, on_side, path)) {
    turn_to_world(frame.R, path);
    return path;
  }
  const bool touches = path.at_kink;
  path = straight_path(p_a, p_b);
  path.at_kink = path.at_kink || touches;
  return path;
}

/// The column of one dof at a point of a body; zero where it does not move the body.
struct Column {
  bool moves = false;
  double J[3] = {0, 0, 0};
};

Column column_at(const Model& model, const DynamicsWorkspace& at, int dof, int body, const double* p) {
  Column out;
  out.moves = dof_moves_body(model, dof, body);
  if (!out.moves) return out;
  const double* column = at.columns.data() + 8 * dof;
  double r[3];
  sub3(p, at.reference.data() + 3 * model.body_tree[body], r);
  cross3(column + 3, r, out.J);
  add3(out.J, column, out.J);
  return out;
}

/// d (column of dof i at a point of its body) / dq_j, with the point.
void turned_column(const Model& model, const double* w_i, const double* w_j, const Column& at_i, const Column& at_j,
                   int i, int j, double* out) {
  if (!at_i.moves || !at_j.moves) return;
  if (is_carried(model, i, j))
    add_cross3(w_j, at_i.J, out);
  else
    add_cross3(w_i, at_j.J, out);
}

/// One end of a piece: the columns of its own body, of the obstacle's there, and their difference.
struct PieceEnd {
  Column own[TendonState::max_dofs];
  Column obstacle[TendonState::max_dofs];
  double relative[TendonState::max_dofs][3];

  PieceEnd(const Model& model, const DynamicsWorkspace& at, const TendonState& state, int body, int around,
           const double* p) {
    for (int i = 0; i < state.num; ++i) {
      own[i] = column_at(model, at, state.dof[i], body, p);
      obstacle[i] = around < 0 ? Column{} : column_at(model, at, state.dof[i], around, p);
      sub3(own[i].J, obstacle[i].J, relative[i]);
    }
  }

  /// f . d relative_i / dq_j + (how the obstacle turns f) . relative_i
  double turning(const Model& model, const DynamicsWorkspace& at, const TendonState& state, const double* f, int i,
                 int j) const {
    const int dof_i = state.dof[i];
    const int dof_j = state.dof[j];
    const double* w_i = at.columns.data() + 8 * dof_i + 3;
    const double* w_j = at.columns.data() + 8 * dof_j + 3;
    double by_body[3] = {0, 0, 0};
    double by_obstacle[3] = {0, 0, 0};
    turned_column(model, w_i, w_j, own[i], own[j], dof_i, dof_j, by_body);
    turned_column(model, w_i, w_j, obstacle[i], obstacle[j], dof_i, dof_j, by_obstacle);
    if (obstacle[i].moves) add_cross3(w_i, relative[j], by_obstacle);
    double sum = dot3(f, by_body) - dot3(f, by_obstacle);
    if (obstacle[j].moves) {
      double turned[3];
      cross3(w_j, f, turned);
      sum += dot3(turned, relative[i]);
    }
    return sum;
  }
};

/// (A_i, B_i) F'' (A_j, B_j)
double curvature(const PathLength& path, const PieceEnd& a, const PieceEnd& b, int i, int j) {
  double sum = 0;
  for (int k = 0; k < 3; ++k) {
    const double* of_a = path.hessian[k];
    const double* of_b = path.hessian[3 + k];
    sum += a.relative[i][k] * (dot3(of_a, a.relative[j]) + dot3(of_a + 3, b.relative[j]));
    sum += b.relative[i][k] * (dot3(of_b, a.relative[j]) + dot3(of_b + 3, b.relative[j]));
  }
  return sum;
}

/// size: of each J_i, the terms that it is the sum of.
void add_piece(const Model& model, const DynamicsWorkspace& at, const TendonPiece& piece, bool with_turning,
               TendonState& out, double* size) {
  double p_a[3];
  double p_b[3];
  place(at, piece.a->body, piece.a->pos.data(), p_a);
  place(at, piece.b->body, piece.b->pos.data(), p_b);
  const PathLength path = piece_length(at, piece, p_a, p_b);
  out.length += piece.share * path.length;
  out.at_kink = out.at_kink || path.at_kink;

  const int around = piece.around ? piece.around->body : -1;
  const PieceEnd a(model, at, out, piece.a->body, around, p_a);
  const PieceEnd b(model, at, out, piece.b->body, around, p_b);
  for (int i = 0; i < out.num; ++i) {
    out.J[i] += piece.share * (dot3(path.gradient, a.relative[i]) + dot3(path.gradient + 3, b.relative[i]));
    size[i] += piece.share * (norm3(a.relative[i]) + norm3(b.relative[i]));
  }
  if (!with_turning) return;
  for (int i = 0; i < out.num; ++i)
    for (int j = 0; j < out.num; ++j)
      out.dJ[i][j] += piece.share * (curvature(path, a, b, i, j) + a.turning(model, at, out, path.gradient, i, j) +
                                     b.turning(model, at, out, path.gradient + 3, i, j));
}

/// A point of a body that moves by constant v: its velocity and acceleration, with their derivatives over the tendon's dofs.
struct PointMotion {
  Column own[TendonState::max_dofs];
  double velocity[3] = {0, 0, 0};
  double acceleration[3] = {0, 0, 0};
  double velocity_dq[TendonState::max_dofs][3] = {{0}};
  double acceleration_dq[TendonState::max_dofs][3] = {{0}};
  double acceleration_dv[TendonState::max_dofs][3] = {{0}};

  PointMotion(const Model& model, const DynamicsWorkspace& at, const TendonState& state, int body, const double* p,
              const double* v) {
    const auto w = [&](int i) { return at.columns.data() + 8 * state.dof[i] + 3; };
    for (int i = 0; i < state.num; ++i) {
      own[i] = column_at(model, at, state.dof[i], body, p);
      axpy3(v[state.dof[i]], own[i].J, velocity);
    }

    // dJ_i / dq_j = w_x x J_y with (x, y) = (j, i) where j carries i, else (i, j); then the same of both factors by q_k.
    for (int i = 0; i < state.num; ++i)
      for (int j = 0; j < state.num; ++j) {
        if (!own[i].moves || !own[j].moves) continue;
        const double v_i = v[state.dof[i]];
        const double v_j = v[state.dof[j]];
        const bool carried = is_carried(model, state.dof[i], state.dof[j]);
        const int x = carried ? j : i;
        const int y = carried ? i : j;
        double turned[3];
        cross3(w(x), own[y].J, turned);
        axpy3(v_i, turned, velocity_dq[j]);
        axpy3(v_i * v_j, turned, acceleration);
        axpy3(v_j, turned, acceleration_dv[i]);
        axpy3(v_i, turned, acceleration_dv[j]);
        for (int k = 0; k < state.num && v_i * v_j != 0; ++k) {
          if (!own[k].moves) continue;
          double change[3] = {0, 0, 0};
          double of_y[3] = {0, 0, 0};
          turned_column(model, w(y), w(k), own[y], own[k], state.dof[y], state.dof[k], of_y);
          add_cross3(w(x), of_y, change);
          if (is_carried(model, state.dof[x], state.dof[k])) {
            double of_x[3];
            cross3(w(k), w(x), of_x);
            add_cross3(of_x, own[y].J, change);
          }
          axpy3(v_i * v_j, change, acceleration_dq[k]);
        }
      }
  }
};

/// Of a straight piece with d = b - a, u = d / |d|:  bend = (|d'|^2 - (u . d')^2) / |d| + u . d''
void add_bend(const Model& model, const DynamicsWorkspace& at, const TendonPiece& piece, const double* v,
              const TendonState& state, TendonBend& out) {
  double p_a[3];
  double p_b[3];
  double u[3];
  place(at, piece.a->body, piece.a->pos.data(), p_a);
  place(at, piece.b->body, piece.b->pos.data(), p_b);
  sub3(p_b, p_a, u);
  const double length = norm3(u);
  if (length == 0) return;
  for (double& x : u)
    x /= length;

  const PointMotion a(model, at, state, piece.a->body, p_a, v);
  const PointMotion b(model, at, state, piece.b->body, p_b, v);
  double velocity[3];
  double acceleration[3];
  sub3(b.velocity, a.velocity, velocity);
  sub3(b.acceleration, a.acceleration, acceleration);
  const double along = dot3(u, velocity);
  const double across = (dot3(velocity, velocity) - along * along) / length;
  out.value += piece.share * (across + dot3(u, acceleration));

  for (int k = 0; k < state.num; ++k) {
    double d[3];       // of d by q_k, and of d' by v_k
    double du[3];      // of u
    double rate[3];    // of d' by q_k
    double bent[3];    // of d'' by q_k
    double driven[3];  // of d'' by v_k
    sub3(b.own[k].J, a.own[k].J, d);
    sub3(b.velocity_dq[k], a.velocity_dq[k], rate);
    sub3(b.acceleration_dq[k], a.acceleration_dq[k], bent);
    sub3(b.acceleration_dv[k], a.acceleration_dv[k], driven);
    const double stretch = dot3(u, d);
    for (int i = 0; i < 3; ++i)
      du[i] = (d[i] - stretch * u[i]) / length;
    const double turned = dot3(du, velocity) + dot3(u, rate);
    const double of_across = 2 * (dot3(velocity, rate) - along * turned) / length - across * stretch / length;
    out.by_q[k] += piece.share * (of_across + dot3(du, acceleration) + dot3(u, bent));
    out.by_v[k] += piece.share * (2 * (dot3(velocity, d) - along * stretch) / length + dot3(u, driven));
  }
}

}  // namespace

void tendon_bend(const Model& model, const DynamicsWorkspace& at, int tendon, const double* v, const TendonState& state,
                 TendonBend& out) {
  out.value = 0;
  std::fill_n(out.by_q, state.num, 0.0);
  std::fill_n(out.by_v, state.num, 0.0);
  for_each_piece(model.tendons[tendon], [&](const TendonPiece& piece) { add_bend(model, at, piece, v, state, out); });
}

void tendon_state(const Model& model, const DynamicsWorkspace& at, int tendon, const double* q, bool with_turning,
                  TendonState& out) {
  const Tendon& t = model.tendons[tendon];
  out.num = int(t.dofs.size());
  out.length = 0;
  out.turns = is_spatial(t);
  out.at_kink = false;
  std::copy_n(t.dofs.data(), out.num, out.dof);

  // A sum of joints ...
  if (!out.turns) {
    for (int i = 0; i < out.num; ++i) {
      out.J[i] = t.coefficients[i];
      out.length += t.coefficients[i] * q[model.joint_q[t.joints[i]]];
    }
    return;
  }

  // ... or of pieces of a path.
  std::fill_n(out.J, out.num, 0.0);
  for (int i = 0; i < out.num && with_turning; ++i)
    std::fill_n(out.dJ[i], out.num, 0.0);
  double size[TendonState::max_dofs] = {0};
  for_each_piece(t, [&](const TendonPiece& piece) { add_piece(model, at, piece, with_turning, out, size); });

  // A dof that does not change the length, as along a stretched chain, has no share of a row that would be made of rounding.
  for (int i = 0; i < out.num; ++i)
    if (std::abs(out.J[i]) <= rounding * size[i]) out.J[i] = 0;
}

}  // namespace coulomb
