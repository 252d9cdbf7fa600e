// coulomb._core: what Python sees of libcoulomb. One file per folder of src/coulomb; no physics here.
#include "module.hpp"

#include <cstring>
#include <exception>
#include <stdexcept>

#include "coulomb/instruction_set.hpp"
#include "coulomb/version.hpp"

namespace {

/// ValueError with what is wrong, also where that quotes a file that is not UTF-8: other bytes as \x...
void translate_invalid_argument(const std::exception_ptr& error, void*) {
  try {
    std::rethrow_exception(error);
  } catch (const std::invalid_argument& refused) {
    const char* what = refused.what();
    const auto size = static_cast<Py_ssize_t>(std::strlen(what));
    PyObject* text = PyUnicode_DecodeUTF8(what, size, "backslashreplace");
    if (text == nullptr) return;
    PyErr_SetObject(PyExc_ValueError, text);
    Py_DECREF(text);
  }
}

}  // namespace

NB_MODULE(_core, module) {
  nanobind::set_leak_warnings(false);  // objects held by caches of other packages at exit are no news to a user
  module.doc() = "Bindings of libcoulomb; use them through the package coulomb.";
  module.attr("__version__") = coulomb::version();
  nanobind::register_exception_translator(translate_invalid_argument);
  module.def("instruction_set", &coulomb::instruction_set,
             "Instruction set that the library uses: 'avx512', 'avx2' or 'baseline'. It is the best that the processor "
             "has, or the one "
             "that the environment variable COULOMB_SIMD names; chosen once, when the library is loaded. Importing "
             "coulomb raises "
             "ValueError where the variable names no instruction set, or one that the processor or this build lacks.");
  coulomb::python::bind_model(module);
  coulomb::python::bind_robot_description(module);
  coulomb::python::bind_scene(module);
  coulomb::python::bind_render(module);
  coulomb::python::bind_solvers(module);
  coulomb::python::bind_stepping(module);
  coulomb::python::bind_batch(module);
  coulomb::python::bind_control(module);
  coulomb::python::bind_substeps(module);
  coulomb::python::bind_archives(module);
  coulomb::python::explain_calls(module);
}
