// How a contact moves with its two bodies: d(normal, point, distance) for unit twists (docs/theory.md (G3) to (G7)).
//
// Let p_A(n) = grad h_A(-n), p_B(n) = grad h_B(n) be the witnesses and S = F + infinity E E^T the curvatures of the
// support functions. Differentiating p_A - p_B = Phi n along a motion gives, in the tangent plane,
//   [F_A + F_B + Phi  E] [dn]   [u_A - u_B + F_A a + F_B b]    a = w_A x n, b = w_B x n,
//   [E^T              0] [l ] = [E^T (a or b)             ]    u_X: velocity of X's material point at its own witness.
// K = F_A + F_B + Phi is only inverted on the complement of E; the inverse is written once per contact as
//   dn = C r + sum_j G_j c_j,   l_j = G_j·(r - K dn),
// G_j being dual to the flat directions E_j, and applied to motions of the surfaces: unit twists here, changes of
// shape in shape_motion.cpp. The six columns of A are solved for, those of B follow by rigid motion. Start reading at
// contact_motion.
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/contact.hpp"
#include "coulomb/collision/motion/surface_motion.hpp"

namespace coulomb {
namespace {

/// Of the smaller size: below it there is no local optimum (too deep, crossed axes).
constexpr double smallest_curvature = 1e-3;
/// Between two edges: below it their flat directions are dependent.
constexpr double smallest_sine = 1e-3;

/// |side normal . edge direction|
constexpr double smallest_crossing = 1e-6;

/// Unit twist of A.
COULOMB_INLINE SurfaceMotion unit_motion(const Contact& c, int k) {
  SurfaceMotion m;

  // A velocity of the origin, or a turn about the contact's point.
  if (k < 3) {
    m.u_a[k] = 1;
    return m;
  }
  double w[3] = {0, 0, 0};
  double arm[3];
  w[k - 3] = 1;
  sub3(c.point_a, c.point, arm);
  cross3(w, arm, m.u_a);
  cross3(w, c.normal, m.a);
  return m;
}

/// Column `column` of the motion.
COULOMB_INLINE void store(const double* dn, const double* dp, double dphi, int column, ContactMotion& motion) {
  for (int i = 0; i < 3; ++i) {
    motion.dnormal[i][column] = dn[i];
    motion.dpoint[i][column] = dp[i];
  }
  motion.ddistance[column] = dphi;
}

/// Rate of the distance, n . (u_A - u_B) (G5).
COULOMB_INLINE double closing(const Contact& c, const SurfaceMotion& m) {
  double relative[3];
  sub3(m.u_a, m.u_b, relative);
  return dot3(c.normal, relative);
}

/// out = F x, F as xx xy yy xz yz zz.
void symmetric_times(const double* F, const double* x, double* out) {
  out[0] = F[0] * x[0] + F[1] * x[1] + F[3] * x[2];
  out[1] = F[1] * x[0] + F[2] * x[1] + F[4] * x[2];
  out[2] = F[3] * x[0] + F[4] * x[1] + F[5] * x[2];
}

/// x . F y
double quadratic(const double* F, const double* x, const double* y) {
  double t[3];
  symmetric_times(F, y, t);
  return dot3(x, t);
}

/// The solved 2 x 2 system of one contact, in world axes.
struct TangentSolve {
  double K[6];  // F_A + F_B + Phi
  double C[6] = {0, 0, 0, 0, 0, 0};
  int num_flat = 0;
  double E[2][3];
  double G[2][3];
  bool on_a[2];  // which body each flat direction turns with
};

/// k = 0: C = K^-1 on the tangent plane.
bool invert_smooth(const double* t1, const double* t2, double floor, TangentSolve& s) {
  // The smaller eigenvalue decides whether there is a local optimum.
  const double a = quadratic(s.K, t1, t1);
  const double b = quadratic(s.K, t1, t2);
  const double d = quadratic(s.K, t2, t2);
  const double mean = 0.5 * (a + d);
  const double lowest = mean - std::hypot(0.5 * (a - d), b);
  if (!(lowest > floor) || !(lowest > 1e-12 * std::abs(mean))) return false;

  // C = t_1 t_1^T d + t_2 t_2^T a - ..., the inverse of ((a, b), (b, d)) in the frame (t_1, t_2).
  const double scale = 1.0 / (a * d - b * b);
  const int row[6] = {0, 0, 1, 0, 1, 2};
  const int col[6] = {0, 1, 1, 2, 2, 2};
  for (int k = 0; k < 6; ++k) {
    const int i = row[k];
    const int j = col[k];
    s.C[k] = scale * (d * t1[i] * t1[j] + a * t2[i] * t2[j] - b * (t1[i] * t2[j] + t2[i] * t1[j]));
  }
  return true;
}

/// k = 1: dn along the flat direction is given, across it K decides.
bool invert_one_flat(const double* n, double floor, TangentSolve& s) {
  // Along g, across the flat direction.
  double g[3];
  cross3(n, s.E[0], g);
  const double kgg = quadratic(s.K, g, g);
  if (!(kgg > floor) || !(kgg > 0)) return false;

  // G is dual to E: it has no part that K sees across.
  const double slope = quadratic(s.K, g, s.E[0]) / kgg;
  for (int i = 0; i < 3; ++i)
    s.G[0][i] = s.E[0][i] - slope * g[i];

  const int row[6] = {0, 0, 1, 0, 1, 2};
  const int col[6] = {0, 1, 1, 2, 2, 2};
  for (int k = 0; k < 6; ++k)
    s.C[k] = g[row[k]] * g[col[k]] / kgg;
  return true;
}

/// k = 2: the features alone carry n; G is dual to E in the tangent plane.
bool invert_two_flat(const double* n, TangentSolve& s) {
  // Two flat directions that are all but one leave the other direction open.
  double across[3];
  cross3(s.E[0], s.E[1], across);
  const double sine = dot3(across, n);
  if (!(std::abs(sine) > smallest_sine)) return false;

  cross3(s.E[1], n, s.G[0]);
  cross3(n, s.E[0], s.G[1]);
  for (int i = 0; i < 3; ++i) {
    s.G[0][i] /= sine;
    s.G[1][i] /= sine;
  }
  return true;
}

/// K, the flat directions of both, and the inverse for their number k.
bool prepare_solve(const Contact& c, TangentSolve& s) {
  // K = F_A + F_B + Phi
  for (int k = 0; k < 6; ++k)
    s.K[k] = c.a.F[k] + c.b.F[k];
  s.K[0] += c.distance;
  s.K[2] += c.distance;
  s.K[5] += c.distance;

  // Flat directions turn with their own body.
  for (int j = 0; j < c.a.num_flat; ++j) {
    copy3(c.a.E[j], s.E[s.num_flat]);
    s.on_a[s.num_flat++] = true;
  }
  for (int j = 0; j < c.b.num_flat; ++j) {
    copy3(c.b.E[j], s.E[s.num_flat]);
    s.on_a[s.num_flat++] = false;
  }

  const double floor = smallest_curvature * c.size;
  double t1[3];
  double t2[3];
  contact_frame(c.normal, t1, t2);

  // Without flat directions K decides alone, with two it does not matter.
  if (s.num_flat == 0) return invert_smooth(t1, t2, floor, s);
  return s.num_flat == 1 ? invert_one_flat(c.normal, floor, s) : invert_two_flat(c.normal, s);
}

/// One face carries n (floors, tables): the solution of the system above in closed form. On A: dn = a, the other point
/// follows as dp = (n n·u_a + Phi a) / 2 + F_B a. On B: A's columns leave n alone, dp = u_a - n n·u_a / 2 + F_A a.
void move_on_face(const Contact& c, bool on_a, ContactMotion& motion) {
  const double* n = c.normal;
  const double* F = on_a ? c.b.F : c.a.F;
  double arm[3];
  sub3(c.point_a, c.point, arm);

  for (int k = 0; k < 3; ++k) {
    // A velocity of A's origin moves the distance by n_k and the point, but not n.
    double dn[3] = {0, 0, 0};
    double dp[3];
    for (int i = 0; i < 3; ++i)
      dp[i] = on_a ? 0.5 * n[k] * n[i] : (i == k) - 0.5 * n[k] * n[i];
    store(dn, dp, n[k], k, motion);

    // A turn about the contact's point rolls the other body under the face.
    double w[3] = {0, 0, 0};
    double u[3];
    double a[3];
    double rolled[3];
    w[k] = 1;
    cross3(w, arm, u);
    cross3(w, n, a);
    symmetric_times(F, a, rolled);

    const double dphi = dot3(n, u);
    for (int i = 0; i < 3; ++i) {
      dn[i] = on_a ? a[i] : 0.0;
      dp[i] = rolled[i] + 0.5 * (on_a ? dphi * n[i] + c.distance * a[i] : 2 * u[i] - dphi * n[i]);
    }
    store(dn, dp, dphi, 3 + k, motion);
  }
}

/// The same for any motion: the face turns n, the other point follows and gives p.
void carried_by_face(const Contact& c, bool on_a, const SurfaceMotion& m, PointMotion& out) {
  double turn[3];
  double rolled[3];
  copy3(on_a ? m.a : m.b, out.dn);
  out.dphi = closing(c, m);
  sub3(out.dn, on_a ? m.b : m.a, turn);
  symmetric_times(on_a ? c.b.F : c.a.F, turn, rolled);

  const double sign = on_a ? 1.0 : -1.0;
  for (int i = 0; i < 3; ++i)
    out.dp[i] =
        (on_a ? m.u_b : m.u_a)[i] + sign * (rolled[i] + 0.5 * (out.dphi * c.normal[i] + c.distance * out.dn[i]));
}

/// The system of (G4), solved: dn, and dp as the mean of both witnesses' motions (G5).
COULOMB_INLINE void support_rule(const Contact& c, const TangentSolve& s, const SurfaceMotion& m, PointMotion& out) {
  // r: the relative velocity in the tangent plane, and how turned surfaces roll.
  double relative[3];
  double fa[3];
  double fb[3];
  sub3(m.u_a, m.u_b, relative);
  symmetric_times(c.a.F, m.a, fa);
  symmetric_times(c.b.F, m.b, fb);
  out.dphi = dot3(c.normal, relative);
  double r[3];
  for (int i = 0; i < 3; ++i)
    r[i] = relative[i] - out.dphi * c.normal[i] + fa[i] + fb[i];

  // dn = C r + sum_j G_j c_j
  symmetric_times(s.C, r, out.dn);
  for (int j = 0; j < s.num_flat; ++j)
    axpy3(dot3(s.E[j], s.on_a[j] ? m.a : m.b), s.G[j], out.dn);

  // l_j = G_j . (r - K dn)
  double kdn[3];
  symmetric_times(s.K, out.dn, kdn);
  sub3(r, kdn, r);

  // Each witness rolls by the turn of n against its own body ...
  double da[3];
  double db[3];
  sub3(out.dn, m.a, da);
  sub3(out.dn, m.b, db);
  symmetric_times(c.a.F, da, fa);
  symmetric_times(c.b.F, db, fb);
  for (int i = 0; i < 3; ++i)
    out.dp[i] = 0.5 * (m.u_a[i] + m.u_b[i] - fa[i] + fb[i]);

  // ... and slides along its flat directions.
  for (int j = 0; j < s.num_flat; ++j)
    axpy3((s.on_a[j] ? -0.5 : 0.5) * dot3(s.G[j], r), s.E[j], out.dp);
}

/// A vertex of the reference face, projected along n on the incident face's plane (outward normal m): m . (dp - u) = 0 there. (G6)
COULOMB_INLINE void reference_vertex_rule(const Contact& c, const SurfaceMotion& v, PointMotion& out) {
  // The reference carries n.
  const double* m = c.incident_normal;
  double gap[3];
  copy3(c.reference_on_a ? v.a : v.b, out.dn);
  for (int i = 0; i < 3; ++i)
    gap[i] = v.u_a[i] - v.u_b[i] - c.distance * out.dn[i];

  // The projection stays in the incident plane.
  const double half = c.reference_on_a ? -0.5 : 0.5;
  out.dphi = dot3(m, gap) / dot3(m, c.normal);
  for (int i = 0; i < 3; ++i)
    out.dp[i] = (c.reference_on_a ? v.u_a : v.u_b)[i] + half * (out.dphi * c.normal[i] + c.distance * out.dn[i]);
}

/// The incident edge (direction d) crosses a side plane (normal m) of the reference face: the crossing stays on both (G7). A
/// curved incident line (capsule, cylinder) rolls under its point while n turns otherwise than the body.
COULOMB_INLINE void edge_crossing_rule(const Contact& c, const SurfaceMotion& v, PointMotion& out) {
  const bool incident_a = !c.reference_on_a;
  const double sign = incident_a ? 1.0 : -1.0;
  const double* m = c.side;
  const double* d = c.edge;
  const double* face = incident_a ? v.u_b : v.u_a;

  // The reference carries n, and the incident line rolls.
  copy3(incident_a ? v.b : v.a, out.dn);
  double turn[3];
  double rolled[3];
  sub3(out.dn, incident_a ? v.a : v.b, turn);
  symmetric_times(incident_a ? c.a.F : c.b.F, turn, rolled);
  double moved[3];
  for (int i = 0; i < 3; ++i)
    moved[i] = (incident_a ? v.u_a : v.u_b)[i] - sign * rolled[i];

  // Relative to the side at the incident point, the crossing slides along the edge.
  double relative[3];
  for (int i = 0; i < 3; ++i)
    relative[i] = moved[i] - face[i] - sign * c.distance * out.dn[i];
  axpy3(-dot3(m, relative) / dot3(m, d), d, moved);

  // The distance opens by what is left along n.
  sub3(moved, face, relative);
  out.dphi = sign * dot3(c.normal, relative);
  for (int i = 0; i < 3; ++i)
    out.dp[i] = moved[i] - 0.5 * sign * (out.dphi * c.normal[i] + c.distance * out.dn[i]);
}

/// The edge or the normal is not in the plane that it has to cross.
bool crosses(const Contact& c) {
  if (c.rule == MotionRule::reference_vertex) {
    return std::abs(dot3(c.incident_normal, c.normal)) > smallest_crossing;
  }
  return std::abs(dot3(c.side, c.edge)) > smallest_crossing * norm3(c.edge);
}

/// Of two faces the reference carries n.
bool carried_by_a(const Contact& c) { return c.a.num_flat == 2 && (c.b.num_flat < 2 || c.reference_on_a); }

/// rule(motion, out) for the unit twists of A.
template <class Rule>
COULOMB_INLINE void each_column(const Contact& c, ContactMotion& motion, Rule rule) {
  for (int column = 0; column < 6; ++column) {
    PointMotion out;
    rule(unit_motion(c, column), out);
    store(out.dn, out.dp, out.dphi, column, motion);
  }
}

/// Declared fall-back: normal and point ride on A. The distance still moves by the normal part of the relative
/// velocity, which holds at every stationary direction whatever the curvature.
void move_frozen(const Contact& c, ContactMotion& motion) {
  motion.frozen = true;
  for (int column = 0; column < 6; ++column) {
    const SurfaceMotion m = unit_motion(c, column);

    // Half of the translation: the point is the middle of the witnesses.
    double middle[3] = {0, 0, 0};
    if (column < 3) middle[column] = 1;
    store(m.a, middle, dot3(c.normal, m.u_a), column, motion);
  }
}

/// Moving both bodies as one moves the contact rigidly, and by nothing else, under every rule: B's columns are that
/// minus A's.
void complete_by_rigid_motion(const Contact& c, ContactMotion& motion) {
  for (int k = 0; k < 3; ++k) {
    double w[3] = {0, 0, 0};
    double turned[3];
    w[k] = 1;
    cross3(w, c.normal, turned);

    for (int i = 0; i < 3; ++i) {
      motion.dnormal[i][6 + k] = -motion.dnormal[i][k];
      motion.dnormal[i][9 + k] = turned[i] - motion.dnormal[i][3 + k];
      motion.dpoint[i][6 + k] = w[i] - motion.dpoint[i][k];
      motion.dpoint[i][9 + k] = -motion.dpoint[i][3 + k];
    }
    motion.ddistance[6 + k] = -motion.ddistance[k];
    motion.ddistance[9 + k] = -motion.ddistance[3 + k];
  }
}

}  // namespace

void contact_motion(const Contact& contact, ContactMotion& motion) {
  // The rule that found the contact moves it.
  motion.frozen = false;
  bool solved = false;
  switch (contact.rule) {
    case MotionRule::support: {
      if (contact.a.num_flat == 2 || contact.b.num_flat == 2) {
        move_on_face(contact, carried_by_a(contact), motion);
        solved = true;
        break;
      }
      TangentSolve solve;
      solved = prepare_solve(contact, solve);
      if (solved)
        each_column(contact, motion,
                    [&](const SurfaceMotion& m, PointMotion& out) { support_rule(contact, solve, m, out); });
      break;
    }
    case MotionRule::reference_vertex:
      solved = crosses(contact);
      if (solved)
        each_column(contact, motion,
                    [&](const SurfaceMotion& m, PointMotion& out) { reference_vertex_rule(contact, m, out); });
      break;
    case MotionRule::edge_crossing:
      solved = crosses(contact);
      if (solved)
        each_column(contact, motion,
                    [&](const SurfaceMotion& m, PointMotion& out) { edge_crossing_rule(contact, m, out); });
      break;
    case MotionRule::frozen: break;
  }

  // Where it has no solution, the declared fall-back.
  if (!solved) move_frozen(contact, motion);
  complete_by_rigid_motion(contact, motion);
}

bool move_contact(const Contact& contact, const SurfaceMotion& motion, PointMotion& out) {
  switch (contact.rule) {
    case MotionRule::support: {
      if (contact.a.num_flat == 2 || contact.b.num_flat == 2) {
        carried_by_face(contact, carried_by_a(contact), motion, out);
        return true;
      }
      TangentSolve solve;
      if (!prepare_solve(contact, solve)) break;
      support_rule(contact, solve, motion, out);
      return true;
    }
    case MotionRule::reference_vertex:
      if (!crosses(contact)) break;
      reference_vertex_rule(contact, motion, out);
      return true;
    case MotionRule::edge_crossing:
      if (!crosses(contact)) break;
      edge_crossing_rule(contact, motion, out);
      return true;
    case MotionRule::frozen: break;
  }

  // No rule has a solution: the distance moves all the same.
  out = PointMotion{{0, 0, 0}, {0, 0, 0}, closing(contact, motion)};
  return false;
}

}  // namespace coulomb
