#include "coulomb/solvers/single_methods/block_dantzig.hpp"

#include <algorithm>
#include <limits>

#include "coulomb/solvers/lcp/lcp_search.hpp"

namespace coulomb {
bool BlockDantzig::suits(const ScaledProblem& problem) {
  return std::all_of(problem.blocks, problem.blocks + problem.num_blocks, [](const Block& b) {
    return b.type != BlockType::cone && (b.type != BlockType::pyramid || (b.facets == 4 && !b.inscribed));
  });
}

bool BlockDantzig::solve(const ScaledProblem& p, double tolerance, Iterate& iterate, int& iterations) {
  if (!suits(p)) return false;

  // The blocks as a boxed LCP.
  lcp_.resize(p.n);
  std::copy_n(p.G.begin(), static_cast<long>(p.ld) * p.n, lcp_.A.begin());
  std::copy_n(p.g.begin(), p.n, lcp_.b.begin());
  for (int b = 0; b < p.num_blocks; ++b) {
    const Block& block = p.blocks[b];
    for (int i = block.row; i < block.row + block.size; ++i) {
      if (block.type == BlockType::equality) {
        lcp_.lo[i] = -std::numeric_limits<double>::infinity();
      }
      if (block.type == BlockType::box) {
        lcp_.lo[i] = -p.bound[b];
        lcp_.hi[i] = p.bound[b];
      }
      if (block.type == BlockType::pyramid && i != block.row + 2) {
        lcp_.hi[i] = block.mu;
        lcp_.normal[i] = block.row + 2;
      }
    }
  }

  scale_.assign(lcp_);

  const auto take = [&](const std::vector<double>& x) {
    std::copy_n(x.begin(), p.n, iterate.lambda.begin());
    std::fill(iterate.lambda.begin() + p.n, iterate.lambda.begin() + p.ld, 0.0);
    iterate.evaluate(p);
    return iterate.residual <= tolerance;
  };

  // The classes of the impulses at hand may hold: one linear solve [Werling2021].
  const double exact = 1e-3 * tolerance;
  LcpSearch search(lcp_, scale_, exact);
  std::copy_n(iterate.lambda.begin(), p.n, search.x.begin());
  lcp_.multiply(search.x.data(), search.w.data());
  search.residual = lcp_residual(lcp_, scale_, search.x.data(), search.w.data());
  const bool held = search.iterate(1);
  iterations += search.systems;
  if (held && take(search.x)) return true;

  // Else the walk, else Lemke's; else the best of what there was.
  const bool walked = dantzig_.solve(lcp_, 20 * p.n + 100, x_, classes_);
  iterations += dantzig_.pivots;
  if (walked && take(x_)) return true;

  const double reached = search.residual;
  if (lemke_.solve(p, iterate, iterations) == BlockLemke::End::solved || iterate.residual < reached)
    return iterate.residual <= tolerance;
  return take(search.x);
}

}  // namespace coulomb
