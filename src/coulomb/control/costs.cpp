#include "coulomb/control/costs.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "coulomb/base/small_math.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/linalg/dense_blocked.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/rollout/checks.hpp"

namespace coulomb {
namespace {

using Of = CostTerm::Of;
using Shape = CostTerm::Shape;

bool is_orientation(const OutputSet::Item& item) { return item.size == 4 && item.tangent_size == 3; }

/// Does a residual count in this shape?
bool counts(Shape shape, double residual) {
  if (shape == Shape::below) return residual < 0;
  if (shape == Shape::above) return residual > 0;
  return true;
}

/// 1 / (1 + exp(x)), whose slope is -s (1 - s).
double falling(double x) {
  // Only negative numbers are exponentiated: nothing overflows.
  if (x > 0) {
    const double e = std::exp(-x);
    return e / (1 + e);
  }
  const double e = std::exp(x);
  return 1 / (1 + e);
}

/// Three rows, of how a rotation turns, into how its vector changes.
void turn_rows(const double* vector, double* rows, int columns, int ld) {
  double J[9];
  inverse_right_jacobian(vector, J);
  for (int j = 0; j < columns; ++j) {
    double column[3];
    column[0] = rows[j];
    column[1] = rows[ld + j];
    column[2] = rows[2 * ld + j];
    rotate(J, column, column);
    for (int i = 0; i < 3; ++i)
      rows[i * ld + j] = column[i];
  }
}

/// What has no weight may be infinite.
double half_sum(const double* weight, const double* residual, int width, Shape shape) {
  double sum = 0;
  for (int i = 0; i < width; ++i) {
    const double r = residual[i];
    if (weight[i] == 0 || !counts(shape, r)) continue;
    sum += weight[i] * r * r;
  }
  return 0.5 * sum;
}

}  // namespace

CostSum::CostSum(const Model& model, int horizon, int nu) : model_(&model), horizon_(horizon), nu_(nu) {
  // The first of the three dofs of every rotation ...
  for (std::size_t j = 0; j < model.joint_type.size(); ++j) {
    const int first = model.joint_v[j];
    if (model.joint_type[j] == JointType::free) rotations_.push_back(first + 3);
    if (model.joint_type[j] == JointType::ball) rotations_.push_back(first);
  }

  // ... and whether an entry of the state belongs to one.
  rotates_.resize(2 * model.nv);
  for (const int first : rotations_)
    std::fill_n(rotates_.begin() + first, 3, 1);
}

KnotLayout CostSum::layout() const { return {model_->nv, nu_, rates_}; }

CostSum::Sizes CostSum::sizes_of(const CostTerm& term, const OutputSet& set) const {
  if (term.of == Of::outputs) return {set.tangent_size(), set.size()};
  if (term.of == Of::state) return {2 * model_->nv, model_->nq + model_->nv};
  return {nu_, term.of == Of::control ? nu_ : 0};
}

void CostSum::check_weight(const std::string& name, const double* weight, int width) const {
  for (int t = 0; t <= horizon_; ++t) {
    const double* row = weight + std::size_t(t) * width;
    for (int i = 0; i < width; ++i) {
      const double w = row[i];
      if (w >= 0 && std::isfinite(w)) continue;
      const std::string entry = name + "[" + std::to_string(t) + ", " + std::to_string(i) + "]";
      checks::fail(entry, "got " + checks::text(w) + ", expected a finite number that is not negative");
    }
  }
}

void CostSum::check_reference(const std::string& name, const CostTerm& term, const double* reference,
                              const OutputSet& set, int size) const {
  check_finite_rows(name.c_str(), reference, horizon_ + 1, size);
  for (int t = 0; t <= horizon_; ++t) {
    const double* row = reference + std::size_t(t) * size;

    // Rotations must be rotations.
    if (term.of == Of::state) {
      check_configuration(*model_, row, name.c_str());
    }
    for (const OutputSet::Item& item : set.items()) {
      if (term.of != Of::outputs || !is_orientation(item)) continue;
      const double* y = row + item.first;
      const double norm = std::sqrt(y[0] * y[0] + dot3(y + 1, y + 1));
      if (std::abs(norm - 1) <= 1e-6) continue;
      const std::string where = "row " + std::to_string(t) + " of '" + item.sensor.name + "'";
      checks::fail(name, where + " has norm " + checks::text(norm) + ", expected a unit quaternion");
    }
  }
}

void CostSum::add(CostTerm term) {
  // What is read.
  OutputSet set;
  if (term.of == Of::outputs) {
    if (term.outputs.empty()) {
      checks::fail("outputs", "got none, expected names of outputs");
    }
    set = OutputSet(*model_, term.outputs);
    refuse_forces(set, "a cost");
  }

  // What opens and closes it.
  OutputSet gate;
  if (!term.gate.empty()) {
    if (term.of != Of::outputs) {
      checks::fail("gate", "only costs of outputs take a gate");
    }
    gate = OutputSet(*model_, {term.gate});
    refuse_forces(gate, "a gate");
    const OutputSet::Item& item = gate.items().front();
    if (is_orientation(item)) {
      checks::fail("gate", "'" + term.gate + "' is an orientation, expected numbers");
    }
    if (term.gate_row < 0 || term.gate_row >= item.size) {
      const std::string numbers = "'" + term.gate + "' has " + std::to_string(item.size) + " numbers";
      checks::fail("gate_row", "got " + std::to_string(term.gate_row) + ", " + numbers);
    }
    checks::finite("gate_threshold", &term.gate_threshold, 1);
    checks::positive("gate_width", term.gate_width);
  }

  // Weights and references.
  const Sizes sizes = sizes_of(term, set);
  const std::size_t rows = std::size_t(horizon_) + 1;
  const auto check_count = [&](const char* name, std::size_t got, int width) {
    if (got == rows * width) return;
    const std::string shape = std::to_string(rows) + " x " + std::to_string(width);
    checks::fail(name, "got " + std::to_string(got) + " numbers, expected " + shape);
  };
  check_count("weight", term.weight.size(), sizes.width);
  check_weight("weight", term.weight.data(), sizes.width);

  // A reference that is not given: the neutral state, no turn, else zeros.
  if (term.reference.empty()) {
    term.reference.resize(rows * sizes.reference);
    for (std::size_t t = 0; t < rows; ++t) {
      double* row = term.reference.data() + t * sizes.reference;
      if (term.of == Of::state) {
        neutral(*model_, row);
      }
      for (const OutputSet::Item& item : set.items()) {
        if (is_orientation(item)) row[item.first] = 1;
      }
    }
  }
  check_count("reference", term.reference.size(), sizes.reference);
  check_reference("reference", term, term.reference.data(), set, sizes.reference);

  // Room for the largest of all.
  rates_ = rates_ || term.of == Of::control_rate;
  rows_ += set.tangent_size();
  readings_ = std::max({readings_, set.size(), gate.size()});
  width_ = std::max({width_, sizes.width, gate.size()});
  terms_.push_back(std::move(term));
  sizes_.push_back(sizes);
  sets_.push_back(std::move(set));
  gates_.push_back(std::move(gate));
}

void CostSum::set_weight(int index, const double* weight) {
  check_weight("weight", weight, sizes_[index].width);
  std::copy_n(weight, terms_[index].weight.size(), terms_[index].weight.begin());
}

void CostSum::set_reference(int index, const double* reference) {
  CostTerm& term = terms_[index];
  if (term.of == Of::control_rate) {
    checks::fail("reference", "a cost of control rates has no reference");
  }
  check_reference("reference", term, reference, sets_[index], sizes_[index].reference);
  std::copy_n(reference, term.reference.size(), term.reference.begin());
}

void CostSum::fit(Workspace& ws) const {
  const std::size_t nv = model_->nv;

  // Of one term at a time ...
  ws.readings.resize(readings_);
  ws.residual.resize(width_);
  ws.by_q.resize(width_ * nv);
  ws.by_v.resize(width_ * nv);
  ws.gate_by_q.resize(width_ * nv);
  ws.gate_by_v.resize(width_ * nv);

  // ... and of all terms of outputs together.
  ws.rows.resize(std::size_t(rows_) * layout().ld());
  ws.weighted.resize(rows_);
}

bool CostSum::weighs(int index, int t) const {
  const CostTerm& term = terms_[index];
  // After the last knot there are no controls.
  const bool of_controls = term.of == Of::control || term.of == Of::control_rate;
  if (t == horizon_ && of_controls) return false;
  const int width = sizes_[index].width;
  const double* weight = term.weight.data() + std::size_t(t) * width;
  return std::any_of(weight, weight + width, [](double w) { return w != 0; });
}

void CostSum::residual_of_outputs(int index, const Knot& knot, Workspace& ws, bool columns) const {
  const OutputSet& set = sets_[index];
  const CostTerm& term = terms_[index];
  const double* reference = term.reference.data() + std::size_t(knot.t) * sizes_[index].reference;

  // What is read now, and how it changes with the state.
  ws.at.read(set, ws.readings.data());
  if (columns) {
    ws.at.columns(set, ws.by_q.data(), ws.by_v.data());
  }

  for (const OutputSet::Item& item : set.items()) {
    const double* y = ws.readings.data() + item.first;
    const double* wanted = reference + item.first;
    double* r = ws.residual.data() + item.first_tangent;
    if (!is_orientation(item)) {
      for (int i = 0; i < item.size; ++i)
        r[i] = y[i] - wanted[i];
      continue;
    }

    // A rotation's residual is its vector from the reference.
    double turn[4];
    quaternion_conjugate_multiply(wanted, y, turn);
    quaternion_log(turn, r);
    if (!columns) continue;
    const int nv = model_->nv;
    const std::size_t first_entry = std::size_t(item.first_tangent) * nv;
    turn_rows(r, ws.by_q.data() + first_entry, nv, nv);
    turn_rows(r, ws.by_v.data() + first_entry, nv, nv);
  }
}

/// The factor of the weight, in (0, 1); without a gate 1.
double CostSum::gate_value(int index, Workspace& ws) const {
  const CostTerm& term = terms_[index];
  if (term.gate.empty()) return 1;
  ws.at.read(gates_[index], ws.readings.data());
  const double beyond = ws.readings[term.gate_row] - term.gate_threshold;
  return falling(beyond / term.gate_width);
}

void CostSum::residual_of_state(int index, const Knot& knot, Workspace& ws) const {
  const int nv = model_->nv;
  const int nq = model_->nq;
  const CostTerm& term = terms_[index];
  const double* reference = term.reference.data() + std::size_t(knot.t) * sizes_[index].reference;

  // Positions differ on the configuration manifold, velocities as vectors.
  difference(*model_, reference, knot.q, ws.residual.data());
  for (int i = 0; i < nv; ++i)
    ws.residual[nv + i] = knot.v[i] - reference[nq + i];
}

void CostSum::residual_of_controls(int index, const Knot& knot, Workspace& ws) const {
  const CostTerm& term = terms_[index];

  // A rate has no reference: it is that from the controls before.
  const double* from = knot.u_before;
  if (term.of != Of::control_rate) {
    from = term.reference.data() + std::size_t(knot.t) * nu_;
  }

  for (int i = 0; i < nu_; ++i)
    ws.residual[i] = knot.u[i] - from[i];
}

double CostSum::value_of(int index, const Knot& knot, Workspace& ws) const {
  const CostTerm& term = terms_[index];
  const int width = sizes_[index].width;
  const double* weight = term.weight.data() + std::size_t(knot.t) * width;

  // A gate weighs the outputs; where it is shut, they need not be read.
  double factor = 1;
  if (term.of == Of::outputs) {
    factor = gate_value(index, ws);
    if (factor == 0) return 0;
    residual_of_outputs(index, knot, ws, false);
  } else if (term.of == Of::state) {
    residual_of_state(index, knot, ws);
  } else {
    residual_of_controls(index, knot, ws);
  }
  return factor * half_sum(weight, ws.residual.data(), width, term.shape);
}

double CostSum::value(const Knot& knot, Workspace& ws, double* by_term) const {
  double sum = 0;
  ws.at.move_to(knot.q, knot.v);
  for (int i = 0; i < int(terms_.size()); ++i) {
    if (!weighs(i, knot.t)) continue;
    const double value = value_of(i, knot, ws);
    sum += value;
    if (by_term) by_term[i] += value;
  }
  return sum;
}

/// Appends weighted rows: sqrt(w) r' and sqrt(w) r. With a gate s(y), the residual is sqrt(s) r, so that
///   (sqrt(s) r)' = sqrt(s) (r' - r (1 - s) / (2 width) y').
double CostSum::expand_outputs(int index, const Knot& knot, Workspace& ws, int& rows) const {
  const CostTerm& term = terms_[index];
  const int nv = model_->nv;
  const int ld = layout().ld();
  const int width = sizes_[index].width;
  const double* weight = term.weight.data() + std::size_t(knot.t) * width;

  // The gate, and the row of its Jacobian.
  const double open = gate_value(index, ws);
  if (open == 0) return 0;
  const double* gate_q = nullptr;
  const double* gate_v = nullptr;
  double slope = 0;
  if (!term.gate.empty()) {
    ws.at.columns(gates_[index], ws.gate_by_q.data(), ws.gate_by_v.data());
    gate_q = ws.gate_by_q.data() + std::size_t(term.gate_row) * nv;
    gate_v = ws.gate_by_v.data() + std::size_t(term.gate_row) * nv;
    slope = (1 - open) / (2 * term.gate_width);
  }

  // A row for every entry that counts.
  residual_of_outputs(index, knot, ws, true);
  for (int i = 0; i < width; ++i) {
    const double r = ws.residual[i];
    if (weight[i] == 0 || !counts(term.shape, r)) continue;
    const double scale = std::sqrt(weight[i] * open);
    const double* by_q = ws.by_q.data() + std::size_t(i) * nv;
    const double* by_v = ws.by_v.data() + std::size_t(i) * nv;
    double* row = ws.rows.data() + std::size_t(rows) * ld;
    for (int j = 0; j < nv; ++j) {
      const double by_gate_q = gate_q ? r * slope * gate_q[j] : 0;
      const double by_gate_v = gate_v ? r * slope * gate_v[j] : 0;
      row[j] = scale * (by_q[j] - by_gate_q);
      row[nv + j] = scale * (by_v[j] - by_gate_v);
    }
    ws.weighted[rows] = scale * r;
    ++rows;
  }
  return open * half_sum(weight, ws.residual.data(), width, term.shape);
}

double CostSum::expand_state(int index, const Knot& knot, Workspace& ws, double* g, double* H) const {
  const int width = sizes_[index].width;
  const int ld = layout().ld();
  const CostTerm& term = terms_[index];
  const double* weight = term.weight.data() + std::size_t(knot.t) * width;
  const Shape shape = term.shape;
  residual_of_state(index, knot, ws);
  const double* r = ws.residual.data();
  const auto matters = [&](int i) { return weight[i] != 0 && counts(shape, r[i]); };

  // The Jacobian is the identity but on rotations.
  for (int i = 0; i < width; ++i) {
    if (rotates_[i] || !matters(i)) continue;
    g[i] += weight[i] * r[i];
    H[std::size_t(i) * ld + i] += weight[i];
  }

  // A rotation's residual turns with J: g += J^T w r, H += J^T w J.
  for (const int first : rotations_) {
    double J[9];
    inverse_right_jacobian(r + first, J);
    for (int k = 0; k < 3; ++k) {
      if (!matters(first + k)) continue;
      for (int i = 0; i < 3; ++i) {
        const double scaled = weight[first + k] * J[3 * k + i];
        g[first + i] += scaled * r[first + k];
        double* row = H + std::size_t(first + i) * ld + first;
        for (int j = 0; j < 3; ++j)
          row[j] += scaled * J[3 * k + j];
      }
    }
  }
  return half_sum(weight, r, width, shape);
}

double CostSum::expand_controls(int index, const Knot& knot, Workspace& ws, double* g, double* H) const {
  const KnotLayout at = layout();
  const CostTerm& term = terms_[index];
  const double* weight = term.weight.data() + std::size_t(knot.t) * nu_;
  residual_of_controls(index, knot, ws);
  for (int i = 0; i < nu_; ++i) {
    const double r = ws.residual[i];
    if (weight[i] == 0 || !counts(term.shape, r)) continue;

    // By the control itself.
    const std::size_t own = std::size_t(at.nx()) + i;
    g[own] += weight[i] * r;
    H[own * at.ld() + own] += weight[i];
    if (term.of != Of::control_rate) continue;

    // And by the control before.
    const std::size_t before = std::size_t(2 * at.nv) + i;
    g[before] -= weight[i] * r;
    H[before * at.ld() + before] += weight[i];
    H[before * at.ld() + own] -= weight[i];
    H[own * at.ld() + before] -= weight[i];
  }
  return half_sum(weight, ws.residual.data(), nu_, term.shape);
}

double CostSum::expand(const Knot& knot, Workspace& ws, double* g, double* H) const {
  const KnotLayout at = layout();
  std::fill_n(g, at.nz(), 0.0);
  std::fill_n(H, std::size_t(at.nz()) * at.ld(), 0.0);
  ws.at.move_to(knot.q, knot.v);

  // States and controls add to g and H at once, outputs leave rows.
  double sum = 0;
  int rows = 0;
  for (int i = 0; i < int(terms_.size()); ++i) {
    if (!weighs(i, knot.t)) continue;
    const Of of = terms_[i].of;
    if (of == Of::outputs) {
      sum += expand_outputs(i, knot, ws, rows);
    }
    if (of == Of::state) {
      sum += expand_state(i, knot, ws, g, H);
    }
    if (of == Of::control || of == Of::control_rate) {
      sum += expand_controls(i, knot, ws, g, H);
    }
  }

  // All outputs at once: g += rows^T weighted, H += rows^T rows.
  const int nx = 2 * at.nv;
  for (int i = 0; i < rows; ++i) {
    const double r = ws.weighted[i];
    const double* row = ws.rows.data() + std::size_t(i) * at.ld();
    for (int j = 0; j < nx; ++j)
      g[j] += r * row[j];
  }
  dense::add_product(1, ws.rows.data(), 1, at.ld(), ws.rows.data(), at.ld(), H, at.ld(), nx, rows, nx);
  return sum;
}

void CostSum::turn_into(const double* gap, const KnotLayout& at, double* F) const {
  for (const int first : rotations_) {
    const double* turn = gap + first;
    if (turn[0] == 0 && turn[1] == 0 && turn[2] == 0) continue;
    turn_rows(turn, F + std::size_t(first) * at.ld(), at.nz(), at.ld());
  }
}

}  // namespace coulomb
