// Calls that do not fit: nanobind answers with all signatures and all types, and leaves the reader to find the argument. Here every function
// of the module gets a second look at such calls: coulomb._calls says which argument it is, what was given and what to do.
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "module.hpp"

namespace coulomb::python {

namespace nb = nanobind;
namespace {

/// What nanobind calls: a few functions, by kinds of arguments.
std::array<vectorcallfunc, 12> originals{};

/// Where a callable keeps what is called (PEP 590).
vectorcallfunc& call_of(nb::handle function) {
  auto* type = reinterpret_cast<PyTypeObject*>(function.type().ptr());
  return *reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(function.ptr()) + type->tp_vectorcall_offset);
}

/// In place of nanobind's own TypeError, if that is what is set: the explanation, if there is one.
void explain(nb::handle function, PyObject* const* arguments, std::size_t flags, PyObject* names) {
  nb::python_error error;  // takes what is set
  try {
    const std::string text = nb::str(error.value()).c_str();
    if (text.find("incompatible function arguments") == std::string::npos) {
      error.restore();
      return;
    }

    // nanobind marks new objects in the bits above the count.
    const std::size_t count = flags & 0xffff;
    nb::list positional;
    for (std::size_t i = 0; i < count; ++i) positional.append(nb::handle(arguments[i]));
    nb::dict by_name;
    for (std::size_t k = 0; names != nullptr && k < nb::len(nb::handle(names)); ++k)
      by_name[nb::handle(PyTuple_GetItem(names, static_cast<Py_ssize_t>(k)))] = nb::handle(arguments[count + k]);

    const nb::object told = nb::module_::import_("coulomb._calls").attr("explain")(function, positional, by_name);
    if (told.is_none()) error.restore();
    else PyErr_SetObject(PyExc_TypeError, told.ptr());
  } catch (nb::python_error& second) {  // the first error is the better one
    second.discard_as_unraisable("coulomb._calls.explain");
    error.restore();
  }
}

template <std::size_t k>
PyObject* call_or_explain(PyObject* function, PyObject* const* arguments, std::size_t flags, PyObject* names) {
  PyObject* result = originals[k](function, arguments, flags, names);
  if (result == nullptr && PyErr_ExceptionMatches(PyExc_TypeError)) explain(function, arguments, flags, names);
  return result;
}

template <std::size_t... k>
constexpr std::array<vectorcallfunc, sizeof...(k)> explained_calls(std::index_sequence<k...>) {
  return {&call_or_explain<k>...};
}

void hook(nb::handle function) {
  static constexpr auto explained = explained_calls(std::make_index_sequence<originals.size()>());
  vectorcallfunc& call = call_of(function);
  for (std::size_t k = 0; k < originals.size(); ++k) {
    if (call == explained[k]) return;
    if (originals[k] == nullptr) originals[k] = call;
    if (originals[k] != call) continue;
    call = explained[k];
    return;
  }
}

void hook_all(nb::handle names) {
  for (nb::handle thing : nb::list(names.attr("values")())) {
    const std::string type = nb::inst_name(thing).c_str();
    if (type == "nanobind.nb_func" || type == "nanobind.nb_method") hook(thing);
    if (nb::hasattr(thing, "fset") && !thing.attr("fset").is_none()) hook(thing.attr("fset"));
    if (nb::isinstance<nb::type_object>(thing)) hook_all(thing.attr("__dict__"));
  }
}

}  // namespace

void explain_calls(nb::module_& module) { hook_all(module.attr("__dict__")); }

}  // namespace coulomb::python
