// Bytes of models, scenes and memories: read or refused; what is read steps.
#include "coulomb/scene.hpp"
#include "trial.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace coulomb;
  const std::string_view archive(reinterpret_cast<const char*>(data), size);
  fuzz::Bytes bytes(data, size);

  Models models;
  if (fuzz::accepted([&] { models = load_models(archive); })) {
    for (const auto& model : models) fuzz::check_steps(model, bytes);
    const auto saved = save_models(models);
    fuzz::promise(save_models(load_models(saved)) == saved, "what was read is written, and read again, as it was");
  }
  std::shared_ptr<const Model> model;
  if (fuzz::accepted([&] { model = load_scene(archive).build(); })) fuzz::check_steps(model, bytes);
  fuzz::accepted([&] { load_memories(archive); });
  return 0;
}
