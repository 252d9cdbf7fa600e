// Inputs that are held for several steps: rows of a trajectory where inputs change, and the steps between them.
//
//   held      row t of the inputs for the steps  t k, ..., t k + k - 1
//   spread    row t of cotangents at the state  t k, zeros at the states between
//   worst     the step whose status stands for that of a row
//   fold      the sum over the steps for which a row was held, in their order
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace coulomb::python {

/// The number of steps for which inputs are held, of a keyword. Throws a ValueError for what is no whole number, and unless `rows` times as
/// many can be counted.
int substeps_of(nanobind::handle substeps, std::int64_t rows);

/// Rows that are read: those given, or others made of them.
struct Rows {
  explicit Rows(const double* given) : data(given) {}
  explicit Rows(std::vector<double> made) : own(std::move(made)), data(own.data()) {}

  std::vector<double> own;
  const double* data;  ///< null: none were given
};

/// x: outer x rows x width, or null. With one substep: as given. Throws a MemoryError that names `substeps`.
Rows held(const double* x, std::size_t outer, std::size_t rows, std::size_t width, int substeps);
Rows spread(const double* x, std::size_t outer, std::size_t rows, std::size_t width, int substeps);
/// from: (rows substeps) x width; to: rows x width, which may be where `from` begins. The one sum of rollouts and batches: same bits.
void fold(const double* from, std::size_t rows, std::size_t width, int substeps, double* to);
void fold(std::vector<double>& x, std::size_t rows, std::size_t width, int substeps);

/// How a step went. Worse is one that did not converge, then the larger residual.
struct Outcome {
  bool converged;
  double residual;
  bool worse_than(const Outcome& other) const {
    return converged != other.converged ? !converged : residual > other.residual;
  }
};

/// The worst of `substeps` steps from `first` on, the first of equals. outcome(step): its Outcome.
template <class OutcomeOf>
std::size_t worst(std::size_t first, int substeps, OutcomeOf&& outcome) {
  std::size_t out = first;
  for (std::size_t step = first + 1; step < first + static_cast<std::size_t>(substeps); ++step)
    if (outcome(step).worse_than(outcome(out))) out = step;
  return out;
}

/// A function of coulomb._substeps.
nanobind::object of_substeps(const char* function);

}  // namespace coulomb::python
