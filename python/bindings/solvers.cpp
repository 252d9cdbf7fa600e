// ContactProblem: the friction problem by itself, from matrices to impulses, modes and derivatives.
#include "coulomb/contact_problem.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "module.hpp"

namespace coulomb::python {

void bind_lcp(nb::module_& module);  // lcp.cpp

namespace {

/// ContactDerivatives with the impulse that products with a change of G need.
struct Derivatives {
  ContactDerivatives values;
  std::vector<double> impulse;
};

std::vector<std::string> mode_names(const std::vector<Mode>& modes) {
  std::vector<std::string> names;
  for (Mode mode : modes) names.emplace_back(name_of(mode));
  return names;
}

std::vector<double> optional_vector(nb::handle object, const char* name, Py_ssize_t size) {
  if (object.is_none()) return {};
  return ArrayIn(object, name, {size}).vector();
}

/// dlambda = K (dG lambda).
nb::object along_dG(const Derivatives& derivatives, nb::handle dG) {
  const Py_ssize_t n = derivatives.values.n;
  const ArrayIn change(dG, "dG", {n, n});
  change.finite("dG");
  std::vector<double> s(static_cast<std::size_t>(n), 0.0);
  for (Py_ssize_t i = 0; i < n; ++i)
    for (Py_ssize_t j = 0; j < n; ++j) s[i] += change.data()[i * n + j] * derivatives.impulse[j];
  ArrayOut out = new_array(n);
  for (Py_ssize_t i = 0; i < n; ++i) {
    out.data[i] = 0;
    for (Py_ssize_t j = 0; j < n; ++j) out.data[i] += derivatives.values.dlambda_dg[i * n + j] * s[j];
  }
  return out.array;
}

void bind_solution(nb::module_& module) {
  nb::class_<ContactSolution>(module, "ContactSolution", "What ContactProblem.solve found.")
      .def("__repr__",
           [](const ContactSolution& s) {
             char text[64];
             std::snprintf(text, sizeof text, ", %d iterations, residual %.2g>", s.iterations, s.residual);
             return "<ContactSolution: " + counted(s.modes.size(), "contact") + ", " + name_of(s.status) + text;
           })
      .def_prop_ro(
          "impulse", [](const ContactSolution& s) { return to_numpy(s.impulse); },
          nb::sig("def impulse(self) -> numpy.ndarray"), "(3 n,) N s: (t1, t2, normal) per contact.")
      .def_prop_ro(
          "velocity", [](const ContactSolution& s) { return to_numpy(s.velocity); },
          nb::sig("def velocity(self) -> numpy.ndarray"), "(3 n,) m/s: c = (G + diag R) impulse + g.")
      .def_prop_ro(
          "modes", [](const ContactSolution& s) { return mode_names(s.modes); },
          "Per contact: 'separating', 'sticking' or 'sliding'.")
      .def_prop_ro(
          "margin", [](const ContactSolution& s) { return to_numpy(s.margin); },
          nb::sig("def margin(self) -> numpy.ndarray"),
          "(n,) distance to the border of the mode, relative to the problem's scale; below 1e-8: a tie.")
      .def_ro("residual", &ContactSolution::residual,
              "Scaled residual of the complementarity conditions, with 'auto' those of the problem with its small "
              "compliance.")
      .def_ro("exact_residual", &ContactSolution::exact_residual, "The same without compliance.")
      .def_ro("relaxation", &ContactSolution::relaxation,
              "The larger compliance, relative to the mean diagonal of each contact's block, when status is 'relaxed'.")
      .def_ro("iterations", &ContactSolution::iterations, "Iterations of all the algorithms that were tried.")
      .def_prop_ro(
          "status", [](const ContactSolution& s) { return std::string(name_of(s.status)); },
          "'solved', 'relaxed' (contacts contradict one another, or are badly scaled), 'max_iterations' or 'failed'.");
  nb::class_<Derivatives>(module, "ContactDerivatives", "Derivatives of the impulses of a solved ContactProblem.")
      .def("__repr__",
           [](const Derivatives& d) {
             return "<ContactDerivatives: " + counted(static_cast<std::size_t>(d.values.num_contacts), "contact") +
                    (d.values.deficient ? ", deficient>" : ">");
           })
      .def_prop_ro(
          "dlambda_dg",
          [](const Derivatives& d) { return to_numpy(d.values.dlambda_dg.data(), d.values.n, d.values.n, d.values.n); },
          nb::sig("def dlambda_dg(self) -> numpy.ndarray"), "(3 n, 3 n), kg: d impulse / d g.")
      .def_prop_ro(
          "dlambda_dmu",
          [](const Derivatives& d) {
            return to_numpy(d.values.dlambda_dmu.data(), d.values.n, d.values.num_contacts, d.values.num_contacts);
          },
          nb::sig("def dlambda_dmu(self) -> numpy.ndarray"), "(3 n, n), N s: d impulse / d mu.")
      .def_prop_ro(
          "deficient", [](const Derivatives& d) { return d.values.deficient; },
          "True: the impulses are not unique, these are the derivatives of the shares that the compliance gives them.")
      .def("dlambda_along_dG", &along_dG, nb::arg("dG").none(),
           nb::sig("def dlambda_along_dG(self, dG: numpy.typing.ArrayLike) -> numpy.ndarray"),
           "(3 n,): change of the impulses for a symmetric change dG (3 n, 3 n) of G.");
}

}  // namespace

void bind_solvers(nb::module_& module) {
  bind_lcp(module);
  bind_solution(module);
  nb::class_<ContactProblem>(
      module, "ContactProblem",
      "The Coulomb friction problem by itself: c = (G + diag R) impulse + g, impulse in the cone of each contact, "
      "orthogonal to c + (0, 0, mu |c_T|) in the dual cone (docs/theory.md (C3)). Rows per contact: t1, t2, normal, "
      "and "
      "with `rows` up to three further tangents.")
      .def(
          "__init__",
          [](ContactProblem* self, nb::object G, nb::object g, nb::object mu, nb::object R,
             std::optional<std::vector<int>> rows) {
            const ArrayIn g_in(g, "g", {-1});
            const auto n = static_cast<Py_ssize_t>(g_in.size());
            if (!rows && n % 3 != 0)
              throw nb::value_error(("g: expected 3 entries per contact, got " + std::to_string(n)).c_str());
            const Py_ssize_t contacts = rows ? static_cast<Py_ssize_t>(rows->size()) : n / 3;
            new (self)
                ContactProblem(ArrayIn(G, "G", {n, n}).vector(), g_in.vector(), ArrayIn(mu, "mu", {contacts}).vector(),
                               optional_vector(R, "R", n), rows.value_or(std::vector<int>()));
          },
          nb::arg("G").none(), nb::arg("g").none(), nb::arg("mu").none(), nb::arg("R") = nb::none(),
          nb::arg("rows") = nb::none(),
          nb::sig("def __init__(self, G: numpy.typing.ArrayLike, g: numpy.typing.ArrayLike, mu: "
                  "numpy.typing.ArrayLike, R: numpy.typing.ArrayLike | None = None, rows: "
                  "collections.abc.Sequence[int] | None = None) -> None"),
          "G: (3 n, 3 n) symmetric positive semi-definite (Delassus matrix, 1/kg). g: (3 n,) m/s. mu: (n,) >= 0. R: (3 "
          "n,) >= 0, compliance. rows: (n,) rows of each contact, 3 to 6, where there are further tangents, such as "
          "spinning and rolling, after the normal; each is scaled such that mu is its coefficient, and G, g and R "
          "then have the sum of them as size.\n\nValueError: names argument, element and value.")
      .def(
          "solve",
          [](ContactProblem& self, const std::string& method, double tolerance, int max_iterations, ArrayLike warm) {
            return ContactSolution(self.solve(solver_method_from_name(method), tolerance, max_iterations,
                                              optional_vector(warm, "warm", self.size())));
          },
          nb::kw_only(), nb::arg("method") = "auto", nb::arg("tolerance") = 1e-10, nb::arg("max_iterations") = 3000,
          nb::arg("warm") = nb::none(),
          "A ContactSolution. method: 'auto' (with a small compliance; Newton's method, else an interior point), or by "
          "itself "
          "'ac_lm', 'admm' or 'pgs'. tolerance: scaled "
          "residual. max_iterations: budget of a method by itself. warm: (3 n,) impulses to start from, N "
          "s.\n\nValueError: "
          "names the argument and its value. Never raises for numerical trouble: see ContactSolution.status.")
      .def(
          "derivatives",
          [](ContactProblem& self) {
            ContactDerivatives values = self.derivatives();
            return Derivatives{std::move(values), self.solution().impulse};
          },
          "ContactDerivatives of the last solve (solves first if there was none), by the implicit function theorem on "
          "the modes (docs/theory.md (L3)). At a tie: those of the modes reported; where impulses are not unique: of "
          "the shares that the compliance gives them.")
      .def("__repr__",
           [](const ContactProblem& p) {
             return "<ContactProblem: " + counted(static_cast<std::size_t>(p.num_contacts()), "contact") + ">";
           })
      .def_prop_ro("num_contacts", &ContactProblem::num_contacts, "n: number of contacts.");
}

}  // namespace coulomb::python
