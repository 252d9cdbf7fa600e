// Simulator: one model, one time step, one memory, and the derivatives of its steps.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coulomb/derivatives.hpp"
#include "coulomb/model.hpp"
#include "coulomb/solver.hpp"
#include "coulomb/step_memory.hpp"

namespace coulomb {

// Behind the door: their headers are not installed.
class StepGradient;
struct StepOptions;
struct StepRecord;

struct SimulatorOptions {
  double timestep = 0;           ///< seconds; 0: the model's own
  std::string contact = "auto";  ///< "ncp" | "lcp" | "penalty"; auto: "ncp", with an implicit stepper "penalty"
  int friction_directions = 2;   ///< "lcp": the friction polygon has twice as many sides, 2 .. 16
  std::string friction_polygon =
      "circumscribed";  ///< "lcp": around the disc of the cone, with 2 directions the boxed LCP | "inscribed"
  std::string stepper = "semi_implicit";  ///< | "bdf1" | "bdf2"
  std::string solver =
      "automatic";  ///< "automatic" (regularised; Newton's method, else an interior point) | by itself, on the problem without
                    ///< compliance: "ac_lm" | "admm" | "pgs" | "dantzig" (boxed LCP)
  double tolerance = 1e-10;             ///< scaled residual of the constraint problem
  int max_iterations = 3000;            ///< budget of a solver by itself; "automatic" has its own
  double baumgarte = 0.1;               ///< share of a position error removed per step, [0, 1]
  double slop = 0;                      ///< m, rad: violation that Baumgarte leaves alone
  double max_correction_speed = 1.0;    ///< m/s, rad/s
  double restitution_threshold = 1e-2;  ///< m/s: slower approaches do not bounce
  std::string gyroscopic = "implicit";  ///< free and ball joints spin torque-free | "explicit", as MuJoCo's Euler
  std::string joint_forces =
      "implicit_velocity";  ///< velocity gains of actuators act at the end of the step, as joint damping does | "explicit", as
                            ///< MuJoCo's Euler | "implicit": position gains and joint springs, too
  bool continuous_collision = false;    ///< split steps at impacts (docs/impacts.md)
  int max_impacts = 32;                 ///< of one step: more lose their restitution; beyond twice as many, bodies wait
  double penetration_tolerance = 1e-5;  ///< m: how deep touching bodies may sink within a step that is split
  bool patches = true;                  ///< remember manifold points from step to step (hysteresis); false: stateless
  bool warm_start = true;
  bool exclude_neutral_overlaps =
      true;  ///< leave out pairs of one robot's own geometries that the joints between them cannot part
  /// "exact" | "complementarity_aware" (vjp) | "approximate_bounce" | "smoothed_collision" | "smoothed_step" | "from_distance"
  std::string gradient = "exact";
  int gradient_samples = 32;     ///< of the smoothed gradients
  double gradient_scale = 1e-3;  ///< their standard deviation: m, rad, m/s, rad/s
  std::uint64_t gradient_seed = 0;
  double tie_margin = 1e-6;  ///< complementarity_aware: contacts nearer to the border of their mode are ties
  // Penalty contact, where the geometries say nothing; unset: Model::penalty. The simulator's model takes them over.
  std::optional<double> contact_stiffness, contact_damping;  ///< N/m, N s/m^2
  std::optional<double> contact_friction_stiffness;          ///< N s/m
  // Joint limits, equalities and joint dry friction are springs with an implicit stepper and with penalty contact
  double limit_stiffness = 1e4, limit_damping = 1e3;        ///< N/m, N s/m^2 (or N m/rad, N m s/rad^2)
  double equality_stiffness = 1e6, equality_damping = 1e3;  ///< N/m, N s/m (or N m/rad, N m s/rad)
  double dry_friction_velocity = 1e-3;              ///< m/s, rad/s: from here on dry friction has its full force, about
  int newton_iterations = 50, newton_halvings = 8;  ///< implicit steppers: budget; how often a step may be halved
};

/// Model::ignored and Model::deviations, and the pairs that simulators leave out of it (exclude_neutral_overlaps):
/// a look at each pair of one robot's own geometries. The model of a simulator has these lines itself.
std::vector<std::string> ignored_lines(const Model& model);
std::vector<std::string> deviation_lines(const Model& model);

struct State {
  std::vector<double> q, v;
};

/// How the last step went. converged: the constraint problem was solved as posed.
struct StepStatus {
  bool converged = true;
  int iterations = 0;
  double residual = 0;        ///< scaled, of what was solved: the problem with its small compliance (docs/theory.md)
  double exact_residual = 0;  ///< scaled, of the problem without it
  double relaxation = 0;      ///< the larger compliance, relative to W, of the constraints that gave way
  bool classes_hit = false;   ///< the last step's contact modes held: one linear solve
  std::string reason;         ///< "solved", or why not
  /// The constraints that no velocity satisfies together, that friction jams, or whose errors no moderate motion removes:
  /// "<geometry> on <geometry>", "joint <name> at its lower limit", "equality <name>".
  std::vector<std::string> contradictions;
  /// The constraints that lacked most where no solution was found, and why is not known.
  std::vector<std::string> unsolved;
  /// The constraints of which rounding hides whether they contradict one another: masses or inertias are too far apart.
  std::vector<std::string> badly_scaled;
  /// How far: what these constraints move together, as 1 to so much of what they move one by one; 0: none is.
  double scale_ratio = 0;
};

/// One contact of the last step, in world axes; impulse acts on A, its opposite on B.
struct ContactReport {
  std::string geometry_a, geometry_b, body_a, body_b;
  double point[3], normal[3];  ///< m; unit, from B to A
  double frame[9];             ///< rows: two tangents and the normal
  double depth = 0;            ///< m, > 0 penetrating
  double impulse[3];           ///< N s
  double torque[3];            ///< N m: of torsional and rolling friction, on A
  double velocity[3];          ///< m/s: of A relative to B at the point, after the step
  double friction = 0;
  Mode mode = Mode::separating;
  int facet =
      -1;  ///< "lcp", sliding: side (even, or odd if inscribed) or vertex, at the angle pi facet / sides from frame's t1
  /// "lcp": the moment about the normal and those about the tangents: 1 or -1 where it is at its bound, 0 where it holds, or is none
  int turning[3] = {0, 0, 0};
  bool tie = false;     ///< on the border of two modes: the gradient is that of the side reported in `mode`
  double margin = 0;    ///< distance to the border, relative to the problem's scale
  bool frozen = false;  ///< no local derivative of the geometry exists; the declared fall-back is used
};

/// One point of an impact of a step that was split, or one joint at its limit (no geometries then). World axes; the impulse acts on A, its opposite on B.
struct ImpactReport {
  double time = 0;  ///< s since the start of the step
  std::string geometry_a, geometry_b, body_a, body_b;
  std::string joint;                                   ///< at its limit; empty: two geometries
  double point[3] = {0, 0, 0}, normal[3] = {0, 0, 0};  ///< m; unit, from B to A
  double approach = 0;                                 ///< m/s (limit: the joint's): > 0, just before
  double impulse[3] = {0, 0, 0};                       ///< N s; limit: along the joint, in [0]
  bool grazing = false;  ///< found by a motion almost along the surface: the time is held fixed in derivatives
};

class Simulator {
 public:
  explicit Simulator(std::shared_ptr<const Model> model, SimulatorOptions options = {});
  ~Simulator();
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  /// One step from (q, v) under u (nu), extra joint forces tau (nv) and body wrenches fext (num_bodies x 6); empty: zero. Throws
  /// std::invalid_argument naming argument, element and value; numerical trouble is in status(), results are always finite: where
  /// numbers overflow, the next state is the state given.
  void step(const State& state, const std::vector<double>& u, State& next, const std::vector<double>& tau = {},
            const std::vector<double>& fext = {});
  /// In place.
  void step(State& state, const std::vector<double>& u = {}) { step(state, u, state); }
  /// As above, on raw arrays of the model's sizes; tau, fext, u may be null (zero). Checks every value.
  void step(const double* q, const double* v, const double* u, const double* tau, const double* fext, double* q_next,
            double* v_next);

  /// Places a body that is fixed to the world, such as scenery or a mocap body, for the steps to come: position (3, m) and quaternion
  /// (4, w x y z, unit to 1e-6) in the world. It stands still within a step: what lies on it is not carried along. The last step has no
  /// derivative any more. Throws std::invalid_argument for a body that has a joint, or a parent other than the world.
  void move_body(int body, const double* position, const double* quaternion);
  /// The same for all of Model::mocap_bodies: rows of 7 numbers, position and quaternion. All are moved or, if one is refused, none; where
  /// they are already, nothing happens.
  void move_mocap_bodies(const double* poses);

  StepStatus status() const;
  /// The last step's numbers overflowed: the state stayed as it was and there are no derivatives.
  bool overflowed() const;
  /// derivatives() will not throw: a step was taken, it did not overflow, and its state is not so large that derivatives would.
  bool differentiable() const;
  std::vector<ContactReport> contacts() const;
  /// With continuous_collision: the impacts of the last step.
  std::vector<ImpactReport> impacts() const;
  /// Steps since construction: tells whether derivatives are still those of the last step.
  std::uint64_t step_count() const;

  /// Jacobian of the last step; valid until the next one. Throws std::logic_error before the first step and after one
  /// whose numbers overflowed.
  const StepDerivatives& derivatives();
  /// The same, valid as long as it is held.
  std::shared_ptr<const StepDerivatives> shared_derivatives();
  /// As above, with the columns of named parameters (StepDerivatives::parameters_T). Throws for unknown names.
  std::shared_ptr<const StepDerivatives> derivatives(const std::vector<std::string>& parameters);
  /// The Jacobian by islands (and the columns of named parameters, dense), without a matrix of nv x nv: for scenes of many bodies. With
  /// steppers other than the semi-implicit one, and where a step has no derivative of its own (gradients by averages): one island.
  std::shared_ptr<const SparseStepDerivatives> sparse_derivatives(const std::vector<std::string>& parameters = {});
  /// Derivative of the contact impulses by "q", "v", "u", "tau" or a parameter: 3 rows (two tangents, normal: ContactReport::frame)
  /// per contact of contacts(), row major, `columns` wide. Throws for unknown names.
  std::vector<double> impulse_derivatives(const std::string& wrt, int& columns);
  /// Cotangents of (q, v, u, tau) for cotangents of (q1, v1), all in tangent spaces: dq1, dv1 of size nv; and of named parameters, and
  /// of wrenches on bodies if wanted.
  StepCotangent vjp(const double* dq1, const double* dv1, const std::vector<std::string>& parameters = {},
                    bool wants_fext = false);
  /// Tangents of (q1, v1) for tangents of the inputs; null: zero.
  void jvp(const double* dq, const double* dv, const double* du, const double* dtau, double* dq1, double* dv1);

  /// Forgets the last step: the next one starts cold.
  void reset();
  /// Multistep methods start anew: the next step depends on no state before its own. Contact features and impulses are remembered.
  void forget_states();
  /// The memory that steps carry on (contact features, impulses): save and restore for exact replays and finite differences.
  const StepMemory& memory() const;
  /// Throws std::invalid_argument if the memory belongs to a model of another structure (bodies, joints, shapes, pairs).
  void set_memory(const StepMemory& memory);
  /// While frozen, steps read the memory and do not write it.
  void freeze_memory(bool frozen);

  const Model& model() const;
  std::shared_ptr<const Model> shared_model() const;
  const SimulatorOptions& options() const;
  double timestep() const;

  // For the rooms that build on steps: rollouts, batches, outputs.
  const StepRecord& record() const;
  /// The model as it was before move_mocap_bodies: the same object however often they move.
  std::shared_ptr<const Model> unmoved_model() const;
  const StepOptions& resolved_options() const;
  /// The derivative of the last step, prepared. Throws as derivatives().
  StepGradient& gradient();
  /// From now on differentiates with this object, which simulators of equal models and options may share in turn: a batch needs one per
  /// thread, and a workspace that stays in the cache.
  void share_gradient(std::shared_ptr<StepGradient> gradient);
  /// While kept, steps leave in their record what Stepper::keep writes of them.
  void keep_steps(bool kept);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace coulomb
