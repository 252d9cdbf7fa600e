// Models as bytes: what a file or another process gets. Read again they are the same, bit for bit; meshes that models share stay shared.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "coulomb/model/model.hpp"

namespace coulomb {

using Models = std::vector<std::shared_ptr<const Model>>;

std::string save_models(const Models& models);
/// Throws std::invalid_argument for bytes that save_models did not write: "model: ...".
Models load_models(std::string_view bytes);

}  // namespace coulomb
