#include "coulomb/stepping/semi_implicit/contacts_ahead.hpp"

#include <algorithm>
#include <vector>

#include "coulomb/base/small_math.hpp"
#include "coulomb/stepping/impacts/impact_contact.hpp"
#include "coulomb/stepping/step_options.hpp"
#include "coulomb/stepping/step_record.hpp"
#include "coulomb/stepping/step_workspace.hpp"

namespace coulomb {

void follow_bodies(const Model& model, double duration, const DynamicsWorkspace& dynamics, const double* link_twist,
                   std::vector<double>& travels) {
  for (const int b : model.moving_bodies) {
    const double* twist = body_link_twist(model, link_twist, b);
    double arm[3];
    double velocity[3];
    relative_point(model, dynamics, b, &dynamics.body_position[3 * b], arm);
    copy3(twist, velocity);
    add_cross3(twist + 3, arm, velocity);

    double* travel = &travels[6 * b];
    for (int i = 0; i < 3; ++i) {
      travel[i] = duration * velocity[i];
      travel[3 + i] = duration * twist[3 + i];
    }
  }
}

void detect_contacts_ahead(const Model& model, const StepOptions& options, StepWorkspace& workspace,
                           CollisionCache& cache, StepRecord& r) {
  const double h = options.constraints.timestep;
  const double duration = steps_ahead * h;
  const double bouncing = options.constraints.restitution_threshold;

  // All pairs that the free velocity could bring together.
  link_twists(model, r.dynamics, r.v_free.data(), r.twist.data());
  follow_bodies(model, duration, r.dynamics, r.twist.data(), workspace.travel);
  detect_contacts(model, r.dynamics.body_position.data(), r.dynamics.body_rotation.data(), options.collision, cache,
                  r.collision, workspace.travel.data());

  // Beyond the margin: what closes as far as its bias lets it ...
  auto& contacts = r.collision.contacts;
  const auto is_ahead = [&](const Contact& c) { return c.distance > model.pair_margin[c.pair]; };
  const auto room = [&](const Contact& c) {
    const double gap = c.distance - model.pair_penalty[c.pair].margin;
    return std::min(gap, h * one_sided_bias(options.constraints, gap).value);
  };
  const auto stays_open = [&](const Contact& c) {
    return is_ahead(c) && !(room(c) <= -duration * normal_velocity(model, r, c));
  };
  contacts.erase(std::remove_if(contacts.begin(), contacts.end(), stays_open), contacts.end());

  // ... within the step, where the bodies will be ...
  CollisionCache* const memory = options.collision.frozen_cache ? nullptr : &cache;
  const auto unite = [&]() {
    if (unite_faces(model, memory, r.collision, workspace.united))
      contacts.erase(std::remove_if(contacts.begin(), contacts.end(), stays_open), contacts.end());
  };
  unite();
  if (judge_contacts_to_come(model, options, r, workspace.to_come)) unite();

  // ... and does not bounce.
  const auto may_bounce = [&](const Contact& c) { return is_ahead(c) && model.pair_restitution[c.pair] > 0; };
  if (std::none_of(contacts.begin(), contacts.end(), may_bounce)) return;
  link_twists(model, r.dynamics, r.v.data(), r.twist.data());
  const auto bounces = [&](const Contact& c) { return may_bounce(c) && normal_velocity(model, r, c) < -bouncing; };
  contacts.erase(std::remove_if(contacts.begin(), contacts.end(), bounces), contacts.end());
}

}  // namespace coulomb
