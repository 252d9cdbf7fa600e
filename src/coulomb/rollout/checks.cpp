#include "coulomb/rollout/checks.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "coulomb/stepping/mocap.hpp"

namespace coulomb {
namespace {

/// Neither nan nor infinite.
bool all_finite(const double* x, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    if (!std::isfinite(x[i])) return false;
  return true;
}

}  // namespace

void refuse(const std::string& name, long long got, const std::string& expected) {
  throw std::invalid_argument(name + ": got " + std::to_string(got) + ", expected " + expected);
}

void refuse_number(const std::string& name, std::initializer_list<std::size_t> index, double value) {
  // As an array is indexed.
  std::string place;
  for (const std::size_t i : index)
    place += (place.empty() ? "" : ", ") + std::to_string(i);

  // Named alike on all platforms.
  const char* number = value > 0 ? "inf" : "-inf";
  if (std::isnan(value)) number = "nan";
  throw std::invalid_argument(name + "[" + place + "] is " + number + ", expected a finite number");
}

void check_finite_wrenches(const double* x, int steps, int bodies) {
  if (!x) return;
  const auto width = std::size_t(6) * bodies;
  for (std::size_t i = 0; i < steps * width; ++i)
    if (!std::isfinite(x[i])) {
      refuse_number("fext", {i / width, i % width / 6, i % 6}, x[i]);
    }
}

void check_mocap_rows(const Model& model, const double* x, int steps, const std::string& outer) {
  if (!x) return;
  for (int t = 0; t < steps; ++t)
    check_mocap_poses(model, x + std::size_t(t) * mocap_size(model), "mocap[" + outer + std::to_string(t) + ", ");
}

void check_no_pose(const std::vector<std::string>& parameters, const std::vector<std::string>& poses) {
  for (const std::string& name : parameters)
    if (std::find(poses.begin(), poses.end(), name) != poses.end())
      throw std::invalid_argument("wrt: '" + name +
                                  "' beside 'mocap', which has this derivative step by step; take one of them");
}

/// Null: not given.
void check_finite_rows(const char* name, const double* x, int rows, int columns) {
  if (!x) return;
  const std::size_t count = std::size_t(rows) * columns;
  for (std::size_t i = 0; i < count; ++i)
    if (!std::isfinite(x[i])) {
      refuse_number(name, {i / columns, i % columns}, x[i]);
    }
}

void check_finite_batch(const char* name, const double* x, std::size_t n, std::size_t width, const unsigned char* mask,
                        std::size_t depth) {
  if (!x) return;
  // A row, or a plane of rows, for each environment.
  const std::size_t count = depth ? depth * width : width;
  for (std::size_t i = 0; i < n; ++i) {
    const double* row = x + i * count;
    if ((mask && !mask[i]) || all_finite(row, count)) continue;

    // The first one that is not finite, named by its indices.
    const double* bad = std::find_if(row, row + count, [](double e) { return !std::isfinite(e); });
    const auto k = std::size_t(bad - row);
    if (depth == 0) {
      refuse_number(name, {i, k}, *bad);
    }
    refuse_number(name, {i, k / width, k % width}, *bad);
  }
}

void check_overflow(const char* what, const double* x, std::size_t count, int step) {
  for (std::size_t i = 0; i < count; ++i) {
    if (std::isfinite(x[i])) continue;
    throw std::overflow_error(std::string(what) + ": the derivative grows beyond the range of double at step " +
                              std::to_string(step) + "; use a shorter trajectory");
  }
}

}  // namespace coulomb
