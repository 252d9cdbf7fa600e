// Models, scenes and memories as bytes, for coulomb._saved: pickle, copy, files.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "coulomb/base/archive.hpp"
#include "coulomb/model.hpp"
#include "coulomb/scene.hpp"
#include "coulomb/step_memory.hpp"
#include "module.hpp"

namespace coulomb::python {

namespace nb = nanobind;
namespace {

nb::bytes to_bytes(const std::string& archive) { return nb::bytes(archive.data(), archive.size()); }

std::string_view view(const nb::bytes& archive) { return {archive.c_str(), archive.size()}; }

}  // namespace

void bind_archives(nb::module_& module) {
  module.attr("_archive_format") = archive_format;
  module.def("_is_archive", [](const nb::bytes& archive) { return is_archive(view(archive)); });

  module.def("_save_models", [](const std::vector<std::shared_ptr<Model>>& models) {
    return to_bytes(save_models(Models(models.begin(), models.end())));
  });
  module.def("_load_models", [](const nb::bytes& archive) {
    std::vector<std::shared_ptr<Model>> out;
    for (const auto& model : load_models(view(archive))) out.push_back(std::const_pointer_cast<Model>(model));
    return out;
  });

  module.def("_save_scene", [](const Scene& scene) { return to_bytes(save_scene(scene)); });
  module.def("_load_scene", [](Scene& to, const nb::bytes& archive) { to = load_scene(view(archive)); });

  module.def("_save_memories",
             [](const std::vector<StepMemory>& memories) { return to_bytes(save_memories(memories)); });
  module.def("_load_memories", [](const nb::bytes& archive) { return load_memories(view(archive)); });
}

nb::object reduced(const char* kind, nb::handle self) {
  return nb::module_::import_("coulomb._saved").attr((std::string("reduce_") + kind).c_str())(self);
}

}  // namespace coulomb::python
