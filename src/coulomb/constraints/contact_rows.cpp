// Contact rows: three per contact, (t1, t2, n), n from B to A; bias of the normal row: restitution, else speculative or Baumgarte
// (docs/theory.md (S7), (S8)).
#include <algorithm>
#include <cmath>

#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/small_math.hpp"

namespace coulomb {
namespace {

constexpr double rough = 1e5;  // friction: more only loses the digits of what parts a contact, c_N beside mu |c_T|
constexpr double rounding_of_speed = 1e-12;  // m/s: so near to the threshold an approach bounces or does not

double approach_velocity(const RowContext& context, const Contact& contact) {
  double velocity[3] = {0, 0, 0};
  for (const double sign : {1.0, -1.0}) {
    const int body = sign > 0 ? contact.body_a : contact.body_b;
    const double* twist = body_link_twist(context.model, context.twist, body);
    double r[3], w[3];
    relative_point(context.model, context.dynamics, body, contact.point, r);
    cross3(twist + 3, r, w);
    for (int i = 0; i < 3; ++i) velocity[i] += sign * (twist[i] + w[i]);
  }
  return dot3(contact.normal, velocity);
}

}  // namespace

void add_contact_rows(const RowContext& context, const std::vector<Contact>& contacts, ConstraintRows& rows) {
  const Model& model = context.model;
  const BlockType law = context.options.contact == ContactLaw::pyramid ? BlockType::pyramid : BlockType::cone;
  for (int i = 0; i < static_cast<int>(contacts.size()); ++i) {
    const Contact& contact = contacts[i];
    BodyRows b;
    b.row = rows.num_rows, b.block = rows.num_blocks, b.contact = i;
    b.body_a = contact.body_a, b.body_b = contact.body_b;
    copy3(contact.point, b.point_a);
    copy3(contact.point, b.point_b);
    contact_frame(contact.normal, b.axes[0], b.axes[1]);
    copy3(contact.normal, b.axes[2]);
    b.phi[2] = contact.distance;

    const double approach = approach_velocity(context, contact);
    Bias normal = one_sided_bias(context.options, contact.distance);
    const double e = model.pair_restitution[contact.pair];
    if (e > 0 && approach < -context.options.restitution_threshold) {
      b.restitution = e;
      normal = {e * approach, 0, false};
    }
    const double over_threshold = approach + context.options.restitution_threshold;
    if (e > 0 && std::abs(over_threshold) <= rounding_of_speed) normal.corner = true;
    if (b.restitution == 0 && sank(context.options, contact.distance)) {
      const bool rebounds = contact.turns_back && approach < -contact.lift;
      b.restitution = rebounds ? 1 : 0;
      normal = {rebounds ? approach : std::min(normal.value, -contact.lift), 0, false};
    }
    b.dbias_dphi = normal.slope;
    rows.bias.insert(rows.bias.end(), {0.0, 0.0, normal.value});
    rows.compliance.insert(rows.compliance.end(), {0.0, 0.0, model.pair_compliance[contact.pair]});
    rows.weight.insert(rows.weight.end(), 3, model.pair_weight[contact.pair]);

    Block block;
    block.type = law, block.row = b.row, block.size = 3;
    block.facets = 2 * context.options.friction_directions, block.inscribed = context.options.inscribed_polygon;
    block.mu = std::min(model.pair_friction[contact.pair], rough);
    block.speculative = contact.distance > 0;
    block.corner = normal.corner;
    rows.blocks.push_back(block);
    rows.keys.push_back((std::uint64_t(1) << 60) | (std::uint64_t(contact.pair) << 32) |
                        std::uint32_t(contact.feature));
    rows.body_rows.push_back(b);
    rows.num_rows += 3;
    ++rows.num_blocks;
  }
}

}  // namespace coulomb
