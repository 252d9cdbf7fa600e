// build_model: from the parts of a scene to a Model, and the checks on the way.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "coulomb/model.hpp"
#include "coulomb/scene_parts.hpp"

namespace coulomb {

/// Flattens parts into a Model: index arrays, collision pairs, neutral configuration; checks that the model can be simulated.
/// Throws std::invalid_argument that names the element and the value.
std::shared_ptr<const Model> build_model(const SceneParts& parts, const Vec3& gravity, double timestep,
                                         double contact_margin);

/// Throws std::invalid_argument unless mass and inertia are those of some rigid body: mass >= 0, and the matrix
/// tr(I)/2 - I (second moments) positive semi-definite, which includes the triangle inequality. `what` opens the message.
/// `advice` ends the message of an inertia that belongs to no body.
void check_inertia(const std::string& what, double mass, const Vec3& com, const std::array<double, 6>& inertia,
                   const std::string& advice = "");
/// The last condition alone, up to the rounding of numbers in files.
bool is_rigid_inertia(const std::array<double, 6>& inertia);

/// Throws unless the mass matrix at the neutral configuration is positive definite; names the joint that has no inertia to move.
struct NeutralInertia;
void check_mass_matrix(const Model& model, const NeutralInertia& neutral);

/// Per body: tr(J M^-1 J^T)/3 of its centre of mass, 1/kg; 0 of those that are fixed to the world.
std::vector<double> linear_mobilities(const NeutralInertia& neutral, const Model& model);
/// Fills pair_weight, pair_torsional_weight, pair_rolling_weight, equality_weight and dof_weight.
void set_constraint_weights(const NeutralInertia& neutral, Model& model);
/// pair_torsional_weight and pair_rolling_weight alone.
void set_turning_weights(const NeutralInertia& neutral, Model& model);

}  // namespace coulomb
