#include "coulomb/render/projection.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/simd.hpp"

namespace coulomb::render {

namespace {

constexpr float ambient = 0.34f;
constexpr float of_sky = 0.30f;  // of a face that looks up; one that looks down has none of it
constexpr float of_sun = 0.52f;

/// Screen coordinates of all vertices, each array with `count` entries.
COULOMB_SIMD void project_all(int count, const float* px, const float* py, const float* pz,
                              const Projection& projection, const Screen& screen, float* X, float* Y, float* w,
                              int* outside, int* x, int* y, float* inverse) {
  const float* A = projection.linear;
  const float* o = projection.origin;
  const float A0 = A[0];
  const float A1 = A[1];
  const float A2 = A[2];
  const float A3 = A[3];
  const float A4 = A[4];
  const float A5 = A[5];
  const float A6 = A[6];
  const float A7 = A[7];
  const float A8 = A[8];
  const float o0 = o[0];
  const float o1 = o[1];
  const float o2 = o[2];
  const float nearest = screen.nearest;
  const float forward = screen.forward;
  const float centre_x = screen.centre_x;
  const float centre_y = screen.centre_y;
  for (int i = 0; i < count; ++i) {
    // Into the camera's frame, in units of its focal length.
    const float Xi = A0 * px[i] + A1 * py[i] + A2 * pz[i] + o0;
    const float Yi = A3 * px[i] + A4 * py[i] + A5 * pz[i] + o1;
    const float wi = A6 * px[i] + A7 * py[i] + A8 * pz[i] + o2;
    X[i] = Xi;
    Y[i] = Yi;
    w[i] = wi;

    // Of those outside only that they are: what is computed of them must not overflow an integer.
    const float reach = guard * wi;
    const bool behind = wi < nearest;
    const bool beyond = (Xi > reach) | (-Xi > reach) | (Yi > reach) | (-Yi > reach);
    outside[i] = behind | beyond;

    // The division by the distance, in whole subpixels.
    const float inverse_w = 1.0f / (behind ? nearest : wi);
    const float across = std::min(std::max(Xi * inverse_w, -guard), guard);
    const float down = std::min(std::max(Yi * inverse_w, -guard), guard);
    inverse[i] = forward * inverse_w;
    x[i] = to_subpixels(centre_x + across);
    y[i] = to_subpixels(centre_y + down);
  }
}

/// Brightness of both sides of the surface at all vertices.
COULOMB_SIMD void shade_all(int count, const float* nx, const float* ny, const float* nz, const Lighting& lighting,
                            float* front, float* back) {
  const float* N = lighting.normals;
  const float* s = lighting.sun;
  const float N0 = N[0];
  const float N1 = N[1];
  const float N2 = N[2];
  const float N3 = N[3];
  const float N4 = N[4];
  const float N5 = N[5];
  const float N6 = N[6];
  const float N7 = N[7];
  const float N8 = N[8];
  const float s0 = s[0];
  const float s1 = s[1];
  const float s2 = s[2];
  for (int i = 0; i < count; ++i) {
    // The normal in the world, with its length.
    const float a = N0 * nx[i] + N1 * ny[i] + N2 * nz[i];
    const float b = N3 * nx[i] + N4 * ny[i] + N5 * nz[i];
    const float c = N6 * nx[i] + N7 * ny[i] + N8 * nz[i];
    const float squared = a * a + b * b + c * c;
    const float scale = 1.0f / std::sqrt(std::max(squared, 1e-30f));

    // How much of it looks up, and how much at the sun; the other side sees the opposite.
    const float up = c * scale;
    const float to_sun = (a * s0 + b * s1 + c * s2) * scale;
    front[i] = ambient + of_sky * (0.5f + 0.5f * up) + of_sun * std::max(to_sun, 0.0f);
    back[i] = ambient + of_sky * (0.5f - 0.5f * up) + of_sun * std::max(-to_sun, 0.0f);
  }
}

}  // namespace

void ScreenVertices::make_room(int count) {
  const std::size_t size = std::max<std::size_t>(static_cast<std::size_t>(count), X.size());
  for (std::vector<float>* of : {&X, &Y, &w, &inverse, &front, &back}) {
    of->resize(size);
  }
  for (std::vector<int>* of : {&outside, &x, &y}) {
    of->resize(size);
  }
}

void project(const Surface& surface, const Projection& projection, const Screen& screen, ScreenVertices& out) {
  out.make_room(surface.vertices());
  project_all(surface.vertices(), surface.x.data(), surface.y.data(), surface.z.data(), projection, screen,
              out.X.data(), out.Y.data(), out.w.data(), out.outside.data(), out.x.data(), out.y.data(),
              out.inverse.data());
}

void shade(const Surface& surface, const Lighting& lighting, ScreenVertices& out) {
  out.make_room(surface.vertices());
  shade_all(surface.vertices(), surface.nx.data(), surface.ny.data(), surface.nz.data(), lighting, out.front.data(),
            out.back.data());
}

}  // namespace coulomb::render
