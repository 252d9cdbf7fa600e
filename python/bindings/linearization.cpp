#include "linearization.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "substeps.hpp"

namespace coulomb::python {

namespace {

template <class T>
T* step_arrays(Py_ssize_t n, Py_ssize_t steps, std::initializer_list<Py_ssize_t> of_step, const char* dtype,
               nb::object& array) {
  T* data = nullptr;
  const auto* size = of_step.begin();
  if (of_step.size() == 0) data = n > 0 ? new_array<T>({n, steps}, dtype, array) : new_array<T>({steps}, dtype, array);
  else
    data = n > 0 ? new_array<T>({n, steps, size[0], size[1]}, dtype, array)
                 : new_array<T>({steps, size[0], size[1]}, dtype, array);
  return data;
}

nb::object A_and_B(const LinearizationOut& l) {
  if (!l.A_previous.is_none())
    throw std::logic_error(
        "linearize: a step of bdf2 depends on two states, so A and B are not all of it; take .A, .A_previous and .B");
  return nb::make_tuple(l.A, l.B).attr("__iter__")();
}

}  // namespace

LinearizationOut::LinearizationOut(const ParameterSet& parameters, const Model& model, bool two_states,
                                   Py_ssize_t steps, Py_ssize_t n)
    : set(parameters) {
  const Py_ssize_t nv = model.nv;
  matrices.A = step_arrays<double>(n, steps, {2 * nv, 2 * nv}, "float64", A);
  matrices.B = step_arrays<double>(n, steps, {2 * nv, model.nu}, "float64", B);
  matrices.B_tau = step_arrays<double>(n, steps, {2 * nv, nv}, "float64", B_tau);
  matrices.parameters = step_arrays<double>(n, steps, {2 * nv, set.size()}, "float64", columns);
  matrices.ambiguous = step_arrays<bool>(n, steps, {}, "bool", ambiguous);
  if (two_states) matrices.A_previous = step_arrays<double>(n, steps, {2 * nv, 2 * nv}, "float64", A_previous);
  if (n > 0) valid_data = new_array<bool>({n}, "bool", valid);
}

void LinearizationOut::refuse_substeps(int substeps) const {
  if (substeps == 1 || A_previous.is_none()) return;
  throw std::logic_error(
      "linearize: a bdf2 step depends on the two states before it, so several substeps have no single matrix A; use a "
      "rollout with substeps=1");
}

void LinearizationOut::compose(int substeps) {
  if (substeps == 1) return;
  const nb::object rows = of_substeps("composed")(A, nb::make_tuple(B, B_tau, columns), ambiguous, substeps);
  A = nb::borrow<Array>(rows[0]);
  B = nb::borrow<Array>(rows[1]);
  B_tau = nb::borrow<Array>(rows[2]);
  columns = nb::borrow<Array>(rows[3]);
  ambiguous = nb::borrow<Array>(rows[4]);
  matrices = {};  // their elements are gone
}

void bind_linearization(nb::module_& module) {
  nb::class_<LinearizationOut>(
      module, "RolloutLinearization",
      "The derivative of every step of a trajectory by the state it starts from and by its inputs, in tangent space; "
      "A, B = r.linearize() takes the two that control needs. Axes before those of a step: (T,) of a Rollout, (n, T) "
      "of "
      "a BatchRollout.")
      .def("__repr__",
           [](const LinearizationOut& l) {
             const std::string shape = nb::str(nb::object(l.A.attr("shape"))).c_str();
             return "<RolloutLinearization: A " + shape + by_names(parameter_names(l.set)) + ">";
           })
      .def_ro("A", &LinearizationOut::A, "(..., 2 nv, 2 nv) d(q, v)_(t+1)/d(q, v)_t")
      .def_ro("B", &LinearizationOut::B, "(..., 2 nv, nu) d(q, v)_(t+1)/du_t")
      .def_ro("B_tau", &LinearizationOut::B_tau, "(..., 2 nv, nv) d(q, v)_(t+1)/dtau_t")
      .def_ro("A_previous", &LinearizationOut::A_previous,
              nb::for_getter(nb::sig("def A_previous(self) -> numpy.ndarray | None")),
              "(..., 2 nv, 2 nv) d(q, v)_(t+1)/d(q, v)_(t-1) with stepper bdf2, zeros for the first step; else None.")
      .def_ro("ambiguous", &LinearizationOut::ambiguous, "(...) bool: as StepDerivatives.ambiguous.")
      .def_ro("valid", &LinearizationOut::valid, nb::for_getter(nb::sig("def valid(self) -> numpy.ndarray | None")),
              "(n,) bool, of a batch: False, and zeros, where numbers overflowed on the way. None for one rollout.")
      .def(
          "__getitem__",
          [](const LinearizationOut& l, const std::string& name) { return parameter_part(l.columns, l.set, name); },
          nb::arg("name"), nb::sig("def __getitem__(self, name: str) -> numpy.ndarray"),
          "(..., 2 nv, size) d(q, v)_(t+1)/d(parameter), for a name of `wrt`. KeyError otherwise.")
      .def_prop_ro(
          "parameters", [](const LinearizationOut& l) { return parameter_names(l.set); }, "Names of `wrt`.")
      .def("__iter__", &A_and_B, nb::sig("def __iter__(self) -> collections.abc.Iterator[numpy.ndarray]"),
           "A, then B. RuntimeError with stepper bdf2, whose steps depend on two states.");
}

}  // namespace coulomb::python
