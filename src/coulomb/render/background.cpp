// Rays, planes and the mean of a pattern of squares over a pixel: the integral of the pattern along each axis is a triangle wave, and the mean is
// the product of two differences of it.
#include "coulomb/render/background.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/simd.hpp"
#include "coulomb/base/small_math.hpp"

namespace coulomb::render {

namespace {

constexpr float shade_of_shadows = 0.66f;
constexpr float farthest = 1e6f;  // squares: what is beyond has one colour

/// g . ray as a linear function of the pixel, where the ray through it has the forward component 1.
void along_rays(const double* g, const Camera& camera, const Background& background, double scale, float* out) {
  const double a = dot3(g, camera.axes) / camera.focal;
  const double b = -dot3(g, camera.axes + 3) / camera.focal;
  const double c = dot3(g, camera.axes + 6);
  const double at_origin = c - a * background.across - b * background.down;
  out[0] = static_cast<float>(scale * a);
  out[1] = static_cast<float>(scale * b);
  out[2] = static_cast<float>(scale * at_origin);
}

COULOMB_INLINE float clamped(float x, float low, float high) { return std::min(std::max(x, low), high); }

/// Distance to the middle of the period 2.
COULOMB_INLINE float triangle_wave(float x) {
  const float half = 0.5f * x;
  const int towards_zero = static_cast<int>(half);
  const int one_less = half < static_cast<float>(towards_zero) ? 1 : 0;
  const float below = static_cast<float>(towards_zero - one_less);
  return std::fabs(half - below - 0.5f);
}

/// Mean of a wave of +1 and -1 that changes at whole numbers, over `width` around u.
COULOMB_INLINE float mean_of_stripes(float u, float width) {
  const float half = 0.5f * width;
  return 2.0f * (triangle_wave(u - half) - triangle_wave(u + half)) / width;
}

/// Of a row of pixels.
struct Colours {
  float red[tile_size], green[tile_size], blue[tile_size];
};

/// 0 to 1 as 0 to 255, rounded.
COULOMB_INLINE unsigned byte_of(float channel) {
  const float rounded = clamped(channel, 0, 1) * 255.0f + 0.5f;
  return static_cast<unsigned>(static_cast<int>(rounded));
}

COULOMB_INLINE unsigned packed(float red, float green, float blue) {
  const unsigned r = byte_of(red);
  const unsigned g = byte_of(green);
  const unsigned b = byte_of(blue);
  return r | g << 8 | b << 16 | 0xff000000u;
}

COULOMB_SIMD void colour_row(const Background& background, Row row, unsigned* lit, unsigned* shaded) {
  Colours bright;
  Colours dark;
  float nearest[tile_size];
  const float y = static_cast<float>(row.y) + 0.5f;
  const float x0 = static_cast<float>(row.x) + 0.5f;

  // The sky, by how far up the ray points; below the horizon there is haze.
  const float* horizon = background.sky[0];
  const float* zenith = background.sky[1];
  const float down = (y - background.down) * background.inverse_focal;
  for (int i = 0; i < row.count; ++i) {
    const float x = x0 + static_cast<float>(i);
    const float across = (x - background.across) * background.inverse_focal;
    const float length = std::sqrt(across * across + down * down + 1.0f);
    const float rise = (background.up[0] * x + background.up[1] * y + background.up[2]) / length;

    // Quadratic, level at the zenith.
    const float t = clamped(1.5f * rise, 0, 1);
    const float part = t * (2.0f - t);
    bright.red[i] = horizon[0] + part * (zenith[0] - horizon[0]);
    bright.green[i] = horizon[1] + part * (zenith[1] - horizon[1]);
    bright.blue[i] = horizon[2] + part * (zenith[2] - horizon[2]);
    dark.red[i] = bright.red[i];
    dark.green[i] = bright.green[i];
    dark.blue[i] = bright.blue[i];
    nearest[i] = 0;
  }

  // The nearest floor, paler the farther it is.
  const float haze = 1.0f / (background.fade * background.fade);
  for (int k = 0; k < background.count; ++k) {
    const SeenFloor& floor = background.floors[k];
    const float* light = floor.colours[0];
    const float* other = floor.colours[1];
    const float shade = k == 0 ? shade_of_shadows : 1.0f;
    for (int i = 0; i < row.count; ++i) {
      // One over the distance along the ray, and how the distance changes from pixel to pixel.
      const float x = x0 + static_cast<float>(i);
      const float inverse = floor.inverse[0] * x + floor.inverse[1] * y + floor.inverse[2];
      const bool seen = inverse > nearest[i];
      const float w = 1.0f / std::max(inverse, 1e-9f);
      const float w_x = -w * w * floor.inverse[0];
      const float w_y = -w * w * floor.inverse[1];

      // Where the ray meets it, how many squares a pixel spans there, and the mean of their pattern.
      float pattern = 1;
      for (int axis = 0; axis < 2; ++axis) {
        const float* g = floor.along[axis];
        const float rate = g[0] * x + g[1] * y + g[2];
        const float u = floor.start[axis] + clamped(w * rate, -farthest, farthest);
        const float u_x = std::fabs(g[0] * w + rate * w_x);
        const float u_y = std::fabs(g[1] * w + rate * w_y);
        pattern *= mean_of_stripes(u, clamped(std::max(u_x, u_y), 1e-3f, farthest));
      }
      const float part = 0.5f - 0.5f * pattern;
      float of_floor[3];
      of_floor[0] = light[0] + part * (other[0] - light[0]);
      of_floor[1] = light[1] + part * (other[1] - light[1]);
      of_floor[2] = light[2] + part * (other[2] - light[2]);

      // It fades into the horizon; where it is not the nearest nothing changes.
      const float clear = seen ? inverse * inverse / (inverse * inverse + haze) : 0.0f;
      const float hazy = seen ? 1.0f - clear : 0.0f;
      const float kept = seen ? 0.0f : 1.0f;
      dark.red[i] = kept * dark.red[i] + hazy * horizon[0] + clear * shade * of_floor[0];
      dark.green[i] = kept * dark.green[i] + hazy * horizon[1] + clear * shade * of_floor[1];
      dark.blue[i] = kept * dark.blue[i] + hazy * horizon[2] + clear * shade * of_floor[2];
      bright.red[i] = kept * bright.red[i] + hazy * horizon[0] + clear * of_floor[0];
      bright.green[i] = kept * bright.green[i] + hazy * horizon[1] + clear * of_floor[1];
      bright.blue[i] = kept * bright.blue[i] + hazy * horizon[2] + clear * of_floor[2];
      nearest[i] = seen ? inverse : nearest[i];
    }
  }

  for (int i = 0; i < row.count; ++i) {
    lit[i] = packed(bright.red[i], bright.green[i], bright.blue[i]);
    shaded[i] = packed(dark.red[i], dark.green[i], dark.blue[i]);
  }
}

}  // namespace

void prepare(const Frame& frame, PictureSize size, Background& out) {
  const Camera& camera = frame.camera;
  // The picture and its sky.
  out.across = 0.5f * static_cast<float>(size.width);
  out.down = 0.5f * static_cast<float>(size.height);
  out.inverse_focal = static_cast<float>(1 / camera.focal);
  out.fade = static_cast<float>(frame.fade);
  std::copy_n(&frame.sky[0][0], 6, &out.sky[0][0]);
  const double vertical[3] = {0, 0, 1};
  along_rays(vertical, camera, out, 1.0, out.up);

  // 1 / w = -(n . ray) / (n . (camera - origin)); a camera below sees nothing of a floor.
  out.count = 0;
  out.first = -1;
  for (int k = 0; k < static_cast<int>(frame.floors.size()); ++k) {
    const Floor& floor = frame.floors[k];
    double offset[3];
    const double* normal = floor.axes + 6;
    sub3(camera.position, floor.origin, offset);
    const double height = dot3(normal, offset);
    if (!(height > 0)) continue;
    if (out.count == 0) out.first = k;

    // Its plane, and the two axes of its pattern.
    SeenFloor& seen = out.floors[out.count++];
    along_rays(normal, camera, out, -1 / height, seen.inverse);
    for (int axis = 0; axis < 2; ++axis) {
      const double* along = floor.axes + 3 * axis;
      along_rays(along, camera, out, 1 / floor.square, seen.along[axis]);

      // The pattern has period 2.
      const double start = dot3(along, offset) / floor.square;
      const double periods = std::floor(0.5 * start);
      seen.start[axis] = static_cast<float>(start - 2 * periods);
    }
    std::copy_n(&floor.colours[0][0], 6, &seen.colours[0][0]);
  }
}

void colour(const Background& background, Row row, unsigned* lit, unsigned* shaded) {
  colour_row(background, row, lit, shaded);
}

}  // namespace coulomb::render
