// Models of the `pin` package from their binary buffers (boost archives, as saveToBinary writes them).
#include "coulomb/model/loaders/pinocchio_loader.hpp"

#include <boost/archive/binary_iarchive.hpp>
#include <pinocchio/serialization.hpp>

#include <sstream>

#include "coulomb/model/checks.hpp"
#include "coulomb/model/loaders/pinocchio_parts.hpp"

namespace coulomb {
namespace {

/// What saveToBinary wrote.
template <class T>
void load(const std::string& buffer, T& out, const char* what) {
  if (buffer.empty()) {
    throw std::invalid_argument(std::string("add_pinocchio ") + what + ": the buffer is empty");
  }
  try {
    std::istringstream stream(buffer, std::ios::binary);
    boost::archive::binary_iarchive archive(stream);
    archive >> out;
  } catch (const std::exception& error) {
    throw std::invalid_argument(std::string("add_pinocchio ") + what +
                                ": not a buffer of saveToBinary: " + error.what());
  }
}

}  // namespace

SceneParts read_pinocchio_buffers(const std::string& model_buffer, const std::string& geometry_buffer,
                                  const PinocchioOptions& options, std::string& name) {
  // Options first, then what takes time to read.
  PinocchioOptions checked = options;
  checks::finite("add_pinocchio position", options.position.data(), 3);
  checked.quaternion = checks::unit_quaternion("add_pinocchio quaternion", options.quaternion);
  checks::material("add_pinocchio", options.friction, options.restitution, options.compliance);

  pinocchio::Model model;
  pinocchio::GeometryModel geometry;
  load(model_buffer, model, "model");
  if (!geometry_buffer.empty()) load(geometry_buffer, geometry, "geometry_model");

  if (name.empty()) name = model.name;
  checked.name = name;
  SceneParts parts = pinocchio_parts(model, geometry_buffer.empty() ? nullptr : &geometry, checked, false,
                                     FramesKept::all, "pin model '" + name + "'");
  if (!geometry_buffer.empty() && geometry.collisionPairs.empty())
    parts.ignored.push_back("pin model '" + name + "': no collision pairs, so no self-collision");
  return parts;
}

}  // namespace coulomb
