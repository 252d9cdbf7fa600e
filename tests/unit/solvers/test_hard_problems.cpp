// Problems of robots and heaps that an earlier solver found hard (tests/data/README.md): every one is solved as posed, without
// memory and from the memory of the step before, and obeys its law by a check that shares nothing with the solver.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "check.hpp"
#include "coulomb/solvers/constraint_solver.hpp"
#include "solvers/problems.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

/// The worst violation of a block's law, relative to the problem's size: about 1e-7 m/s in these problems.
constexpr double allowed = 1e-5;

const char* const trajectories[] = {"atlas_rand", "atlas_zero",  "go1_rand",    "go1_zero",      "h1_rand",
                                    "h1_zero",    "hopper_rand", "hopper_zero", "humanoid_rand", "humanoid_zero",
                                    "pile20",     "stack5",      "stack10"};

/// The numbers of a file of little-endian float64, one after the other.
class Numbers {
 public:
  explicit Numbers(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  bool at_end() const { return position_ + 8 > bytes_.size(); }
  double next() {
    if (at_end()) return 0;
    std::uint64_t bits = 0;
    for (int i = 7; i >= 0; --i) bits = bits << 8 | static_cast<unsigned char>(bytes_[position_ + i]);
    position_ += 8;
    double value;
    std::memcpy(&value, &bits, 8);
    return value;
  }
  int next_int() { return static_cast<int>(next()); }

 private:
  std::vector<char> bytes_;
  std::size_t position_ = 0;
};

struct HardProblem {
  std::string name;
  ConstraintProblem problem;
  WarmStart warm;
};

int padded(int size) { return (size + 7) / 8 * 8; }

/// One row of a tree's columns, appended to Y with its padding.
void read_row(Numbers& file, int tree_size, std::vector<double>& Y) {
  auto columns = static_cast<std::uint64_t>(file.next());
  for (int k = 0; k < padded(tree_size); ++k, columns >>= 1) Y.push_back(columns & 1 ? file.next() : 0.0);
}

/// The block that begins at `row`, and its rows of Y.
void read_block(Numbers& file, int row, HardProblem& out) {
  ConstraintProblem& p = out.problem;
  Block block;
  block.type = static_cast<BlockType>(file.next_int());
  block.row = row;
  block.size = file.next_int();
  block.mu = file.next();
  block.bound = file.next();
  block.speculative = file.next() != 0;
  p.blocks.push_back(block);
  out.warm.known.push_back(file.next() != 0);
  out.warm.mode.push_back(static_cast<Mode>(file.next_int()));

  std::array<RowSegment, 2>& segments = p.segments.emplace_back();
  for (RowSegment& segment : segments) segment.tree = file.next_int();
  for (RowSegment& segment : segments) {
    if (segment.tree < 0) continue;
    segment.start = static_cast<int>(p.Y.size());
    for (int i = 0; i < block.size; ++i) read_row(file, p.tree_size[segment.tree], p.Y);
  }
}

/// G = Y Y^T, block by block through the trees that two of them share.
void multiply_out(ConstraintProblem& p) {
  p.resize_matrix();
  for (std::size_t a = 0; a < p.blocks.size(); ++a)
    for (std::size_t b = 0; b < p.blocks.size(); ++b)
      for (const RowSegment& left : p.segments[a])
        for (const RowSegment& right : p.segments[b]) {
          if (left.tree < 0 || left.tree != right.tree) continue;
          const int width = padded(p.tree_size[left.tree]);
          for (int i = 0; i < p.blocks[a].size; ++i)
            for (int j = 0; j < p.blocks[b].size; ++j) {
              double& entry = p.G[static_cast<std::size_t>(p.blocks[a].row + i) * p.ld + p.blocks[b].row + j];
              for (int k = 0; k < width; ++k)
                entry += p.Y[left.start + i * width + k] * p.Y[right.start + j * width + k];
            }
        }
}

HardProblem read_problem(Numbers& file) {
  HardProblem out;
  const int trajectory = file.next_int();
  const int step = file.next_int();
  const int rows = file.next_int();
  const int blocks = file.next_int();
  const int trees = file.next_int();
  out.name = std::string(trajectories[trajectory]) + ", step " + std::to_string(step);

  ConstraintProblem& p = out.problem;
  p.resize(rows);
  p.resize_matrix();
  for (int i = 0; i < trees; ++i) p.tree_size.push_back(file.next_int());
  int row = 0;
  for (int i = 0; i < blocks; ++i) {
    read_block(file, row, out);
    row += p.blocks.back().size;
  }
  for (int i = 0; i < rows; ++i) p.g[i] = file.next();
  out.warm.lambda.resize(rows);
  for (double& x : out.warm.lambda) x = file.next();
  multiply_out(p);
  return out;
}

/// What the solutions of many problems have in common.
struct Summary {
  const char* what;
  int solved = 0, problems = 0, most_iterations = 0;
  long iterations = 0;
  std::vector<double> violations;

  void add(const HardProblem& hard, const SolverResult& result) {
    const double bad = violation(hard.problem, result.lambda);
    const bool good = result.status == SolveStatus::solved && bad <= allowed;
    if (!good)
      std::printf("%s, %s: status %d, violation %.2g, residual %.2g, %d iterations\n", hard.name.c_str(), what,
                  static_cast<int>(result.status), bad, result.residual, result.iterations);
    CHECK(good);
    ++problems;
    solved += good;
    iterations += result.iterations;
    most_iterations = std::max(most_iterations, result.iterations);
    violations.push_back(std::isnan(bad) ? 1e300 : bad);
  }
  void print() {
    std::sort(violations.begin(), violations.end());
    std::printf("%s: %d of %d solved; iterations %.1f, at most %d; violation median %.1g, 99 of 100 %.1g, worst %.1g\n",
                what, solved, problems, static_cast<double>(iterations) / problems, most_iterations,
                violations[violations.size() / 2], violations[violations.size() * 99 / 100], violations.back());
  }
};

void every_problem_is_solved() {
  Numbers file(COULOMB_TEST_DATA "/hard_problems.bin");
  const int count = file.next_int();
  CHECK(count == 492);
  if (count != 492) return;

  Summary cold{"without memory"}, warm{"with memory"};
  ConstraintSolver solver;
  SolverResult result;
  for (int i = 0; i < count; ++i) {
    const HardProblem hard = read_problem(file);
    solver.solve(hard.problem, {}, nullptr, result);
    cold.add(hard, result);
    solver.solve(hard.problem, {}, &hard.warm, result);
    warm.add(hard, result);
  }
  CHECK(file.at_end());
  cold.print();
  warm.print();
}

/// From its own solution a problem is solved at once.
void a_solution_is_recognised() {
  Numbers file(COULOMB_TEST_DATA "/hard_problems.bin");
  const int count = file.next_int();
  ConstraintSolver solver;
  SolverResult first, second;
  for (int i = 0; i < count; ++i) {
    const HardProblem hard = read_problem(file);
    solver.solve(hard.problem, {}, &hard.warm, first);
    if (first.status != SolveStatus::solved) continue;  // told above

    WarmStart start;
    start.lambda = first.lambda;
    start.lambda_0 = first.lambda_0;
    start.mode = first.modes;
    start.known.assign(hard.problem.blocks.size(), 1);
    solver.solve(hard.problem, {}, &start, second);
    CHECK(second.status == SolveStatus::solved);
    CHECK(violation(hard.problem, second.lambda) <= allowed);
  }
}

}  // namespace

int main() {
  every_problem_is_solved();
  a_solution_is_recognised();
  return report();
}
