// What is asked of a surface and of a frame before anything is drawn. std::invalid_argument: argument, element and value.
#pragma once

#include "coulomb/render/rasteriser.hpp"

namespace coulomb::render {

void check_size(const char* name, int value);
void check(const SurfaceArrays& surface);
/// num_surfaces: that instances may name.
void check(const Frame& frame, int num_surfaces);

}  // namespace coulomb::render
