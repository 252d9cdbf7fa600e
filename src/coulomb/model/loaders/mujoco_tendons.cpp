// Compiled MuJoCo arrays to SceneParts: fixed tendons. Spatial ones, which run over sites, are refused where they exert a force.
#include <algorithm>

#include "coulomb/model/loaders/mujoco_fields.hpp"

namespace coulomb {
namespace {

constexpr int wrap_joint = 1;  // mjWRAP_JOINT

/// MuJoCo's paths are of joints, or of sites and what lies between them.
bool is_fixed_tendon(const MujocoFields& f, int t) {
  const int first = f.integer("tendon_adr", t, -1);
  return first >= 0 && f.integer("wrap_type", first, 0) == wrap_joint;
}

/// Its joints, each once.
void add_joints(const MujocoFields& f, int t, Tendon& out) {
  const int first = f.integer("tendon_adr", t);
  for (int k = first; k < first + f.integer("tendon_num", t); ++k) {
    const int joint = f.integer("wrap_objid", k);
    const double coefficient = f.real("wrap_prm", k);
    const auto at = std::find(out.joints.begin(), out.joints.end(), joint);
    if (at != out.joints.end()) {
      out.coefficients[at - out.joints.begin()] += coefficient;
      continue;
    }
    out.joints.push_back(joint);
    out.coefficients.push_back(coefficient);
  }
}

}  // namespace

int fixed_tendon(const MujocoFields& f, int t, const std::string& what) {
  if (t < 0 || t >= f.count("ntendon")) {
    refuse(what, "tendon " + std::to_string(t) + " is none of the model's");
  }
  if (!is_fixed_tendon(f, t))
    refuse(what, "tendon '" + f.name("tendon", t) + "' is spatial; only fixed tendons, sums of joints, are supported");
  int index = 0;
  for (int before = 0; before < t; ++before)
    index += is_fixed_tendon(f, before);
  return index;
}

bool is_spatial_tendon(const MujocoFields& f, int t) { return !is_fixed_tendon(f, t); }

void translate_tendons(const MujocoFields& f, SceneParts& parts) {
  const bool limits_are_on = !(f.count("opt_disableflags") & (mj::disable_limit | mj::disable_constraint));
  int margins = 0;
  for (int t = 0; t < f.count("ntendon"); ++t) {
    const std::string what = "tendon '" + f.name("tendon", t) + "'";
    const bool limited = f.integer("tendon_limited", t, 0) != 0 && limits_are_on;
    if (!is_fixed_tendon(f, t)) {
      if (limited) refuse(what, "length limits of spatial tendons are not supported");
      continue;
    }

    Tendon out;
    out.name = f.name("tendon", t);
    add_joints(f, t, out);
    out.limited = limited;
    if (limited) {
      const auto range = f.row<2>("tendon_range", t);
      out.lower = range[0];
      out.upper = range[1];
      margins += f.real("tendon_margin", t, 0) != 0;
    }
    // Its own forces, unless the options switch them off.
    const int flags = f.count("opt_disableflags");
    const auto lengths = f.row<2>("tendon_lengthspring", t);
    out.spring_lower = lengths[0];
    out.spring_upper = lengths[1];
    if (!(flags & mj::disable_spring)) out.stiffness = f.real("tendon_stiffness", t, 0);
    if (!(flags & mj::disable_damper)) out.damping = f.real("tendon_damping", t, 0);
    if (!(flags & (mj::disable_friction_loss | mj::disable_constraint)))
      out.dry_friction = f.real("tendon_frictionloss", t, 0);
    if (f.integer("tendon_actfrclimited", t, 0) != 0) {
      refuse(what, "actuatorfrcrange is not supported: limit the force of the actuator, forcerange");
    }
    parts.tendons.push_back(out);
  }
  if (margins > 0) {
    parts.deviate("margin of " + std::to_string(margins) + " tendon limits: they act at the limit itself");
  }
}

}  // namespace coulomb
