// Contact rows: three per contact, (t1, t2, n), n from B to A. Bias of the normal row: restitution, else speculative or Baumgarte
// (docs/theory.md (S7), (S8)); of a soft contact its spring and dashpot (S9).
//
// Torsional and rolling friction add rows on the difference of angular velocities, l_s n, and l_r t1, l_r t2. Their lengths l are the
// coefficients over that of sliding, so that one cone holds all of friction (C19).
#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/contact.hpp"
#include "coulomb/constraints/constraint_keys.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/constraints/one_sided_spring.hpp"
#include "coulomb/model.hpp"

namespace coulomb {
namespace {

// m/s: so near to the threshold an approach bounces or does not
constexpr double rounding_of_speed = 1e-12;

/// The rows' geometry; their law is not known yet. margin: the distance where it begins.
BodyRows rows_of_contact(const Contact& contact, int index, double margin, const ConstraintRows& rows) {
  BodyRows b;
  b.row = rows.num_rows;
  b.block = rows.num_blocks;
  b.contact = index;
  b.body_a = contact.body_a;
  b.body_b = contact.body_b;
  copy3(contact.point, b.point_a);
  copy3(contact.point, b.point_b);
  contact_frame(contact.normal, b.axes[0], b.axes[1]);
  copy3(contact.normal, b.axes[2]);
  b.phi[2] = contact.distance - margin;
  return b;
}

/// What the normal row of a rigid contact asks for, (S7) or, where it bounces, (S8); sets b.restitution.
Bias rigid_bias(const RowContext& context, const Contact& contact, BodyRows& b) {
  // Another point of a pair that comes back without end.
  if (contact.stops && context.options.gaps == GapRule::impact) return {};

  // Before the step; negative: they approach.
  const double approach = normal_velocity(context.model, context.dynamics, context.twist, contact);
  Bias normal = one_sided_bias(context.options, contact.distance);

  // Fast approaches bounce; at the threshold itself two derivatives meet.
  const double e = context.model.pair_restitution[contact.pair];
  if (e > 0 && approach < -context.options.restitution_threshold) {
    b.restitution = e;
    normal = {e * approach, 0, false};
  }
  const double over_threshold = approach + context.options.restitution_threshold;
  if (e > 0 && std::abs(over_threshold) <= rounding_of_speed) {
    normal.corner = true;
  }

  // What has sunk while it was held is lifted out, or turned back if it comes faster than that.
  if (b.restitution == 0 && sank(context.options, contact.distance)) {
    const bool rebounds = contact.turns_back && approach < -contact.lift;
    b.restitution = rebounds ? 1 : 0;
    normal = {rebounds ? approach : std::min(normal.value, -contact.lift), 0, false};
  }
  return normal;
}

/// The law of the normal row: R and beta.
SpringRow normal_row(const RowContext& context, const Contact& contact, BodyRows& b) {
  const Model& model = context.model;
  const double phi = b.phi[2];
  if (const auto spring = contact_spring(model.pair_penalty[contact.pair], phi)) {
    if (spring->inertia > 0) b.approach = normal_velocity(model, context.dynamics, context.twist, contact);
    const SpringRow row = spring_row(*spring, context.options.timestep, phi, b.approach);
    b.restitution = row.bounce;
    return row;
  }
  return {.compliance = model.pair_compliance[contact.pair], .bias = rigid_bias(context, contact, b)};
}

/// Rows beyond sliding, where the pair has them: they need friction.
void add_turning_rows(const Model& model, int pair, Block& block, BodyRows& b, ConstraintRows& rows) {
  const double torsional = model.pair_torsional_friction[pair];
  const double rolling = model.pair_rolling_friction[pair];
  if ((torsional == 0 && rolling == 0) || block.mu == 0) return;
  b.torsion = torsional / block.mu;
  b.rolling = rolling / block.mu;

  // They ask for no velocity, as sliding does.
  const auto add = [&](int count, double weight) {
    b.size += count;
    rows.bias.insert(rows.bias.end(), count, 0.0);
    rows.compliance.insert(rows.compliance.end(), count, 0.0);
    rows.weight.insert(rows.weight.end(), count, weight);
  };
  if (b.torsion > 0) add(1, model.pair_torsional_weight[pair]);
  if (b.rolling > 0) add(2, model.pair_rolling_weight[pair]);
  block.size = b.size;
}

}  // namespace

void add_contact_rows(const RowContext& context, const std::vector<Contact>& contacts, ConstraintRows& rows) {
  const Model& model = context.model;
  const BlockType law = context.options.contact == ContactLaw::pyramid ? BlockType::pyramid : BlockType::cone;
  for (int i = 0; i < int(contacts.size()); ++i) {
    const Contact& contact = contacts[i];
    BodyRows b = rows_of_contact(contact, i, model.pair_penalty[contact.pair].margin, rows);
    const SpringRow normal = normal_row(context, contact, b);
    b.dbias_dphi = normal.bias.slope;

    // Friction asks for no velocity and has no compliance.
    rows.bias.insert(rows.bias.end(), {0.0, 0.0, normal.bias.value});
    rows.compliance.insert(rows.compliance.end(), {0.0, 0.0, normal.compliance});
    rows.weight.insert(rows.weight.end(), 3, model.pair_weight[contact.pair]);

    Block block;
    block.type = law;
    block.row = b.row;
    block.size = 3;
    block.facets = 2 * context.options.friction_directions;
    block.inscribed = context.options.inscribed_polygon;
    block.mu = std::min(model.pair_friction[contact.pair], rough);
    block.speculative = b.phi[2] > 0;
    block.corner = normal.bias.corner;
    add_turning_rows(model, contact.pair, block, b, rows);
    rows.blocks.push_back(block);

    // Known from step to step by its pair and the features that touch.
    rows.keys.push_back(contact_key(contact.pair, contact.feature));
    rows.body_rows.push_back(b);
    rows.num_rows += b.size;
    ++rows.num_blocks;
  }
}

}  // namespace coulomb
