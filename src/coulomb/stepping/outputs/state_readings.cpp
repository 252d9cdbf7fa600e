// Outputs of a state that a user gives: checked input in front of StateOutputs.
#include "coulomb/configuration.hpp"
#include "coulomb/outputs.hpp"
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
