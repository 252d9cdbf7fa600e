// friction/<geometry>: Coulomb's coefficient (docs/theory.md (P4)). A pair has the larger of its two (model/scene/materials.hpp), so the
// derivative is that of the geometry whose value counts; at equal values, the pair's first. pair_friction/<geometry>:<geometry>: that of
// a pair with a value of its own. Only sliding contacts feel it:
//   lambda_T = mu lambda_N n, so r = J^T p, s = R p with p = lambda_N n; n of a pyramid: the point of the polygon's feature.
//
// torsional_friction/<geometry>, rolling_friction/<geometry> (m) and pair_...: by the same rule. Their rows J_s = (mu_s / mu) n . (w_A - w_B) are
// as long as the coefficient: r = (J_s^T lambda_s) / mu_s, s = (J_s v+) / mu_s, and -1 / mu of the same for mu, whatever the mode.
#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/contact.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/model/scene/materials.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/parameters/right_hand_side.hpp"
#include "coulomb/solvers/friction_pyramid.hpp"

namespace coulomb {
namespace {

double tangential_length(const BodyRows& b, const double* t) {
  double length = std::hypot(t[0], t[1]);
  for (int k = 3; k < b.size; ++k)
    length = std::hypot(length, t[k]);
  return length;
}

/// Direction of the friction impulse in all tangential rows; without one, against the sliding velocity. False: there is none.
bool friction_direction(const ParameterContext& context, const BodyRows& b, double* n) {
  // Where friction acts, its direction.
  for (int k = 0; k < b.size; ++k)
    n[k] = k == 2 ? 0.0 : context.lambda[b.row + k];
  double length = tangential_length(b, n);

  // Without an impulse, the relative velocity of the bodies along the rows decides.
  if (!(length > 0)) {
    for (int k = 0; k < b.size; ++k)
      n[k] = k == 2 ? 0.0 : -row_velocity(context, b, k);
    length = tangential_length(b, n);
  }
  if (!(length > 0)) return false;
  for (int k = 0; k < b.size; ++k)
    n[k] /= length;
  return true;
}

/// Wrench of a unit impulse along a tangential row.
void add_row_wrench(const BodyRows& b, int k, double p, double* f, double* torque) {
  if (k < 3) {
    axpy3(p, b.axes[k], f);
    return;
  }
  double row[3];
  b.angular_row(k, row);
  axpy3(p, row, torque);
}

/// What the coefficient does at one sliding contact: p = lambda_N n, its force on the bodies, and its compliance.
void add_friction_side(const ParameterContext& context, const BodyRows& b, RightHandSide& out) {
  // The direction n of the friction, row by row: for a pyramid the point of its facet.
  double n[1 + max_tangents] = {};
  const Block& block = context.rows.blocks[b.block];
  if (block.type == BlockType::pyramid) {
    const int facet = context.facets[b.block];
    if (facet < 0) return;
    double of_tangents[max_tangents];
    pyramid_point(block, facet, of_tangents);
    for (int k = 0; k < block.tangents(); ++k)
      n[block.tangent(k) - block.row] = of_tangents[k];
  } else if (!friction_direction(context, b, n)) {
    return;
  }

  double f[3] = {0, 0, 0};
  double torque[3] = {0, 0, 0};
  for (int k = 0; k < b.size; ++k) {
    if (k == 2) continue;
    const double p = context.lambda[b.row + 2] * n[k];
    add_row_wrench(b, k, p, f, torque);
    out.impulses.push_back({b.row + k, p});
    if (!context.rows.compliance.empty()) {
      out.rows.push_back({b.row + k, context.rows.compliance[b.row + k] * p});
    }
  }
  add_contact_force(context, b, f, out);
  if (b.size > 3) add_contact_torque(context, b, torque, out);
}

/// The rows of one kind become longer by `share` of their length: s = share (J v+), r = share (J^T lambda). What remembered impulses add to
/// their velocity becomes less: it belongs to a torque.
void add_longer_rows(const ParameterContext& context, const BodyRows& b, TurningRows which, double share,
                     RightHandSide& out) {
  if (b.size == 3) return;
  double torque[3] = {0, 0, 0};
  for (int k = 3; k < b.size; ++k) {
    if ((b.turning_axis(k) == 2) != (which == TurningRows::torsional)) continue;
    double row[3];
    b.angular_row(k, row);
    axpy3(share * context.lambda[b.row + k], row, torque);
    const double fixed = context.fixed ? context.fixed[b.row + k] : 0.0;
    out.rows.push_back({b.row + k, share * (row_velocity(context, b, k) - fixed)});
  }
  add_contact_torque(context, b, torque, out);
}

bool slides(const ParameterContext& context, const BodyRows& b) {
  return b.contact >= 0 && context.modes[b.block] == Mode::sliding;
}

/// By the pair's coefficient of sliding, which the lengths of the rows that turn are over.
double shorter_by_friction(const Model& m, int pair, TurningRows which) {
  const std::vector<double>& further =
      which == TurningRows::torsional ? m.pair_torsional_friction : m.pair_rolling_friction;
  const double mu = m.pair_friction[pair];
  return further[pair] > 0 && mu > 0 && mu <= rough ? -1 / mu : 0;
}

/// What the coefficient of sliding does at a contact: to its cone, and to the rows that turn.
void add_sliding_side(const ParameterContext& context, const BodyRows& b, RightHandSide& out) {
  if (slides(context, b)) add_friction_side(context, b, out);
  if (b.contact < 0 || b.size == 3 || context.inactive[b.block]) return;
  for (const TurningRows which : {TurningRows::torsional, TurningRows::rolling}) {
    const double share = shorter_by_friction(context.model, context.contacts[b.contact].pair, which);
    if (share != 0) add_longer_rows(context, b, which, share, out);
  }
}

PairMaterial material_of_pair(const Model& m, int pair) {
  return combine_materials(m.geometry_materials[m.pair_a[pair]], m.geometry_materials[m.pair_b[pair]],
                           m.pair_overrides[pair]);
}

class FrictionKind : public ParameterKind {
  const char* name() const override { return "friction"; }
  const char* unit() const override { return "1"; }
  std::vector<ParameterElement> elements(const Model& model) const override { return all_geometries(model, 1); }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    values[0] = model.geometry_friction[e.index];
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    checks::not_negative(what, values[0]);
    model.geometry_friction[e.index] = values[0];
    model.geometry_materials[e.index].friction = values[0];
    refresh_pairs(model);
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    // Contacts of pairs whose larger coefficient is this geometry's.
    const Model& m = context.model;
    for (const BodyRows& b : context.rows.body_rows) {
      if (b.contact < 0 || (b.size == 3 && !slides(context, b))) continue;
      const int pair = context.contacts[b.contact].pair;
      const PairMaterial material = material_of_pair(m, pair);
      if (owns(material.friction_owner, m.pair_a[pair] == e.index, m.pair_b[pair] == e.index))
        add_sliding_side(context, b, out[0]);
    }
  }
  double turning_rows_by(const Model& m, const ParameterElement& e, int pair, TurningRows which) const override {
    const Owner owner = material_of_pair(m, pair).friction_owner;
    return owns(owner, m.pair_a[pair] == e.index, m.pair_b[pair] == e.index) ? shorter_by_friction(m, pair, which) : 0;
  }
};

class PairFrictionKind : public ParameterKind {
  const char* name() const override { return "pair_friction"; }
  const char* unit() const override { return "1"; }
  std::vector<ParameterElement> elements(const Model& model) const override {
    return pairs_with(model, [](const PairOverride& own) { return own.friction.has_value(); });
  }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    values[0] = *model.pair_overrides[e.index].friction;
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    checks::not_negative(what, values[0]);
    model.pair_overrides[e.index].friction = values[0];
    refresh_pairs(model);
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    for (const BodyRows& b : context.rows.body_rows)
      if (b.contact >= 0 && context.contacts[b.contact].pair == e.index) {
        add_sliding_side(context, b, out[0]);
      }
  }
  double turning_rows_by(const Model& m, const ParameterElement& e, int pair, TurningRows which) const override {
    return pair == e.index ? shorter_by_friction(m, pair, which) : 0;
  }
};

// Torsional and rolling friction differ in where their values are.

struct Torsional {
  static constexpr const char* name = "torsional_friction";
  static constexpr const char* pair_name = "pair_torsional_friction";
  static constexpr TurningRows rows = TurningRows::torsional;
  static constexpr int least_condim = least_torsional_condim;
  static constexpr auto of_geometries = &Model::geometry_torsional_friction;
  static constexpr auto of_pairs = &Model::pair_torsional_friction;
  static constexpr auto of_material = &GeometryMaterial::torsional_friction;
  static constexpr auto of_override = &PairOverride::torsional_friction;
  static constexpr auto owner = &PairMaterial::torsional_friction_owner;
};

struct Rolling {
  static constexpr const char* name = "rolling_friction";
  static constexpr const char* pair_name = "pair_rolling_friction";
  static constexpr TurningRows rows = TurningRows::rolling;
  static constexpr int least_condim = rolling_condim;
  static constexpr auto of_geometries = &Model::geometry_rolling_friction;
  static constexpr auto of_pairs = &Model::pair_rolling_friction;
  static constexpr auto of_material = &GeometryMaterial::rolling_friction;
  static constexpr auto of_override = &PairOverride::rolling_friction;
  static constexpr auto owner = &PairMaterial::rolling_friction_owner;
};

/// Contacts of the pair with such rows: these are as long as the coefficient is large.
template <class Of>
void add_turning_sides(const ParameterContext& context, int pair, RightHandSide& out) {
  const double coefficient = (context.model.*Of::of_pairs)[pair];
  if (!(coefficient > 0)) return;
  for (const BodyRows& b : context.rows.body_rows)
    if (b.contact >= 0 && !context.inactive[b.block] && context.contacts[b.contact].pair == pair)
      add_longer_rows(context, b, Of::rows, 1 / coefficient, out);
}

/// Without a row there is nothing to differentiate.
void check_has_rows(const Model& model, int pair, double coefficient, const std::string& what) {
  if (coefficient > 0 || model.pair_friction[pair] == 0) return;
  checks::fail(what, "is 0, where the derivative has one side only: give it a small value");
}

/// <coefficient>/<geometry>, of geometries whose contacts have such rows.
template <class Of>
class TurningFrictionKind : public ParameterKind {
  const char* name() const override { return Of::name; }
  const char* unit() const override { return "m"; }
  std::vector<ParameterElement> elements(const Model& m) const override {
    // Those of the condim by themselves ...
    std::vector<unsigned char> counts(std::size_t(m.num_geometries), 0);
    for (int g = 0; g < m.num_geometries; ++g)
      counts[g] = m.geometry_materials[g].condim >= Of::least_condim;
    std::vector<ParameterElement> out;
    if (std::none_of(counts.begin(), counts.end(), [](unsigned char x) { return x != 0; })) return out;

    // ... or by a partner's, where they have a value.
    for (std::size_t p = 0; p < m.pair_a.size(); ++p)
      if (material_of_pair(m, int(p)).*Of::owner != Owner::none) counts[m.pair_a[p]] = counts[m.pair_b[p]] = 1;
    for (const ParameterElement& e : all_geometries(m, 1))
      if (counts[e.index] && (m.geometry_materials[e.index].*Of::of_material).has_value()) out.push_back(e);
    return out;
  }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    values[0] = (model.*Of::of_geometries)[e.index];
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    checks::not_negative(what, values[0]);
    (model.*Of::of_geometries)[e.index] = values[0];
    model.geometry_materials[e.index].*Of::of_material = values[0];
    refresh_pairs(model);
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    for_each_owned(context.model, e, [&](int pair) { add_turning_sides<Of>(context, pair, out[0]); });
  }
  void check_derivative(const Model& model, const ParameterElement& e, const std::string& what) const override {
    for_each_owned(model, e, [&](int pair) { check_has_rows(model, pair, (model.*Of::of_pairs)[pair], what); });
  }
  double turning_rows_by(const Model& m, const ParameterElement& e, int pair, TurningRows which) const override {
    const double coefficient = (m.*Of::of_pairs)[pair];
    if (which != Of::rows || !(coefficient > 0)) return 0;
    const Owner owner = material_of_pair(m, pair).*Of::owner;
    return owns(owner, m.pair_a[pair] == e.index, m.pair_b[pair] == e.index) ? 1 / coefficient : 0;
  }

  /// Pairs whose larger coefficient is this geometry's.
  template <class Visit>
  void for_each_owned(const Model& m, const ParameterElement& e, Visit visit) const {
    for (int p = 0; p < int(m.pair_a.size()); ++p) {
      if (m.pair_a[p] != e.index && m.pair_b[p] != e.index) continue;
      const Owner owner = material_of_pair(m, p).*Of::owner;
      if (owns(owner, m.pair_a[p] == e.index, m.pair_b[p] == e.index)) visit(p);
    }
  }
};

/// pair_<coefficient>/<geometry>:<geometry>
template <class Of>
class PairTurningFrictionKind : public ParameterKind {
  const char* name() const override { return Of::pair_name; }
  const char* unit() const override { return "m"; }
  std::vector<ParameterElement> elements(const Model& model) const override {
    return pairs_with(model, [](const PairOverride& own) { return (own.*Of::of_override).has_value(); });
  }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    values[0] = *(model.pair_overrides[e.index].*Of::of_override);
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    checks::not_negative(what, values[0]);
    model.pair_overrides[e.index].*Of::of_override = values[0];
    refresh_pairs(model);
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    add_turning_sides<Of>(context, e.index, out[0]);
  }
  void check_derivative(const Model& model, const ParameterElement& e, const std::string& what) const override {
    check_has_rows(model, e.index, (model.*Of::of_pairs)[e.index], what);
  }
  double turning_rows_by(const Model& m, const ParameterElement& e, int pair, TurningRows which) const override {
    const double coefficient = (m.*Of::of_pairs)[pair];
    return which == Of::rows && pair == e.index && coefficient > 0 ? 1 / coefficient : 0;
  }
};

}  // namespace

std::unique_ptr<ParameterKind> make_friction() { return std::make_unique<FrictionKind>(); }
std::unique_ptr<ParameterKind> make_pair_friction() { return std::make_unique<PairFrictionKind>(); }
std::unique_ptr<ParameterKind> make_torsional_friction() { return std::make_unique<TurningFrictionKind<Torsional>>(); }
std::unique_ptr<ParameterKind> make_rolling_friction() { return std::make_unique<TurningFrictionKind<Rolling>>(); }
std::unique_ptr<ParameterKind> make_pair_torsional_friction() {
  return std::make_unique<PairTurningFrictionKind<Torsional>>();
}
std::unique_ptr<ParameterKind> make_pair_rolling_friction() {
  return std::make_unique<PairTurningFrictionKind<Rolling>>();
}

}  // namespace coulomb
