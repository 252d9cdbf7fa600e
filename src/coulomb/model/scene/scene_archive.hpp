// Scenes as bytes: what was added so far, with the names that are taken. A scene that is read again builds the same model, and goes on.
#pragma once

#include <string>
#include <string_view>

#include "coulomb/model/scene/scene.hpp"

namespace coulomb {

std::string save_scene(const Scene& scene);
/// Throws std::invalid_argument for bytes that save_scene did not write: "scene: ...".
Scene load_scene(std::string_view bytes);

}  // namespace coulomb
