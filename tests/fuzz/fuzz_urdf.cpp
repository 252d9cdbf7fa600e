// URDF as text: read or refused; what is read steps.
#include "coulomb/scene.hpp"
#include "trial.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace coulomb;
  if (size < 3) return 0;
  fuzz::Bytes bytes(data + size - 2, 2);  // the options; the text is all before
  const std::string text(reinterpret_cast<const char*>(data), size - 2);
  if (text.find('<') == std::string::npos) return 0;  // would be the name of a file

  Scene scene;
  const bool with_ground = bytes.coin();
  UrdfOptions options;
  options.floating_base = bytes.coin();
  if (with_ground) scene.add_ground();
  std::shared_ptr<const Model> model;
  if (fuzz::accepted([&] { scene.add_urdf(text, options), model = scene.build(); })) fuzz::check_steps(model, bytes);
  return 0;
}
