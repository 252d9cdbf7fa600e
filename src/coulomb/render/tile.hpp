// One tile of a picture: coverage and depth at four samples of each pixel, light once a pixel, and the mean of the samples.
#pragma once

#include <cstdint>

#include "coulomb/render/background.hpp"
#include "coulomb/render/triangles.hpp"

namespace coulomb::render {

/// What all tiles of a frame read.
struct Scene {
  PictureSize size;
  const std::vector<Instance>* instances;
  const Background* background;
  const TriangleList* shadows;
  const TriangleList* opaque;
  const TriangleList* transparent;
};

/// What one thread writes. Samples of a pixel follow one another.
struct alignas(64) TileMemory {
  static constexpr int pixels = tile_size * tile_size;
  float inverse[pixels * samples];         // 1 / w of what is nearest; 0: nothing but sky
  std::uint32_t colour[pixels * samples];  // red in the lowest byte; 0: still to be had from the background
  std::uint8_t shade[pixels];              // a bit for each sample in the shade
};

void draw_tile(const Scene& scene, int tile, TileMemory& memory, std::uint8_t* rgb, float* depth);

}  // namespace coulomb::render
