#include "coulomb/stepping/semi_implicit/contacts_to_come.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/broad_phase/filter.hpp"
#include "coulomb/collision/continuous/signed_distance.hpp"
#include "coulomb/collision/narrow_phase/face_plane.hpp"
#include "coulomb/collision/narrow_phase/primitives_common.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/model/shapes/convex_mesh.hpp"
#include "coulomb/stepping/inner_edges.hpp"
#include "coulomb/stepping/semi_implicit/contacts_ahead.hpp"
#include "coulomb/stepping/semi_implicit/semi_implicit.hpp"
#include "coulomb/stepping/step_options.hpp"
#include "coulomb/stepping/step_record.hpp"
#include "coulomb/stepping/step_workspace.hpp"

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

void conjugate(const double* q, double* out) {
  out[0] = q[0];
  for (int i = 1; i < 4; ++i)
    out[i] = -q[i];
}

/// A body after this share of its way to the pose to come: straight on, turning evenly.
struct PoseOnTheWay {
  double position[3];
  double quaternion[4];

  PoseOnTheWay(const StepRecord& r, const ContactsToCome::Poses& to_come, int body, double share) {
    const double* from = &r.dynamics.body_position[3 * body];
    const double* to = &to_come.position[3 * body];
    const double* turned = &to_come.quaternion[4 * body];
    for (int i = 0; i < 3; ++i)
      position[i] = share < 1 ? from[i] + share * (to[i] - from[i]) : to[i];
    std::copy_n(turned, 4, quaternion);
    if (share >= 1) return;

    // q exp(share log(q^-1 q')).
    const double* start = &r.dynamics.body_quaternion[4 * body];
    double turn[3];
    double part[4];
    double back[4];
    quaternion_conjugate_multiply(start, turned, part);
    quaternion_log(part, turn);
    for (double& x : turn)
      x *= share;
    rotation_exp(turn, part);
    conjugate(start, back);
    quaternion_conjugate_multiply(back, part, quaternion);
  }
};

/// How A moves against B within one step, or a share of it, B held: about A's origin.
struct MotionAgainst {
  double centre[3];
  double shift[3];
  double turn[3];
  double from_b[9];  ///< world from B afterwards

  MotionAgainst(const StepRecord& r, const ContactsToCome::Poses& to_come, int a, int b, double share = 1) {
    const PoseOnTheWay pose_a(r, to_come, a, share);
    const PoseOnTheWay pose_b(r, to_come, b, share);

    // The way of A, seen from B: q_B (q_B'^-1 q_A') q_A^-1.
    double seen[4];
    double back[4];
    double turned[4];
    quaternion_conjugate_multiply(pose_b.quaternion, pose_a.quaternion, seen);
    conjugate(&r.dynamics.body_quaternion[4 * b], back);
    quaternion_conjugate_multiply(back, seen, turned);
    conjugate(turned, back);
    conjugate(&r.dynamics.body_quaternion[4 * a], seen);
    quaternion_conjugate_multiply(back, seen, turned);
    quaternion_log(turned, turn);

    // A's origin likewise.
    double apart[3];
    double local[3];
    quaternion_to_matrix(pose_b.quaternion, from_b);
    sub3(pose_a.position, pose_b.position, apart);
    rotate_transposed(from_b, apart, local);
    rotate(&r.dynamics.body_rotation[9 * b], local, shift);
    for (int i = 0; i < 3; ++i) {
      centre[i] = r.dynamics.body_position[3 * a + i];
      shift[i] += r.dynamics.body_position[3 * b + i] - centre[i];
    }
  }

  RigidShift move() const { return {centre, shift, turn}; }

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
  Judge(const Model& model, const StepOptions& options, StepRecord& record, ContactsToCome& buffers)
      : model_(model), r_(record), w_(record.collision), b_(buffers), contacts_(record.collision.contacts),
        h_(options.constraints.timestep) {}

  bool judge_all();
  bool restore_what_meets(std::vector<double>& travel);

 private:
  double free_speed(const Contact& c) const { return normal_velocity(model_, r_.dynamics, r_.twist.data(), c); }
  double speed(const Contact& c) const { return normal_velocity(model_, r_.dynamics, r_.twist_next.data(), c); }
  bool closes(const Contact& c) const { return c.distance + h_ * free_speed(c) < 0; }
  bool comes(const Contact& c) const;
  Group group(int k) const { return {contacts_[b_.first[k]].pair, b_.first[k], b_.first[k + 1]}; }
  void look_ahead(const std::vector<double>& v, ContactsToCome::Poses& p);
  const ContactsToCome::Poses& poses(bool free);
  const Contact* most_closing(const Group& g) const;
  bool judge(int k);
  bool held_beside(int k, const Contact& worst);
  bool held_beside(int k, const Contact& worst, bool touching);
  bool will_hold(const Contact& c);
  bool is_parted(const Contact& worst, const double* normal, double depth) const;
  bool misses(const Contact& worst);
  double distance_after(const ContactsToCome::Poses& to_come, const Contact& worst, double share);
  bool passes_through(const ContactsToCome::Poses& to_come, const Contact& worst);
  bool meets(const Contact* begin, const Contact* end, const std::vector<double>& travel);
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

  // The last look of distance_after: distance, normal from B to A in the world.
  double distance_ = 0;
  double normal_[3] = {0, 0, 0};
};

/// Where the bodies are after one step at a velocity.
void Judge::look_ahead(const std::vector<double>& v, ContactsToCome::Poses& p) {
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
}

/// After one step at the free velocity, or at the velocity of now.
const ContactsToCome::Poses& Judge::poses(bool free) {
  ContactsToCome::Poses& p = free ? b_.by_free_velocity : b_.by_velocity;
  if (!p.known) look_ahead(free ? r_.v_free : r_.v, p);
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
      if (!(moves || is_parted(worst, n, depth)) || !(touching || will_hold(held))) continue;
      if (take_side(worst, n, n, depth, true)) return true;
    }
  }
  return false;
}

/// Will it touch within the step?
bool Judge::will_hold(const Contact& c) { return closes(c) && !(comes(c) && misses(c)); }

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
bool Judge::misses(const Contact& worst) {
  const ContactsToCome::Poses& to_come = poses(true);
  return distance_after(to_come, worst, 1) > 0 && !passes_through(to_come, worst);
}

/// How far apart the shapes are after this share of the step to a pose.
double Judge::distance_after(const ContactsToCome::Poses& to_come, const Contact& worst, double share) {
  const int pair = worst.pair;
  const MotionAgainst motion(r_, to_come, worst.body_a, worst.body_b, share);
  const MovedShape moved(model_, pair, motion.move(), w_);
  Shape a;
  Shape b;
  SignedDistance d;
  pose_shape(model_, w_, model_.pair_a[pair], a);
  pose_shape(model_, w_, model_.pair_b[pair], b);
  signed_distance(a, b, d);
  if (std::abs(d.distance) <= touch_width) r_.just_touches = true;
  distance_ = d.distance;

  // In the world, where B has turned as well.
  double local[3];
  rotate_transposed(&r_.dynamics.body_rotation[9 * worst.body_b], d.normal, local);
  rotate(motion.from_b, local, normal_);
  return d.distance;
}

/// Do they touch on the way to a pose where they are apart? What parts them along a normal lasts as long as they need to
/// come along it and to turn into it, at the velocity that the workspace's shifts and turns are of: so far they go
/// without a look.
bool Judge::passes_through(const ContactsToCome::Poses& to_come, const Contact& worst) {
  const int geometry_a = model_.pair_a[worst.pair];
  const int geometry_b = model_.pair_b[worst.pair];
  const double turns = (w_.turn[geometry_a] + w_.turn[geometry_b]) / steps_ahead;
  double comes[3];
  sub3(&w_.shift[3 * geometry_a], &w_.shift[3 * geometry_b], comes);

  // A direction that parts them before and after parts them on the way, as far as they do not turn into it.
  Shape a;
  Shape b;
  pose_shape(model_, w_, geometry_a, a);
  pose_shape(model_, w_, geometry_b, b);
  if (std::min(separation_along(a, b, normal_), distance_) > 0.5 * turns) return false;

  double share = 0;
  double gap = worst.distance;
  copy3(worst.normal, normal_);
  for (int k = 0; k < most_looks; ++k) {
    const double way = dot3(normal_, comes) / steps_ahead - turns;
    if (way >= 0) return false;
    share += std::max(gap, least_way) / -way;
    if (share >= 1) return false;
    gap = distance_after(to_come, worst, share);
    if (gap <= 0) return true;
  }
  return false;
}

/// At the velocity that was found: are the shapes in each other after the step, deeper than a rise of one floor, or have
/// they met on the way?
bool Judge::meets(const Contact* begin, const Contact* end, const std::vector<double>& travel) {
  // What closes most of the pair's contacts.
  const auto gap = [&](const Contact& c) { return c.distance + h_ * speed(c); };
  const Contact& worst =
      *std::min_element(begin, end, [&](const Contact& x, const Contact& y) { return gap(x) < gap(y); });
  if (gap(worst) >= 0) return false;

  const double distance = distance_after(b_.by_found_velocity, worst, 1);
  if (std::abs(distance + one_floor) <= touch_width) r_.just_touches = true;
  if (distance <= 0) return distance < -one_floor;
  for (const int g : {model_.pair_a[worst.pair], model_.pair_b[worst.pair]})
    follow_travel(model_, r_.dynamics.body_rotation.data(), travel.data(), g, w_);
  return passes_through(b_.by_found_velocity, worst);
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
  if (has_ground(model_, g.pair)) return false;
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
  if (misses(worst)) {
    const auto passes = [this](const Contact& c) { return comes(c); };
    std::copy_if(first, last, std::back_inserter(b_.missed), passes);
    std::remove_copy_if(first, last, std::back_inserter(b_.kept), passes);
    return true;
  }
  return meets_a_side(g, worst);
}

bool Judge::judge_all() {
  r_.just_touches = false;
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
  b_.missed.clear();
  for (int k = 0; k < num_groups; ++k) {
    b_.left_out[k] = judge(k);
    if (b_.left_out[k] && !any) b_.kept.insert(b_.kept.begin(), contacts_.begin(), contacts_.begin() + b_.first[k]);
    any = any || b_.left_out[k];
    if (any && !b_.left_out[k])
      b_.kept.insert(b_.kept.end(), contacts_.begin() + b_.first[k], contacts_.begin() + b_.first[k + 1]);
  }
  if (any) contacts_ = b_.kept;
  return any;
}

bool Judge::restore_what_meets(std::vector<double>& travel) {
  if (b_.missed.empty() || !all_finite(r_.v_next)) return false;
  look_ahead(r_.v_next, b_.by_found_velocity);
  link_twists(model_, r_.dynamics, r_.v_next.data(), r_.twist_next.data());
  follow_bodies(model_, steps_ahead * h_, r_.dynamics, r_.twist_next.data(), travel);

  // Pair by pair; those that still pass stay.
  b_.kept.clear();
  auto passing = b_.missed.begin();
  for (auto begin = b_.missed.begin(); begin != b_.missed.end();) {
    const auto end = std::find_if(begin, b_.missed.end(), [&](const Contact& c) { return c.pair != begin->pair; });
    if (meets(&*begin, &*begin + (end - begin), travel))
      b_.kept.insert(b_.kept.end(), begin, end);
    else
      passing = std::copy(begin, end, passing);
    begin = end;
  }
  b_.missed.erase(passing, b_.missed.end());
  if (b_.kept.empty()) return false;

  // Among the others, in the order of the pairs.
  const auto by_pair = [](const Contact& x, const Contact& y) { return x.pair < y.pair; };
  for (const Contact& c : b_.kept)
    contacts_.insert(std::upper_bound(contacts_.begin(), contacts_.end(), c, by_pair), c);
  return true;
}

}  // namespace

/// Steps that judge contacts are few, and allocate nothing.
ContactsToCome::ContactsToCome(const Model& model) : q(model.nq + model.nv) {
  for (Poses* poses : {&by_free_velocity, &by_velocity, &by_found_velocity}) {
    poses->position.resize(3 * model.num_bodies);
    poses->quaternion.resize(4 * model.num_bodies);
  }
  const std::size_t usual = usual_contacts(model);
  first.reserve(usual + 1);
  left_out.reserve(usual + 1);
  kept.reserve(usual);
  missed.reserve(usual);
  of_plane.reserve(max_contacts_per_pair);
  over.reserve(max_contacts_per_pair);
}

bool judge_contacts_to_come(const Model& model, const StepOptions& options, StepRecord& record,
                            ContactsToCome& buffers) {
  return Judge(model, options, record, buffers).judge_all();
}

bool restore_contacts_that_meet(const Model& model, const StepOptions& options, StepRecord& record,
                                StepWorkspace& workspace) {
  return Judge(model, options, record, workspace.to_come).restore_what_meets(workspace.travel);
}

}  // namespace coulomb
