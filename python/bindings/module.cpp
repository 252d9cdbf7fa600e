// coulomb._core: what Python sees of libcoulomb. One file per folder of src/coulomb; no physics here.
#include "module.hpp"

#include "coulomb/version.hpp"

NB_MODULE(_core, module) {
  nanobind::set_leak_warnings(false);  // objects held by caches of other packages at exit are no news to a user
  module.doc() = "Bindings of libcoulomb; use them through the package coulomb.";
  module.attr("__version__") = coulomb::version();
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
