#include "coulomb/stepping/inner_edges.hpp"

#include <algorithm>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/continuous/signed_distance.hpp"
#include "coulomb/collision/narrow_phase/face_plane.hpp"
#include "coulomb/stepping/semi_implicit/contacts_to_come.hpp"
#include "coulomb/stepping/step_record.hpp"

namespace coulomb {
namespace {

constexpr double same_normal = 1e-12;    // 1 - cosine
constexpr double rounding_speed = 1e-9;  // m/s: what approaches more slowly does not

/// In `over`: what of either shape touches a flat side of the other with about this normal, as contacts with that side.
void find_points_over(const Model& model, double touching, int pair, const double* normal, StepRecord& r,
                      std::vector<Contact>& over) {
  const double inward[3] = {-normal[0], -normal[1], -normal[2]};
  over.clear();
  for (const bool on_a : {false, true}) {
    Shape owner;
    FaceOfPair face{on_a};
    double cosine;
    pose_shape(model, r.collision, on_a ? model.pair_a[pair] : model.pair_b[pair], owner);
    if (!face_towards(owner, on_a ? inward : normal, face.face, cosine) || cosine < near_normal) continue;
    collide_face(model, pair, face, touching, r.collision, over);
    const auto is_beside = [&](const Contact& c) { return !is_on_face(owner, on_a ? c.point_a : c.point_b); };
    over.erase(std::remove_if(over.begin(), over.end(), is_beside), over.end());
    if (!over.empty()) return;
  }
}

/// A contact, the pair's shapes and how they move there.
struct EdgeContact {
  const Contact& c;
  const StepRecord& r;
  Shape a;
  Shape b;
  double velocity[3];

  EdgeContact(const Model& model, const StepRecord& record, const Contact& contact) : c(contact), r(record) {
    pose_shape(model, r.collision, model.pair_a[c.pair], a);
    pose_shape(model, r.collision, model.pair_b[c.pair], b);
    contact_velocity(model, r.dynamics, r.twist.data(), c, velocity);
  }

  /// Does this one hold a body of it along a normal that parts the pair, and that is approached no faster?
  bool is_parted_by(const Model& model, double touching, const Contact& held, double* n) const {
    if (held.pair == c.pair || held.distance > touching) return false;
    const Shared shared = normal_beside(model, held, c.body_a, c.body_b, n);
    const double deepest = std::min(0.0, held.distance) - one_floor;
    if (shared == Shared::neither || has_normal(c, n) || c.distance < deepest) return false;
    if (separation_along(a, b, n) < deepest) return false;

    // At the point of the contact, or where the body that is held is lowest.
    const bool of_a = shared == Shared::a;
    const double there = speed_along(model, r.dynamics, r.twist.data(), c, of_a ? a : b, of_a, n);
    return std::max(dot3(n, velocity), there) >= dot3(c.normal, velocity) - rounding_speed;
  }
};

}  // namespace

bool has_normal(const Contact& c, const double normal[3]) {
  const bool by_side = c.rule == MotionRule::reference_vertex || c.rule == MotionRule::edge_crossing ||
                       (c.rule == MotionRule::support && std::max(c.a.num_flat, c.b.num_flat) == 2);
  return dot3(c.normal, normal) > (by_side ? near_normal : 1 - same_normal);
}

Shared normal_beside(const Model& model, const Contact& held, int body_a, int body_b, double normal[3]) {
  // A is pushed as it is there, or opposite to how B is pushed.
  Shared shared = Shared::neither;
  double sign = 0;
  if (model.body_tree[body_a] >= 0 && (held.body_a == body_a || held.body_b == body_a)) {
    shared = Shared::a;
    sign = held.body_a == body_a ? 1 : -1;
  } else if (model.body_tree[body_b] >= 0 && (held.body_a == body_b || held.body_b == body_b)) {
    shared = Shared::b;
    sign = held.body_b == body_b ? 1 : -1;
  }
  for (int i = 0; i < 3; ++i)
    normal[i] = sign * held.normal[i];
  return shared;
}

double speed_along(const Model& model, const DynamicsWorkspace& dynamics, const double* link_twist, const Contact& c,
                   const Shape& shape, bool of_a, const double normal[3]) {
  double towards[3];
  for (int i = 0; i < 3; ++i)
    towards[i] = of_a ? -normal[i] : normal[i];
  Contact lowest = c;
  int hint = -1;
  double velocity[3];
  shape_support(shape, towards, lowest.point, hint);
  contact_velocity(model, dynamics, link_twist, lowest, velocity);
  return dot3(normal, velocity);
}

void leave_out_inner_edges(const Model& model, double touching, StepRecord& r, ContactsToCome& buffers) {
  std::vector<Contact>& contacts = r.collision.contacts;
  const auto pair_changes = [](const Contact& x, const Contact& y) { return x.pair != y.pair; };
  if (std::adjacent_find(contacts.begin(), contacts.end(), pair_changes) == contacts.end()) return;

  // One by one: what is left out holds no other one.
  std::vector<Contact>& kept = buffers.kept;
  kept.clear();
  bool any = false;
  for (auto c = contacts.begin(); c != contacts.end(); ++c) {
    double n[3];
    bool edge = false;
    if (!has_ground(model, c->pair)) {
      const EdgeContact at_edge(model, r, *c);
      const auto parts = [&](const Contact& held) { return at_edge.is_parted_by(model, touching, held, n); };
      edge = std::any_of(kept.begin(), kept.end(), parts) || std::any_of(c + 1, contacts.end(), parts);
    }
    if (!edge) {
      kept.push_back(*c);
      continue;
    }

    // What touches the side of that normal instead, unless the pair has it.
    any = true;
    const auto is_known = [&](const Contact& k) { return k.pair == c->pair && has_normal(k, n); };
    if (std::any_of(kept.begin(), kept.end(), is_known) || std::any_of(c + 1, contacts.end(), is_known)) continue;
    find_points_over(model, touching, c->pair, n, r, buffers.over);
    kept.insert(kept.end(), buffers.over.begin(), buffers.over.end());
  }
  if (any) contacts = kept;
}

}  // namespace coulomb
