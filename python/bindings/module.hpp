// The parts of the module, in the order of the folders of src/coulomb.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

namespace coulomb {
struct Model;
struct StepDerivatives;
}  // namespace coulomb

namespace coulomb::python {

struct SimulatorObject;

/// For __repr__: "<Model: 13 bodies, ...>"; a count with its noun; names after ", by ".
std::string in_words(const Model& model);
std::string counted(std::size_t count, const char* noun);
std::string by_names(const std::vector<std::string>& names);

void bind_archives(nanobind::module_& module);
void bind_batch(nanobind::module_& module);
/// What pickle asks for, of coulomb._saved.reduce_<kind>.
nanobind::object reduced(const char* kind, nanobind::handle self);
void bind_control(nanobind::module_& module);
void bind_model(nanobind::module_& module);
nanobind::class_<StepDerivatives> bind_derivatives(nanobind::module_& module);
void bind_dynamics(nanobind::class_<Model>& model);
void bind_model_outputs(nanobind::class_<Model>& model);
void bind_step_outputs(nanobind::class_<StepDerivatives>& derivatives, nanobind::class_<SimulatorObject>& simulator);
void bind_names(nanobind::class_<Model>& model);
void bind_parameters(nanobind::class_<Model>& model);
void bind_pin_coordinates(nanobind::class_<Model>& model);
void bind_reports(nanobind::module_& module);
void bind_render(nanobind::module_& module);
void bind_rollout(nanobind::module_& module, nanobind::class_<SimulatorObject>& simulator);
void bind_robot_description(nanobind::module_& module);
void bind_scene(nanobind::module_& module);
void bind_solvers(nanobind::module_& module);
void bind_stepping(nanobind::module_& module);
void bind_substeps(nanobind::module_& module);
/// To be called last.
void explain_calls(nanobind::module_& module);

}  // namespace coulomb::python
