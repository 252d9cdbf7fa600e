#include "coulomb/stepping/impacts/impact_path.hpp"

#include <algorithm>

#include "coulomb/model.hpp"

namespace coulomb {
namespace {

constexpr double still =
    1e-3;  // x_0, rad/s (m/s): rounding turns nothing as fast, and what turns as slowly has no energy to speak of

/// How much of a held tree's translation moves with the velocity at the end.
struct Turning {
  int first, end;    ///< the tree's dofs
  int others;        ///< the first that is no translation of its free joint
  double share = 0;  ///< s
  double slope = 0;  ///< ds / d(x^2)
  Turning(const Model& model, int tree, const double* v)
      : first(model.tree_first_dof[tree]), end(model.tree_first_dof[tree + 1]), others(first) {
    const int root = model.dof_joint[first];
    if (model.joint_type[root] == JointType::free) {
      others += 3;
    }
    double square = 0;
    for (int d = others; d < end; ++d)
      square += v[d] * v[d];
    const double sum = square + still * still;
    share = square / sum;
    slope = still * still / (sum * sum);
  }
};

/// Calls visit with the Turning of every tree that is held.
template <class Visit>
void for_each_held(const Model& model, const ImpactPhase& phase, Visit visit) {
  for (int tree = 0; tree < model.num_trees; ++tree)
    if (phase.rules[tree] == TreeRule::held) {
      visit(Turning(model, tree, phase.v.data()));
    }
}

}  // namespace

void set_path(const Model& model, const std::vector<double>& a, ImpactPhase& phase) {
  phase.path = a;
  for_each_held(model, phase, [&](const Turning& t) {
    for (int d = t.first; d < t.others; ++d)
      phase.path[d] += t.share * a[d];
    for (int d = t.others; d < t.end; ++d)
      phase.path[d] += a[d];
  });
}

void path_acceleration_tangents(const Model& model, const ImpactPhase& phase, const std::vector<double>& a,
                                const double* dv_T, const double* da_T, int count, int ld, double* dr_T) {
  std::copy_n(da_T, std::size_t(count) * ld, dr_T);
  for_each_held(model, phase, [&](const Turning& t) {
    for (std::size_t row = 0; row < std::size_t(count) * ld; row += ld) {
      const double* dv = dv_T + row;
      double* dr = dr_T + row;
      double dsquare = 0;
      for (int d = t.others; d < t.end; ++d) {
        dsquare += 2 * phase.v[d] * dv[d];
        dr[d] *= 2;
      }
      for (int d = t.first; d < t.others; ++d)
        dr[d] += t.share * dr[d] + t.slope * dsquare * a[d];
    }
  });
}

void path_acceleration_cotangent(const Model& model, const ImpactPhase& phase, const std::vector<double>& a,
                                 const double* r_bar, double* v_bar, double* a_bar) {
  for (int d = 0; d < model.nv; ++d)
    a_bar[d] += r_bar[d];
  for_each_held(model, phase, [&](const Turning& t) {
    double of_square = 0;
    for (int d = t.first; d < t.others; ++d) {
      of_square += t.slope * a[d] * r_bar[d];
      a_bar[d] += t.share * r_bar[d];
    }
    for (int d = t.others; d < t.end; ++d) {
      v_bar[d] += 2 * of_square * phase.v[d];
      a_bar[d] += r_bar[d];
    }
  });
}

}  // namespace coulomb
