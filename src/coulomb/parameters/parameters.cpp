#include "coulomb/parameters.hpp"

#include <algorithm>

#include "coulomb/model/checks.hpp"
#include "coulomb/model/name_hints.hpp"
#include "coulomb/parameters/parameter_kind.hpp"

namespace coulomb {
namespace {

std::string full_name(const ParameterKind& kind, const ParameterElement& element) {
  return element.name.empty() ? kind.name() : std::string(kind.name()) + "/" + element.name;
}

/// Inputs of a step, which users may take for parameters.
bool is_input(const std::string& name) {
  for (const char* input : {"q", "v", "u", "tau", "q0", "v0"})
    if (name == input) return true;
  return false;
}

/// The kind and the element of a name; throws with names that are alike.
std::pair<const ParameterKind*, ParameterElement> find(const Model& model, const std::string& name) {
  // Split at the first slash.
  const std::size_t slash = name.find('/');
  const std::string kind_name = name.substr(0, slash);
  const std::string element_name = slash == std::string::npos ? "" : name.substr(slash + 1);

  // Of a known kind, the element is looked for ...
  std::vector<std::string> kinds;  // that the model has
  for (const auto& kind : parameter_kinds()) {
    const std::vector<ParameterElement> of_kind = kind->elements(model);
    if (!of_kind.empty()) kinds.push_back(kind->name());
    if (kind_name != kind->name()) continue;
    std::vector<std::string> elements;
    for (const ParameterElement& e : of_kind) {
      if (e.name == element_name) return {kind.get(), e};
      elements.push_back(full_name(*kind, e));
    }

    const std::string what = "parameter '" + name + "'";
    if (elements.empty()) {
      checks::fail(what, "this model has no parameter of kind " + kind_name);
    }
    checks::fail(what, no_such("element", name, elements));
  }

  // ... else the message says what there is.
  if (is_input(name))
    checks::fail(
        "parameter '" + name + "'",
        "is an input of the step, no parameter: its derivative comes unasked (derivatives: A, B, B_tau; vjp: q, v, u, "
        "tau); Rollout.jacobian takes 'q0', 'v0', 'u', 'tau', derivatives of outputs and contacts 'q', 'v', 'u', "
        "'tau'");

  const std::vector<std::string> guess = similar_names(kind_name, kinds);
  checks::fail("parameter '" + name + "'",
               "unknown kind '" + kind_name + "'" + (guess.empty() ? "" : ", did you mean '" + guess[0] + "'?") +
                   "; names are kind/element, kinds of this model are " + listed_names(kinds, kinds.size()) +
                   " (Model.parameters lists all; of outputs and contacts also 'q', 'v', 'u', 'tau')");
}

}  // namespace

std::vector<ParameterInfo> parameters(const Model& model) {
  std::vector<ParameterInfo> out;
  for (const auto& kind : parameter_kinds())
    for (const ParameterElement& e : kind->elements(model)) {
      ParameterInfo info{full_name(*kind, e), kind->unit(), std::vector<double>(e.size)};
      kind->read(model, e, info.value.data());
      out.push_back(std::move(info));
    }
  return out;
}

std::shared_ptr<const Model> with_parameters(const Model& model, const ParameterValues& values) {
  auto out = std::make_shared<Model>(model);
  for (const auto& [name, value] : values) {
    const auto [kind, element] = find(model, name);
    const std::string what = "parameter '" + name + "'";

    // Of the right size, finite, and what the kind can have.
    if (static_cast<int>(value.size()) != element.size)
      checks::fail(what, "got " + std::to_string(value.size()) + " values, expected " + std::to_string(element.size));
    checks::finite(what, value.data(), element.size);
    kind->write(*out, element, value.data(), what);
  }
  return out;
}

ParameterSet::ParameterSet(const Model& model, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (std::any_of(items_.begin(), items_.end(), [&](const Item& i) { return i.name == name; }))
      checks::fail("parameter '" + name + "'", "is listed twice");

    // Scalars lie one after the other, in the order of the names.
    const auto [kind, element] = find(model, name);
    kind->check_derivative(model, element, "parameter '" + name + "'");
    items_.push_back({name, kind, element, size_});
    size_ += element.size;
  }
}

void ParameterSet::read(const Model& model, double* values) const {
  for (const Item& item : items_)
    item.kind->read(model, item.element, values + item.first);
}

}  // namespace coulomb
