// Names of one kind of element: each is taken once; and those that a Scene has taken.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "coulomb/scene.hpp"

namespace coulomb {

class NamePool {
 public:
  bool has(const std::string& name) const { return taken_.count(name) > 0; }
  void add(const std::string& name) { taken_.insert(name); }

  /// The name itself, or the first of name_2, name_3, ... that is free.
  std::string free(const std::string& name) {
    if (!has(name)) return name;
    int& number = next_.try_emplace(name, 2).first->second;
    for (;; ++number) {
      std::string candidate = name + "_" + std::to_string(number);
      if (!has(candidate)) return candidate;
    }
  }

 private:
  template <class Archive>
  friend void fields(Archive& archive, NamePool& pool);  // scene_archive.cpp

  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int>
      next_;  ///< smaller numbers are taken, and stay so; found again when it is missing
};

/// One pool per list of parts; shapes: bodies and geometries together; robots: what loaders added.
struct Scene::Names {
  NamePool bodies;
  NamePool joints;
  NamePool geometries;
  NamePool tendons;
  NamePool actuators;
  NamePool equalities;
  NamePool keyframes;
  NamePool sites;
  NamePool sensors;
  NamePool pinocchio_maps;
  NamePool shapes;
  NamePool robots;
};

}  // namespace coulomb
