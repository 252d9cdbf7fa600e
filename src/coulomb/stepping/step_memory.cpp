#include "coulomb/step_memory.hpp"

#include <array>

namespace coulomb {
namespace {

/// What ties a memory to a model: which bodies, joints, shapes, pairs and equalities there are (FNV-1a).
std::uint64_t structure_of(const Model& m) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&hash](const auto& list) {
    hash = (hash ^ list.size()) * 0x100000001b3u;
    for (const auto& x : list)
      hash = (hash ^ static_cast<std::uint64_t>(x)) * 0x100000001b3u;
  };
  add(m.body_parent);
  add(m.joint_type);
  add(m.joint_body);
  add(m.joint_limited);
  add(m.geometry_type);
  add(m.geometry_body);
  add(m.pair_a);
  add(m.pair_b);

  // Shapes and equalities, too.
  for (const auto& mesh : m.meshes)
    add(mesh->face_vertices);
  for (const Equality& e : m.equalities)
    add(std::array{int(e.type), e.body_a, e.body_b, e.joint_a, e.joint_b});
  for (const Equality& e : m.equalities)
    if (e.type == EqualityType::tendon) add(std::array{e.tendon_a, e.tendon_b});
  for (const Tendon& t : m.tendons) {
    add(t.joints);
    for (const TendonPoint& point : t.path)
      add(std::array{int(point.kind), point.body, point.side_body});
  }
  return hash;
}

}  // namespace

StepMemory::StepMemory(const Model& model) : structure(structure_of(model)) {}

/// As of a simulator that took no step.
void StepMemory::reset() {
  collision.reset();
  impulses.clear();
  forget_states();
}

void StepMemory::forget_states() {
  for (auto* x : {&previous_q, &previous_v, &last_q, &last_v})
    x->clear();
  forgotten.clear();
}

}  // namespace coulomb
