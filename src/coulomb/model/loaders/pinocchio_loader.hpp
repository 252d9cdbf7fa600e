// Reads models of the `pin` package from their binary buffers. Pinocchio itself stays in the .cpp files.
#pragma once

#include <string>

#include "coulomb/scene.hpp"

namespace coulomb {

/// Buffers as written by saveToBinary; an empty geometry buffer means no shapes. `name`: out, the model's name if it comes in empty.
SceneParts read_pinocchio_buffers(const std::string& model_buffer, const std::string& geometry_buffer,
                                  const PinocchioOptions& options, std::string& name);

}  // namespace coulomb
