// Where no Jacobian of a step is right (StepDerivatives::ambiguous): ties and corners that the impulses feel, geometry that has no
// derivative, problems with several solutions, and rows that are asked for different motions although they have only one. The last by
// sweeps: z . s of all columns s of the state, or of parameters, is a reverse product with z alone.
#include <algorithm>
#include <cmath>

#include "coulomb/stepping/semi_implicit/step_linearization.hpp"

namespace coulomb {
namespace {

constexpr double negligible = 1e-7;   // of z . s, relative to the largest slope of a bias, and to 1
constexpr double widest_band = 1e-8;  // m, rad, or the parameter's unit: in a wider one differences see the inside
constexpr double near = 1e-6;         // the same: kinks further away are none of this state's

/// Of the rows' biases by their gaps, at least 1.
double largest_slope(const ConstraintRows& rows) {
  double largest = 1;
  for (const BodyRows& b : rows.body_rows)
    largest = std::max(largest, std::abs(b.dbias_dphi));
  for (const DofRow& d : rows.dof_rows)
    largest = std::max(largest, std::abs(d.dbias_dphi));
  return largest;
}

/// What is not a number is beyond any bound.
bool any_beyond(const std::vector<double>& values, double bound) {
  return std::any_of(values.begin(), values.end(), [bound](double x) { return !(std::abs(x) <= bound); });
}

/// Does some column ask for what differences of its derivative feel?
bool is_felt(const std::vector<double>& leftover, double bound, double band) {
  return std::any_of(leftover.begin(), leftover.end(),
                     [&](double x) { return !(std::abs(x) <= bound) && !(band <= widest_band * std::abs(x)); });
}

}  // namespace

/// z . s of the columns of q, then of v (which bounces have), in leftover_.
void StepLinearization::leftover_of_state(const double* z) {
  const int nv = model_->nv;
  still_.assign(nv, 0.0);
  leftover_.assign(2 * std::size_t(nv), 0.0);
  row_derivatives_vjp(row_state(), rows_, {still_.data(), z}, row_sweep_, leftover_.data());
  add_bounce_cotangent(z, leftover_.data() + nv);
  add_correction_cotangents(z, false, leftover_.data(), nullptr, nullptr);
}

/// z . s of the columns of the set's parameters, in leftover_.
void StepLinearization::leftover_of_parameters(const double* z, const ParameterSet& set) {
  still_.assign(model_->nv, 0.0);
  parameter_gradient(set, still_.data(), still_.data(), z, leftover_);
  if (num_bounded_ == 0) return;
  moved_q_.assign(model_->nv, 0.0);
  add_correction_cotangents(z, false, moved_q_.data(), &set, leftover_.data());
}

/// In unresolved_: per row, motions that dependent rows cannot follow, over the distance of the nearest border, so that z . s > 1/near is
/// a kink nearer than that. False: there are none.
bool StepLinearization::find_unresolved() {
  if (has_unresolved_ != Known::unknown) return has_unresolved_ == Known::yes;
  bool any = false;
  unresolved_.assign(record_->rows.num_rows, 0.0);
  const double slope = largest_slope(record_->rows);
  for (int index : record_->islands.order) {
    // Island by island, in the rows of its own problem.
    if (reduced_size(index) == 0) continue;
    const std::vector<int>& rows = island(index).rows;
    if (local_.size() < rows.size()) local_.resize(rows.size());
    double band = 0;
    if (!islands_[index].problem.unresolved(local_.data(), band)) continue;
    any = true;

    // Rounding of the slopes is no motion.
    band = std::max(band, negligible * slope * near);
    for (std::size_t i = 0; i < rows.size(); ++i)
      unresolved_[rows[i]] = local_[i] / band;
  }
  has_unresolved_ = any ? Known::yes : Known::no;
  return any;
}

/// set: of its parameters; null: of the state.
bool StepLinearization::further_is_resolved(int index, const ProblemLinearization::Unresolved& further,
                                            const ParameterSet* set) {
  const std::vector<int>& rows = island(index).rows;
  further_z_.assign(record_->rows.num_rows, 0.0);
  for (std::size_t i = 0; i < rows.size(); ++i)
    further_z_[rows[i]] = further.z[i];

  if (set)
    leftover_of_parameters(further_z_.data(), *set);
  else
    leftover_of_state(further_z_.data());
  return !is_felt(leftover_, negligible * largest_slope(record_->rows), further.band);
}

/// The same of all that the islands' problems have found. set: as above.
bool StepLinearization::all_further_resolved(const ParameterSet* set) {
  for (int index : record_->islands.order) {
    if (island(index).blocks.empty()) continue;
    ProblemLinearization& problem = islands_[index].problem;
    for (int i = 0; i < problem.num_further(); ++i)
      if (!further_is_resolved(index, problem.further(i), set)) return false;
  }
  return true;
}

/// Has the problem of an island where friction can wedge another solution?
bool StepLinearization::chosen_by_memory() {
  wedges_.find(*model_, record_->rows, record_->islands);
  return std::any_of(wedges_.islands().begin(), wedges_.islands().end(), [&](int index) {
    return islands_[index].problem.has_other_solution(wedges_.pairs_of_bodies(record_->islands, index));
  });
}

bool StepLinearization::state_ambiguous() {
  if (ambiguous_ != Known::unknown) return ambiguous_ == Known::yes;
  StepRecord& r = *record_;
  ambiguous_ = Known::yes;

  // Shapes that just touch at the pose to come: contacts, or none.
  if (r.just_touches) return true;

  // Ties and corners that the impulses feel.
  for (int index : r.islands.order) {
    if (island(index).blocks.empty()) continue;
    if (island(index).solution.status == SolveStatus::failed || islands_[index].problem.at_kink()) return true;
  }

  // Corrections at the border of their bounds.
  if (r.corrections.at_kink) return true;
  for (const DofRow& row : r.rows.dof_rows) {
    const Block& block = r.rows.blocks[row.block];
    if (block.type != BlockType::limit && block.corner) return true;
  }
  for (const BodyRows& b : r.rows.body_rows)
    if (b.contact < 0 && r.rows.blocks[b.block].corner) return true;

  // Actuators of tendons that are about to wrap.
  if (r.joint_forces.at_kink) return true;

  // Servos at the bound of their force: on its other side the step has another gain.
  const StepMotion motion{r.gains.rule, options_->constraints.timestep, r.v.data(), r.v_next.data()};
  if (any_clamp_is_tied(*model_, motion, r.joint_forces)) return true;

  // Geometry that has no derivative.
  for (const BodyRows& b : r.rows.body_rows)
    if (b.contact >= 0 && !inactive_[b.block] &&
        (rows_.motions[b.contact].frozen || r.collision.contacts[b.contact].two_normals))
      return true;

  // Rows that are asked for different motions although they have only one.
  if (find_unresolved()) {
    leftover_of_state(unresolved_.data());
    if (any_beyond(leftover_, 1 / near)) return true;
  }
  if (!all_further_resolved(nullptr)) return true;

  // Another solution, which another memory may lead to.
  if (chosen_by_memory()) return true;
  ambiguous_ = Known::no;
  return false;
}

/// The same question about parameters: the last of its reasons.
void StepLinearization::judge_parameters(const ParameterSet& set) {
  ambiguous_parameters_ = false;
  if (find_unresolved()) {
    leftover_of_parameters(unresolved_.data(), set);
    ambiguous_parameters_ = any_beyond(leftover_, 1 / near);
  }
  if (!ambiguous_parameters_) ambiguous_parameters_ = !all_further_resolved(&set);
}

}  // namespace coulomb
