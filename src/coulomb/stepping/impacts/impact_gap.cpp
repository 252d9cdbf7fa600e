#include "coulomb/stepping/impacts/impact_gap.hpp"

#include <algorithm>

#include "coulomb/base/small_math.hpp"
#include "coulomb/constraints/constraint_keys.hpp"
#include "coulomb/constraints/joint_limits.hpp"
#include "coulomb/parameters/parameter_kind.hpp"

namespace coulomb {

/// A problem of one row, by the geometry of the joint's limit or of the contact.
void ImpactGap::build(const Model& model, const ClosingGap& gap, const StepRecord& at,
                      const ConstraintOptions& options) {
  model_ = &model;
  at_ = &at;
  options_ = &options;
  zero_.resize(8 * std::size_t(std::max(model.nv, model.num_bodies)) + 8);
  inactive_.assign(1, 0);
  modes_.assign(1, Mode::sticking);
  rows_.clear();
  contacts_.clear();

  // Its bias is the distance.
  Block block;
  if (gap.joint >= 0) {
    DofRow row = joint_limit(model, gap.joint, gap.upper, at.q.data()).row();
    row.dbias_dphi = 1;
    block.type = BlockType::limit;
    block.size = 1;
    rows_.dof_rows.push_back(row);
    rows_.num_rows = 1;
    index_ = 0;
  } else {
    BodyRows row;
    const Contact& c = gap.contact;
    row.contact = 0;
    row.dbias_dphi = 1;
    row.body_a = c.body_a;
    row.body_b = c.body_b;
    copy3(c.point, row.point_a);
    copy3(c.point, row.point_b);
    contact_frame(c.normal, row.axes[0], row.axes[1]);
    copy3(c.normal, row.axes[2]);
    contacts_.push_back(c);
    rows_.body_rows.push_back(row);
    rows_.num_rows = 3;
    index_ = 2;
  }

  // The only block.
  rows_.blocks.push_back(block);
  rows_.keys.push_back(gap.joint >= 0 ? limit_key(gap.joint, gap.upper)
                                      : contact_key(gap.contact.pair, gap.contact.feature));
  rows_.num_blocks = 1;
  rows_.bias.assign(rows_.num_rows, 0.0);
  rows_.compliance.assign(rows_.num_rows, 0.0);

  // At rest and without impulses the row moves as the gap does.
  const RowState state{model, at.dynamics, rows_, no_velocities(), zero_.data(), zero_.data(), inactive_};
  row_derivatives(state, contacts_, derivatives_);

  // Its dense row.
  const int ld = at.dynamics.ld;
  columns_.assign(std::size_t(rows_.num_rows) * ld, 0.0);
  fill_row_columns(state, derivatives_, RowMatrix(columns_.data(), ld));
  row_.assign(columns_.begin() + std::ptrdiff_t(index_) * ld, columns_.begin() + std::ptrdiff_t(index_ + 1) * ld);
}

/// What the kinds say of that row.
void ImpactGap::parameters(const ParameterSet& set, std::vector<double>& out) {
  // All at rest, and no impulse.
  const double* zero = zero_.data();
  const ParameterContext context{.model = *model_,
                                 .dynamics = at_->dynamics,
                                 .options = *options_,
                                 .rows = rows_,
                                 .contacts = contacts_,
                                 .derivatives = derivatives_,
                                 .inactive = inactive_,
                                 .velocities = no_velocities(),
                                 .body_twist = zero,
                                 .body_twist_plus = zero,
                                 .q = at_->q.data(),
                                 .v = zero,
                                 .u = at_->u.data(),
                                 .v_plus = zero,
                                 .acceleration = zero,
                                 .lambda = zero,
                                 .fext = at_->fext,
                                 .modes = modes_,
                                 .joint_forces = at_->joint_forces};

  out.assign(set.size(), 0.0);
  for (const ParameterSet::Item& item : set.items()) {
    if (int(sides_.size()) < item.element.size) {
      sides_.resize(item.element.size);
    }
    for (int k = 0; k < item.element.size; ++k)
      sides_[k].clear();
    item.kind->right_hand_sides(context, item.element, sides_.data());
    for (int k = 0; k < item.element.size; ++k)
      for (const RightHandSide::Entry& entry : sides_[k].rows)
        if (entry.index == index_) {
          out[item.first + k] += entry.value;
        }
  }
}

}  // namespace coulomb
