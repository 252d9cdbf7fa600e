#include "coulomb/derivatives.hpp"

namespace coulomb {

/// Compressed rows; of an island only its own dofs have entries.
SparseMatrix SparseStepDerivatives::block(StepResult of, StepArgument by) const {
  struct Row {
    const Island* island = nullptr;
    int place = 0;
  };

  // Where each dof is.
  std::vector<Row> dofs(nv);
  for (const Island& island : islands)
    for (std::size_t i = 0; i < island.dofs.size(); ++i)
      dofs[island.dofs[i]] = {&island, int(i)};

  SparseMatrix out;

  // Size of the block.
  const bool both = of == StepResult::x;
  const bool by_state = by == StepArgument::x;
  out.rows = both ? 2 * nv : nv;
  out.columns = by_state ? 2 * nv : by == StepArgument::u ? nu : nv;
  out.row_start.push_back(0);
  for (int row = 0; row < out.rows; ++row) {
    // The island of this row, if it has one, and its columns.
    const bool velocity = of == StepResult::v || row >= nv;
    const Row& at = dofs[row >= nv ? row - nv : row];
    if (at.island) {
      const Island& island = *at.island;
      const std::size_t size = island.dofs.size();
      const std::size_t entry = at.place + (velocity ? size : 0);
      const auto add = [&](const std::vector<double>& columns_T, std::size_t first, const std::vector<int>& columns,
                           int shift) {
        for (std::size_t k = 0; k < columns.size(); ++k) {
          out.column.push_back(columns[k] + shift);
          out.value.push_back(columns_T[2 * size * (first + k) + entry]);
        }
      };
      if (by_state || by == StepArgument::q) {
        add(island.A_T, 0, island.dofs, 0);
      }
      if (by_state || by == StepArgument::v) {
        add(island.A_T, size, island.dofs, by_state ? nv : 0);
      }
      if (by == StepArgument::u) {
        add(island.B_T, 0, island.actuators, 0);
      }
      if (by == StepArgument::tau) {
        add(island.B_tau_T, 0, island.dofs, 0);
      }
    }
    out.row_start.push_back(static_cast<std::int64_t>(out.column.size()));
  }
  return out;
}

}  // namespace coulomb
