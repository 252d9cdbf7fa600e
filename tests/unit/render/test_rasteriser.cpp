// Pixels of known triangles: coverage, depth, what is clipped, floors and their shadows, the same bits for any number of threads, and what is refused.
#include "coulomb/render/rasteriser.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>

#include "check.hpp"
#include "coulomb/base/small_math.hpp"
#include "count_allocations.hpp"

using namespace coulomb::render;

namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

/// Looks along +y from the origin, x to the right, z up; at distance w a metre is focal / w pixels.
Camera along_y(double focal) {
  Camera camera;
  const double axes[9] = {1, 0, 0, 0, 0, 1, 0, 1, 0};
  std::copy_n(axes, 9, camera.axes);
  camera.focal = focal;
  return camera;
}

/// Black sky: what is not black is a surface.
Frame in_the_dark(double focal) {
  Frame frame;
  frame.camera = along_y(focal);
  for (auto& colour : frame.sky) std::fill_n(colour, 3, 0.0f);
  const double from_camera[3] = {0, -1, 0};
  std::copy_n(from_camera, 3, frame.light);
  return frame;
}

struct Picture {
  int width, height;
  std::vector<std::uint8_t> rgb;
  std::vector<float> depth;

  Picture(Rasteriser& rasteriser, const Frame& frame)
      : width(rasteriser.width()), height(rasteriser.height()), rgb(3 * width * height), depth(width * height) {
    rasteriser.render(frame, rgb.data(), depth.data());
  }
  int red(int x, int y) const { return rgb[3 * (y * width + x)]; }
  int green(int x, int y) const { return rgb[3 * (y * width + x) + 1]; }
  int blue(int x, int y) const { return rgb[3 * (y * width + x) + 2]; }
  double depth_at(int x, int y) const { return depth[y * width + x]; }
  /// Of samples: a pixel that is covered by half counts half.
  double covered(int full) const {
    double sum = 0;
    for (int i = 0; i < width * height; ++i) sum += static_cast<double>(rgb[3 * i]) / full;
    return sum;
  }
};

/// Vertices (x, z) at distance y, facing the camera.
int add_flat(Rasteriser& rasteriser, const std::vector<double>& xz, const std::vector<int>& triangles, double y = 1,
             bool closed = false) {
  std::vector<double> positions;
  std::vector<double> normals;
  for (std::size_t i = 0; i < xz.size(); i += 2) {
    positions.insert(positions.end(), {xz[i], y, xz[i + 1]});
    normals.insert(normals.end(), {0, -1, 0});
  }
  SurfaceArrays arrays;
  arrays.positions = positions.data();
  arrays.normals = normals.data();
  arrays.vertices = static_cast<int>(xz.size() / 2);
  arrays.triangles = triangles.data();
  arrays.count = static_cast<int>(triangles.size() / 3);
  arrays.closed = closed;
  return rasteriser.add_surface(arrays);
}

Instance painted(int surface, float red, float green, float blue, float alpha = 1) {
  Instance instance;
  instance.surface = surface;
  const float rgba[4] = {red, green, blue, alpha};
  std::copy_n(rgba, 4, instance.rgba);
  return instance;
}

void a_square_covers_its_pixels() {
  // 16 x 16 pixels, 8 of them a metre: from 0.25 to 0.75 m right of the middle are pixels 10 to 13, up to 0.5 m above it rows 4 to 7.
  Rasteriser rasteriser(16, 16, 1);
  const int square = add_flat(rasteriser, {0.25, 0, 0.75, 0, 0.75, 0.5, 0.25, 0.5}, {0, 1, 2, 0, 2, 3});
  Frame frame = in_the_dark(8);
  frame.instances.push_back(painted(square, 1, 0, 0));
  const Picture picture(rasteriser, frame);
  for (int y = 0; y < 16; ++y) {
    for (int x = 0; x < 16; ++x) {
      const bool inside = x >= 10 && x < 14 && y >= 4 && y < 8;
      CHECK((picture.red(x, y) == 255) == inside);
      CHECK(picture.red(x, y) == 255 || picture.red(x, y) == 0);
      CHECK(picture.green(x, y) == 0);
      CHECK(inside ? std::abs(picture.depth_at(x, y) - 1) < 1e-6 : std::isinf(picture.depth_at(x, y)));
    }
  }
}

void a_triangle_covers_half_its_square_and_is_soft_along_the_edge() {
  Rasteriser rasteriser(64, 64, 1);
  const int triangle = add_flat(rasteriser, {-1, -1, 1, -1, 1, 1}, {0, 1, 2});
  Frame frame = in_the_dark(30);
  frame.instances.push_back(painted(triangle, 1, 1, 1));
  const Picture picture(rasteriser, frame);
  CHECK_NEAR(picture.covered(255), 60 * 60 / 2, 60 * 0.26);
  CHECK(picture.red(40, 32) == 255);
  CHECK(picture.red(20, 12) == 0);
  const int on_edge = picture.red(40, 63 - 40);
  CHECK(on_edge > 60 && on_edge < 200);
}

/// Every sample of a shared edge belongs to one triangle: what is transparent shows two as darker, none as a gap.
void neighbours_share_no_sample_and_miss_none() {
  Rasteriser rasteriser(70, 70, 1);
  std::mt19937 random(3);
  std::vector<double> xz = {0, 0};
  std::vector<int> fan;
  const int rim = 23;
  for (int i = 0; i < rim; ++i) {
    const double angle = 2 * M_PI * (i + 0.8 * (random() / 4294967296.0)) / rim;
    xz.insert(xz.end(), {3 * std::cos(angle), 3 * std::sin(angle)});
    fan.insert(fan.end(), {0, 1 + i, 1 + (i + 1) % rim});
  }
  xz[0] = 0.0123;
  xz[1] = 0.0071;
  const int disc = add_flat(rasteriser, xz, fan);
  Frame frame = in_the_dark(20);  // wider than the picture
  frame.instances.push_back(painted(disc, 1, 1, 1, 0.5f));
  const Picture picture(rasteriser, frame);
  int differing = 0;
  for (std::size_t i = 0; i < picture.rgb.size(); ++i) differing += picture.rgb[i] != 128;
  CHECK(differing == 0);
}

void the_nearer_one_is_seen_whatever_the_order() {
  for (const bool near_first : {true, false}) {
    Rasteriser rasteriser(32, 32, 1);
    const int square = add_flat(rasteriser, {-1, -1, 1, -1, 1, 1, -1, 1}, {0, 1, 2, 0, 2, 3});
    Instance red = painted(square, 1, 0, 0);
    Instance blue = painted(square, 0, 0, 1);
    red.origin[1] = 1;
    blue.origin[1] = 2;
    blue.origin[0] = 1;
    Frame frame = in_the_dark(16);
    frame.instances = near_first ? std::vector{red, blue} : std::vector{blue, red};
    const Picture picture(rasteriser, frame);
    CHECK(picture.red(20, 16) == 255 && picture.blue(20, 16) == 0);
    CHECK(picture.red(25, 16) == 0 && picture.blue(25, 16) == 255);
    CHECK_NEAR(picture.depth_at(20, 16), 2, 1e-6);
    CHECK_NEAR(picture.depth_at(25, 16), 3, 1e-6);
  }
}

void what_is_in_front_hides_all_else_and_is_ordered_within() {
  Rasteriser rasteriser(32, 32, 1);
  const int square = add_flat(rasteriser, {-1, -1, 1, -1, 1, 1, -1, 1}, {0, 1, 2, 0, 2, 3});
  Instance wall = painted(square, 1, 0, 0);
  Instance first = painted(square, 0, 1, 0);
  Instance second = painted(square, 0, 0, 1);
  first.origin[1] = 1;
  second.origin[1] = 2;
  first.in_front = second.in_front = true;
  Frame frame = in_the_dark(12);
  frame.instances = {second, first, wall};
  const Picture picture(rasteriser, frame);
  CHECK(picture.green(16, 16) == 255 && picture.blue(16, 16) == 0 && picture.red(16, 16) == 0);
  CHECK(picture.red(16, 16 + 10) == 255);
}

/// Two squares that pass through each other: the line between is where they are equally deep.
void depth_is_compared_at_every_sample() {
  Rasteriser rasteriser(64, 64, 1);
  const int square = add_flat(rasteriser, {-1, -1, 1, -1, 1, 1, -1, 1}, {0, 1, 2, 0, 2, 3}, 0);
  Instance red = painted(square, 1, 0, 0);
  Instance blue = painted(square, 0, 0, 1);
  red.origin[1] = blue.origin[1] = 2;
  blue.linear[3] = 0.7;  // nearer on the left
  Frame frame = in_the_dark(60);
  frame.instances = {red, blue};
  const Picture picture(rasteriser, frame);
  CHECK(picture.red(40, 30) == 255 && picture.blue(40, 30) == 0);
  CHECK(picture.red(24, 30) == 0 && picture.blue(24, 30) > 200);
}

void what_is_behind_the_camera_is_not_drawn() {
  Rasteriser rasteriser(32, 32, 1);
  const int square = add_flat(rasteriser, {-1, -1, 1, -1, 1, 1, -1, 1}, {0, 1, 2, 0, 2, 3}, -2);
  const int before_nearest = add_flat(rasteriser, {-1, -1, 1, -1, 1, 1, -1, 1}, {0, 1, 2, 0, 2, 3}, 0.005);
  Frame frame = in_the_dark(16);
  frame.instances = {painted(square, 1, 1, 1), painted(before_nearest, 1, 1, 1)};
  CHECK(Picture(rasteriser, frame).covered(255) == 0);
}

/// A floor of one large triangle that begins behind the camera covers the lower half up to the horizon, and nothing above.
void a_triangle_through_the_camera_is_cut_at_the_nearest() {
  Rasteriser rasteriser(64, 64, 1);
  const double positions[] = {-1e4, -1e4, -1, 1e4, -1e4, -1, 0, 1e6, -1};
  const double normals[] = {0, 0, 1, 0, 0, 1, 0, 0, 1};
  const int corners[] = {0, 1, 2};
  SurfaceArrays arrays;
  arrays.positions = positions;
  arrays.normals = normals;
  arrays.vertices = 3;
  arrays.triangles = corners;
  arrays.count = 1;
  const int ground = rasteriser.add_surface(arrays);
  Frame frame = in_the_dark(32);
  frame.instances = {painted(ground, 1, 1, 1)};
  const Picture picture(rasteriser, frame);
  for (int x = 0; x < 64; ++x) {
    for (int y = 0; y < 64; ++y) CHECK((picture.red(x, y) > 0) == (y >= 32));
    CHECK_NEAR(picture.depth_at(x, 63), 1 / (31.5 / 32),
               0.03);  // a ray 31.5 pixels down sinks a metre in 32 / 31.5; the lowest sample is nearer
  }
}

void what_has_no_area_is_not_drawn() {
  Rasteriser rasteriser(32, 32, 1);
  const int line = add_flat(rasteriser, {-1, -1, 1, 1, 0, 0}, {0, 1, 2});
  const int point = add_flat(rasteriser, {0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, {0, 1, 2});
  const int twice = add_flat(rasteriser, {-1, -1, 1, 1, 0, 1}, {0, 0, 1});
  Frame frame = in_the_dark(16);
  frame.instances = {painted(line, 1, 1, 1), painted(point, 1, 1, 1), painted(twice, 1, 1, 1)};
  CHECK(Picture(rasteriser, frame).covered(255) == 0);

  Instance flattened = painted(line, 1, 1, 1);
  std::fill_n(flattened.linear, 9, 0.0);
  frame.instances = {flattened};
  CHECK(Picture(rasteriser, frame).covered(255) == 0);
}

void the_inside_of_what_is_closed_is_left_out() {
  for (const bool closed : {true, false}) {
    Rasteriser rasteriser(32, 32, 1);
    const int away = add_flat(rasteriser, {-1, -1, 1, -1, 1, 1}, {0, 2, 1}, 1, closed);
    Frame frame = in_the_dark(16);
    frame.instances = {painted(away, 1, 1, 1)};
    CHECK((Picture(rasteriser, frame).covered(255) == 0) == closed);
  }
}

/// Light falls on the side that is seen, also of a mirrored surface.
void faces_to_the_light_are_brighter() {
  Rasteriser rasteriser(32, 32, 1);
  const int square = add_flat(rasteriser, {-1, -1, 1, -1, 1, 1, -1, 1}, {0, 1, 2, 0, 2, 3});
  Instance plain = painted(square, 0.5f, 0.5f, 0.5f);
  Instance mirrored = plain;
  mirrored.linear[0] = -1;
  Frame frame = in_the_dark(16);
  frame.instances = {plain};
  const int towards = Picture(rasteriser, frame).red(16, 16);
  frame.instances = {mirrored};
  CHECK(Picture(rasteriser, frame).red(16, 16) == towards);
  frame.light[1] = 1;
  CHECK(Picture(rasteriser, frame).red(16, 16) < 0.8 * towards);
  frame.instances = {plain};
  CHECK(Picture(rasteriser, frame).red(16, 16) < 0.8 * towards);
}

void what_is_transparent_lets_through_its_part_from_far_to_near() {
  Rasteriser rasteriser(32, 32, 1);
  const int square = add_flat(rasteriser, {-1, -1, 1, -1, 1, 1, -1, 1}, {0, 1, 2, 0, 2, 3});
  Instance glass = painted(square, 1, 0, 0, 0.5f);
  Instance behind = painted(square, 0, 1, 0, 0.5f);
  Instance wall = painted(square, 0, 0, 1);
  behind.origin[1] = 0.5;
  wall.origin[1] = 1;
  Frame frame = in_the_dark(16);
  for (const auto& order : {std::vector{glass, behind, wall}, std::vector{wall, behind, glass}}) {
    frame.instances = order;
    const Picture picture(rasteriser, frame);
    CHECK_NEAR(picture.red(16, 16), 128, 1);
    CHECK_NEAR(picture.green(16, 16), 64, 1);
    CHECK_NEAR(picture.blue(16, 16), 64, 1);
    CHECK_NEAR(picture.depth_at(16, 16), 2, 1e-6);
  }
}

/// A metre above the floor, the sun to the right by 45 degrees: the shadow lies a metre to the left. Squares of 1 m, seen from above.
void shadows_lie_along_the_light_and_squares_where_they_are() {
  Rasteriser rasteriser(60, 60, 1);
  Frame frame;
  frame.camera.position[2] = 30;
  const double axes[9] = {1, 0, 0, 0, 1, 0, 0, 0, -1};
  std::copy_n(axes, 9, frame.camera.axes);
  frame.camera.focal = 300;  // 10 pixels a metre on the floor
  frame.fade = 1e6;
  Floor floor;
  for (int i = 0; i < 3; ++i) {
    floor.colours[0][i] = 1.0f;
    floor.colours[1][i] = 0.5f;
  }
  frame.floors = {floor};
  const double light[3] = {1, 0, 1};
  std::copy_n(light, 3, frame.light);

  const Picture empty(rasteriser, frame);
  for (int y = 0; y < 6; ++y)
    for (int x = 0; x < 6; ++x) CHECK_NEAR(empty.red(10 * x + 5, 10 * y + 5), (x + y) % 2 == 0 ? 128 : 255, 1);
  CHECK_NEAR(empty.depth_at(5, 5), 30, 1e-4);

  const double positions[] = {-0.5, -0.5, 1, 0.5, -0.5, 1, 0.5, 0.5, 1, -0.5, 0.5, 1};
  const double normals[] = {0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1};
  const int corners[] = {0, 1, 2, 0, 2, 3};
  SurfaceArrays arrays;
  arrays.positions = positions;
  arrays.normals = normals;
  arrays.vertices = 4;
  arrays.triangles = corners;
  arrays.count = 2;
  Instance plate = painted(rasteriser.add_surface(arrays), 0, 0, 1);
  frame.instances = {plate};
  const Picture picture(rasteriser, frame);
  for (int x = 0; x < 60; ++x) {
    const bool shaded = x >= 15 && x < 25;  // a metre wide, around x = -1 m
    if (std::abs(x - 14.5) > 1 && std::abs(x - 24.5) > 1)
      CHECK((picture.red(x, 28) < 0.8 * empty.red(x, 28)) == (shaded || (x >= 25 && x < 36)));
  }
  CHECK(picture.blue(30, 30) == 255 && picture.red(30, 30) == 0);
  CHECK(std::memcmp(&picture.rgb[0], &empty.rgb[0], 3 * 60 * 20) == 0);

  frame.instances[0].casts_shadow = false;
  CHECK(Picture(rasteriser, frame).red(20, 28) == empty.red(20, 28));
}

/// A heap of random triangles of every size.
Frame crowded(Rasteriser& rasteriser) {
  std::mt19937 random(7);
  const auto uniform = [&random] { return random() / 4294967296.0 - 0.5; };
  std::vector<double> positions;
  std::vector<double> normals;
  std::vector<int> corners;
  for (int i = 0; i < 900; ++i) {
    for (int k = 0; k < 3; ++k) {
      positions.push_back(2 * uniform());
      normals.push_back(uniform() + 0.6);
    }
    corners.push_back(i);
  }
  SurfaceArrays arrays;
  arrays.positions = positions.data();
  arrays.normals = normals.data();
  arrays.vertices = 900;
  arrays.triangles = corners.data();
  arrays.count = 300;
  const int surface = rasteriser.add_surface(arrays);
  Frame frame;
  frame.camera = along_y(150);
  frame.floors.push_back(Floor{});
  frame.floors[0].origin[2] = -1.5;
  for (int i = 0; i < 6; ++i) {
    Instance instance = painted(surface, 0.2f * i / 1.1f, 0.5f, 1 - 0.15f * i, i % 2 == 0 ? 1.0f : 0.6f);
    instance.origin[0] = uniform();
    instance.origin[1] = 0.6 * i;  // the first around the camera
    frame.instances.push_back(instance);
  }
  return frame;
}

void the_bits_are_the_same_on_every_run_and_for_any_number_of_threads() {
  Rasteriser one(203, 117, 1);
  const Frame frame = crowded(one);
  const Picture first(one, frame);
  const Picture again(one, frame);
  CHECK(first.rgb == again.rgb);
  CHECK(first.depth == again.depth);
  for (const int threads : {2, 3, 8}) {
    Rasteriser many(203, 117, threads);
    crowded(many);
    const Picture picture(many, frame);
    CHECK(picture.rgb == first.rgb);
    CHECK(picture.depth == first.depth);
  }
}

void a_frame_like_the_one_before_allocates_nothing() {
  Rasteriser rasteriser(128, 96, 2);
  const Frame frame = crowded(rasteriser);
  std::vector<std::uint8_t> rgb(3 * 128 * 96);
  rasteriser.render(frame, rgb.data());
  const long before = allocations;
  rasteriser.render(frame, rgb.data());
  CHECK(allocations == before);
}

template <class Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

void CHECK_says(const std::string& said, const std::string& expected) {
  if (said.find(expected) == std::string::npos) std::printf("said: %s\nexpected: %s\n", said.c_str(), expected.c_str());
  CHECK(said.find(expected) != std::string::npos);
}

void bad_input_is_refused_by_name() {
  CHECK_says(refusal([] { Rasteriser(0, 10, 1); }), "width: got 0");
  CHECK_says(refusal([] { Rasteriser(10, 10000, 1); }), "height: got 10000");
  CHECK_says(refusal([] { Rasteriser(10, 10, -1); }), "num_threads: got -1");

  Rasteriser rasteriser(16, 16, 1);
  CHECK_says(refusal([&] { add_flat(rasteriser, {0, 0, 1, no_number, 1, 1}, {0, 1, 2}); }), "positions[5]: got nan");
  CHECK_says(refusal([&] { add_flat(rasteriser, {0, 0, 1, 0, 1, 1}, {0, 1, 3}); }), "triangles[0]: got 3");
  CHECK_says(refusal([&] { add_flat(rasteriser, {}, {}); }), "vertices: got 0");

  const int triangle = add_flat(rasteriser, {-1, -1, 1, -1, 1, 1}, {0, 1, 2});
  Frame sound = in_the_dark(8);
  sound.instances = {painted(triangle, 1, 1, 1)};
  sound.floors.push_back(Floor{});
  const auto said = [&](auto&& spoil) {
    Frame frame = sound;
    spoil(frame);
    std::vector<std::uint8_t> rgb(16 * 16 * 3);
    return refusal([&] { rasteriser.render(frame, rgb.data()); });
  };
  CHECK(said([](Frame&) {}).empty());
  CHECK_says(said([](Frame& f) { f.camera.position[1] = no_number; }), "camera.position[1]: got nan");
  CHECK_says(said([](Frame& f) { f.camera.axes[0] = 2; }), "camera.axes: rows 0 and 0");
  CHECK_says(said([](Frame& f) { f.camera.focal = 0; }), "camera.focal: got 0");
  CHECK_says(said([](Frame& f) { std::fill_n(f.light, 3, 0.0); }), "light: has no length");
  CHECK_says(said([](Frame& f) { f.fade = no_number; }), "fade: got nan");
  CHECK_says(said([](Frame& f) { f.floors[0].square = -1; }), "floors[0].square: got -1");
  CHECK_says(said([](Frame& f) { f.floors.resize(17); }), "floors: got 17");
  CHECK_says(said([](Frame& f) { f.instances[0].origin[2] = 1 / 0.0; }), "instances[0].origin[2]: got inf");
  CHECK_says(said([](Frame& f) { f.instances[0].linear[4] = no_number; }), "instances[0].linear[4]: got nan");
  CHECK_says(said([](Frame& f) { f.instances[0].rgba[3] = 2; }), "instances[0].rgba[3]: got 2");
  CHECK_says(said([](Frame& f) { f.instances[0].surface = 5; }), "instances[0].surface: got 5");
}

}  // namespace

int main() {
  a_square_covers_its_pixels();
  a_triangle_covers_half_its_square_and_is_soft_along_the_edge();
  neighbours_share_no_sample_and_miss_none();
  the_nearer_one_is_seen_whatever_the_order();
  what_is_in_front_hides_all_else_and_is_ordered_within();
  depth_is_compared_at_every_sample();
  what_is_behind_the_camera_is_not_drawn();
  a_triangle_through_the_camera_is_cut_at_the_nearest();
  what_has_no_area_is_not_drawn();
  the_inside_of_what_is_closed_is_left_out();
  faces_to_the_light_are_brighter();
  what_is_transparent_lets_through_its_part_from_far_to_near();
  shadows_lie_along_the_light_and_squares_where_they_are();
  the_bits_are_the_same_on_every_run_and_for_any_number_of_threads();
  a_frame_like_the_one_before_allocates_nothing();
  bad_input_is_refused_by_name();
  return coulomb::test::report();
}
