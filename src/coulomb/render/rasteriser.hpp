// Rasteriser: surfaces, floors and a light, seen by a camera, as a picture. By the processor alone, the same bits for any number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace coulomb::render {

/// Where from and how: a point p is at R (p - position) = (right, up, forward), and on the screen at centre + focal (right, -up) / forward.
struct Camera {
  double position[3] = {0, 0, 0};
  double axes[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};  ///< R: rows right, up, forward; orthonormal
  double focal = 1;                              ///< pixels
  double nearest = 0.01;                         ///< m: nothing closer is drawn
};

/// A plane of squares that reaches to the horizon, seen from above alone.
struct Floor {
  double origin[3] = {0, 0, 0};
  double axes[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};  ///< rows: along the squares, along the squares, up; orthonormal
  double square = 1;                             ///< m
  float colours[2][3] = {{0.78f, 0.8f, 0.83f}, {0.66f, 0.69f, 0.73f}};
};

/// A surface in one place: p = linear p_surface + origin.
struct Instance {
  int surface = 0;  ///< what add_surface returned
  double linear[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  double origin[3] = {0, 0, 0};
  float rgba[4] = {0.5f, 0.5f, 0.5f, 1};
  bool casts_shadow = true;
  bool in_front = false;  ///< of all that is not, as arrows are
};

struct Frame {
  Camera camera;
  double light[3] = {0.43, -0.29, 0.86};                              ///< towards it; any length but 0
  float sky[2][3] = {{0.93f, 0.945f, 0.96f}, {0.56f, 0.67f, 0.82f}};  ///< at the horizon, and straight up
  double fade = 30;  ///< m: floors at this distance are half as clear as nearby
  std::vector<Floor> floors;
  std::vector<Instance> instances;
};

/// A surface as it was given: vertices with their own normals, so that an edge is where vertices differ by their normals alone.
struct SurfaceArrays {
  const double* positions = nullptr;  ///< 3 x vertices, m
  const double* normals = nullptr;    ///< 3 x vertices, outward; of any length but 0
  int vertices = 0;
  const int* triangles = nullptr;  ///< 3 x count, counter-clockwise seen from outside
  int count = 0;
  bool closed = false;                    ///< nothing of the inside can be seen
  const int* shadow_triangles = nullptr;  ///< 3 x shadow_count; null: the triangles
  int shadow_count = 0;
};

constexpr int largest_size = 8192;  // pixels

class Rasteriser {
 public:
  /// Pixels; num_threads: 0: all cores. Throws std::invalid_argument naming argument and value, as all that follows.
  Rasteriser(int width, int height, int num_threads);
  ~Rasteriser();
  Rasteriser(const Rasteriser&) = delete;
  Rasteriser& operator=(const Rasteriser&) = delete;

  int width() const;
  int height() const;

  /// Keeps a copy; the number by which instances name it.
  int add_surface(const SurfaceArrays& surface);

  /// rgb: height x width x 3. depth, if not null: height x width, m along the camera's forward axis to what is nearest there; infinity in the
  /// sky. What is transparent has no depth;
  /// what is drawn in front of all seems nearer than it is.
  void render(const Frame& frame, std::uint8_t* rgb, float* depth = nullptr);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace coulomb::render
