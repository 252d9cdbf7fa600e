#include "coulomb/render/tile.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "coulomb/base/simd.hpp"

namespace coulomb::render {

namespace {

// The four samples of a pixel.
typedef int Ints __attribute__((vector_size(16), may_alias));
typedef float Reals __attribute__((vector_size(16), may_alias));
constexpr Ints columns_of_samples = {sample_x[0], sample_x[1], sample_x[2], sample_x[3]};
constexpr Ints rows_of_samples = {sample_y[0], sample_y[1], sample_y[2], sample_y[3]};

COULOMB_INLINE Ints everywhere(int value) { return Ints{} + value; }
COULOMB_INLINE Reals everywhere(float value) { return Reals{} + value; }
COULOMB_INLINE Reals as_reals(Ints values) { return __builtin_convertvector(values, Reals); }
COULOMB_INLINE bool none(Ints mask) {
  typedef long long Halves __attribute__((vector_size(16), may_alias));
  const Halves halves = reinterpret_cast<Halves>(mask);
  return (halves[0] | halves[1]) == 0;
}

struct Window {
  int left, top, right, bottom;  // pixels, the last two not included
};

/// The sides of a triangle from its first corner, and one over its area.
struct Sides {
  float ux, uy, vx, vy, scale;

  COULOMB_INLINE explicit Sides(const Triangle& t)
      : ux(static_cast<float>(t.x[1] - t.x[0])), uy(static_cast<float>(t.y[1] - t.y[0])),
        vx(static_cast<float>(t.x[2] - t.x[0])), vy(static_cast<float>(t.y[2] - t.y[0])),
        scale(1.0f / (ux * vy - uy * vx)) {}
};

/// A number that is linear over a triangle, kept between its values at the corners: samples of a pixel that is only touched may lie beside it.
struct Plane {
  float x;  // for each 1/32 of a pixel
  float y;
  float low;
  float high;
  float at_first;  // at the corner of the first pixel

  COULOMB_INLINE Plane(const Triangle& t, const Sides& sides, const float* values, int first_x, int first_y) {
    // Its slopes, from what it gains along the two sides.
    const float du = values[1] - values[0];
    const float dv = values[2] - values[0];
    x = (du * sides.vy - dv * sides.uy) * sides.scale;
    y = (dv * sides.ux - du * sides.vx) * sides.scale;

    // Its bounds, and where the walk over the pixels begins.
    low = std::min(std::min(values[0], values[1]), values[2]);
    high = std::max(std::max(values[0], values[1]), values[2]);
    const auto across = static_cast<float>(first_x - t.x[0]);
    const auto down = static_cast<float>(first_y - t.y[0]);
    at_first = values[0] + x * across + y * down;
  }
};

/// Edge functions at the samples of a pixel: none is negative inside. Samples on an edge belong to the triangle of which it is a left or an
/// upper one, so to one of two neighbours.
struct Edges {
  Ints row[3];
  int step_x[3], step_y[3];
  bool empty = false;

  COULOMB_INLINE Edges(const Triangle& t, int first_x, int first_y) {
    for (int i = 0; i < 3; ++i) {
      // The side from this corner to the next.
      const int j = i == 2 ? 0 : i + 1;
      const int dx = t.x[j] - t.x[i];
      const int dy = t.y[j] - t.y[i];
      const bool upper_or_left = dy < 0 || (dy == 0 && dx > 0);
      const int bias = upper_or_left ? 0 : 1;

      // From the corner to the first pixel; of a small triangle all products fit into 32 bits.
      const int across = first_x - t.x[i];
      const int down = first_y - t.y[i];
      if (t.small) {
        begin(i, dx * down - dy * across - bias, -dy, dx);
        continue;
      }

      // Within a tile it changes by no more than this, which fits into 30 bits; what is farther off has one sign in all of it.
      const std::int64_t wide_dx = dx;
      const std::int64_t wide_dy = dy;
      const std::int64_t value = wide_dx * down - wide_dy * across - bias;
      const std::int64_t extent = std::int64_t{tile_size} * subpixels;
      const std::int64_t most = extent * (std::abs(wide_dx) + std::abs(wide_dy));
      if (value < -most) {
        empty = true;
        return;
      }
      if (value <= most)
        begin(i, static_cast<int>(value), -dy, dx);
      else
        begin(i, 0, 0, 0);
    }
  }

  COULOMB_INLINE void begin(int i, int value, int across, int down) {
    row[i] = everywhere(value) + columns_of_samples * across + rows_of_samples * down;
    step_x[i] = across * subpixels;
    step_y[i] = down * subpixels;
  }
};

/// visit(pixel of the tile, x, y, mask of samples) for the pixels of a triangle in a tile; x, y in pixels from the first.
template <class Visit>
COULOMB_INLINE void walk(const Triangle& t, const Window& tile, const Window& part, Visit&& visit) {
  Edges edges(t, part.left * subpixels, part.top * subpixels);
  if (edges.empty) return;
  for (int y = part.top; y < part.bottom; ++y) {
    // The first pixel of the row.
    Ints e0 = edges.row[0];
    Ints e1 = edges.row[1];
    Ints e2 = edges.row[2];
    int pixel = (y - tile.top) * tile_size + part.left - tile.left;
    for (int x = part.left; x < part.right; ++x, ++pixel) {
      // A sample is inside where no edge function has the sign bit.
      const Ints inside = ~((e0 | e1 | e2) >> 31);
      if (!none(inside)) {
        visit(pixel, x - part.left, y - part.top, inside);
      }
      e0 += everywhere(edges.step_x[0]);
      e1 += everywhere(edges.step_x[1]);
      e2 += everywhere(edges.step_x[2]);
    }
    for (int i = 0; i < 3; ++i)
      edges.row[i] += everywhere(edges.step_y[i]);
  }
}

/// The part of a tile that a triangle may cover.
COULOMB_INLINE Window part_of(const Triangle& t, const Window& tile) {
  Window part;
  part.left = std::max<int>(t.left, tile.left);
  part.top = std::max<int>(t.top, tile.top);
  part.right = std::min<int>(t.right + 1, tile.right);
  part.bottom = std::min<int>(t.bottom + 1, tile.bottom);
  return part;
}

/// The colour of an instance in a light.
COULOMB_INLINE std::uint32_t lit(const float* rgba, float light) {
  std::uint32_t packed = 0xff000000u;
  for (int i = 0; i < 3; ++i) {
    const int value = static_cast<int>(rgba[i] * light * 255.0f + 0.5f);
    const auto channel = static_cast<std::uint32_t>(std::min(value, 255));
    packed |= channel << (8 * i);
  }
  return packed;
}

/// visit(pixel, mask of samples that nothing hides, 1 / w, colour).
template <class Visit>
COULOMB_INLINE void walk_visible(const Scene& scene, const Triangle& t, const Window& tile, const TileMemory& memory,
                                 Visit&& visit) {
  const Window part = part_of(t, tile);
  const Sides sides(t);
  const int first_x = part.left * subpixels;
  const int first_y = part.top * subpixels;
  const int middle = subpixels / 2;

  // Depth by samples, from the corner of the first pixel; light by pixels, at their middles.
  const Plane depth(t, sides, t.inverse, first_x, first_y);
  const Plane light(t, sides, t.light, first_x + middle, first_y + middle);
  const float* rgba = (*scene.instances)[t.instance].rgba;
  const Reals first =
      everywhere(depth.at_first) + as_reals(columns_of_samples) * depth.x + as_reals(rows_of_samples) * depth.y;
  const Reals low = everywhere(depth.low);
  const Reals high = everywhere(depth.high);
  walk(t, tile, part, [&](int pixel, int x, int y, Ints inside) {
    const auto across = static_cast<float>(x * subpixels);
    const auto down = static_cast<float>(y * subpixels);

    // Nearer than what is drawn already?
    Reals inverse = first + (depth.x * across + depth.y * down);
    inverse = inverse < low ? low : inverse;
    inverse = inverse > high ? high : inverse;
    const Reals before = *reinterpret_cast<const Reals*>(memory.inverse + pixel * samples);
    const Ints visible = inside & (inverse > before);
    if (none(visible)) return;

    // One light for the whole pixel.
    const float linear = light.at_first + light.x * across + light.y * down;
    const float brightness = std::min(std::max(linear, light.low), light.high);
    visit(pixel, visible, inverse, lit(rgba, brightness));
  });
}

/// What is nearer takes the sample.
void draw_opaque(const Scene& scene, const Triangle& t, const Window& tile, TileMemory& memory) {
  walk_visible(scene, t, tile, memory, [&](int pixel, Ints visible, Reals inverse, std::uint32_t colour) {
    auto& depths = *reinterpret_cast<Reals*>(memory.inverse + pixel * samples);
    auto& colours = *reinterpret_cast<Ints*>(memory.colour + pixel * samples);
    depths = visible ? inverse : depths;
    colours = visible ? everywhere(static_cast<int>(colour)) : colours;
  });
}

/// What is nearer mixes with what is there; depths stay.
void draw_transparent(const Scene& scene, const Triangle& t, const Window& tile, TileMemory& memory) {
  const float alpha = (*scene.instances)[t.instance].rgba[3];
  const auto weight = static_cast<std::uint32_t>(alpha * 256.0f + 0.5f);
  walk_visible(scene, t, tile, memory, [&](int pixel, Ints visible, Reals, std::uint32_t colour) {
    for (int s = 0; s < samples; ++s) {
      if (visible[s] == 0) continue;
      // Channel by channel, in 1/256, rounded.
      std::uint32_t& below = memory.colour[pixel * samples + s];
      std::uint32_t mixed = 0xff000000u;
      for (int shift = 0; shift < 24; shift += 8) {
        const std::uint32_t above = (colour >> shift) & 0xff;
        const std::uint32_t under = (below >> shift) & 0xff;
        const std::uint32_t sum = above * weight + under * (256 - weight);
        mixed |= ((sum + 128) >> 8) << shift;
      }
      below = mixed;
    }
  });
}

/// Samples on which a shadow falls.
void draw_shadow(const Triangle& t, const Window& tile, TileMemory& memory) {
  walk(t, tile, part_of(t, tile), [&](int pixel, int, int, Ints inside) {
    int bits = 0;
    for (int s = 0; s < samples; ++s)
      bits |= inside[s] & (1 << s);
    memory.shade[pixel] = static_cast<std::uint8_t>(memory.shade[pixel] | bits);
  });
}

/// Nothing but sky and floors.
void clear(const Background& background, const Window& tile, TileMemory& memory) {
  std::memset(memory.colour, 0, sizeof memory.colour);
  std::memset(memory.shade, 0, sizeof memory.shade);
  std::fill_n(memory.inverse, TileMemory::pixels * samples, 0.0f);

  // Depths of the floors, linear over the picture; the nearest one counts.
  for (int k = 0; k < background.count; ++k) {
    const float* inverse = background.floors[k].inverse;
    const Reals of_samples =
        (as_reals(columns_of_samples) * inverse[0] + as_reals(rows_of_samples) * inverse[1]) * (1.0f / subpixels);
    for (int y = tile.top; y < tile.bottom; ++y) {
      const float of_row = inverse[1] * static_cast<float>(y) + inverse[2];
      Reals* depths = reinterpret_cast<Reals*>(memory.inverse + (y - tile.top) * tile_size * samples);
      for (int x = tile.left; x < tile.right; ++x, ++depths) {
        const Reals here = of_samples + (inverse[0] * static_cast<float>(x) + of_row);
        *depths = here > *depths ? here : *depths;
      }
    }
  }
}

/// Gives samples that nothing covers their colour.
void fill(const Background& background, const Window& tile, TileMemory& memory) {
  unsigned bright[tile_size];
  unsigned dark[tile_size];
  for (int y = tile.top; y < tile.bottom; ++y) {
    const int first = (y - tile.top) * tile_size;
    const int count = tile.right - tile.left;

    // Rows that are covered need no background.
    bool open = false;
    for (int i = 0; i < count * samples && !open; ++i)
      open = memory.colour[first * samples + i] == 0;
    if (!open) continue;

    // Where a shadow falls the dark one.
    colour(background, {tile.left, y, count}, bright, dark);
    for (int i = 0; i < count; ++i) {
      const std::uint8_t shade = memory.shade[first + i];
      std::uint32_t* at = memory.colour + (first + i) * samples;
      for (int s = 0; s < samples; ++s)
        at[s] = at[s] != 0 ? at[s] : ((shade >> s) & 1) != 0 ? dark[i] : bright[i];
    }
  }
}

COULOMB_INLINE void write(std::uint32_t colour, std::uint8_t* out) {
  out[0] = static_cast<std::uint8_t>(colour);
  out[1] = static_cast<std::uint8_t>(colour >> 8);
  out[2] = static_cast<std::uint8_t>(colour >> 16);
}

/// Of a tile that no triangle touches.
void draw_background(const Background& background, const Window& tile, int width, std::uint8_t* rgb) {
  unsigned bright[tile_size];
  unsigned dark[tile_size];
  for (int y = tile.top; y < tile.bottom; ++y) {
    const int count = tile.right - tile.left;
    colour(background, {tile.left, y, count}, bright, dark);
    std::uint8_t* out = rgb + (static_cast<std::size_t>(y) * width + tile.left) * 3;
    for (int i = 0; i < count; ++i, out += 3)
      write(bright[i], out);
  }
}

/// The mean of the samples, two bytes of each at once.
void resolve(const Window& tile, const TileMemory& memory, int width, std::uint8_t* rgb) {
  for (int y = tile.top; y < tile.bottom; ++y) {
    const std::uint32_t* at = memory.colour + (y - tile.top) * tile_size * samples;
    std::uint8_t* out = rgb + (static_cast<std::size_t>(y) * width + tile.left) * 3;
    for (int x = tile.left; x < tile.right; ++x, at += samples, out += 3) {
      // Most pixels have one colour.
      const bool plain = at[0] == at[1] && at[1] == at[2] && at[2] == at[3];
      if (plain) {
        write(at[0], out);
        continue;
      }

      // Sums of red and blue side by side, and of green; a half is added, so that quarters are rounded.
      std::uint32_t red_blue = 0x00020002u;
      std::uint32_t green = 0x00000200u;
      for (int s = 0; s < samples; ++s) {
        red_blue += at[s] & 0x00ff00ffu;
        green += at[s] & 0x0000ff00u;
      }
      out[0] = static_cast<std::uint8_t>(red_blue >> 2);
      out[1] = static_cast<std::uint8_t>(green >> 10);
      out[2] = static_cast<std::uint8_t>(red_blue >> 18);
    }
  }
}

void write_depth(const Window& tile, const TileMemory& memory, int width, float* depth) {
  for (int y = tile.top; y < tile.bottom; ++y) {
    for (int x = tile.left; x < tile.right; ++x) {
      // The nearest of the samples.
      const int pixel = (y - tile.top) * tile_size + x - tile.left;
      const float* at = memory.inverse + pixel * samples;
      const float nearest = std::max(std::max(at[0], at[1]), std::max(at[2], at[3]));
      const float none = std::numeric_limits<float>::infinity();
      float& out = depth[static_cast<std::size_t>(y) * width + x];
      out = nearest > 0 ? 1.0f / nearest : none;
    }
  }
}

}  // namespace

void draw_tile(const Scene& scene, int tile, TileMemory& memory, std::uint8_t* rgb, float* depth) {
  const int left = tile % scene.size.columns() * tile_size;
  const int top = tile / scene.size.columns() * tile_size;
  const int right = std::min(left + tile_size, scene.size.width);
  const int bottom = std::min(top + tile_size, scene.size.height);
  const Window window = {left, top, right, bottom};

  // Most tiles of most pictures are background.
  const bool touched = scene.shadows->touches(tile) || scene.opaque->touches(tile) || scene.transparent->touches(tile);
  if (!touched) {
    draw_background(*scene.background, window, scene.size.width, rgb);
  }
  if (!touched && depth == nullptr) return;

  // Shadows and all that hides what is behind it, in any order.
  clear(*scene.background, window, memory);
  for (const std::uint32_t* t = scene.shadows->begin(tile); t != scene.shadows->end(tile); ++t)
    draw_shadow((*scene.shadows)[*t], window, memory);
  for (const std::uint32_t* t = scene.opaque->begin(tile); t != scene.opaque->end(tile); ++t)
    draw_opaque(scene, (*scene.opaque)[*t], window, memory);

  // What is transparent lies before all else, in the order of the list: from far to near.
  fill(*scene.background, window, memory);
  for (const std::uint32_t* t = scene.transparent->begin(tile); t != scene.transparent->end(tile); ++t)
    draw_transparent(scene, (*scene.transparent)[*t], window, memory);

  // Samples become pixels.
  resolve(window, memory, scene.size.width, rgb);
  if (depth != nullptr) {
    write_depth(window, memory, scene.size.width, depth);
  }
}

}  // namespace coulomb::render
