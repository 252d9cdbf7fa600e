#include "coulomb/stepping/impacts/impact_path.hpp"

#include <algorithm>

#include "coulomb/model.hpp"

namespace coulomb {
namespace {

constexpr double still =
    1e-3;  // x_0, rad/s: rounding turns nothing as fast, and what turns as slowly has no energy to speak of

/// Whether a tree is one free body: three translations, three rotations.
bool is_free_body(const Model& model, int tree) {
  const int first = model.tree_first_dof[tree];
  return model.tree_first_dof[tree + 1] - first == 6 && model.joint_type[model.dof_joint[first]] == JointType::free;
}

/// How much of the translations of an island's free bodies moves with the velocity at the end: s, and ds / d(x^2).
struct Turning {
  double share = 1;
  double slope = 0;
  Turning(const Model& model, const Island& island, const double* v) {
    double square = 0;
    for (const int tree : island.trees) {
      // What is joined to other bodies moves with the velocity at the end, and what it touches with it.
      if (!is_free_body(model, tree)) return;
      const int first = model.tree_first_dof[tree];
      for (int d = first + 3; d < first + 6; ++d)
        square += v[d] * v[d];
    }
    const double sum = square + still * still;
    share = square / sum;
    slope = still * still / (sum * sum);
  }
};

/// Calls visit with every island that has a held tree, and its Turning.
template <class Visit>
void for_each_held(const Model& model, const Islands& islands, const ImpactPhase& phase, Visit visit) {
  for (const int index : islands.order) {
    const Island& island = islands.pool[index];
    const auto is_held = [&](int tree) { return phase.rules[tree] == TreeRule::held; };
    if (std::any_of(island.trees.begin(), island.trees.end(), is_held)) {
      visit(island, Turning(model, island, phase.v.data()));
    }
  }
}

/// Calls visit(first, first of what is no such translation, end) with the dofs of every held tree of an island.
template <class Visit>
void for_each_tree(const Model& model, const Island& island, const ImpactPhase& phase, const Turning& t, Visit visit) {
  for (const int tree : island.trees) {
    if (phase.rules[tree] != TreeRule::held) continue;
    const int first = model.tree_first_dof[tree];
    visit(first, t.share < 1 ? first + 3 : first, model.tree_first_dof[tree + 1]);
  }
}

}  // namespace

void set_path(const Model& model, const StepRecord& record, ImpactPhase& phase) {
  const std::vector<double>& a = record.acceleration;
  phase.path = a;
  for_each_held(model, record.islands, phase, [&](const Island& island, const Turning& t) {
    for_each_tree(model, island, phase, t, [&](int first, int others, int end) {
      for (int d = first; d < others; ++d)
        phase.path[d] += t.share * a[d];
      for (int d = others; d < end; ++d)
        phase.path[d] += a[d];
    });
  });
}

void path_acceleration_tangents(const Model& model, const ImpactPhase& phase, const StepRecord& record,
                                const PathChanges& changes, double* dr_T) {
  const std::vector<double>& a = record.acceleration;
  const std::size_t size = std::size_t(changes.count) * changes.ld;
  std::copy_n(changes.da_T, size, dr_T);
  for_each_held(model, record.islands, phase, [&](const Island& island, const Turning& t) {
    for (std::size_t row = 0; row < size; row += changes.ld) {
      const double* dv = changes.dv_T + row;
      double* dr = dr_T + row;

      // The change of x^2, of all bodies of the island.
      double dsquare = 0;
      if (t.share < 1)
        for (const int tree : island.trees)
          for (int d = model.tree_first_dof[tree] + 3; d < model.tree_first_dof[tree] + 6; ++d)
            dsquare += 2 * phase.v[d] * dv[d];
      for_each_tree(model, island, phase, t, [&](int first, int others, int end) {
        for (int d = first; d < others; ++d)
          dr[d] += t.share * dr[d] + t.slope * dsquare * a[d];
        for (int d = others; d < end; ++d)
          dr[d] *= 2;
      });
    }
  });
}

void path_acceleration_cotangent(const Model& model, const ImpactPhase& phase, const StepRecord& record,
                                 const double* r_bar, double* v_bar, double* a_bar) {
  const std::vector<double>& a = record.acceleration;
  for (int d = 0; d < model.nv; ++d)
    a_bar[d] += r_bar[d];
  for_each_held(model, record.islands, phase, [&](const Island& island, const Turning& t) {
    double of_square = 0;
    for_each_tree(model, island, phase, t, [&](int first, int others, int end) {
      for (int d = first; d < others; ++d) {
        of_square += t.slope * a[d] * r_bar[d];
        a_bar[d] += t.share * r_bar[d];
      }
      for (int d = others; d < end; ++d)
        a_bar[d] += r_bar[d];
    });

    // x^2 is that of all bodies of the island.
    if (t.share < 1)
      for (const int tree : island.trees)
        for (int d = model.tree_first_dof[tree] + 3; d < model.tree_first_dof[tree] + 6; ++d)
          v_bar[d] += 2 * of_square * phase.v[d];
  });
}

}  // namespace coulomb
