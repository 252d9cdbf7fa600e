// Outputs of a state that a user gives: checked input in front of StateOutputs.
#include <algorithm>
#include <cmath>
#include <limits>

#include "coulomb/base/small_math.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/outputs.hpp"
#include "coulomb/parameters/shape_outputs.hpp"
#include "coulomb/parameters/state_outputs.hpp"

namespace coulomb {
namespace {

StateOutputs checked(const Model& model, const std::vector<double>& q, const std::vector<double>& v) {
  check_vector(q, model.nq, "q");
  check_configuration(model, q.data(), "q");
  check_vector(v, model.nv, "v");
  StateOutputs out(model);
  out.move_to(q.data(), v.data());
  return out;
}

}  // namespace

std::vector<double> output_readings(const Model& model, const std::vector<double>& q, const std::vector<double>& v,
                                    const std::vector<std::string>& names) {
  const OutputSet outputs(model, names);
  refuse_forces(outputs, "Model.output");
  const StateOutputs at = checked(model, q, v);
  std::vector<double> out(outputs.size());
  at.read(outputs, out.data());
  return out;
}

RayHit ray(const Model& model, const std::vector<double>& q, const std::array<double, 3>& point,
           const std::array<double, 3>& direction, int excluded_body) {
  check_vector(q, model.nq, "q");
  check_configuration(model, q.data(), "q");
  checks::finite("point", point.data(), 3);
  checks::finite("direction", direction.data(), 3);
  double largest = 0;
  for (const double x : direction)
    largest = std::max(largest, std::abs(x));
  if (largest == 0) checks::fail("direction", "its length is zero: give a vector that points somewhere");
  if (excluded_body < -1 || excluded_body >= model.num_bodies)
    checks::fail("excluded_body", std::to_string(excluded_body) + " is none of the model's " +
                                      std::to_string(model.num_bodies) + " bodies; -1 excludes none");

  Ray along;
  copy3(point.data(), along.origin);
  for (int i = 0; i < 3; ++i)
    along.direction[i] = direction[i] / largest;

  // The square of any length would leave double precision.
  const double length = norm3(along.direction);
  for (double& x : along.direction)
    x /= length;
  DynamicsWorkspace at(model);
  kinematics(model, q.data(), at);
  const std::vector<double> still(model.nv, 0.0);
  velocities(model, still.data(), at);
  const SurfaceHit hit = cast_ray(model, at, along, std::numeric_limits<double>::infinity(), excluded_body);
  return {hit.geometry, hit.t, {hit.normal[0], hit.normal[1], hit.normal[2]}};
}

std::vector<double> output_jacobian(const Model& model, const std::vector<double>& q, const std::vector<double>& v,
                                    const std::vector<std::string>& names, const std::string& wrt, int& columns) {
  const OutputSet outputs(model, names);
  refuse_forces(outputs, "Model.output_jacobian");
  StateOutputs at = checked(model, q, v);
  const std::size_t rows = outputs.tangent_size();
  std::vector<double> out;

  // By the state both halves come at once.
  if (wrt == "q" || wrt == "v") {
    columns = model.nv;
    std::vector<double> other(rows * model.nv);
    out.resize(rows * model.nv);
    at.columns(outputs, wrt == "q" ? out.data() : other.data(), wrt == "q" ? other.data() : out.data());
  } else {
    const ParameterSet set(model, {wrt});
    columns = set.size();
    out.resize(rows * set.size());
    at.parameter_columns(outputs, set, out.data());
  }
  return out;
}

}  // namespace coulomb
