// Model: what a scene is, as flat arrays. Immutable once built, shared between threads.
//
// Conventions are MuJoCo's (docs/theory.md (D1)): body 0 is the world; a body's frame is placed in its parent's frame by
// (body_pos, body_quat) and then moved by its joints in order; quaternions are (w, x, y, z); SI units.
// Degrees of freedom are ordered depth first, so the dofs that move a body's subtree are contiguous (dof d moves dofs
// d .. dof_subtree_end[d]-1) and the dofs on the path to the root are prefixes of one another.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coulomb/sensors.hpp"

namespace coulomb {

enum class JointType : std::uint8_t { free, ball, slide, hinge };
enum class ShapeType : std::uint8_t { half_space, sphere, capsule, cylinder, box, ellipsoid, mesh, surface };
enum class EqualityType : std::uint8_t { connect, weld, joint, tendon };
enum class ActivationType : std::uint8_t { none, integrator, filter, filter_exact, muscle };

/// How one geometry gives way in contact. Unset values are the partner's; but without a stiffness of either, constraints ("ncp", "lcp") are
/// rigid, and penalty contact takes PenaltyDefaults.
struct PenaltyMaterial {
  std::optional<double> stiffness;           ///< k_n, N/m, > 0: of every law of contact
  std::optional<double> damping;             ///< k_d, N s/m^2: of penalty contact, times the depth
  std::optional<double> friction_stiffness;  ///< k_t, N s/m: of penalty contact
  double scale = 1;                          ///< s: of all of the geometry's contact forces
  std::optional<double> dashpot;             ///< d, N s/m: of "ncp" and "lcp"; only with a stiffness
};

/// Contact properties that belong to a pair and to neither of its geometries.
struct PenaltyDefaults {
  double stiffness = 1e5;           ///< k_n, N/m, > 0
  double damping = 1e5;             ///< k_d, N s/m^2, >= 0: at 1 m/s as strong as the spring
  double friction_stiffness = 1e4;  ///< k_t, N s/m, >= 0
};

/// Surface of one geometry. Unset values are the partner's; priority and condim as in MuJoCo (condim 1: frictionless; 4: with torsional
/// friction, 6: with rolling friction, too).
struct GeometryMaterial {
  std::optional<double> friction;
  std::optional<double> restitution;
  double compliance = 0;
  int priority = 0;
  int condim = 3;
  PenaltyMaterial penalty;
  std::optional<double> torsional_friction;  ///< m, >= 0: acts in contacts of condim 4 and more
  std::optional<double> rolling_friction;    ///< m, >= 0: of condim 6
};

/// How MuJoCo's files soften a constraint, read where that is asked for (docs/conventions.md, "The softness of MJCF files").
struct Softness {
  /// solref: time constant (s) and damping ratio; both <= 0: -stiffness and -damping per effective mass (1/s^2, 1/s)
  std::array<double, 2> reference{0.02, 1};
  /// solimp: d at depth 0 and at full depth, full depth (m or rad), midpoint, power
  std::array<double, 5> impedance{0.9, 0.95, 0.001, 0.5, 2};
  double least_time = 0;  ///< s: of the time constant, twice the file's time step (refsafe)
  /// 1/kg: of the geometry's body or of the joint, which R is in proportion to; 0: that of the model in its neutral pose
  double mobility = 0;
  double angular_mobility = 0;  ///< 1/(kg m^2): the same of a weld's rotation
};

/// The same of a geometry, with what its contacts need besides.
struct ContactSoftness {
  Softness law;
  double mix = 1;              ///< solmix: weight against the partner's law, where priorities are equal
  double margin = 0;           ///< m, >= 0: contacts push from this distance on; those of two geometries add
  int condim = 3;              ///< of the contact's rows there
  bool pyramids = true;        ///< friction cones are pyramids there, whose edges stiffen the normal
  double impedance_ratio = 1;  ///< of friction, impratio
};

/// How the numbers of a spring depend on its depth r. With d(r) from d_0 to d_1 over the full depth, along two pieces of powers, and
/// w = d/(1 - d): dashpot and inertia are w(r)/w(full) times those of full depth, the stiffness d(r)/d_1 times that. Constant if d_0 = d_1.
struct SpringCurve {
  double inertia = 0;     ///< kg or kg m^2: mass at full depth that moves with the surface while the spring pushes
  double start = 0.5;     ///< d_0, in (0, 1)
  double end = 0.5;       ///< d_1, in (0, 1)
  double full_depth = 1;  ///< m or rad, > 0
  double midpoint = 0.5;  ///< share of the full depth where the pieces meet
  double power = 2;       ///< >= 1
};

/// The law of a soft equality, limit of a tendon or dry friction, at full depth; dry friction has no stiffness.
struct RowSpring {
  double stiffness = 0;  ///< N/m or N m/rad
  double dashpot = 0;    ///< N s/m or N m s/rad
  SpringCurve curve;
  bool acts() const { return curve.inertia > 0; }  ///< else the row is rigid
};

/// The spring of a pair by itself, at full depth.
struct PairSpring {
  double stiffness = 0;  ///< N/m, > 0
  double dashpot = 0;    ///< N s/m
  double margin = 0;     ///< m: it pushes from this distance on
  SpringCurve curve;
};

/// A pair's own values, where it has them (MJCF <pair>).
struct PairOverride {
  std::optional<double> friction;
  std::optional<double> restitution;
  std::optional<PairSpring> spring;
  std::optional<double> torsional_friction;  ///< m: acts whatever the condim
  std::optional<double> rolling_friction;
  std::optional<int> condim;  ///< instead of that of the geometries
};

/// Whose value the pair has. none: the pair's own, or frictionless; either: the default, until one of the two is given a value.
enum class Owner : unsigned char { none, a, b, either };

/// Two springs in series: the softer counts more, and an unset stiffness is rigid. Dashpots of two springs are in series too, that of one
/// counts alone. The larger damping and friction stiffness count, scales multiply. Unset: set by neither.
struct PairPenalty {
  std::optional<double> stiffness;
  std::optional<double> damping;
  std::optional<double> friction_stiffness;
  double scale = 1;
  Owner damping_owner = Owner::none;
  Owner friction_stiffness_owner = Owner::none;
  double dashpot = 0;
  double margin = 0;  ///< m: of "ncp" and "lcp", the distance from which a spring pushes
  SpringCurve curve;
};

/// A convex polyhedron in its geometry's frame. Faces are merged planar polygons with outward normals, counter-clockwise.
struct ConvexMesh {
  std::vector<double> vertices;      ///< 3 n, metres
  std::vector<int> face_start;       ///< num_faces + 1 offsets into face_vertices
  std::vector<int> face_vertices;    ///< vertex indices of each face, counter-clockwise seen from outside
  std::vector<double> face_normals;  ///< 3 num_faces, unit, outward
  std::vector<double> face_offsets;  ///< n·x of the face's plane
  std::vector<int> neighbour_start;  ///< num_vertices + 1 offsets into neighbours: vertices joined by an edge
  std::vector<int> neighbours;
  std::vector<int> face_neighbour;     ///< aligned with face_vertices: the face across edge (v_i, v_{i+1})
  std::vector<int> vertex_face_start;  ///< num_vertices + 1 offsets into vertex_faces: faces around each vertex
  std::vector<int> vertex_faces;
  std::vector<int> support_start;     ///< offsets into support_vertices, one per cell of directions (direction_cell)
  std::vector<int> support_vertices;  ///< the vertices that may be farthest along some direction of the cell
  std::array<double, 3> center{};     ///< an interior point (mean of vertices)

  /// Bounding box in the geometry frame.
  std::array<double, 3> aabb_center{};
  std::array<double, 3> aabb_half{};

  std::string name;
  int num_vertices() const { return static_cast<int>(vertices.size() / 3); }
  int num_faces() const { return static_cast<int>(face_offsets.size()); }
};

/// Heights over a grid, row by row, centred on the frame's z axis: x = (column - (columns - 1) / 2) spacing[0], y by rows alike. A cell is two
/// triangles, cut from (row, column) to (row + 1, column + 1).
struct HeightField {
  std::vector<double> heights;          ///< rows x columns, m
  int rows = 0;                         ///< >= 2
  int columns = 0;                      ///< >= 2
  std::array<double, 2> spacing{1, 1};  ///< m: between columns, along x, and between rows, along y
  double base = 1;                      ///< m, > 0: from the lowest height down to the floor of the solid
};

/// A surface of triangles that need not be convex: a height field, a terrain, scenery. Solid behind its triangles, which are counter-clockwise
/// seen from outside.
struct TriangleSurface {
  std::vector<double> vertices;  ///< 3 n, metres, in the geometry's frame
  std::vector<int> triangles;    ///< 3 m indices
  std::vector<double> normals;   ///< 3 m, unit, outward
  std::vector<int> across;       ///< 3 m: the triangle across edge (k, k + 1) of each; -1: the border
  std::vector<std::uint8_t>
      features;                 ///< m: what of the triangle's edges and corners can touch by itself (SurfaceFeature)
  std::vector<int> ring_start;  ///< n + 1 offsets into ring: vertices joined to each by an edge
  std::vector<int> ring;

  // A tree of boxes over the triangles, in preorder: the first child of node i is i + 1.
  std::vector<double> node_box;  ///< 6 per node: lower corner, upper corner
  std::vector<int> node_second;  ///< the second child; -1 - k: a leaf with the triangles leaf_triangles[k ..]
  std::vector<int> node_count;   ///< of a leaf: how many
  std::vector<int>
      node_plane;  ///< a triangle of the plane that all triangles below lie in, none at the border; -1: there is none
  std::vector<int> leaf_triangles;

  /// Of a height field: its first rows x columns vertices are the grid, row by row; walls and a floor follow. Else 0.
  int rows = 0;
  int columns = 0;

  std::array<double, 3> aabb_center{};
  std::array<double, 3> aabb_half{};
  std::string name;
  int num_vertices() const { return static_cast<int>(vertices.size() / 3); }
  int num_triangles() const { return static_cast<int>(triangles.size() / 3); }
  int num_heights() const { return rows * columns; }
};

/// An element of a spatial tendon's path: a point of a body, an obstacle that the tendon wraps around on its way to the next point, or a
/// pulley, which ends one branch and begins another.
struct TendonPoint {
  enum class Kind : std::uint8_t { site, sphere, cylinder, pulley, slider };
  Kind kind = Kind::site;

  int body = 0;
  std::array<double, 3> pos{};             ///< m, in the body's frame
  std::array<double, 4> quat{1, 0, 0, 0};  ///< of a cylinder or a slider, whose axis is its z
  double radius = 0;                       ///< m, of an obstacle; cylinders have no ends; of a slider the rod's length

  /// Of an obstacle: a point on whose side the tendon passes; within the obstacle, the tendon touches it from within. -1: the shorter way round.
  int side_body = -1;
  std::array<double, 3> side_pos{};

  double divisor = 1;  ///< of a pulley: lengths of its branch count 1 / divisor
};

/// A tendon, fixed: its length is sum_i coefficients[i] q of joints[i], hinges and slides; or spatial: the length of its path.
struct Tendon {
  std::string name;
  std::vector<int> joints;
  std::vector<double> coefficients;  ///< m per unit of the joint's coordinate, or any other unit
  std::vector<TendonPoint> path;     ///< spatial; else empty

  // In a Model: the dofs that its length depends on (of a fixed one, of its joints in their order), and the weight of its rows.
  std::vector<int> dofs;
  double weight = 1;
  bool limited = false;
  double lower = 0;
  double upper = 0;

  double stiffness = 0;  ///< spring, N per unit of length, beyond these lengths
  double spring_lower = 0;
  double spring_upper = 0;
  double damping = 0;       ///< N s per unit of length
  double dry_friction = 0;  ///< N
  double armature = 0;      ///< kg: inertia that moves with the length; none around obstacles

  /// How soft the limits and the dry friction are: as a file says it, and in a Model.
  std::optional<Softness> limit_softness;
  std::optional<Softness> friction_softness;
  RowSpring limit_spring;
  RowSpring friction_spring;

  /// Within which bounds the sum of the forces of its actuators stays: beyond, all of them shrink alike. Zero lies within.
  bool force_limited = false;
  std::array<double, 2> force_range{0, 0};
};

/// What bodies move in: air, water. 0: nothing.
struct Medium {
  double density = 0;            ///< kg/m^3
  double viscosity = 0;          ///< Pa s
  std::array<double, 3> wind{};  ///< m/s, world: its velocity
};

/// The box that the medium sees in place of a body (MuJoCo: that of its inertia); size 0: none.
struct MediumBox {
  std::array<double, 3> pos{};  ///< its middle in the body's frame
  std::array<double, 4> quat{1, 0, 0, 0};
  std::array<double, 3> size{};  ///< m, full sides
};

/// An ellipsoid that the medium sees in place of a geometry (MuJoCo's fluidshape). A body that has some has no MediumBox.
struct MediumEllipsoid {
  std::array<double, 3> pos{};  ///< its middle in the body's frame
  std::array<double, 4> quat{1, 0, 0, 0};
  std::array<double, 3> semiaxes{};         ///< m
  std::array<double, 5> coefficients{};     ///< of blunt drag, slender drag, angular drag, Kutta lift, Magnus lift
  std::array<double, 3> virtual_mass{};     ///< m^3, by axis: of the medium that moves along, per density
  std::array<double, 3> virtual_inertia{};  ///< m^5, the same
  double scale = 1;                         ///< of the whole force
};

/// A muscle's force by its length and velocity, from MuJoCo's curves: -peak_force (FL(L) FV(V) u + FP(L)), which pulls. L: the length in units
/// of that at which it is strongest, L = range[0] at length_range[0] and range[1] at length_range[1]; V: its rate, 1 = fastest.
struct Muscle {
  bool pulls = false;                        ///< FL FV u is the gain of the actuator
  bool resists = false;                      ///< FP is its bias
  double peak_force = 1;                     ///< N
  std::array<double, 2> length_range{0, 1};  ///< m
  std::array<double, 2> range{0.75, 1.05};
  double shortest = 0.5;   ///< L where FL begins
  double longest = 1.6;    ///< and where it ends
  double fastest = 1.5;    ///< dL/dt of V = 1, per second: FV is zero at V = -1
  double passive = 1.3;    ///< FP halfway from 1 to `longest`, twice over
  double stretched = 1.2;  ///< FV of a muscle that is stretched fast

  // Of its activation: s, and the width of the switch between them.
  double activation_time = 0.01;
  double deactivation_time = 0.04;
  double smoothing = 0;
};

/// Motor of one joint dof direction, of a tendon, or of a frame of a body (a site: the force is the wrench gear there, which turns with it): force = gear * clamp(gain·clamp(u) + bias) (with an activation: u is that, unclamped), gain/bias affine in (length, velocity).
struct Actuator {
  std::string name;
  int joint = -1;   ///< -1: it pulls a tendon or pushes a body
  int tendon = -1;  ///< -1: it pulls none
  int body = -1;    ///< -1: it pushes none. Its frame in the body:
  std::array<double, 3> site_pos{};
  std::array<double, 4> site_quat{1, 0, 0, 0};
  int reference_body = -1;  ///< the body that it pushes off, against which its length is measured; -1: none. Its frame:
  std::array<double, 3> reference_pos{};
  std::array<double, 4> reference_quat{1, 0, 0, 0};
  std::array<double, 6> gear{
      1, 0, 0, 0,
      0, 0};  ///< one entry for hinge/slide and tendon, 3 for ball, 6 for free (MuJoCo order) and site (force, torque)
  bool in_parent_frame = false;         ///< MuJoCo's jointinparent transmission (ball and free joints)
  std::array<double, 3> gain{1, 0, 0};  ///< gain = g0 + g1 length + g2 velocity
  std::array<double, 3> bias{0, 0, 0};  ///< bias = b0 + b1 length + b2 velocity
  bool control_limited = false;
  bool force_limited = false;
  std::array<double, 2> control_range{0, 0};
  std::array<double, 2> force_range{0, 0};

  // Of an actuator with a state of its own, an activation. To steps u is what acts, its activation; the caller moves that on by its control.
  ActivationType activation = ActivationType::none;
  double time_constant = 0;  ///< s, of filters
  bool acts_early = false;   ///< a step feels the activation at its end
  bool activation_limited = false;
  std::array<double, 2> activation_range{0, 0};
  Muscle muscle;  ///< beside the activation its curves take the place of gain and bias
};

/// connect: point pos_a of body a coincides with pos_b of body b. weld: frame (pos_a, quat_a) of a coincides with (pos_b, quat_b)
/// of b. joint: q[joint_a] - ref_a = poly(q[joint_b] - ref_b) (hinge or slide; joint_b = -1: constant). tendon: the same of the lengths of
/// tendon_a and tendon_b.
struct Equality {
  std::string name;
  EqualityType type = EqualityType::connect;
  int body_a = 0;
  int body_b = 0;
  int joint_a = -1;
  int joint_b = -1;
  int tendon_a = -1;
  int tendon_b = -1;
  std::array<double, 3> pos_a{};
  std::array<double, 3> pos_b{};
  std::array<double, 4> quat_a{1, 0, 0, 0};
  std::array<double, 4> quat_b{1, 0, 0, 0};
  double torque_scale = 1.0;  ///< weld: weight of the rotation rows
  std::array<double, 5> poly{0, 1, 0, 0, 0};
  double ref_a = 0;
  double ref_b = 0;
  bool active = true;

  /// How soft it is: as a file says it, and in a Model.
  std::optional<Softness> softness;
  RowSpring spring;
  double angular_share = 0;  ///< m^2: what a weld's rotation has of the spring
};

struct Keyframe {
  std::string name;
  std::vector<double> q;
  std::vector<double> v;
  std::vector<double> u;
};

/// How one joint's coordinates in a `pin` model (or a URDF read by Pinocchio) relate to ours. scalar: same number; continuous:
/// pin stores (cos, sin); free: pin stores (x, y, z, qx, qy, qz, qw) and body-frame velocities; ball: (qx, qy, qz, qw); planar: pin
/// stores (x, y, cos, sin) and body-frame velocities, ours are slide, slide, hinge.
struct PinocchioJoint {
  enum class Kind : std::uint8_t { scalar, continuous, free, ball, planar };
  Kind kind = Kind::scalar;

  // First indices there and here.
  int pin_q = 0;
  int pin_v = 0;
  int q = 0;
  int v = 0;

  std::array<double, 3> base_pos{};  ///< free: placement of pin's joint in the world
  std::array<double, 4> base_quat{1, 0, 0, 0};
};

struct PinocchioMap {
  std::string name;

  int nq = 0;  ///< size of pin's q
  int nv = 0;  ///< size of pin's v

  std::vector<PinocchioJoint> joints;
};

/// Where the bodies are that are fixed to the world, the world too: in the order of `bodies`.
struct FixedPoses {
  std::vector<int> bodies;
  std::vector<double> position;    ///< 3
  std::vector<double> quaternion;  ///< 4
  std::vector<double> rotation;    ///< 9, row major
};

struct Model {
  int nq = 0;
  int nv = 0;
  int nu = 0;
  int num_bodies = 0;
  int num_joints = 0;
  int num_geometries = 0;
  int num_trees = 0;
  std::array<double, 3> gravity{0, 0, -9.81};
  double timestep = 1e-3;  ///< the scene's own; the Simulator may choose another

  // bodies (size num_bodies; [0] is the world)
  std::vector<std::string> body_names;
  std::vector<int> body_parent;  ///< < own index; world: -1
  std::vector<int> body_first_joint;
  std::vector<int> body_num_joints;
  std::vector<int> body_first_dof;
  std::vector<int> body_num_dofs;

  /// Last dof on the path from the root up to and including this body; -1: fixed to the world
  std::vector<int> body_last_dof;

  std::vector<int> body_subtree_end;  ///< bodies b .. end-1 are b's subtree
  std::vector<int> body_tree;         ///< kinematic tree; -1: fixed to the world
  std::vector<int> tree_first_dof;    ///< num_trees + 1: tree t has the dofs tree_first_dof[t] .. [t + 1] - 1

  std::vector<int> moving_bodies;                 ///< the others, ascending
  std::shared_ptr<const FixedPoses> fixed_poses;  ///< another object whenever a fixed body is placed elsewhere

  std::vector<double> body_pos;      ///< 3: origin in the parent's frame at zero joint motion
  std::vector<double> body_quat;     ///< 4: its axes there
  std::vector<double> body_mass;     ///< kg
  std::vector<double> body_com;      ///< 3: centre of mass in the body frame
  std::vector<double> body_inertia;  ///< 6: Ixx Ixy Iyy Ixz Iyz Izz about the com, body axes

  /// Share of its weight that a force at the com takes away: 1 floats, 0 (default) weighs (MuJoCo's gravcomp)
  std::vector<double> body_gravity_compensation;

  /// Bodies of the world that the caller moves (MJCF mocap), ascending: Simulator::move_body
  std::vector<int> mocap_bodies;

  // joints
  std::vector<std::string> joint_names;
  std::vector<JointType> joint_type;

  std::vector<int> joint_body;  ///< the body that it moves
  std::vector<int> joint_q;     ///< first index in q
  std::vector<int> joint_v;     ///< first index in v

  std::vector<double> joint_pos;   ///< 3: anchor in the body frame
  std::vector<double> joint_axis;  ///< 3: unit axis in the body frame
  std::vector<std::uint8_t> joint_limited;

  std::vector<double> joint_lower;
  std::vector<double> joint_upper;             ///< ball: rotation angle <= upper
  std::vector<double> joint_limit_stiffness;   ///< N/m or N m/rad, of the limits; 0: they are rigid
  std::vector<double> joint_limit_dashpot;     ///< N s/m or N m s/rad, while a limit is reached
  std::vector<SpringCurve> joint_limit_curve;  ///< of both with the depth
  std::vector<double> joint_stiffness;         ///< passive spring, N/m or Nm/rad; free joints too (MuJoCo)

  /// Clamp of the summed actuator force (MuJoCo's actuatorfrcrange); ±inf if none.
  std::vector<double> joint_actuator_lower;
  std::vector<double> joint_actuator_upper;

  std::vector<double> q_neutral;  ///< nq: MuJoCo's qpos0; hinge and slide kinematics use q - q_neutral
  std::vector<double> q_spring;   ///< nq: spring rest configuration

  // dofs (size nv)
  std::vector<int> dof_body, dof_joint,
      dof_parent;              ///< dof_parent: previous dof on the path to the root; -1 at the root
  std::vector<int> dof_depth;  ///< number of ancestor dofs
  std::vector<int> dof_subtree_end;
  std::vector<int> dof_path;  ///< packed rows: for dof d the dofs on its root path, itself last
  std::vector<int> dof_row;   ///< nv + 1: start of row d in packed rows (row length dof_depth[d] + 1)

  std::vector<double> dof_damping;             ///< N s/m or N m s/rad
  std::vector<double> dof_armature;            ///< kg or kg m^2
  std::vector<double> dof_dry_friction;        ///< N or N m
  std::vector<RowSpring> dof_friction_spring;  ///< how it creeps; none: it holds

  // geometries
  std::vector<std::string> geometry_names;
  std::vector<ShapeType> geometry_type;

  std::vector<int> geometry_body;
  std::vector<int> geometry_mesh;  ///< index into meshes, of a surface into surfaces; else -1

  std::vector<double> geometry_pos;   ///< 3: in the body frame
  std::vector<double> geometry_quat;  ///< 4: in the body frame

  /// 3: sphere (r,,); capsule, cylinder (r, half-length,) along z; box half-sides; ellipsoid semi-axes; half_space:
  /// solid z <= 0; mesh and surface: none
  std::vector<double> geometry_size;

  std::vector<double> geometry_friction;
  std::vector<double> geometry_restitution;
  std::vector<double> geometry_compliance;
  std::vector<double> geometry_torsional_friction;  ///< m: counts in contacts of condim 4 and more
  std::vector<double> geometry_rolling_friction;    ///< m: in those of condim 6

  /// As given; the five arrays above hold the values with defaults filled in
  std::vector<GeometryMaterial> geometry_materials;

  std::vector<std::shared_ptr<const ConvexMesh>> meshes;
  std::vector<std::shared_ptr<const TriangleSurface>> surfaces;
  std::vector<int> contact_point_start;  ///< num_geometries + 1 offsets into contact_points, in points

  /// 3 per point, geometry frame: where penalty contact looks (empty: the narrow phase)
  std::vector<double> contact_points;

  // collision pairs that may touch (geometry a < geometry b), filtered by the loader's masks
  std::vector<int> pair_a;
  std::vector<int> pair_b;
  std::vector<double> pair_friction, pair_restitution,
      pair_compliance;  ///< combined; compliance in m/(N s): velocity per impulse
  /// Combined, m: the torque about the normal, and that of rolling, per normal force. 0: none.
  std::vector<double> pair_torsional_friction, pair_rolling_friction;
  std::vector<PairOverride> pair_overrides;
  std::vector<PairPenalty> pair_penalty;
  PenaltyDefaults penalty;          ///< what pairs leave unset
  std::vector<double> pair_margin;  ///< contacts are made while the distance is below this

  // Weights of constraint rows, in 1/kg (rows that turn: 1/(kg m^2)): about the diagonal of the rows' mobility J M^-1 J^T, taken at the
  // neutral pose when the scene is built and the same ever after, whatever parameters change. Sums over the two bodies of a pair or
  // equality, bodies fixed to the world 0; where that leaves nothing, 1. With T = J M^-1 J^T of a body's linear velocity at a point,
  // A of its angular velocity:
  /// tr T / 3 at the centre of mass + min(2/9 r^2 tr A, 3 / mass), r^2 = the geometry's bounding radius squared +
  /// its distance from the centre of mass squared (half-spaces: r = 0)
  std::vector<double> pair_weight;

  /// Rows of torsional and of rolling friction: l^2 tr A / 3 with l = their coefficient over that of sliding when the scene is built, or
  /// usual_contact_radius where that is 0
  std::vector<double> pair_torsional_weight, pair_rolling_weight;

  /// 2 per equality. Rows of points: tr T / 3 there; rows that turn: torque_scale^2 tr A / 3.
  /// joint: dof_weight of a + slope^2 that of b, twice; tendon: the same of the weights of tendons
  std::vector<double> equality_weight;

  std::vector<double> dof_weight;  ///< nv: (M^-1)_dd

  std::vector<Tendon> tendons;
  std::vector<Actuator> actuators;
  std::vector<Equality> equalities;
  std::vector<Keyframe> keyframes;
  std::vector<Site> sites;
  std::vector<Sensor> sensors;
  std::vector<PinocchioMap> pinocchio_maps;  ///< one per robot read by Pinocchio; otherwise one that covers every joint
  std::vector<std::string> ignored;          ///< what loaders left out or replaced, one line each (ignored_lines)
  std::vector<std::string> deviations;       ///< those of these lines that the motion may feel (deviation_lines)

  Medium medium;
  std::vector<MediumBox> body_medium_box;  ///< num_bodies
  std::vector<MediumEllipsoid> medium_ellipsoids;
  std::vector<int>
      body_first_ellipsoid;  ///< num_bodies + 1: those of a body end where the next one's begin; or empty: none

  bool has_joint_springs = false;
  bool has_spring_curves = false;  ///< contacts or limits whose numbers depend on their depth
  bool has_gravity_compensation = false;

  /// Index of each geometry's first point in contact_points; its points end where the next geometry's begin.
  int first_contact_point(int geometry) const {
    return contact_point_start.empty() ? 0 : contact_point_start[static_cast<std::size_t>(geometry)];
  }
};

/// Models as bytes: what a file or another process gets. Read again they are the same, bit for bit; meshes that models share stay shared.
using Models = std::vector<std::shared_ptr<const Model>>;
std::string save_models(const Models& models);
/// Throws std::invalid_argument for bytes that save_models did not write: "model: ...".
Models load_models(std::string_view bytes);

}  // namespace coulomb
