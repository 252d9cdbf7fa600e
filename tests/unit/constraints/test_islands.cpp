// Islands: found as by brute force; a scene of several has the bits of each one simulated alone; a hard one disturbs no other.
#include "coulomb/constraints/islands.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "check.hpp"
#include "coulomb/linalg/dense_kernels.hpp"
#include "coulomb/scene.hpp"
#include "coulomb/simulator.hpp"
#include "coulomb/solvers/delassus.hpp"
#include "coulomb/stepping/step_record.hpp"
#include "random_model.hpp"

namespace {

using namespace coulomb;
using test::Random;

// --- union-find -------------------------------------------------------------------------------------------------------------

std::shared_ptr<const Model> separate_boxes(int count) {
  Scene scene;
  scene.add_ground();
  for (int i = 0; i < count; ++i) {
    ShapeOptions box;
    box.mass = 1, box.position = {double(i), 0, 0.1}, box.fixed = i % 5 == 4;
    scene.add_box({0.2, 0.2, 0.2}, box);
  }
  return scene.build();
}

ConstraintRows random_rows(const Model& m, int count, Random& random) {
  ConstraintRows rows;
  const auto add_block = [&](int size) {
    rows.blocks.push_back({BlockType::equality, rows.num_rows, size, 0, 0, false});
    rows.num_rows += size;
    return rows.num_blocks++;
  };
  for (int i = 0; i < count; ++i) {
    if (random.integer(0, 2) == 0) {
      DofRow row;
      row.row = rows.num_rows, row.num = random.integer(1, 2);
      for (int k = 0; k < row.num; ++k) row.dof[k] = random.integer(0, m.nv - 1);
      row.block = add_block(1);
      rows.dof_rows.push_back(row);
    } else {
      BodyRows b;
      b.row = rows.num_rows, b.size = random.integer(0, 1) ? 3 : 6;
      b.body_a = random.integer(0, m.num_bodies - 1), b.body_b = random.integer(0, m.num_bodies - 1);
      b.block = add_block(b.size);
      rows.body_rows.push_back(b);
    }
  }
  return rows;
}

/// The trees that a block moves.
std::vector<std::vector<int>> moved_trees(const Model& m, const ConstraintRows& rows) {
  std::vector<std::vector<int>> out(rows.num_blocks);
  const auto add = [&](int block, int tree) {
    if (tree >= 0) out[block].push_back(tree);
  };
  for (const BodyRows& b : rows.body_rows) add(b.block, m.body_tree[b.body_a]), add(b.block, m.body_tree[b.body_b]);
  for (const DofRow& d : rows.dof_rows)
    for (int k = 0; k < d.num; ++k) add(d.block, m.body_tree[m.dof_body[d.dof[k]]]);
  return out;
}

void test_search(std::uint64_t seed) {
  Random random(seed);
  const auto model = separate_boxes(20);
  const Model& m = *model;
  Islands islands(m);
  for (int repetition = 0; repetition < 5; ++repetition) {
    const ConstraintRows rows = random_rows(m, random.integer(0, 12), random);
    const auto moved = moved_trees(m, rows);
    islands.find(m, rows);

    // brute force: the smallest tree that is reached
    std::vector<int> label(m.num_trees);
    for (int t = 0; t < m.num_trees; ++t) label[t] = t;
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& trees : moved)
        for (int s : trees)
          for (int t : trees)
            if (label[s] < label[t]) label[t] = label[s], changed = true;
    }
    for (int t = 0; t < m.num_trees; ++t) CHECK(islands.of_tree(t) == label[t]);
    CHECK(std::is_sorted(islands.order.begin(), islands.order.end()));

    // what the islands hold is everything, once, in order
    std::vector<int> trees, row_count(rows.num_rows), block_count(rows.num_blocks);
    int dofs = 0;
    for (int index : islands.order) {
      const Island& island = islands.pool[index];
      CHECK(std::is_sorted(island.trees.begin(), island.trees.end()));
      CHECK(std::is_sorted(island.blocks.begin(), island.blocks.end()));
      CHECK(std::is_sorted(island.rows.begin(), island.rows.end()));
      for (int tree : island.trees) trees.push_back(tree);
      for (int row : island.rows) ++row_count[row];
      for (int block : island.blocks) {
        ++block_count[block];
        CHECK(islands.of_block(block) == index && island.blocks[islands.block_index[block]] == block);
        CHECK(moved[block].empty() ? index == m.num_trees : label[moved[block][0]] == index);
      }
      dofs += island.num_dofs();
    }
    std::sort(trees.begin(), trees.end());
    for (int t = 0; t < m.num_trees; ++t) CHECK(trees[t] == t);
    for (int count : row_count) CHECK(count == 1);
    for (int count : block_count) CHECK(count == 1);
    CHECK(dofs == m.nv && static_cast<int>(trees.size()) == m.num_trees);
  }
}

// --- steps --------------------------------------------------------------------------------------------------------------------

constexpr int num_groups = 4;

/// Adds one group of bodies, an island or more of its own: a box that slides, a stack, a bouncing ball, two boxes side by side.
void add_group(int group, Scene& scene) {
  ShapeOptions shape;
  shape.mass = 1.0 + 0.25 * group, shape.friction = 0.4;
  const auto box = [&](double x, double z) {
    shape.position = {x, 3.0 * group, z};
    scene.add_box({0.2, 0.2, 0.2}, shape);
  };
  if (group == 0) box(0, 0.1);
  if (group == 1) box(0, 0.1), box(0.03, 0.3), box(-0.02, 0.5);
  if (group == 2) {
    shape.position = {0, 3.0 * group, 0.11}, shape.restitution = 0.6;
    scene.add_sphere(0.1, shape);
  }
  if (group == 3) box(0, 0.1), box(0.1999, 0.1);
}

std::shared_ptr<const Model> groups(const std::vector<int>& wanted) {
  Scene scene;
  scene.add_ground({.friction = 0.6});
  for (int group : wanted) add_group(group, scene);
  return scene.build();
}

/// Velocities of a body depend on the group and the dof alone.
std::vector<double> start_velocity(const std::vector<int>& wanted) {
  const int bodies[num_groups] = {1, 3, 1, 2};
  std::vector<double> v;
  for (int group : wanted)
    for (int d = 0; d < 6 * bodies[group]; ++d) v.push_back(0.3 * std::sin(1 + 7 * group + d));
  return v;
}

void test_alone_or_together() {
  const std::vector<int> all{0, 1, 2, 3};
  const auto together = groups(all);
  Simulator sim(together, {.timestep = 2e-3});
  State state{together->q_neutral, start_velocity(all)};
  std::vector<std::vector<double>> path;
  std::vector<double> dq, dv;
  std::vector<StepCotangent> cotangents;
  const std::vector<double> ones(together->nv, 1.0);
  std::size_t most = 0;
  for (int i = 0; i < 100; ++i) {
    sim.step(state);
    path.push_back(state.v);
    cotangents.push_back(sim.vjp(ones.data(), ones.data()));
    most = std::max(most, sim.record().islands.order.size());
  }
  CHECK(most >= 4);

  int first = 0;
  for (int group : all) {
    const auto model = groups({group});
    Simulator alone(model, {.timestep = 2e-3});
    State own{model->q_neutral, start_velocity({group})};
    bool same = true;
    for (int i = 0; i < 100; ++i) {
      alone.step(own);
      const StepCotangent g = alone.vjp(ones.data(), ones.data());
      for (int d = 0; d < model->nv; ++d)
        same = same && own.v[d] == path[i][first + d] && g.q[d] == cotangents[i].q[first + d] &&
               g.v[d] == cotangents[i].v[first + d];
    }
    CHECK(same);
    CHECK(alone.status().converged);
    first += model->nv;
  }
}

// The last body is welded to two places at once.
void test_hard_island() {
  const std::vector<int> all{0, 1, 2, 3};
  const auto model = groups(all);
  auto hard = std::make_shared<Model>(*model);
  for (double x : {0.0, 1.0}) {
    Equality weld;
    weld.type = EqualityType::weld;
    weld.body_a = hard->num_bodies - 1, weld.pos_b = {x, 9, 0.5};
    hard->equalities.push_back(weld);
    hard->equality_weight.insert(hard->equality_weight.end(), 2, 1.0);
  }
  Simulator easy_sim(model, {.timestep = 2e-3}), hard_sim(hard, {.timestep = 2e-3});
  State easy_state{model->q_neutral, start_velocity(all)}, hard_state = easy_state;
  const std::vector<double> ones(model->nv, 1.0);
  const int others = model->nv - 12;  // group 3 is two bodies
  bool same = true, solved = true;
  for (int i = 0; i < 20; ++i) {
    easy_sim.step(easy_state), hard_sim.step(hard_state);
    const StepCotangent g = easy_sim.vjp(ones.data(), ones.data()), h = hard_sim.vjp(ones.data(), ones.data());
    for (int d = 0; d < others; ++d)
      same = same && easy_state.v[d] == hard_state.v[d] && g.q[d] == h.q[d] && g.v[d] == h.v[d];
    solved = solved && hard_sim.status().converged;
    CHECK(easy_sim.status().converged);
  }
  CHECK(same);
  CHECK(!solved);  // it is hard
}

// G of the factored form, against its definition.
void test_delassus() {
  const auto model = groups({0, 1, 2, 3});
  Simulator sim(model, {.timestep = 2e-3});
  State state{model->q_neutral, start_velocity({0, 1, 2, 3})};
  for (int i = 0; i < 20; ++i) sim.step(state);
  int several = 0;
  for (int index : sim.record().islands.order) {
    const Island& island = sim.record().islands.pool[index];
    if (island.blocks.empty()) continue;
    ConstraintProblem p = island.problem;
    DelassusScratch scratch;
    form_delassus(p, scratch);
    several += island.trees.size() > 1;
    const int nv = island.num_dofs();
    std::vector<double> Y(std::size_t(p.n) * nv);
    for (std::size_t b = 0; b < p.blocks.size(); ++b)
      for (const RowSegment& s : p.segments[b])
        for (int i = 0; s.tree >= 0 && i < p.blocks[b].size; ++i)
          for (int k = 0; k < p.tree_size[s.tree]; ++k)
            Y[std::size_t(p.blocks[b].row + i) * nv + island.tree_start[s.tree] + k] =
                p.Y[s.start + i * padded(p.tree_size[s.tree]) + k];
    for (int i = 0; i < p.n; ++i) {
      CHECK(p.W[i] > 0);
      for (int j = 0; j < p.n; ++j) {
        double want = 0;
        for (int k = 0; k < nv; ++k) want += Y[std::size_t(i) * nv + k] * Y[std::size_t(j) * nv + k];
        CHECK_NEAR(p.G[std::size_t(i) * p.ld + j], want, 1e-12);
      }
    }
    for (std::size_t b = 0; b < p.blocks.size(); ++b)
      for (int i = 0; i < p.blocks[b].size; ++i) {
        const int row = p.blocks[b].row + i;
        CHECK_NEAR(delassus_diagonal(p, static_cast<int>(b), i), p.G[std::size_t(row) * p.ld + row], 1e-12);
        CHECK(p.W[row] > 0.05 * p.G[std::size_t(row) * p.ld + row]);
        CHECK(p.W[row] < 20 * p.G[std::size_t(row) * p.ld + row]);
      }
  }
  CHECK(several >= 1);
}

// Weights of known bodies: a ball's contact has 1/m along its normal, 1/m + r^2/I across, W their mean.
void test_weights() {
  Scene scene;
  scene.add_ground();
  ShapeOptions ball;
  ball.mass = 2.0;
  scene.add_sphere(0.1, ball);
  ball.position = {1, 0, 0}, ball.fixed = true;
  scene.add_sphere(0.1, ball);
  const auto model = scene.build();
  const double I = 0.4 * 2.0 * 0.01, want = (3 / 2.0 + 2 * 0.01 / I) / 3;
  for (double weight : model->pair_weight) CHECK_NEAR(weight, want, 1e-12);
  CHECK(model->pair_weight.size() == 2);
  for (int d = 0; d < 6; ++d) CHECK_NEAR(model->dof_weight[d], d < 3 ? 0.5 : 1 / I, 1e-9);
}

}  // namespace

int main() {
  for (std::uint64_t seed = 0; seed < 40; ++seed) test_search(seed);
  test_alone_or_together();
  test_hard_island();
  test_delassus();
  test_weights();
  return test::report();
}
