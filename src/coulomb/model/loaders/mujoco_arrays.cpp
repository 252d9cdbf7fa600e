// Compiled MuJoCo arrays to SceneParts: bodies, joints, equalities, keyframes and options. Geometries and actuators have files of
// their own; report_unsupported says what is left out.
#include "coulomb/model/loaders/mujoco_arrays.hpp"

#include "coulomb/model/checks.hpp"
#include "coulomb/model/loaders/mujoco_fields.hpp"
#include "coulomb/model/scene/balanced_inertia.hpp"

namespace coulomb {
namespace {

/// kg: what weighs less has no box in a medium (mjMINVAL).
constexpr double least_mass = 1e-15;

/// R diag(d) R^T as Ixx Ixy Iyy Ixz Iyz Izz.
std::array<double, 6> rotated_inertia(const Quat& q, const Vec3& d) {
  double R[9];
  quaternion_to_matrix(q.data(), R);
  auto entry = [&](int i, int j) {
    double sum = 0;
    for (int k = 0; k < 3; ++k)
      sum += R[3 * i + k] * d[k] * R[3 * j + k];
    return sum;
  };
  return {entry(0, 0), entry(0, 1), entry(1, 1), entry(0, 2), entry(1, 2), entry(2, 2)};
}

/// The box of a body's inertia, which the medium sees; bodies without mass have none.
MediumBox medium_box(const MujocoFields& f, int b) {
  MediumBox box;
  const double mass = f.real("body_mass", b);
  if (!(mass > least_mass)) return box;
  box.pos = f.row<3>("body_ipos", b);
  box.quat = f.row<4>("body_iquat", b);
  box.size = box_of_inertia(mass, f.row<3>("body_inertia", b));
  return box;
}

/// The half axes of the ellipsoid that stands for a geom.
Vec3 semiaxes(const MujocoFields& f, int g) {
  const auto size = f.row<3>("geom_size", g);
  switch (f.integer("geom_type", g)) {
    case mj::sphere: return {size[0], size[0], size[0]};
    case mj::capsule: return {size[0], size[0], size[0] + size[1]};
    case mj::cylinder: return {size[0], size[0], size[1]};
    default: return size;
  }
}

/// The ellipsoids that the medium sees in place of geoms, on the bodies that they belong to: those that have a mass.
void translate_ellipsoids(const MujocoFields& f, SceneParts& parts) {
  constexpr int fluid_numbers = 12;  // mjNFLUID: scale, coefficients (5), virtual mass (3) and inertia (3)
  const int num_bodies = static_cast<int>(parts.bodies.size());
  for (int g = 0; g < f.count("ngeom"); ++g) {
    const int body = f.integer("geom_bodyid", g);
    const double scale = f.real("geom_fluid", fluid_numbers * g, 0);
    // check_parts names a geom of no body.
    if (!(scale > 0) || body <= 0 || body >= num_bodies || !(f.real("body_mass", body) > least_mass)) continue;
    MediumEllipsoid e;
    const auto numbers = f.row<fluid_numbers>("geom_fluid", g);
    e.pos = f.row<3>("geom_pos", g);
    e.quat = f.row<4>("geom_quat", g);
    e.semiaxes = semiaxes(f, g);
    e.scale = scale;
    std::copy_n(numbers.begin() + 1, 5, e.coefficients.begin());
    std::copy_n(numbers.begin() + 6, 3, e.virtual_mass.begin());
    std::copy_n(numbers.begin() + 9, 3, e.virtual_inertia.begin());
    parts.bodies[body].medium_ellipsoids.push_back(e);
  }
}

/// A limit as soft as the file's, which pushes from its margin on.
void soften_limit(const MujocoFields& f, int j, JointPart& part) {
  part.limit_softness = softness_of(f, "jnt", j);
  part.limit_softness->mobility = own_mobility(f, part.body);
  const double margin = f.real("jnt_margin", j, 0);
  if (part.type != JointType::ball) part.lower += margin;
  part.upper -= margin;
  if (!(part.lower <= part.upper) || (part.type == JointType::ball && !(part.upper > 0)))
    refuse("joint '" + part.name + "'", "margin " + checks::text(margin) + " leaves no room between its limits");
}

/// Joint j with its coordinates; what would move otherwise than in MuJoCo is refused.
void translate_joint(const MujocoFields& f, int j, SceneParts& parts) {
  constexpr JointType types[] = {JointType::free, JointType::ball, JointType::slide, JointType::hinge};
  const std::string name = f.name("joint", j);
  const int type = f.integer("jnt_type", j);
  const int flags = f.count("opt_disableflags");

  // What is not here.
  const std::string refused = "joint '" + name + "'";
  if (type < 0 || type > 3) {
    refuse(refused, "unknown type " + std::to_string(type));
  }
  const auto has_polynomial = [&](const char* field, int row) {
    return f.real(field, 2 * row, 0) != 0 || f.real(field, 2 * row + 1, 0) != 0;
  };
  if (has_polynomial("jnt_stiffnesspoly", j)) {
    refuse(refused, "polynomial stiffness is not supported; only the linear coefficient is");
  }
  if (f.real("jnt_springyield", j, 0) != 0) {
    refuse(refused, "springyield (plastic springs) is not supported");
  }

  // Where it is and how far it goes; options may switch limits and springs off.
  JointPart part;
  part.name = name;
  part.type = types[type];
  part.body = f.index("jnt_bodyid", j, 1, f.number("nbody") - 1, refused + " body");
  part.pos = f.row<3>("jnt_pos", j);
  part.axis = f.row<3>("jnt_axis", j);
  const auto range = f.row<2>("jnt_range", j);
  const bool limits_are_on = !(flags & (mj::disable_limit | mj::disable_constraint));
  part.limited = f.integer("jnt_limited", j, 0) && part.type != JointType::free && limits_are_on;
  part.lower = range[0];
  part.upper = range[1];
  if (f.soft() && part.limited) soften_limit(f, j, part);

  // What pulls and drives it.
  const bool springs_are_on = !(flags & mj::disable_spring);
  part.stiffness = springs_are_on ? f.real("jnt_stiffness", j, 0) : 0.0;
  const std::string what = "MJCF: joint '" + name + "'";
  checks::not_negative(what + " stiffness", part.stiffness);

  if (f.integer("jnt_actfrclimited", j, 0)) {
    const auto force = f.row<2>("jnt_actfrcrange", j);
    part.actuator_lower = force[0];
    part.actuator_upper = force[1];
    if (f.integer("jnt_actgravcomp", j, 0))
      parts.deviate("joint '" + name + "' actuatorgravcomp: actuatorfrcrange does not limit gravity compensation");
  }

  // Its coordinates,
  const int nq = part.type == JointType::free ? 7 : part.type == JointType::ball ? 4 : 1;
  const int nv = nq == 7 ? 6 : nq == 4 ? 3 : 1;
  const int q = f.index("jnt_qposadr", j, 0, f.number("nq") - nq, refused + " jnt_qposadr");
  const int v = f.index("jnt_dofadr", j, 0, f.number("nv") - nv, refused + " jnt_dofadr");
  for (int i = 0; i < nq; ++i) {
    part.q_neutral[i] = f.real("qpos0", q + i);
    part.q_spring[i] = f.real("qpos_spring", q + i);
  }

  // and its dofs.
  const bool dampers_are_on = !(flags & mj::disable_damper);
  const bool friction_is_on = !(flags & (mj::disable_friction_loss | mj::disable_constraint));
  for (int i = 0; i < nv; ++i) {
    const int dof = v + i;
    if (has_polynomial("dof_dampingpoly", dof)) {
      refuse(refused, "polynomial damping is not supported; only the linear coefficient is");
    }
    part.damping[i] = dampers_are_on ? f.real("dof_damping", dof, 0) : 0.0;
    part.armature[i] = f.real("dof_armature", dof, 0);
    part.dry_friction[i] = friction_is_on ? f.real("dof_frictionloss", dof, 0) : 0.0;
    checks::not_negative(what + " damping", part.damping[i]);
    checks::not_negative(what + " armature", part.armature[i]);
    checks::not_negative(what + " frictionloss", part.dry_friction[i]);
  }
  if (f.soft()) {
    part.friction_softness = softness_of(f, "dof", v);
    part.friction_softness->mobility = f.real("dof_invweight0", v, 0);
  }
  parts.joints.push_back(part);
}

/// Keyframes, and the options that a scene has.
void translate_keyframes_and_options(const MujocoFields& f, SceneParts& parts) {
  const int nq = f.count("nq");
  const int nv = f.count("nv");
  const int nu = static_cast<int>(parts.actuators.size());
  for (int k = 0; k < f.count("nkey"); ++k) {
    KeyframePart key;
    key.values.name = f.name("key", k);
    for (int i = 0; i < nq; ++i)
      key.values.q.push_back(f.real("key_qpos", k * nq + i));
    for (int i = 0; i < nv; ++i)
      key.values.v.push_back(f.real("key_qvel", k * nv + i));
    for (int i = 0; i < nu; ++i)
      key.values.u.push_back(f.real("key_ctrl", k * nu + i));
    parts.keyframes.push_back(key);
  }

  // What of the world the file decides.
  const int flags = f.count("opt_disableflags");
  const bool weightless = flags & mj::disable_gravity;
  parts.gravity = weightless ? Vec3{0, 0, 0} : f.row<3>("opt_gravity", 0);
  parts.timestep = f.real("opt_timestep", 0);
  checks::positive("MJCF: option timestep", *parts.timestep);
  parts.filter_parent_child = !(flags & mj::disable_filter_parent);
  const Medium medium{f.real("opt_density", 0, 0), f.real("opt_viscosity", 0, 0),
                      f.has("opt_wind") ? f.row<3>("opt_wind", 0) : Vec3{0, 0, 0}};
  if (medium.density > 0 || medium.viscosity > 0) parts.medium = medium;
}

}  // namespace

void translate_bodies_and_joints(const MujocoFields& f, SceneParts& parts) {
  for (int b = 1; b < f.number("nbody"); ++b) {
    BodyPart part;
    part.name = f.name("body", b);
    part.gravity_compensation = f.real("body_gravcomp", b, 0);
    part.parent = f.index("body_parentid", b, 0, b - 1, "body '" + part.name + "' parent");
    // Where it is, and what it weighs.
    part.placement = {f.row<3>("body_pos", b), f.row<4>("body_quat", b)};
    part.mass = f.real("body_mass", b);
    part.com = f.row<3>("body_ipos", b);
    part.inertia = rotated_inertia(f.row<4>("body_iquat", b), f.row<3>("body_inertia", b));
    part.mocap = f.integer("body_mocapid", b, -1) >= 0;
    part.medium_box = medium_box(f, b);
    parts.bodies.push_back(part);
  }
  translate_ellipsoids(f, parts);
  for (int j = 0; j < f.number("njnt"); ++j)
    translate_joint(f, j, parts);
}

/// What is wrong with an equality of that type (mjtEq).
static std::string refused_equality(int type) {
  const std::string known = "only connect, weld, joint and tendon equalities are supported";
  switch (type) {
    case 4: return "flex (edges of a deformable body) is not supported: " + known;
    case 5: return "flexvert (vertices of a deformable body) is not supported: " + known;
    case 6: return "flexstrain (strain of a deformable body) is not supported: " + known;
    case 7: return "distance was removed from MuJoCo, and has no law any more: " + known;
    default: return known + " (type " + std::to_string(type) + ")";
  }
}

/// As soft as the file's: MuJoCo adds up the mobilities of the two sides, whatever their lever arms.
static Softness equality_softness(const MujocoFields& f, int e, const Equality& equality) {
  Softness out = softness_of(f, "eq", e);
  const auto sum = [&](const char* field, int stride, int offset, int a, int b) {
    const auto of = [&](int i) { return i < 0 ? 0.0 : f.real(field, stride * i + offset, 0); };
    return of(a) + of(b);
  };
  if (equality.type == EqualityType::joint) {
    const auto dof_of = [&](int joint) { return joint < 0 ? -1 : f.integer("jnt_dofadr", joint); };
    out.mobility = sum("dof_invweight0", 1, 0, dof_of(equality.joint_a), dof_of(equality.joint_b));
  } else if (equality.type == EqualityType::tendon) {
    out.mobility = sum("tendon_invweight0", 1, 0, equality.tendon_a, equality.tendon_b);
  } else {
    out.mobility = sum("body_invweight0", 2, 0, equality.body_a, equality.body_b);
    out.angular_mobility = sum("body_invweight0", 2, 1, equality.body_a, equality.body_b);
  }
  return out;
}

void translate_equalities(const MujocoFields& f, SceneParts& parts) {
  enum { connect = 0, weld = 1, joint = 2, tendon = 3 };
  constexpr int site_object = 6;  // mjOBJ_SITE
  const bool switched_off = f.count("opt_disableflags") & (mj::disable_equality | mj::disable_constraint);
  if (switched_off) return;
  for (int e = 0; e < f.count("neq"); ++e) {
    const std::string name = f.name("equality", e);
    const int type = f.integer("eq_type", e);
    const int a = f.integer("eq_obj1id", e);
    const int b = f.integer("eq_obj2id", e);
    const auto data = f.row<12>("eq_data", e);
    const bool is_weld = type == weld;
    Equality out;
    out.name = name;
    out.active = f.integer("eq_active0", e, 1) != 0;
    if (type == joint) {
      out.type = EqualityType::joint;
      out.joint_a = a;
      out.joint_b = b;
      std::copy_n(data.begin(), 5, out.poly.begin());
      out.ref_a = f.real("qpos0", f.integer("jnt_qposadr", a));
      if (b >= 0) {
        out.ref_b = f.real("qpos0", f.integer("jnt_qposadr", b));
      }
    } else if (type == tendon) {
      const std::string what = "equality '" + name + "'";
      out.type = EqualityType::tendon;
      out.tendon_a = tendon_index(f, a, what);
      std::copy_n(data.begin(), 5, out.poly.begin());
      out.ref_a = f.real("tendon_length0", a);
      if (b >= 0) {
        out.tendon_b = tendon_index(f, b, what);
        out.ref_b = f.real("tendon_length0", b);
      }
    } else if (type == connect || is_weld) {
      out.type = is_weld ? EqualityType::weld : EqualityType::connect;
      if (f.integer("eq_objtype", e, 1) == site_object) {
        out.body_a = f.integer("site_bodyid", a);
        out.body_b = f.integer("site_bodyid", b);
        out.pos_a = f.row<3>("site_pos", a);
        out.pos_b = f.row<3>("site_pos", b);
        out.quat_a = f.row<4>("site_quat", a);
        out.quat_b = f.row<4>("site_quat", b);
      } else {
        // connect: (anchor in 1, anchor in 2); weld: (anchor in 2, pose of 2 in 1)
        out.body_a = a;
        out.body_b = b;
        const int anchor_a = is_weld ? 3 : 0;
        const int anchor_b = is_weld ? 0 : 3;
        std::copy_n(data.begin() + anchor_a, 3, out.pos_a.begin());
        std::copy_n(data.begin() + anchor_b, 3, out.pos_b.begin());
        if (is_weld) {
          std::copy_n(data.begin() + 6, 4, out.quat_a.begin());
        }
      }
      if (is_weld) out.torque_scale = data[10];
      if (is_weld && data[10] == 0) out.type = EqualityType::connect;  // its rotation rows are zero
    } else {
      refuse("equality '" + name + "'", refused_equality(type));
    }
    if (f.soft()) out.softness = equality_softness(f, e, out);
    parts.equalities.push_back(out);
  }
}

Softness softness_of(const MujocoFields& f, const std::string& kind, int index, const std::string& of) {
  Softness out;
  out.reference = f.row<2>(kind + "_solref" + of, index);
  out.impedance = f.row<5>(kind + "_solimp" + of, index);
  const bool is_safe = !(f.count("opt_disableflags") & mj::disable_safe_reference);
  out.least_time = is_safe ? 2 * f.real("opt_timestep", 0) : 0;
  return out;
}

double own_mobility(const MujocoFields& f, int body) {
  constexpr int on_slides_alone = 2;
  const bool slides = f.has("body_simple") && f.integer("body_simple", body) == on_slides_alone;
  return slides ? 1 / f.real("body_mass", body) : 0;
}

SceneParts translate_mujoco_arrays(const MujocoArrays& arrays, bool soft) {
  const MujocoFields f(arrays, soft);
  SceneParts parts;
  translate_bodies_and_joints(f, parts);
  translate_geometries(f, parts);
  translate_tendons(f, parts);
  translate_actuators(f, parts);
  translate_equalities(f, parts);
  translate_sensors(f, parts);
  translate_keyframes_and_options(f, parts);
  report_unsupported(f, parts);
  return parts;
}

}  // namespace coulomb
