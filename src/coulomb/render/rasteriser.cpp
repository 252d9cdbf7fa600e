#include "coulomb/render/rasteriser.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/base/thread_pool.hpp"
#include "coulomb/render/background.hpp"
#include "coulomb/render/frame_checks.hpp"
#include "coulomb/render/projection.hpp"
#include "coulomb/render/surface.hpp"
#include "coulomb/render/tile.hpp"
#include "coulomb/render/triangles.hpp"

namespace coulomb::render {

namespace {

constexpr float solid = 0.996f;            // alpha: nothing behind it is seen
constexpr float casts_shadow_from = 0.5f;  // alpha
constexpr float far_forward = 65536;       // a factor of 1 / w that no two things in one picture differ by
constexpr double lowest_sun = 0.05;  // sine of its height above a floor: below, shadows would reach to the horizon

/// p -> A p + b.
struct Affine {
  double A[9];
  double b[3];
};

Affine of(const Instance& instance) {
  Affine out;
  std::copy_n(instance.linear, 9, out.A);
  copy3(instance.origin, out.b);
  return out;
}

/// `second` after `first`.
Affine then(const Affine& first, const Affine& second) {
  Affine out;
  multiply3(second.A, first.A, out.A);
  rotate(second.A, first.b, out.b);
  add3(out.b, second.b, out.b);
  return out;
}

/// World to (right, up, forward).
Affine of(const Camera& camera) {
  Affine out;
  std::copy_n(camera.axes, 9, out.A);
  double turned[3];
  rotate(camera.axes, camera.position, turned);
  for (int i = 0; i < 3; ++i)
    out.b[i] = -turned[i];
  return out;
}

/// Along the light onto a plane: p - l (n . (p - o)) / (n . l).
Affine shadow_on(const Floor& floor, const double* light) {
  const double* n = floor.axes + 6;
  const double rise = dot3(n, light);
  const double height = dot3(n, floor.origin);
  Affine out;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j)
      out.A[3 * i + j] = (i == j ? 1.0 : 0.0) - light[i] * n[j] / rise;
    out.b[i] = light[i] * height / rise;
  }
  return out;
}

/// (right, up, forward) to (X, Y, w).
Projection projection_of(const Affine& in_camera, double focal) {
  const double scale[3] = {focal, -focal, 1};
  Projection out;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j)
      out.linear[3 * i + j] = static_cast<float>(scale[i] * in_camera.A[3 * i + j]);
    out.origin[i] = static_cast<float>(scale[i] * in_camera.b[i]);
  }
  return out;
}

/// How normals turn under a linear map: by its cofactors, so that they stay normal to what is stretched. Where it mirrors they point inward, as the
/// corners of triangles then run the other way round.
Lighting lighting_of(const double* A, const double* light) {
  double cofactors[9];
  cross3(A + 3, A + 6, cofactors);
  cross3(A + 6, A, cofactors + 3);
  cross3(A, A + 3, cofactors + 6);
  double largest = 0;
  for (const double c : cofactors)
    largest = std::max(largest, std::abs(c));
  Lighting out;
  for (int i = 0; i < 9; ++i)
    out.normals[i] = static_cast<float>(largest > 0 ? cofactors[i] / largest : 0.0);
  for (int i = 0; i < 3; ++i)
    out.sun[i] = static_cast<float>(light[i]);
  return out;
}

bool mirrors(const double* A) {
  double across[3];
  cross3(A, A + 3, across);
  return dot3(across, A + 6) < 0;
}

/// A ball around a surface that was put somewhere.
struct Ball {
  double centre[3];
  double radius;

  Ball(const Surface& surface, const Affine& place) {
    rotate(place.A, surface.centre, centre);
    add3(centre, place.b, centre);
    double squares = 0;
    for (const double a : place.A)
      squares += a * a;
    radius = surface.radius * std::sqrt(squares);
  }
};

Surface surface_of(const SurfaceArrays& arrays) {
  Surface out;
  out.closed = arrays.closed;
  const int n = arrays.vertices;
  for (std::vector<float>* of : {&out.x, &out.y, &out.z, &out.nx, &out.ny, &out.nz})
    of->resize(n);
  double low[3];
  double high[3];
  copy3(arrays.positions, low);
  copy3(arrays.positions, high);
  for (int i = 0; i < n; ++i) {
    const double* p = arrays.positions + 3 * i;
    const double* normal = arrays.normals + 3 * i;
    const double length = norm3(normal);
    out.x[i] = static_cast<float>(p[0]);
    out.y[i] = static_cast<float>(p[1]);
    out.z[i] = static_cast<float>(p[2]);
    out.nx[i] = static_cast<float>(normal[0] / length);
    out.ny[i] = static_cast<float>(normal[1] / length);
    out.nz[i] = static_cast<float>(normal[2] / length);
    for (int k = 0; k < 3; ++k) {
      low[k] = std::min(low[k], p[k]);
      high[k] = std::max(high[k], p[k]);
    }
  }

  double half[3];
  for (int k = 0; k < 3; ++k) {
    out.centre[k] = 0.5 * (low[k] + high[k]);
    half[k] = 0.5 * (high[k] - low[k]);
  }
  out.radius = 1.0001 * norm3(half);
  out.triangles.assign(arrays.triangles, arrays.triangles + 3 * arrays.count);
  out.shadow_triangles = out.triangles;
  if (arrays.shadow_triangles != nullptr)
    out.shadow_triangles.assign(arrays.shadow_triangles, arrays.shadow_triangles + 3 * arrays.shadow_count);
  return out;
}

}  // namespace

struct Rasteriser::Parts {
  Parts(int width, int height, int num_threads) : size{width, height}, pool(num_threads), memory(pool.num_threads()) {}

  void place(const Frame& frame, const double* light);
  void place_shadows(const Frame& frame, const double* light);
  void sort_transparent(const Frame& frame, const Affine& camera);
  bool in_sight(const Surface& surface, const Affine& in_camera, double focal) const;

  PictureSize size;
  ThreadPool pool;
  std::vector<TileMemory> memory;  // one for each thread
  std::vector<Surface> surfaces;

  // Of the frame at hand.
  Screen screen{};
  Background background;
  ScreenVertices vertices;
  TriangleList opaque;
  TriangleList transparent;
  TriangleList shadows;
  struct Far {
    double forward;
    int instance;
  };
  std::vector<Far> far_to_near;
};

bool Rasteriser::Parts::in_sight(const Surface& surface, const Affine& in_camera, double focal) const {
  const Ball ball(surface, in_camera);
  if (ball.centre[2] + ball.radius < screen.nearest) return false;
  const double half[2] = {0.5 * size.width, 0.5 * size.height};
  for (int axis = 0; axis < 2; ++axis) {
    const double beyond = std::abs(ball.centre[axis]) * focal - ball.centre[2] * half[axis];
    if (beyond > ball.radius * std::sqrt(focal * focal + half[axis] * half[axis])) return false;
  }
  return true;
}

void Rasteriser::Parts::sort_transparent(const Frame& frame, const Affine& camera) {
  far_to_near.clear();
  for (int k = 0; k < static_cast<int>(frame.instances.size()); ++k) {
    const Instance& instance = frame.instances[k];
    if (instance.rgba[3] >= solid || instance.rgba[3] == 0) continue;
    far_to_near.push_back({Ball(surfaces[instance.surface], then(of(instance), camera)).centre[2], k});
  }
  std::sort(far_to_near.begin(), far_to_near.end(), [](const Far& a, const Far& b) {
    return a.forward != b.forward ? a.forward > b.forward : a.instance < b.instance;
  });
}

void Rasteriser::Parts::place(const Frame& frame, const double* light) {
  const Affine camera = of(frame.camera);
  const auto add = [&](int k, TriangleList& list) {
    const Instance& instance = frame.instances[k];
    const Surface& surface = surfaces[instance.surface];
    const Affine in_camera = then(of(instance), camera);
    if (!in_sight(surface, in_camera, frame.camera.focal)) return;
    screen.forward = instance.in_front ? far_forward : 1.0f;
    project(surface, projection_of(in_camera, frame.camera.focal), screen, vertices);
    shade(surface, lighting_of(instance.linear, light), vertices);

    // Mirrored, the outside of a surface is what runs clockwise.
    const bool one_sided = surface.closed && !mirrors(instance.linear);
    list.add(surface.triangles, vertices, screen, size,
             one_sided ? TriangleList::Sides::front : TriangleList::Sides::both, k);
  };

  opaque.clear();
  for (int k = 0; k < static_cast<int>(frame.instances.size()); ++k)
    if (frame.instances[k].rgba[3] >= solid) {
      add(k, opaque);
    }
  transparent.clear();
  sort_transparent(frame, camera);
  for (const Far& far : far_to_near)
    add(far.instance, transparent);
}

void Rasteriser::Parts::place_shadows(const Frame& frame, const double* light) {
  shadows.clear();
  screen.forward = 1;
  if (background.first < 0) return;
  const Floor& floor = frame.floors[background.first];
  if (dot3(floor.axes + 6, light) < lowest_sun) return;
  const Affine camera = of(frame.camera);
  const Affine onto_floor = shadow_on(floor, light);
  for (int k = 0; k < static_cast<int>(frame.instances.size()); ++k) {
    const Instance& instance = frame.instances[k];
    if (!instance.casts_shadow || instance.rgba[3] < casts_shadow_from) continue;
    const Surface& surface = surfaces[instance.surface];
    const Ball ball(surface, of(instance));
    double above[3];
    sub3(ball.centre, floor.origin, above);
    if (dot3(floor.axes + 6, above) + ball.radius < 0) continue;
    const Affine in_camera = then(then(of(instance), onto_floor), camera);
    project(surface, projection_of(in_camera, frame.camera.focal), screen, vertices);
    shadows.add(surface.shadow_triangles, vertices, screen, size, TriangleList::Sides::both, k);
  }
}

Rasteriser::Rasteriser(int width, int height, int num_threads) {
  check_size("width", width);
  check_size("height", height);
  parts_ = std::make_unique<Parts>(width, height, num_threads);
}

Rasteriser::~Rasteriser() = default;

int Rasteriser::width() const { return parts_->size.width; }
int Rasteriser::height() const { return parts_->size.height; }

int Rasteriser::add_surface(const SurfaceArrays& surface) {
  check(surface);
  parts_->surfaces.push_back(surface_of(surface));
  return static_cast<int>(parts_->surfaces.size()) - 1;
}

void Rasteriser::render(const Frame& frame, std::uint8_t* rgb, float* depth) {
  Parts& p = *parts_;
  check(frame, static_cast<int>(p.surfaces.size()));
  double light[3];
  const double length = norm3(frame.light);
  for (int i = 0; i < 3; ++i)
    light[i] = frame.light[i] / length;

  // Where everything is on the screen.
  p.screen = {0.5f * static_cast<float>(p.size.width), 0.5f * static_cast<float>(p.size.height),
              static_cast<float>(frame.camera.nearest), 1.0f};
  prepare(frame, p.size, p.background);
  p.place(frame, light);
  p.place_shadows(frame, light);
  for (TriangleList* list : {&p.opaque, &p.transparent, &p.shadows})
    list->sort_into_tiles(p.size);

  // Tiles write different pixels.
  const Scene scene = {p.size, &frame.instances, &p.background, &p.shadows, &p.opaque, &p.transparent};
  p.pool.run(p.size.tiles(), [&](int tile, int thread) { draw_tile(scene, tile, p.memory[thread], rgb, depth); });
}

}  // namespace coulomb::render
