#include "substeps.hpp"

#include <algorithm>
#include <new>
#include <string>

#include "module.hpp"

namespace coulomb::python {

namespace nb = nanobind;

namespace {

/// A whole number that is no bool, of Python or NumPy; 0 for anything else, and for one that is too large.
long long whole(nb::handle value) {
  if (nb::isinstance<nb::bool_>(value) || !PyIndex_Check(value.ptr())) return 0;
  const nb::object number = nb::steal(PyNumber_Index(value.ptr()));
  int overflow = 0;
  const long long out = number.is_valid() ? PyLong_AsLongLongAndOverflow(number.ptr(), &overflow) : 0;
  PyErr_Clear();
  return overflow == 0 ? out : 0;
}

/// Room for so many numbers of rows that are written out for every step.
std::vector<double> room(std::size_t size, int substeps) {
  try {
    return std::vector<double>(size);
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_MemoryError,
                    ("substeps: got " + std::to_string(substeps) + ", " + std::to_string(size) +
                     " numbers of rows held for so many steps do not fit into memory; call rollout in parts, or step")
                        .c_str());
    throw nb::python_error();
  }
}

}  // namespace

int substeps_of(nb::handle substeps, std::int64_t rows) {
  const std::int64_t count = whole(substeps);
  const std::int64_t most = 2147483647 / std::max<std::int64_t>(rows, 1);
  if (count >= 1 && count <= most) return static_cast<int>(count);
  throw nb::value_error((std::string("substeps: got ") + nb::repr(substeps).c_str() +
                         ", expected a number of steps from 1 to " + std::to_string(most) +
                         ", for which each row of inputs is held")
                            .c_str());
}

Rows held(const double* x, std::size_t outer, std::size_t rows, std::size_t width, int substeps) {
  if (!x || substeps == 1) return Rows(x);
  const auto count = static_cast<std::size_t>(substeps);
  std::vector<double> out = room(outer * rows * count * width, substeps);
  double* to = out.data();
  for (std::size_t row = 0; row < outer * rows; ++row)
    for (std::size_t j = 0; j < count; ++j) to = std::copy_n(x + row * width, width, to);
  return Rows(std::move(out));
}

Rows spread(const double* x, std::size_t outer, std::size_t rows, std::size_t width, int substeps) {
  if (!x || substeps == 1) return Rows(x);
  const auto count = static_cast<std::size_t>(substeps);
  const std::size_t states = (rows - 1) * count + 1;
  std::vector<double> out = room(outer * states * width, substeps);
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

// For coulomb.torch and coulomb.jax, which hold rows themselves.
void bind_substeps(nb::module_& module) {
  module.def("_substeps_of", &substeps_of, nb::arg("substeps").none(), nb::arg("rows"));
}

}  // namespace coulomb::python
