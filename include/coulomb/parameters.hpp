// Named parameters of a model, "kind/element" (docs/parameters.md): list, change, and choose some to differentiate by.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coulomb/model.hpp"

namespace coulomb {

class ParameterKind;

struct ParameterInfo {
  /// "mass/box", "kg"; "gravity" and "timestep" have no element
  std::string name;
  std::string unit;

  std::vector<double> value;
};

/// Every parameter of the model with its value, kinds in a fixed order, elements in the model's.
std::vector<ParameterInfo> parameters(const Model& model);

using ParameterValues = std::vector<std::pair<std::string, std::vector<double>>>;

/// A new model with these values; it shares meshes with the old one. Throws std::invalid_argument naming the parameter, element and
/// value: unknown names, wrong sizes, NaN, values that break physics. Nothing is changed then.
std::shared_ptr<const Model> with_parameters(const Model& model, const ParameterValues& values);

struct ParameterElement {
  std::string name;  ///< of the body, geometry, joint or actuator; empty: of the model as a whole
  int index = 0;     ///< of that element
  int size = 1;      ///< scalars
};

/// Some parameters of a model, in the caller's order, as one vector of scalars.
class ParameterSet {
 public:
  ParameterSet() = default;
  ParameterSet(const Model& model, const std::vector<std::string>& names);  ///< throws for unknown or repeated names

  struct Item {
    std::string name;
    const ParameterKind* kind;
    ParameterElement element;
    int first;  ///< of element.size scalars
  };
  const std::vector<Item>& items() const { return items_; }
  int size() const { return size_; }
  void read(const Model& model, double* values) const;

 private:
  std::vector<Item> items_;
  int size_ = 0;
};

}  // namespace coulomb
