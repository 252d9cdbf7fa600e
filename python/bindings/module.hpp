// The parts of the module, in the order of the folders of src/coulomb.
#pragma once

#include <nanobind/nanobind.h>

namespace coulomb {
struct Model;
class Simulator;
struct StepDerivatives;
}  // namespace coulomb

namespace coulomb::python {

void bind_batch(nanobind::module_& module);
void bind_model(nanobind::module_& module);
nanobind::class_<StepDerivatives> bind_derivatives(nanobind::module_& module);
void bind_dynamics(nanobind::class_<Model>& model);
void bind_model_outputs(nanobind::class_<Model>& model);
void bind_step_outputs(nanobind::class_<StepDerivatives>& derivatives, nanobind::class_<Simulator>& simulator);
void bind_names(nanobind::class_<Model>& model);
void bind_parameters(nanobind::class_<Model>& model);
void bind_pin_coordinates(nanobind::class_<Model>& model);
void bind_reports(nanobind::module_& module);
void bind_rollout(nanobind::module_& module, nanobind::class_<Simulator>& simulator);
void bind_scene(nanobind::module_& module);
void bind_solvers(nanobind::module_& module);
void bind_stepping(nanobind::module_& module);

}  // namespace coulomb::python
