// ParameterKind: one kind of named parameter ("mass", "friction", ...): which elements of a model have it, its values, and the
// right-hand sides of its derivative. A new kind is one file and one line in registry.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coulomb/parameters.hpp"

namespace coulomb {

struct Contact;
struct DynamicsWorkspace;
struct FrameMotion;
struct ParameterContext;
struct RightHandSide;
struct ShapeMotion;

/// Rows of a contact about its normal, or about its tangents.
enum class TurningRows { torsional, rolling };

class ParameterKind {
 public:
  virtual ~ParameterKind() = default;
  virtual const char* name() const = 0;
  virtual const char* unit() const = 0;
  virtual std::vector<ParameterElement> elements(const Model& model) const = 0;
  virtual void read(const Model& model, const ParameterElement& element, double* values) const = 0;
  /// Throws std::invalid_argument, saying what is wrong after `what`, for values that no body has. The model is the caller's copy.
  virtual void write(Model& model, const ParameterElement& element, const double* values,
                     const std::string& what) const = 0;
  /// out: element.size cleared entries.
  virtual void right_hand_sides(const ParameterContext& context, const ParameterElement& element,
                                RightHandSide* out) const = 0;
  /// Throws std::invalid_argument, saying what is missing after `what`, where there is no derivative with respect to it.
  virtual void check_derivative(const Model&, const ParameterElement&, const std::string& /*what*/) const {}
  /// What each scalar moves at fixed (q, v) (element.size entries appended, or none), and how each moves the surface at a contact. For
  /// readings and contact points; velocities known.
  virtual void frame_motions(const Model&, const DynamicsWorkspace&, const ParameterElement&,
                             std::vector<FrameMotion>&) const {}
  virtual void surface_motions(const Model&, const DynamicsWorkspace&, const Contact&, const ParameterElement&,
                               std::vector<ShapeMotion>&) const {}
  /// Relative change of the length of a pair's rows of torsional or rolling friction.
  virtual double turning_rows_by(const Model&, const ParameterElement&, int /*pair*/, TurningRows) const { return 0; }
  /// Which of the scalars of a geometry's element is its size k, or is that coordinate (axis 0..2 of its frame) of a vertex; -1: none is.
  virtual int size_scalar(const ParameterElement&, int /*k*/) const { return -1; }
  virtual int vertex_scalar(const ParameterElement&, int /*vertex*/, int /*axis*/) const { return -1; }
};

/// Every kind, in the order in which parameters are listed.
const std::vector<std::unique_ptr<ParameterKind>>& parameter_kinds();

// elements that many kinds share
std::vector<ParameterElement> moving_bodies(const Model& model, int size);
std::vector<ParameterElement> all_geometries(const Model& model, int size);
std::vector<ParameterElement> all_joints(const Model& model);  ///< size: the joint's dofs
/// Pairs of geometries that have such a value of their own, "a:b", a before b in the model.
std::vector<ParameterElement> pairs_with(const Model& model, bool (*has)(const PairOverride&));
void refresh_pairs(Model& model);  ///< coefficients of friction, restitution, compliance of the pairs, of the materials

// one per file
std::unique_ptr<ParameterKind> make_mass();
std::unique_ptr<ParameterKind> make_com();
std::unique_ptr<ParameterKind> make_inertia();
std::unique_ptr<ParameterKind> make_friction();
std::unique_ptr<ParameterKind> make_restitution();
std::unique_ptr<ParameterKind> make_pair_friction();
std::unique_ptr<ParameterKind> make_pair_restitution();
std::unique_ptr<ParameterKind> make_torsional_friction();
std::unique_ptr<ParameterKind> make_rolling_friction();
std::unique_ptr<ParameterKind> make_pair_torsional_friction();
std::unique_ptr<ParameterKind> make_pair_rolling_friction();
std::unique_ptr<ParameterKind> make_compliance();
std::unique_ptr<ParameterKind> make_joint_placement();
std::unique_ptr<ParameterKind> make_body_placement();
std::unique_ptr<ParameterKind> make_geometry_placement();
std::unique_ptr<ParameterKind> make_size();
std::unique_ptr<ParameterKind> make_vertices();
std::unique_ptr<ParameterKind> make_heights();
std::unique_ptr<ParameterKind> make_joint_stiffness();
std::unique_ptr<ParameterKind> make_joint_damping();
std::unique_ptr<ParameterKind> make_armature();
std::unique_ptr<ParameterKind> make_joint_friction();
std::unique_ptr<ParameterKind> make_joint_limits();
std::unique_ptr<ParameterKind> make_joint_limit_stiffness();
std::unique_ptr<ParameterKind> make_joint_limit_dashpot();
std::unique_ptr<ParameterKind> make_tendon_limits();
std::unique_ptr<ParameterKind> make_tendon_stiffness();
std::unique_ptr<ParameterKind> make_tendon_armature();
std::unique_ptr<ParameterKind> make_equality_stiffness();
std::unique_ptr<ParameterKind> make_equality_dashpot();
std::unique_ptr<ParameterKind> make_equality_inertia();
std::unique_ptr<ParameterKind> make_tendon_limit_stiffness();
std::unique_ptr<ParameterKind> make_tendon_limit_dashpot();
std::unique_ptr<ParameterKind> make_tendon_limit_inertia();
std::unique_ptr<ParameterKind> make_tendon_friction_dashpot();
std::unique_ptr<ParameterKind> make_tendon_friction_inertia();
std::unique_ptr<ParameterKind> make_joint_friction_dashpot();
std::unique_ptr<ParameterKind> make_joint_friction_inertia();
std::unique_ptr<ParameterKind> make_muscle_force();
std::unique_ptr<ParameterKind> make_tendon_damping();
std::unique_ptr<ParameterKind> make_tendon_friction();
std::unique_ptr<ParameterKind> make_gravity();
std::unique_ptr<ParameterKind> make_gravity_compensation();
std::unique_ptr<ParameterKind> make_timestep();
std::unique_ptr<ParameterKind> make_density();
std::unique_ptr<ParameterKind> make_viscosity();
std::unique_ptr<ParameterKind> make_wind();
std::unique_ptr<ParameterKind> make_fluid_coefficients();
std::unique_ptr<ParameterKind> make_actuator_gain();
std::unique_ptr<ParameterKind> make_actuator_kp();
std::unique_ptr<ParameterKind> make_actuator_kd();
std::unique_ptr<ParameterKind> make_contact_stiffness();
std::unique_ptr<ParameterKind> make_contact_damping();
std::unique_ptr<ParameterKind> make_contact_friction_stiffness();
std::unique_ptr<ParameterKind> make_contact_scale();
std::unique_ptr<ParameterKind> make_contact_dashpot();
std::unique_ptr<ParameterKind> make_pair_stiffness();
std::unique_ptr<ParameterKind> make_pair_dashpot();
std::unique_ptr<ParameterKind> make_pair_inertia();
std::unique_ptr<ParameterKind> make_contact_points();

}  // namespace coulomb
