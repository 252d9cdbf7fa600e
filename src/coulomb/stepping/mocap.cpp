#include "coulomb/stepping/mocap.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "coulomb/model/checks.hpp"
#include "coulomb/model/scene/topology.hpp"

namespace coulomb {
namespace {

/// As checks::unit_quaternion gives it.
std::array<double, 4> normalised(const double* q) {
  const double n = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  if (std::abs(n - 1) < 4e-16) return {q[0], q[1], q[2], q[3]};
  return {q[0] / n, q[1] / n, q[2] / n, q[3] / n};
}

/// Finite, and with a quaternion that checks::unit_quaternion takes.
bool is_pose(const double* pose) {
  const double* q = pose + 3;
  const double n = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  return std::all_of(pose, pose + 7, [](double x) { return std::isfinite(x); }) && std::abs(n - 1) <= 1e-6;
}

const char* text(double x) {
  if (std::isnan(x)) return "nan";
  return x > 0 ? "inf" : "-inf";
}

}  // namespace

std::vector<std::string> mocap_parameters(const Model& model) {
  std::vector<std::string> names;
  for (const int body : model.mocap_bodies)
    names.push_back("body_placement/" + model.body_names[body]);
  return names;
}

void check_mocap_poses(const Model& model, const double* poses, const std::string& name) {
  for (std::size_t i = 0; i < model.mocap_bodies.size(); ++i) {
    const double* pose = poses + 7 * i;
    if (is_pose(pose)) continue;

    // What is wrong with it, and where.
    const std::string place = name + std::to_string(i);
    for (int k = 0; k < 7; ++k)
      if (!std::isfinite(pose[k]))
        throw std::invalid_argument(place + ", " + std::to_string(k) + "] is " + text(pose[k]) +
                                    ", expected a finite number");
    const std::string body = "body '" + model.body_names[model.mocap_bodies[i]] + "'";
    checks::unit_quaternion(place + "]: " + body + " quaternion", {pose[3], pose[4], pose[5], pose[6]});
  }
}

void FixedPosesStorage::find(Model& model) {
  // What the model has now may still be looked at: records keep the poses that they have seen.
  std::swap(in_use_, before_);
  if (!in_use_ || in_use_.use_count() > 1) {
    in_use_ = std::make_shared<FixedPoses>();
  }
  std::atomic_thread_fence(std::memory_order_acquire);  // another thread may have looked at it last
  find_fixed_poses(model, in_use_);
}

std::vector<double> mocap_poses(const Model& model) {
  std::vector<double> out(mocap_size(model));
  for (std::size_t i = 0; i < model.mocap_bodies.size(); ++i) {
    const int body = model.mocap_bodies[i];
    std::copy_n(&model.body_pos[3 * body], 3, &out[7 * i]);
    std::copy_n(&model.body_quat[4 * body], 4, &out[7 * i + 3]);
  }
  return out;
}

bool mocap_bodies_are_at(const Model& model, const double* poses) {
  for (std::size_t i = 0; i < model.mocap_bodies.size(); ++i) {
    const int body = model.mocap_bodies[i];
    const double* pose = poses + 7 * i;
    const std::array<double, 4> unit = normalised(pose + 3);
    if (!std::equal(pose, pose + 3, &model.body_pos[3 * body])) return false;
    if (!std::equal(unit.begin(), unit.end(), &model.body_quat[4 * body])) return false;
  }
  return true;
}

void place_mocap_bodies(Model& model, const double* poses, FixedPosesStorage& storage) {
  for (std::size_t i = 0; i < model.mocap_bodies.size(); ++i) {
    const int body = model.mocap_bodies[i];
    const double* pose = poses + 7 * i;
    const std::array<double, 4> unit = normalised(pose + 3);
    std::copy_n(pose, 3, &model.body_pos[3 * body]);
    std::copy_n(unit.data(), 4, &model.body_quat[4 * body]);
  }
  storage.find(model);
}

const Model& MocapModel::at(const std::shared_ptr<const Model>& model, const double* poses) {
  if (!poses) return *model;
  if (original_ != model) {
    original_ = model;
    moved_ = std::make_unique<Model>(*model);
  }
  if (!mocap_bodies_are_at(*moved_, poses)) {
    place_mocap_bodies(*moved_, poses, storage_);
  }
  return *moved_;
}

}  // namespace coulomb
