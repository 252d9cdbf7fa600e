#include "substeps.hpp"

#include <algorithm>
#include <string>

namespace coulomb::python {

namespace nb = nanobind;

int substeps_of(const std::optional<std::int64_t>& substeps, std::int64_t rows) {
  const std::int64_t count = substeps.value_or(1);
  const std::int64_t most = 2147483647 / std::max<std::int64_t>(rows, 1);
  if (count >= 1 && count <= most) return static_cast<int>(count);
  throw nb::value_error(("substeps: got " + std::to_string(count) + ", expected a number of steps from 1 to " +
                         std::to_string(most) + ", for which each row of U, tau and fext is held")
                            .c_str());
}

Rows held(const double* x, std::size_t outer, std::size_t rows, std::size_t width, int substeps) {
  if (!x || substeps == 1) return Rows(x);
  const auto count = static_cast<std::size_t>(substeps);
  std::vector<double> out(outer * rows * count * width);
  double* to = out.data();
  for (std::size_t row = 0; row < outer * rows; ++row)
    for (std::size_t j = 0; j < count; ++j) to = std::copy_n(x + row * width, width, to);
  return Rows(std::move(out));
}

Rows spread(const double* x, std::size_t outer, std::size_t rows, std::size_t width, int substeps) {
  if (!x || substeps == 1) return Rows(x);
  const auto count = static_cast<std::size_t>(substeps);
  const std::size_t states = (rows - 1) * count + 1;
  std::vector<double> out(outer * states * width);
  for (std::size_t i = 0; i < outer; ++i)
    for (std::size_t t = 0; t < rows; ++t)
      std::copy_n(x + (i * rows + t) * width, width, out.data() + (i * states + t * count) * width);
  return Rows(std::move(out));
}

void fold(const double* from, std::size_t rows, std::size_t width, int substeps, double* to) {
  const auto count = static_cast<std::size_t>(substeps);

  // A sum is stored at or before its first term.
  for (std::size_t t = 0; t < rows; ++t)
    for (std::size_t i = 0; i < width; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < count; ++j) sum += from[(t * count + j) * width + i];
      to[t * width + i] = sum;
    }
}

void fold(std::vector<double>& x, std::size_t rows, std::size_t width, int substeps) {
  if (substeps == 1) return;
  fold(x.data(), rows, width, substeps, x.data());
  x.resize(rows * width);
}

nb::object of_substeps(const char* function) { return nb::module_::import_("coulomb._substeps").attr(function); }

}  // namespace coulomb::python
