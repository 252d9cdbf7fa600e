#include "coulomb/parameters/parameter_kind.hpp"

#include "coulomb/dynamics/joint_forces.hpp"
#include "coulomb/model/scene/materials.hpp"

namespace coulomb {

const std::vector<std::unique_ptr<ParameterKind>>& parameter_kinds() {
  static const std::vector<std::unique_ptr<ParameterKind>> kinds = [] {
    std::vector<std::unique_ptr<ParameterKind>> k;

    // Bodies.
    k.push_back(make_mass());
    k.push_back(make_com());
    k.push_back(make_inertia());

    // Contact.
    k.push_back(make_friction());
    k.push_back(make_restitution());
    k.push_back(make_compliance());
    k.push_back(make_pair_friction());
    k.push_back(make_pair_restitution());
    k.push_back(make_torsional_friction());
    k.push_back(make_rolling_friction());
    k.push_back(make_pair_torsional_friction());
    k.push_back(make_pair_rolling_friction());

    // Geometry.
    k.push_back(make_joint_placement());
    k.push_back(make_body_placement());
    k.push_back(make_geometry_placement());
    k.push_back(make_size());
    k.push_back(make_vertices());
    k.push_back(make_heights());

    // Joints.
    k.push_back(make_joint_stiffness());
    k.push_back(make_joint_damping());
    k.push_back(make_armature());
    k.push_back(make_joint_friction());
    k.push_back(make_joint_limits());
    k.push_back(make_joint_limit_stiffness());
    k.push_back(make_joint_limit_dashpot());
    k.push_back(make_tendon_limits());
    k.push_back(make_tendon_stiffness());
    k.push_back(make_tendon_damping());
    k.push_back(make_tendon_friction());
    k.push_back(make_tendon_armature());
    k.push_back(make_equality_stiffness());
    k.push_back(make_equality_dashpot());
    k.push_back(make_equality_inertia());
    k.push_back(make_tendon_limit_stiffness());
    k.push_back(make_tendon_limit_dashpot());
    k.push_back(make_tendon_limit_inertia());
    k.push_back(make_tendon_friction_dashpot());
    k.push_back(make_tendon_friction_inertia());
    k.push_back(make_joint_friction_dashpot());
    k.push_back(make_joint_friction_inertia());

    // The world and motors.
    k.push_back(make_gravity());
    k.push_back(make_gravity_compensation());
    k.push_back(make_timestep());
    k.push_back(make_density());
    k.push_back(make_viscosity());
    k.push_back(make_wind());
    k.push_back(make_fluid_coefficients());
    k.push_back(make_actuator_gain());
    k.push_back(make_actuator_kp());
    k.push_back(make_actuator_kd());
    k.push_back(make_muscle_force());

    // Springs of contact, and penalty contact.
    k.push_back(make_contact_stiffness());
    k.push_back(make_contact_dashpot());
    k.push_back(make_pair_stiffness());
    k.push_back(make_pair_dashpot());
    k.push_back(make_pair_inertia());
    k.push_back(make_contact_damping());
    k.push_back(make_contact_friction_stiffness());
    k.push_back(make_contact_scale());
    k.push_back(make_contact_points());

    return k;
  }();
  return kinds;
}

std::vector<ParameterElement> moving_bodies(const Model& model, int size) {
  std::vector<ParameterElement> out;
  for (int b = 1; b < model.num_bodies; ++b)
    if (model.body_last_dof[b] >= 0) {
      out.push_back({model.body_names[b], b, size});
    }
  return out;
}

std::vector<ParameterElement> all_geometries(const Model& model, int size) {
  std::vector<ParameterElement> out;
  for (int g = 0; g < model.num_geometries; ++g)
    out.push_back({model.geometry_names[g], g, size});
  return out;
}

std::vector<ParameterElement> all_joints(const Model& model) {
  std::vector<ParameterElement> out;
  for (int j = 0; j < model.num_joints; ++j)
    out.push_back({model.joint_names[j], j, joint_num_dofs(model.joint_type[j])});
  return out;
}

std::vector<ParameterElement> pairs_with(const Model& model, bool (*has)(const PairOverride&)) {
  std::vector<ParameterElement> out;
  for (int p = 0; p < int(model.pair_a.size()); ++p) {
    const std::string name = model.geometry_names[model.pair_a[p]] + ":" + model.geometry_names[model.pair_b[p]];
    if (has(model.pair_overrides[p])) {
      out.push_back({name, p, 1});
    }
  }
  return out;
}

void refresh_pairs(Model& m) {
  for (std::size_t p = 0; p < m.pair_a.size(); ++p) {
    // Materials of the pair, for contact that is rigid ...
    const PairMaterial material =
        combine_materials(m.geometry_materials[m.pair_a[p]], m.geometry_materials[m.pair_b[p]], m.pair_overrides[p]);
    m.pair_friction[p] = material.friction;
    m.pair_restitution[p] = material.restitution;
    m.pair_compliance[p] = material.compliance;
    m.pair_torsional_friction[p] = material.torsional_friction;
    m.pair_rolling_friction[p] = material.rolling_friction;

    // ... and for what gives way.
    m.pair_penalty[p] = combine_penalty(m.geometry_materials[m.pair_a[p]].penalty,
                                        m.geometry_materials[m.pair_b[p]].penalty, m.pair_overrides[p]);
  }
}

}  // namespace coulomb
