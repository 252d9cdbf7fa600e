// solve_lcp: boxed linear complementarity problems by themselves, with derivatives.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "arrays.hpp"
#include "coulomb/lcp.hpp"
#include "module.hpp"

namespace coulomb::python {

namespace {

struct Result {
  BoxedLcp problem;
  LcpSolution solution;
};

void take(nb::handle object, const char* name, std::vector<double>& values) {
  if (object.is_none()) return;
  const ArrayIn in(object, name, {static_cast<Py_ssize_t>(values.size())});
  std::copy_n(in.data(), values.size(), values.begin());
}

Result solve(nb::handle A, nb::handle b, nb::handle lo, nb::handle hi, nb::handle friction_index,
             const std::string& method, double tolerance, int max_iterations) {
  const ArrayIn b_in(b, "b", {-1});
  const auto n = static_cast<Py_ssize_t>(b_in.size());
  const ArrayIn A_in(A, "A", {n, n});
  Result out;
  BoxedLcp& p = out.problem;
  p.resize(static_cast<int>(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    for (Py_ssize_t j = 0; j < n; ++j) p.A[i * p.ld + j] = A_in.data()[i * n + j];
    p.b[i] = b_in.data()[i];
  }
  take(lo, "lo", p.lo);
  take(hi, "hi", p.hi);
  if (!friction_index.is_none()) {
    const ArrayIn index(friction_index, "friction_index", {n});
    for (Py_ssize_t i = 0; i < n; ++i) {
      const double value = index.data()[i];
      if (!(value >= -1 && value < static_cast<double>(n)) || value != std::floor(value)) {
        char text[40];
        std::snprintf(text, sizeof text, "%.17g", value);
        throw nb::value_error(
            ("friction_index[" + std::to_string(i) + "] = " + text + ": expected -1 or the index of a row").c_str());
      }
      p.normal[i] = static_cast<int>(value);
    }
  }
  if (!(tolerance > 0 && tolerance < 1)) throw nb::value_error("tolerance: expected a number in (0, 1)");
  if (max_iterations < 1) throw nb::value_error("max_iterations: expected at least 1");
  check_lcp(p);
  out.solution = solve_lcp(p, lcp_method_from_name(method), tolerance, max_iterations);
  return out;
}

LcpDerivatives derivatives(const Result& r) {
  if (!r.solution.converged)
    throw std::logic_error("solve_lcp: derivatives: the problem was not solved (" + r.solution.reason + ")");
  return LcpDerivatives(r.problem, r.solution);
}

nb::object square(const std::vector<double>& values, int n) { return to_numpy(values.data(), n, n, n); }

}  // namespace

void bind_lcp(nb::module_& module) {
  nb::class_<LcpDerivatives>(module, "LcpDerivatives",
                             "Derivatives of the x of solve_lcp with its classes held: the pseudo-inverse derivative "
                             "[Werling2021, section IV-C] where the clamped rows are dependent.")
      .def("__repr__",
           [](const LcpDerivatives& d) {
             return "<LcpDerivatives: " + counted(static_cast<std::size_t>(d.size()), "row") + ">";
           })
      .def_prop_ro(
          "dx_db", [](const LcpDerivatives& d) { return square(d.dx_db(), d.size()); },
          nb::sig("def dx_db(self) -> numpy.ndarray"), "(n, n)")
      .def_prop_ro(
          "dx_dlo", [](const LcpDerivatives& d) { return square(d.dx_dlo(), d.size()); },
          nb::sig("def dx_dlo(self) -> numpy.ndarray"), "(n, n); zero columns for friction rows, whose lo is not used")
      .def_prop_ro(
          "dx_dhi", [](const LcpDerivatives& d) { return square(d.dx_dhi(), d.size()); },
          nb::sig("def dx_dhi(self) -> numpy.ndarray"), "(n, n); of a friction row by its coefficient")
      .def(
          "dx_along_dA",
          [](const LcpDerivatives& d, nb::handle dA) {
            const ArrayIn in(dA, "dA", {d.size(), d.size()});
            in.finite("dA");
            return to_numpy(d.along_dA(in.data()));
          },
          nb::arg("dA").none(), nb::sig("def dx_along_dA(self, dA: numpy.typing.ArrayLike) -> numpy.ndarray"),
          "(n,) change of x for a change dA (n, n) of A.")
      .def(
          "vjp",
          [](const LcpDerivatives& d, nb::handle x_bar) {
            const ArrayIn in(x_bar, "x_bar", {d.size()});
            in.finite("x_bar");
            const LcpCotangent g = d.vjp(in.data());
            return nb::make_tuple(square(g.A, d.size()), to_numpy(g.b), to_numpy(g.lo), to_numpy(g.hi));
          },
          nb::arg("x_bar").none(), nb::sig("def vjp(self, x_bar: numpy.typing.ArrayLike) -> tuple"),
          "(A_bar, b_bar, lo_bar, hi_bar): gradients of a function of x with gradient x_bar.")
      .def_prop_ro(
          "deficient", [](const LcpDerivatives& d) { return d.deficient(); },
          "The clamped rows are dependent: the derivative of the least-norm x, along changes that keep the rank.");
  nb::class_<LcpSolution>(module, "LcpStatus", "How solve_lcp went.")
      .def_ro("converged", &LcpSolution::converged, "x is a solution to the tolerance.")
      .def_ro("iterations", &LcpSolution::iterations, "Sweeps, pivots and linear solves of all that was tried.")
      .def_ro("residual", &LcpSolution::residual, "Largest |x - clamp(x - w / A_ii, lo, hi)|, scaled.")
      .def_ro("no_solution", &LcpSolution::no_solution, "It was shown that no solution exists: see reason.")
      .def_ro("unique", &LcpSolution::unique,
              "False: other x solve the problem too; this is the one of least norm if canonical.")
      .def_ro("canonical", &LcpSolution::canonical, "False: the least-norm solution was not found, x is any.")
      .def_ro("reason", &LcpSolution::reason, "'solved', or why not.")
      .def("__bool__", [](const LcpSolution& s) { return s.converged; })
      .def("__repr__", [](const LcpSolution& s) { return "<LcpStatus " + s.reason + ">"; });
  nb::class_<Result>(module, "LcpResult", "What solve_lcp found.")
      .def("__repr__",
           [](const Result& r) {
             return "<LcpResult: " + counted(r.solution.x.size(), "row") + ", " + r.solution.reason + ">";
           })
      .def_prop_ro(
          "x", [](const Result& r) { return to_numpy(r.solution.x); }, nb::sig("def x(self) -> numpy.ndarray"), "(n,)")
      .def_prop_ro(
          "w", [](const Result& r) { return to_numpy(r.solution.w); }, nb::sig("def w(self) -> numpy.ndarray"),
          "(n,) A x + b")
      .def_prop_ro(
          "classes",
          [](const Result& r) {
            std::vector<std::string> names;
            for (LcpClass c : r.solution.classes) names.emplace_back(name_of(c));
            return names;
          },
          "Per row: 'lower', 'clamped' (w = 0) or 'upper'. Ties go to the end of one-sided rows and to 'clamped' of "
          "two-sided ones.")
      .def_prop_ro(
          "status", [](const Result& r) { return r.solution; }, "LcpStatus: converged, residual, reason.")
      .def("derivatives", &derivatives,
           "LcpDerivatives at the classes reported. RuntimeError where the problem was not solved.");
  module.def(
      "solve_lcp", &solve, nb::arg("A").none(), nb::arg("b").none(), nb::arg("lo") = nb::none(),
      nb::arg("hi") = nb::none(), nb::arg("friction_index") = nb::none(), nb::kw_only(), nb::arg("method") = "auto",
      nb::arg("tolerance") = 1e-10, nb::arg("max_iterations") = 2000,
      nb::sig("def solve_lcp(A: numpy.typing.ArrayLike, b: numpy.typing.ArrayLike, lo: numpy.typing.ArrayLike | None = "
              "None, hi: numpy.typing.ArrayLike | None = None, friction_index: numpy.typing.ArrayLike | None = None, "
              "*, method: str = 'auto', tolerance: float = 1e-10, max_iterations: int = 2000) -> LcpResult"),
      "The boxed linear complementarity problem w = A x + b with x_i = lo_i and w_i >= 0, or lo_i <= x_i <= hi_i and "
      "w_i = 0, or x_i = hi_i and w_i <= 0, as an LcpResult. A: (n, n), any square matrix. lo, hi: (n,), default 0 and "
      "infinity. friction_index: (n,), -1 or the row j whose x_j >= 0 scales row i's bounds: -hi_i x_j and hi_i x_j "
      "(lo_i is not used). method: 'auto', 'newton' (classes again and again), 'dantzig' (pivoting, then a search), "
      "'lemke' or 'pgs'. Of several solutions: the one of least norm (docs/lcp.md).\n\nValueError: names argument, "
      "element and value. Never raises where there is no solution: see LcpResult.status.");
}

}  // namespace coulomb::python
