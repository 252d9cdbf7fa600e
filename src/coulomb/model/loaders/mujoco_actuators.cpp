// Compiled MuJoCo arrays to SceneParts: actuators of joints, tendons, sites and slider-cranks (motor, position, velocity, general, muscle).
#include <algorithm>
#include <cmath>

#include "coulomb/model/loaders/mujoco_fields.hpp"

namespace coulomb {
namespace {

// mjtTrn
constexpr int crank_transmission = 2;
constexpr int tendon_transmission = 3;
constexpr int site_transmission = 4;

// mjtDyn: none, integrator, filter, filterexact, muscle, as ActivationType
constexpr int last_dynamics = static_cast<int>(ActivationType::muscle);

// mjtGain and mjtBias: none or fixed, affine, muscle
constexpr int muscle_law = 2;

/// A servo's own damping and armature act on its joint, scaled by the square of the gear.
void add_actuator_inertia(const MujocoFields& f, int a, const Actuator& actuator, SceneParts& parts) {
  const double armature = f.real("actuator_armature", a, 0);
  const double damping = f.real("actuator_damping", a, 0);
  const std::string what = "actuator '" + actuator.name + "'";

  // Version 4 of MuJoCo has polynomials as well.
  if (f.real("actuator_dampingpoly", 2 * a, 0) != 0 || f.real("actuator_dampingpoly", 2 * a + 1, 0) != 0)
    refuse(what, "polynomial damping is not supported");
  if (armature == 0 && damping == 0) return;
  if (actuator.joint < 0) refuse(what, "armature and damping of an actuator of a tendon or site are not supported");
  JointPart& joint = parts.joints[actuator.joint];
  if (joint.type == JointType::free || joint.type == JointType::ball)
    refuse(what, "armature and damping of an actuator are supported on hinge and slide joints only");

  // Both are felt at the joint through the gear.
  const double square = actuator.gear[0] * actuator.gear[0];
  joint.armature[0] += armature * square;
  if (!(f.count("opt_disableflags") & mj::disable_damper)) {
    joint.damping[0] += damping * square;
  }
}

/// Whatever has a state of its own, or acts on something else than one joint or tendon, is refused.
void refuse_unless_static_actuator(const MujocoFields& f, int a, const std::string& what) {
  // Where it acts.
  const int transmission = f.integer("actuator_trntype", a);
  if (transmission < 0 || transmission > site_transmission) {
    const std::string kind = transmission == 5   ? "body (adhesion)"
                             : transmission == 6 ? "orientation of a ball joint or a site"
                                                 : "trntype " + std::to_string(transmission);
    refuse(what, "transmission by " + kind +
                     " is not supported: actuators drive joints, tendons and sites (joint, jointinparent, "
                     "slidercrank, tendon, site)");
  }

  // How its force comes about.
  const int dynamics = f.integer("actuator_dyntype", a);
  if (dynamics < 0 || dynamics > last_dynamics) {
    const std::string kind = dynamics == 5   ? "of a dcmotor"
                             : dynamics == 6 ? "of a pid with an integral"
                                             : "of type " + std::to_string(dynamics);
    refuse(what, "actuator dynamics " + kind + " are not supported: actuators are integrators, filters and muscles");
  }
  const int gain = f.integer("actuator_gaintype", a);
  const int bias = f.integer("actuator_biastype", a);
  if (gain > muscle_law || bias > muscle_law) {
    const std::string kind = gain == 3 ? "of a dcmotor"
                             : gain == 5
                                 ? "of a pid (a position actuator has kp and kv)"
                                 : "of gain type " + std::to_string(gain) + ", bias type " + std::to_string(bias);
    refuse(what, "the force " + kind + " is not supported: expected fixed, affine or muscle");
  }

  // What version 4 adds.
  const int num_controls = f.integer("actuator_ctrlnum", a, 1);
  const int num_forces = f.integer("actuator_outnum", a, 1);
  if (num_controls != 1 || num_forces != 1) {
    refuse(what, "actuators with other than one control and one force are not supported");
  }
  if (f.real("actuator_delay", a, 0) != 0) {
    refuse(what, "delay is not supported");
  }
  if (f.integer("actuator_plugin", a, -1) >= 0) {
    refuse(what, "plugins are not supported");
  }
}

/// Arrays that MuJoCo did not compile may name a joint that there is not.
int driven_joint(const MujocoFields& f, int a, const std::string& name, const SceneParts& parts) {
  const int joint = f.integer("actuator_trnid", 2 * a);
  const int count = static_cast<int>(parts.joints.size());
  if (joint < 0 || joint >= count)
    refuse("actuator '" + name + "'", "actuator_trnid[" + std::to_string(a) + "][0] = " + std::to_string(joint) +
                                          " is not a joint: the model has " + std::to_string(count) + " joints");
  return joint;
}

/// One of its sites.
int driven_site(const MujocoFields& f, int a, int which, const std::string& what) {
  const int site = f.integer("actuator_trnid", 2 * a + which);
  if (site < 0 || site >= f.count("nsite")) refuse(what, "site " + std::to_string(site) + " is none of the model's");
  return site;
}

/// Its frame, fixed to a body that moves, and the one that it pushes off.
void set_site(const MujocoFields& f, int a, Actuator& out) {
  const std::string what = "actuator '" + out.name + "'";
  const int site = driven_site(f, a, 0, what);
  out.body = f.integer("site_bodyid", site);
  out.site_pos = f.row<3>("site_pos", site);
  out.site_quat = f.row<4>("site_quat", site);
  if (f.integer("actuator_trnid", 2 * a + 1, -1) < 0) {
    if (out.body == 0) refuse(what, "site '" + f.name("site", site) + "' is fixed to the world and cannot be pushed");
    return;
  }
  const int reference = driven_site(f, a, 1, what);
  out.reference_body = f.integer("site_bodyid", reference);
  out.reference_pos = f.row<3>("site_pos", reference);
  out.reference_quat = f.row<4>("site_quat", reference);
}

/// A slider-crank is a tendon of its own, behind those of the file: from the end of the crank by a rod to the slider.
void set_crank(const MujocoFields& f, int a, Actuator& out, SceneParts& parts) {
  const std::string what = "actuator '" + out.name + "'";
  const int crank = driven_site(f, a, 0, what);
  const int slider = driven_site(f, a, 1, what);
  TendonPoint end;
  end.body = f.integer("site_bodyid", crank);
  end.pos = f.row<3>("site_pos", crank);
  TendonPoint guide;
  guide.kind = TendonPoint::Kind::slider;
  guide.body = f.integer("site_bodyid", slider);
  guide.pos = f.row<3>("site_pos", slider);
  guide.quat = f.row<4>("site_quat", slider);
  guide.radius = f.real("actuator_cranklength", a);
  TendonPoint last = guide;
  last.kind = TendonPoint::Kind::site;
  last.radius = 0;

  Tendon tendon;
  tendon.name = out.name + "_crank";
  tendon.path = {end, guide, last};
  out.tendon = static_cast<int>(parts.tendons.size());
  parts.tendons.push_back(tendon);
}

/// The curves of a muscle: MuJoCo has them once for the gain and once for the bias.
void set_muscle(const MujocoFields& f, int a, Actuator& out) {
  Muscle& m = out.muscle;
  m.pulls = f.integer("actuator_gaintype", a) == muscle_law;
  m.resists = f.integer("actuator_biastype", a) == muscle_law;
  if (!m.pulls && !m.resists) return;
  const auto gain = f.row<10>("actuator_gainprm", a);
  const auto bias = f.row<10>("actuator_biasprm", a);
  const auto& p = m.pulls ? gain : bias;
  if (m.pulls && m.resists && !std::equal(gain.begin(), gain.begin() + 9, bias.begin()))
    refuse("actuator '" + out.name + "'", "a muscle whose gainprm and biasprm differ is not supported");

  m.range = {p[0], p[1]};
  m.shortest = p[4];
  m.longest = p[5];
  m.fastest = p[6];
  m.passive = p[7];
  m.stretched = p[8];
  m.length_range = f.row<2>("actuator_lengthrange", a);

  // No force of its own: `scale` by the acceleration that a unit of its force makes.
  m.peak_force = p[2] >= 0 ? p[2] : p[3] / std::max(1e-15, f.real("actuator_acc0", a));
}

/// A bound on the sum of a tendon's actuators, which is that of the only one.
void bound_by_tendon(const MujocoFields& f, Actuator& out, int num_of_tendon, Tendon& tendon) {
  if (f.integer("tendon_actfrclimited", out.tendon, 0) == 0) return;
  const auto range = f.row<2>("tendon_actfrcrange", out.tendon);
  if (num_of_tendon > 1) {
    tendon.force_limited = true;
    tendon.force_range = range;
    return;
  }
  if (!out.force_limited) out.force_range = {-INFINITY, INFINITY};
  out.force_limited = true;
  out.force_range = {std::clamp(out.force_range[0], range[0], range[1]),
                     std::clamp(out.force_range[1], range[0], range[1])};
}

/// Its activation, if it has one.
void set_activation(const MujocoFields& f, int a, Actuator& out) {
  out.activation = static_cast<ActivationType>(f.integer("actuator_dyntype", a));
  if (out.activation == ActivationType::none) return;
  const auto constants = f.row<10>("actuator_dynprm", a);
  if (out.activation == ActivationType::muscle) {
    out.muscle.activation_time = constants[0];
    out.muscle.deactivation_time = constants[1];
    out.muscle.smoothing = constants[2];
  } else if (out.activation != ActivationType::integrator) {
    out.time_constant = constants[0];
  }
  out.acts_early = f.integer("actuator_actearly", a, 0) != 0;
  out.activation_limited = f.integer("actuator_actlimited", a, 0) != 0;
  out.activation_range = f.row<2>("actuator_actrange", a);
}

/// Options may disable all actuators, or groups of them.
bool group_disabled(const MujocoFields& f, int a) {
  const int group = f.integer("actuator_group", a, 0);
  const bool all = f.count("opt_disableflags") & mj::disable_actuation;
  if (all) return true;
  if (group < 0 || group > 30) return false;
  return f.count("opt_disableactuator") >> group & 1;
}

}  // namespace

void translate_actuators(const MujocoFields& f, SceneParts& parts) {
  // Versions before 4 have one control and one force an actuator.
  const int n = f.integer("nactuator", 0, f.count("nu"));
  int explicit_gains = 0;
  int activations = 0;
  int muscles = 0;
  std::vector<int> of_tendon(static_cast<std::size_t>(f.count("ntendon")), 0);
  for (int a = 0; a < n; ++a)
    if (f.integer("actuator_trntype", a) == tendon_transmission)
      ++of_tendon[tendon_index(f, f.integer("actuator_trnid", 2 * a), "actuator '" + f.name("actuator", a) + "'")];
  for (int a = 0; a < n; ++a) {
    Actuator out;
    out.name = f.name("actuator", a);
    refuse_unless_static_actuator(f, a, "actuator '" + out.name + "'");
    const int control = f.integer("actuator_ctrladr", a, a);
    const int output = f.integer("actuator_outadr", a, a);

    // Which joint, tendon or site it drives.
    const int transmission = f.integer("actuator_trntype", a);
    const bool by_tendon = transmission == tendon_transmission;
    if (by_tendon)
      out.tendon = tendon_index(f, f.integer("actuator_trnid", 2 * a), "actuator '" + out.name + "'");
    else if (transmission == crank_transmission)
      set_crank(f, a, out, parts);
    else if (transmission == site_transmission)
      set_site(f, a, out);
    else
      out.joint = driven_joint(f, a, out.name, parts);
    out.in_parent_frame = transmission == 1;
    out.gear = f.row<6>("actuator_gear", output);

    // Force = gain(length, speed) u + bias(length, speed), both affine, or the curves of a muscle.
    set_muscle(f, a, out);
    const auto gain = f.row<10>("actuator_gainprm", a);
    const auto bias = f.row<10>("actuator_biasprm", a);
    const bool affine_gain = f.integer("actuator_gaintype", a) == 1;
    const bool affine_bias = f.integer("actuator_biastype", a) == 1;
    for (int i = 0; i < 3; ++i) {
      out.gain[i] = (i == 0 && !out.muscle.pulls) || affine_gain ? gain[i] : 0;
      out.bias[i] = affine_bias ? bias[i] : 0;
    }

    // A disabled actuator keeps its control but gives no force.
    if (group_disabled(f, a)) {
      out.gain = out.bias = {0, 0, 0};
      out.muscle.pulls = out.muscle.resists = false;
      parts.ignored.push_back("actuator '" + out.name + "' is disabled by the options: it gives no force");
    }

    // Clamps.
    const bool clamps_are_on = !(f.count("opt_disableflags") & mj::disable_clamp_control);
    out.control_limited = f.integer("actuator_ctrllimited", control, 0) && clamps_are_on;
    out.control_range = f.row<2>("actuator_ctrlrange", control);
    out.force_limited = f.integer("actuator_forcelimited", a, 0) != 0;
    out.force_range = f.row<2>("actuator_forcerange", a);
    if (by_tendon) bound_by_tendon(f, out, of_tendon[out.tendon], parts.tendons[out.tendon]);
    set_activation(f, a, out);
    activations += out.activation != ActivationType::none;
    add_actuator_inertia(f, a, out, parts);
    explicit_gains += out.joint < 0 && (out.gain[2] != 0 || out.bias[2] != 0);
    muscles += out.muscle.pulls;
    parts.actuators.push_back(out);
  }
  if (activations > 0 && f.count("nkey") > 0)
    parts.ignored.push_back("activations of " + std::to_string(f.count("nkey")) + " keyframes");
  if (activations > 0)
    parts.deviate("activations of " + std::to_string(activations) +
                  " actuators: their u is what acts, the activation; coulomb.Activations moves it on");
  if (explicit_gains > 0)
    parts.deviate("velocity gains of " + std::to_string(explicit_gains) +
                  " actuators of tendons and sites: they act with the speed at the start of a step");
  if (muscles > 0)
    parts.deviate("velocity of " + std::to_string(muscles) + " muscles: they act with that at the start of a step");
}

}  // namespace coulomb
