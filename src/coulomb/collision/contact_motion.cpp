// How a contact moves with its two bodies: d(normal, point, distance) for unit twists (THEORY 5).
//
// Let p_A(n) = grad h_A(-n), p_B(n) = grad h_B(n) be the witnesses and S = F + infinity E E^T the curvatures of the
// support functions. Differentiating p_A - p_B = Phi n along a motion gives, in the tangent plane,
//   [F_A + F_B + Phi  E] [dn]   [u_A - u_B + F_A a + F_B b]      a = w_A x n, b = w_B x n,
//   [E^T              0] [l ] = [E^T (a or b)             ]      u_X: velocity of body X's material point at its own witness.
// K = F_A + F_B + Phi is only inverted on the complement of E; the inverse is written once per contact as
//   dn = C r + sum_j G_j c_j,   l_j = G_j·(r - K dn),
// G_j being dual to the flat directions E_j, and applied to unit twists. The six columns of A are solved for, those of
// B follow by rigid motion. Start reading at contact_motion.
#include <cmath>

#include "coulomb/collision/contact.hpp"
#include "coulomb/small_math.hpp"

namespace coulomb {
namespace {

constexpr double smallest_curvature = 1e-3;   // of the smaller size: below it there is no local optimum (too deep, crossed axes)
constexpr double smallest_sine = 1e-3;        // between two edges: below it their flat directions are dependent
constexpr double smallest_crossing = 1e-6;    // |side normal · edge direction|

/// Velocities of one unit twist: u at the body's own witness, spin = w x n, centre = at the contact point.
struct UnitMotion {
  double u_a[3] = {0, 0, 0}, u_b[3] = {0, 0, 0}, a[3] = {0, 0, 0}, b[3] = {0, 0, 0}, middle[3] = {0, 0, 0};
};

UnitMotion unit_motion(const Contact& c, int column) {
  UnitMotion m;
  const bool on_a = column < 6;
  const int k = column % 6;
  double* u = on_a ? m.u_a : m.u_b;
  if (k < 3) {
    u[k] = 1;
    if (on_a) m.middle[k] = 1;
    return m;
  }
  double w[3] = {0, 0, 0}, arm[3];
  w[k - 3] = 1;
  sub3(on_a ? c.point_a : c.point_b, c.point, arm);
  cross3(w, arm, u);
  cross3(w, c.normal, on_a ? m.a : m.b);
  return m;
}

void store(const double* dn, const double* dp, double dphi, int column, ContactMotion& motion) {
  for (int i = 0; i < 3; ++i) motion.dnormal[i][column] = dn[i], motion.dpoint[i][column] = dp[i];
  motion.ddistance[column] = dphi;
}

void symmetric_times(const double* F, const double* x, double* out) {
  out[0] = F[0] * x[0] + F[1] * x[1] + F[3] * x[2];
  out[1] = F[1] * x[0] + F[2] * x[1] + F[4] * x[2];
  out[2] = F[3] * x[0] + F[4] * x[1] + F[5] * x[2];
}

double quadratic(const double* F, const double* x, const double* y) {
  double t[3];
  symmetric_times(F, y, t);
  return dot3(x, t);
}

/// The solved 2 x 2 system of one contact, in world axes.
struct TangentSolve {
  double K[6];              // F_A + F_B + Phi
  double C[6] = {0, 0, 0, 0, 0, 0};
  int num_flat = 0;
  double E[2][3], G[2][3];
  bool on_a[2];             // which body each flat direction turns with
};

/// k = 0: C = K^-1 on the tangent plane.
bool invert_smooth(const double* t1, const double* t2, double floor, TangentSolve& s) {
  const double a = quadratic(s.K, t1, t1), b = quadratic(s.K, t1, t2), d = quadratic(s.K, t2, t2);
  const double mean = 0.5 * (a + d), lowest = mean - std::hypot(0.5 * (a - d), b);
  if (!(lowest > floor) || !(lowest > 1e-12 * std::abs(mean))) return false;
  const double scale = 1.0 / (a * d - b * b);
  const int row[6] = {0, 0, 1, 0, 1, 2}, col[6] = {0, 1, 1, 2, 2, 2};
  for (int k = 0; k < 6; ++k) {
    const int i = row[k], j = col[k];
    s.C[k] = scale * (d * t1[i] * t1[j] + a * t2[i] * t2[j] - b * (t1[i] * t2[j] + t2[i] * t1[j]));
  }
  return true;
}

/// k = 1: dn along the flat direction is given, across it K decides.
bool invert_one_flat(const double* n, double floor, TangentSolve& s) {
  double g[3];
  cross3(n, s.E[0], g);
  const double kgg = quadratic(s.K, g, g);
  if (!(kgg > floor) || !(kgg > 0)) return false;
  const double slope = quadratic(s.K, g, s.E[0]) / kgg;
  for (int i = 0; i < 3; ++i) s.G[0][i] = s.E[0][i] - slope * g[i];
  const int row[6] = {0, 0, 1, 0, 1, 2}, col[6] = {0, 1, 1, 2, 2, 2};
  for (int k = 0; k < 6; ++k) s.C[k] = g[row[k]] * g[col[k]] / kgg;
  return true;
}

/// k = 2: the features alone carry n; G is dual to E in the tangent plane.
bool invert_two_flat(const double* n, TangentSolve& s) {
  double across[3];
  cross3(s.E[0], s.E[1], across);
  const double sine = dot3(across, n);
  if (!(std::abs(sine) > smallest_sine)) return false;
  cross3(s.E[1], n, s.G[0]);
  cross3(n, s.E[0], s.G[1]);
  for (int i = 0; i < 3; ++i) s.G[0][i] /= sine, s.G[1][i] /= sine;
  return true;
}

bool prepare_solve(const Contact& c, TangentSolve& s) {
  for (int k = 0; k < 6; ++k) s.K[k] = c.a.F[k] + c.b.F[k];
  s.K[0] += c.distance, s.K[2] += c.distance, s.K[5] += c.distance;
  for (int j = 0; j < c.a.num_flat; ++j) copy3(c.a.E[j], s.E[s.num_flat]), s.on_a[s.num_flat++] = true;
  for (int j = 0; j < c.b.num_flat; ++j) copy3(c.b.E[j], s.E[s.num_flat]), s.on_a[s.num_flat++] = false;
  const double floor = smallest_curvature * c.size;
  double t1[3], t2[3];
  contact_frame(c.normal, t1, t2);
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
    double w[3] = {0, 0, 0}, u[3], a[3], rolled[3], dn[3] = {0, 0, 0}, dp[3];
    for (int i = 0; i < 3; ++i) dp[i] = on_a ? 0.5 * n[k] * n[i] : (i == k) - 0.5 * n[k] * n[i];
    store(dn, dp, n[k], k, motion);
    w[k] = 1;
    cross3(w, arm, u), cross3(w, n, a);
    symmetric_times(F, a, rolled);
    const double dphi = dot3(n, u);
    for (int i = 0; i < 3; ++i)
      dn[i] = on_a ? a[i] : 0.0, dp[i] = rolled[i] + 0.5 * (on_a ? dphi * n[i] + c.distance * a[i] : 2 * u[i] - dphi * n[i]);
    store(dn, dp, dphi, 3 + k, motion);
  }
}

void move_support(const Contact& c, const TangentSolve& s, ContactMotion& motion) {
  const double* n = c.normal;
  for (int column = 0; column < 6; ++column) {
    const UnitMotion m = unit_motion(c, column);
    double r[3], relative[3], fa[3], fb[3], dn[3], kdn[3];
    sub3(m.u_a, m.u_b, relative);
    symmetric_times(c.a.F, m.a, fa);
    symmetric_times(c.b.F, m.b, fb);
    const double dphi = dot3(n, relative);
    for (int i = 0; i < 3; ++i) r[i] = relative[i] - dphi * n[i] + fa[i] + fb[i];
    symmetric_times(s.C, r, dn);
    for (int j = 0; j < s.num_flat; ++j) axpy3(dot3(s.E[j], s.on_a[j] ? m.a : m.b), s.G[j], dn);
    symmetric_times(s.K, dn, kdn);
    sub3(r, kdn, r);
    double da[3], db[3], dp[3];
    sub3(dn, m.a, da);
    sub3(dn, m.b, db);
    symmetric_times(c.a.F, da, fa);
    symmetric_times(c.b.F, db, fb);
    for (int i = 0; i < 3; ++i) dp[i] = 0.5 * (m.u_a[i] + m.u_b[i] - fa[i] + fb[i]);
    for (int j = 0; j < s.num_flat; ++j) axpy3((s.on_a[j] ? -0.5 : 0.5) * dot3(s.G[j], r), s.E[j], dp);
    store(dn, dp, dphi, column, motion);
  }
}

/// A vertex of the reference face, projected along n on the incident face's plane (outward normal m): m·(dp - u) = 0
/// there.
bool move_reference_vertex(const Contact& c, ContactMotion& motion) {
  const double* m = c.incident_normal;
  const double slope = dot3(m, c.normal);
  if (!(std::abs(slope) > smallest_crossing)) return false;
  for (int column = 0; column < 6; ++column) {
    const UnitMotion v = unit_motion(c, column);
    const double* dn = c.reference_on_a ? v.a : v.b;
    double gap[3], dp[3];
    for (int i = 0; i < 3; ++i) gap[i] = v.u_a[i] - v.u_b[i] - c.distance * dn[i];
    const double dphi = dot3(m, gap) / slope, half = c.reference_on_a ? -0.5 : 0.5;
    for (int i = 0; i < 3; ++i)
      dp[i] = (c.reference_on_a ? v.u_a : v.u_b)[i] + half * (dphi * c.normal[i] + c.distance * dn[i]);
    store(dn, dp, dphi, column, motion);
  }
  return true;
}

/// Velocity of body X's material point at `at`, for one unit twist.
void velocity_at(const Contact& c, int column, bool body_a, const double* at, double* out) {
  out[0] = out[1] = out[2] = 0;
  if ((column < 6) != body_a) return;
  const int k = column % 6;
  if (k < 3) {
    out[k] = 1;
    return;
  }
  double w[3] = {0, 0, 0}, arm[3];
  w[k - 3] = 1;
  sub3(at, c.point, arm);
  cross3(w, arm, out);
}

/// Adds how a curved incident line (capsule, cylinder) rolls under its point while n turns otherwise than the body:
/// sign F (dn - spin).
void roll(const SurfacePatch& patch, const double* dn, const double* spin, double sign, double* velocity) {
  double turn[3], shift[3];
  sub3(dn, spin, turn);
  symmetric_times(patch.F, turn, shift);
  axpy3(sign, shift, velocity);
}

/// The incident edge (direction d) crosses a side plane (normal m) of the reference face: the crossing stays on both.
bool move_edge_crossing(const Contact& c, ContactMotion& motion) {
  const double* m = c.side;
  const double* d = c.edge;
  const double slope = dot3(m, d);
  if (!(std::abs(slope) > smallest_crossing * norm3(d))) return false;
  const bool incident_a = !c.reference_on_a;
  const double* at = incident_a ? c.point_a : c.point_b;
  const double sign = incident_a ? 1.0 : -1.0;
  for (int column = 0; column < 6; ++column) {
    const UnitMotion v = unit_motion(c, column);
    const double* dn = c.reference_on_a ? v.a : v.b;
    double incident[3], reference[3], relative[3], dp[3];
    velocity_at(c, column, incident_a, at, incident);
    roll(incident_a ? c.a : c.b, dn, incident_a ? v.a : v.b, incident_a ? -1.0 : 1.0, incident);
    velocity_at(c, column, !incident_a, at, reference);
    sub3(incident, reference, relative);
    const double slide = dot3(m, relative) / slope;
    for (int i = 0; i < 3; ++i) dp[i] = incident[i] - slide * d[i];
    sub3(dp, reference, relative);
    const double dphi = sign * dot3(c.normal, relative);
    for (int i = 0; i < 3; ++i) dp[i] -= 0.5 * sign * (dphi * c.normal[i] + c.distance * dn[i]);
    store(dn, dp, dphi, column, motion);
  }
  return true;
}

/// Declared fall-back: normal and point ride on A. The distance still moves by the normal part of the relative
/// velocity, which holds at every stationary direction whatever the curvature.
void move_frozen(const Contact& c, ContactMotion& motion) {
  motion.frozen = true;
  for (int column = 0; column < 6; ++column) {
    const UnitMotion m = unit_motion(c, column);
    double relative[3];
    sub3(m.u_a, m.u_b, relative);
    store(m.a, m.middle, dot3(c.normal, relative), column, motion);
  }
}

/// Moving both bodies as one moves the contact rigidly, and by nothing else, under every rule: B's columns are that
/// minus A's.
void complete_by_rigid_motion(const Contact& c, ContactMotion& motion) {
  for (int k = 0; k < 3; ++k) {
    double w[3] = {0, 0, 0}, turned[3];
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
  motion.frozen = false;
  bool solved = false;
  switch (contact.rule) {
    case MotionRule::support: {
      if (contact.a.num_flat == 2 || contact.b.num_flat == 2) {
        const bool on_a = contact.a.num_flat == 2 && (contact.b.num_flat < 2 || contact.reference_on_a);
        move_on_face(contact, on_a, motion);
        solved = true;
        break;
      }
      TangentSolve solve;
      solved = prepare_solve(contact, solve);
      if (solved) move_support(contact, solve, motion);
      break;
    }
    case MotionRule::reference_vertex: solved = move_reference_vertex(contact, motion); break;
    case MotionRule::edge_crossing: solved = move_edge_crossing(contact, motion); break;
    case MotionRule::frozen: break;
  }
  if (!solved) move_frozen(contact, motion);
  complete_by_rigid_motion(contact, motion);
}

}  // namespace coulomb
