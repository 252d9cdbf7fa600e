#include "coulomb/stepping/semi_implicit/contacts_to_come.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/continuous/signed_distance.hpp"
#include "coulomb/collision/narrow_phase/face_plane.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/model/shapes/convex_mesh.hpp"
#include "coulomb/stepping/inner_edges.hpp"
#include "coulomb/stepping/step_options.hpp"
#include "coulomb/stepping/step_record.hpp"

namespace coulomb {
namespace {

constexpr double coming_speed = 1e-9;  // m/s: what approaches more slowly is pressed on, or lies
constexpr double least_way = 1e-7;     // m: so does what touches already and comes by less within the step
constexpr double beyond_tolerance =
    1e-4;                            // m: a look goes so much further, so that no side within one_floor is the nearest
constexpr double same_plane = 1e-8;  // 1 - cosine: sides of one floor, to 1e-4 rad
constexpr double opposite = -0.5;    // cosine
constexpr double same_cosine = 1e-12;  // of two sides that are parallel
constexpr double touch_width = 1e-12;  // m: nearer to touch than this it does or does not
constexpr int most_looks = 50;         // on the way of a step: a graze takes one for every halving of the way left

bool has_half_space(const Model& model, int pair) {
  return model.geometry_type[model.pair_a[pair]] == ShapeType::half_space ||
         model.geometry_type[model.pair_b[pair]] == ShapeType::half_space;
}

void conjugate(const double* q, double* out) {
  out[0] = q[0];
  for (int i = 1; i < 4; ++i)
    out[i] = -q[i];
}

/// How A moves against B within one step, B held: about A's origin.
struct MotionAgainst {
  double centre[3];
  double shift[3];
  double turn[3];

  MotionAgainst(const StepRecord& r, const ContactsToCome::Poses& to_come, int a, int b) {
    // The way of A, seen from B: q_B (q_B'^-1 q_A') q_A^-1.
    double seen[4];
    double back[4];
    double turned[4];
    quaternion_conjugate_multiply(&to_come.quaternion[4 * b], &to_come.quaternion[4 * a], seen);
    conjugate(&r.dynamics.body_quaternion[4 * b], back);
    quaternion_conjugate_multiply(back, seen, turned);
    conjugate(turned, back);
    conjugate(&r.dynamics.body_quaternion[4 * a], seen);
    quaternion_conjugate_multiply(back, seen, turned);
    quaternion_log(turned, turn);

    // A's origin likewise.
    double R[9];
    double apart[3];
    double local[3];
    quaternion_to_matrix(&to_come.quaternion[4 * b], R);
    sub3(&to_come.position[3 * a], &to_come.position[3 * b], apart);
    rotate_transposed(R, apart, local);
    rotate(&r.dynamics.body_rotation[9 * b], local, shift);
    for (int i = 0; i < 3; ++i) {
      centre[i] = r.dynamics.body_position[3 * a + i];
      shift[i] += r.dynamics.body_position[3 * b + i] - centre[i];
    }
  }

  /// The first part of it.
  MotionAgainst(const MotionAgainst& whole, double share) {
    for (int i = 0; i < 3; ++i) {
      centre[i] = whole.centre[i];
      shift[i] = share * whole.shift[i];
      turn[i] = share * whole.turn[i];
    }
  }

  RigidShift move() const { return {centre, shift, turn}; }

  /// How fast a point of A moves along a direction, over the whole motion.
  double speed_along(const double* direction, const double* point) const {
    double arm[3];
    double velocity[3];
    sub3(point, centre, arm);
    copy3(shift, velocity);
    add_cross3(turn, arm, velocity);
    return dot3(direction, velocity);
  }

  /// A direction that A carries, at the pose of now.
  void bring_back(const double* direction, double* now) const {
    double quaternion[4];
    double R[9];
    rotation_exp(turn, quaternion);
    quaternion_to_matrix(quaternion, R);
    rotate_transposed(R, direction, now);
  }
};

/// How low the shape reaches along a direction, by some points of it: at least that low.
double low_point(const Shape& s, const double* direction) {
  constexpr int samples = 8;
  const int count = s.type == ShapeType::mesh ? s.mesh->num_vertices() : s.type == ShapeType::box ? 8 : 0;
  if (count == 0) return dot3(s.position, direction);
  double low = 1e300;
  for (int v = 0; v < count; v += std::max(1, count / samples)) {
    double x[3];
    core_vertex(s, v, x);
    low = std::min(low, dot3(x, direction));
  }
  return low;
}

double least_distance(const std::vector<Contact>& contacts) {
  double least = 1e300;
  for (const Contact& c : contacts)
    least = std::min(least, c.distance);
  return least;
}

/// The contacts of one pair.
struct Group {
  int pair;
  int begin;
  int end;
};

class Judge {
 public:
  Judge(const Model& model, const StepOptions& options, StepRecord& record)
      : model_(model), r_(record), w_(record.collision), b_(record.to_come), contacts_(record.collision.contacts),
        h_(options.constraints.timestep) {}

  void judge_all();

 private:
  double free_speed(const Contact& c) const { return normal_velocity(model_, r_.dynamics, r_.twist.data(), c); }
  double speed(const Contact& c) const { return normal_velocity(model_, r_.dynamics, r_.twist_next.data(), c); }
  bool closes(const Contact& c) const { return c.distance + h_ * free_speed(c) < 0; }
  bool comes(const Contact& c) const;
  Group group(int k) const { return {contacts_[b_.first[k]].pair, b_.first[k], b_.first[k + 1]}; }
  const ContactsToCome::Poses& poses(bool free);
  const Contact* most_closing(const Group& g) const;
  bool judge(int k);
  bool held_beside(int k, const Contact& worst);
  bool held_beside(int k, const Contact& worst, bool touching);
  bool will_hold(const Group& g, const Contact& c);
  bool is_parted(const Contact& worst, const double* normal, double depth) const;
  bool misses(const Group& g, const Contact& worst);
  bool is_apart_after(const Group& g, const MotionAgainst& whole, double share);
  bool passes_through(const Group& g, const MotionAgainst& motion, const Contact& worst);
  bool meets_a_side(const Group& g, const Contact& worst);
  bool take_side(const Contact& worst, const double* on_b, const double* on_a, double depth, bool held);
  bool points_over(const Contact& worst, const FaceOfPair& face, bool deepest);

  const Model& model_;
  StepRecord& r_;
  CollisionWorkspace& w_;
  ContactsToCome& b_;
  std::vector<Contact>& contacts_;
  double h_;
  bool knows_velocity_ = false;  ///< twist_next is at v

  // The last look of is_apart_after: distance, normal from B to A, witness of A.
  double distance_ = 0;
  double normal_[3] = {0, 0, 0};
  double point_[3] = {0, 0, 0};
};

/// Where the bodies are after one step at the free velocity, or at the velocity of now.
const ContactsToCome::Poses& Judge::poses(bool free) {
  ContactsToCome::Poses& p = free ? b_.by_free_velocity : b_.by_velocity;
  if (p.known) return p;
  const std::vector<double>& v = free ? r_.v_free : r_.v;
  double* q = b_.q.data();
  double* moved = q + model_.nq;
  for (int d = 0; d < model_.nv; ++d)
    moved[d] = h_ * v[d];
  integrate(model_, r_.q.data(), moved, q);

  // The workspace of the step, which is at q again afterwards.
  kinematics(model_, q, r_.dynamics);
  p.position = r_.dynamics.body_position;
  p.quaternion = r_.dynamics.body_quaternion;
  p.known = true;
  kinematics(model_, r_.q.data(), r_.dynamics);
  return p;
}

bool Judge::comes(const Contact& c) const {
  const double least = c.distance > model_.pair_margin[c.pair] ? coming_speed : std::max(coming_speed, least_way / h_);
  return closes(c) && speed(c) < -least;
}

/// What closes most of a pair's contacts; null: none does.
const Contact* Judge::most_closing(const Group& g) const {
  const Contact* worst = nullptr;
  double least = 0;
  for (int i = g.begin; i < g.end; ++i) {
    const double gap = contacts_[i].distance + h_ * free_speed(contacts_[i]);
    if (!(gap < least)) continue;
    least = gap;
    worst = &contacts_[i];
  }
  return worst;
}

/// The points of the pair's other shape that will be over the face, as contacts of now with its plane: in of_plane. False: there is none,
/// or, where the deepest has to be among them, it is an edge across the border of the face that is deepest.
bool Judge::points_over(const Contact& worst, const FaceOfPair& face, bool deepest) {
  const int pair = worst.pair;
  double velocity[3];
  contact_velocity(model_, r_.dynamics, r_.twist.data(), worst, velocity);
  const double reach = model_.pair_margin[pair] + 2 * h_ * norm3(velocity) + std::abs(worst.distance);
  {
    const MotionAgainst motion(r_, poses(false), worst.body_a, worst.body_b);
    const MovedShape moved(model_, pair, motion.move(), w_);
    collide_face(model_, pair, face, reach, w_, b_.over);
    Shape owner;
    pose_shape(model_, w_, face.on_a ? model_.pair_a[pair] : model_.pair_b[pair], owner);
    const auto is_beside = [&](const Contact& c) { return !is_on_face(owner, face.on_a ? c.point_a : c.point_b); };
    const double lowest = least_distance(b_.over);
    b_.over.erase(std::remove_if(b_.over.begin(), b_.over.end(), is_beside), b_.over.end());
    if (b_.over.empty() || (deepest && least_distance(b_.over) > lowest + one_floor)) return false;
  }

  // The same points now.
  collide_face(model_, pair, face, reach, w_, b_.of_plane);
  const auto is_over = [&](const Contact& c) {
    return std::any_of(b_.over.begin(), b_.over.end(), [&](const Contact& o) { return o.feature == c.feature; });
  };
  const auto is_left_out = [&](const Contact& c) {
    return !is_over(c) || c.distance > std::max(model_.pair_margin[pair], -2 * h_ * free_speed(c));
  };
  b_.of_plane.erase(std::remove_if(b_.of_plane.begin(), b_.of_plane.end(), is_left_out), b_.of_plane.end());
  return true;
}

/// Is there a flat side of either shape near the normal (for faces of B and of A) that parts them now, up to `depth`, and is approached
/// less than `worst`? Then the pair's contacts are those with its plane. held: another contact has this normal already.
bool Judge::take_side(const Contact& worst, const double* on_b, const double* on_a, double depth, bool held) {
  Shape a;
  Shape b;
  pose_shape(model_, w_, model_.pair_a[worst.pair], a);
  pose_shape(model_, w_, model_.pair_b[worst.pair], b);
  double velocity[3];
  contact_velocity(model_, r_.dynamics, r_.twist_next.data(), worst, velocity);
  const double least = held ? speed(worst) - coming_speed : speed(worst) + coming_speed;

  // The faces of both.
  const double inward[3] = {-on_a[0], -on_a[1], -on_a[2]};
  FaceOfPair faces[2] = {{false, 0}, {true, 0}};
  double cosine[2] = {-1, -1};
  if (!face_towards(b, on_b, faces[0].face, cosine[0])) cosine[0] = -1;
  if (!face_towards(a, inward, faces[1].face, cosine[1])) cosine[1] = -1;
  if (cosine[1] > cosine[0] + same_cosine) {
    std::swap(faces[0], faces[1]);
    std::swap(cosine[0], cosine[1]);
  }

  bool parts = false;
  for (int k = 0; k < 2; ++k) {
    if (cosine[k] < near_normal) continue;
    double n[3];
    double point[3];
    face_plane(faces[k].on_a ? a : b, faces[k].face, n, point);
    if (faces[k].on_a)
      for (double& x : n)
        x = -x;

    // Another normal, along which they are apart, and which is less in the way.
    if (has_normal(worst, n)) return false;
    if (separation_along(a, b, n) < -depth - one_floor) continue;
    const double there =
        speed_along(model_, r_.dynamics, r_.twist_next.data(), worst, faces[k].on_a ? b : a, !faces[k].on_a, n);
    if (std::max(dot3(n, velocity), there) < least) continue;
    parts = parts || dot3(n, on_b) > 1 - same_plane;
    if (points_over(worst, faces[k], !held)) {
      b_.kept.insert(b_.kept.end(), b_.of_plane.begin(), b_.of_plane.end());
      return true;
    }
  }

  // No point will be over it: what holds the body already holds it there, too.
  return held && parts;
}

/// Is a body of the pair held along another normal, which parts this pair as well? Then they are sides of one floor. What touches is asked
/// first: what only comes may meet another side than that of now itself, which is judged later.
bool Judge::held_beside(int k, const Contact& worst) {
  return held_beside(k, worst, true) || held_beside(k, worst, false);
}

/// By a contact that touches, or by one that comes. What was left out holds nothing.
bool Judge::held_beside(int k, const Contact& worst, bool touching) {
  const bool moves = comes(worst);
  for (int other = 0; other + 1 < int(b_.first.size()); ++other) {
    if (other == k || b_.left_out[other]) continue;
    const Group g = group(other);
    for (int i = g.begin; i < g.end; ++i) {
      // Another normal; two that are nearly opposite do not part the same shapes.
      const Contact& held = contacts_[i];
      if ((held.distance <= model_.pair_margin[g.pair]) != touching) continue;
      double n[3];
      if (normal_beside(model_, held, worst.body_a, worst.body_b, n) == Shared::neither) break;
      if (has_normal(worst, n) || dot3(n, worst.normal) < opposite) continue;
      const double depth = std::max(0.0, -held.distance);
      if (worst.distance < -depth - one_floor) continue;
      if (!(moves || is_parted(worst, n, depth)) || !(touching || will_hold(g, held))) continue;
      if (take_side(worst, n, n, depth, true)) return true;
    }
  }
  return false;
}

/// Will it touch within the step?
bool Judge::will_hold(const Group& g, const Contact& c) {
  return closes(c) && !(comes(c) && misses(g, c));
}

/// Does this very normal part them, approached no faster? Where nothing comes there is an edge only then.
bool Judge::is_parted(const Contact& worst, const double* normal, double depth) const {
  Shape a;
  Shape b;
  pose_shape(model_, w_, model_.pair_a[worst.pair], a);
  pose_shape(model_, w_, model_.pair_b[worst.pair], b);

  // Points of both show of most normals that they do not.
  const double opposed[3] = {-normal[0], -normal[1], -normal[2]};
  if (low_point(a, normal) + low_point(b, opposed) < -depth - one_floor) return false;
  double velocity[3];
  contact_velocity(model_, r_.dynamics, r_.twist_next.data(), worst, velocity);
  return dot3(normal, velocity) >= dot3(worst.normal, velocity) - coming_speed &&
         separation_along(a, b, normal) >= -depth - one_floor;
}

/// Does nothing touch on the way of a step at the free velocity? Then what comes goes by; what is pressed on stays.
bool Judge::misses(const Group& g, const Contact& worst) {
  const MotionAgainst motion(r_, poses(true), worst.body_a, worst.body_b);
  return is_apart_after(g, motion, 1) && !passes_through(g, motion, worst);
}

/// Are the shapes apart after this share of the motion?
bool Judge::is_apart_after(const Group& g, const MotionAgainst& whole, double share) {
  const MotionAgainst motion(whole, share);
  const MovedShape moved(model_, g.pair, motion.move(), w_);
  Shape a;
  Shape b;
  SignedDistance d;
  pose_shape(model_, w_, model_.pair_a[g.pair], a);
  pose_shape(model_, w_, model_.pair_b[g.pair], b);
  signed_distance(a, b, d);
  copy3(d.normal, normal_);
  copy3(d.point_a, point_);
  if (std::abs(d.distance) <= touch_width) b_.at_border = true;
  distance_ = d.distance;
  return d.distance > 0;
}

/// Do they touch on the way to a pose where they are apart? The distance along a straight way is convex in time: Newton's method from the
/// start ends where they touch, or finds that they part again.
bool Judge::passes_through(const Group& g, const MotionAgainst& motion, const Contact& worst) {
  // A direction that parts them before and after parts them on the way.
  Shape a;
  Shape b;
  pose_shape(model_, w_, model_.pair_a[g.pair], a);
  pose_shape(model_, w_, model_.pair_b[g.pair], b);
  if (separation_along(a, b, normal_) > 0) return false;

  double share = 0;
  double gap = worst.distance;
  copy3(worst.normal, normal_);
  copy3(worst.point_a, point_);
  for (int k = 0; k < most_looks; ++k) {
    const double slope = motion.speed_along(normal_, point_);
    if (slope >= 0) return false;
    share += std::max(gap, least_way) / -slope;
    if (share >= 1) return false;
    if (!is_apart_after(g, motion, share)) return true;
    gap = distance_;
  }
  return false;
}

/// Do they meet at a flat side that is approached less? By the velocity of now: forces that press a body on what holds it would make
/// it sink there.
bool Judge::meets_a_side(const Group& g, const Contact& worst) {
  MotionAgainst motion(r_, poses(false), worst.body_a, worst.body_b);
  axpy3(-beyond_tolerance, worst.normal, motion.shift);
  SignedDistance d;
  {
    const MovedShape moved(model_, g.pair, motion.move(), w_);
    Shape a;
    Shape b;
    pose_shape(model_, w_, model_.pair_a[g.pair], a);
    pose_shape(model_, w_, model_.pair_b[g.pair], b);
    signed_distance(a, b, d);
  }
  double on_a[3];
  motion.bring_back(d.normal, on_a);
  return take_side(worst, d.normal, on_a, 0, false);
}

/// True: the pair's contacts are replaced by those that it adds to `kept`.
bool Judge::judge(int k) {
  const Group g = group(k);
  if (has_half_space(model_, g.pair)) return false;
  const Contact* closing = most_closing(g);
  if (closing == nullptr) return false;
  if (!knows_velocity_) link_twists(model_, r_.dynamics, r_.v.data(), r_.twist_next.data());
  knows_velocity_ = true;
  const Contact& worst = *closing;
  if (held_beside(k, worst)) return true;

  // What lies deeper is no contact to come.
  const auto first = contacts_.begin() + g.begin;
  const auto last = contacts_.begin() + g.end;
  const auto is_deep = [](const Contact& c) { return c.distance < -one_floor; };
  if (!comes(worst) || std::any_of(first, last, is_deep)) return false;
  if (misses(g, worst)) {
    std::copy_if(first, last, std::back_inserter(b_.kept), [this](const Contact& c) { return !comes(c); });
    return true;
  }
  return meets_a_side(g, worst);
}

void Judge::judge_all() {
  b_.at_border = false;
  b_.by_free_velocity.known = b_.by_velocity.known = false;

  // Pair by pair.
  b_.first.clear();
  for (int i = 0; i < int(contacts_.size()); ++i)
    if (i == 0 || contacts_[i].pair != contacts_[i - 1].pair) b_.first.push_back(i);
  const int num_groups = int(b_.first.size());
  b_.first.push_back(int(contacts_.size()));
  b_.left_out.assign(num_groups, 0);

  // Copied from the first change on: there is none in most steps.
  bool any = false;
  b_.kept.clear();
  for (int k = 0; k < num_groups; ++k) {
    b_.left_out[k] = judge(k);
    if (b_.left_out[k] && !any) b_.kept.insert(b_.kept.begin(), contacts_.begin(), contacts_.begin() + b_.first[k]);
    any = any || b_.left_out[k];
    if (any && !b_.left_out[k])
      b_.kept.insert(b_.kept.end(), contacts_.begin() + b_.first[k], contacts_.begin() + b_.first[k + 1]);
  }
  if (any) contacts_.swap(b_.kept);
}

}  // namespace

void judge_contacts_to_come(const Model& model, const StepOptions& options, StepRecord& record) {
  Judge(model, options, record).judge_all();
}

}  // namespace coulomb
