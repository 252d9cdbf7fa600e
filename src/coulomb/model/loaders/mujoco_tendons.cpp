// Compiled MuJoCo arrays to SceneParts: tendons, fixed and spatial.
#include <algorithm>

#include "coulomb/model/loaders/mujoco_fields.hpp"

namespace coulomb {
namespace {

/// mjtWrap: MuJoCo's paths are of joints, or of sites and what lies between them.
enum Wrap { wrap_joint = 1, wrap_pulley, wrap_site, wrap_sphere, wrap_cylinder };

bool is_fixed_tendon(const MujocoFields& f, int t) {
  const int first = f.integer("tendon_adr", t, -1);
  return first >= 0 && f.integer("wrap_type", first, 0) == wrap_joint;
}

/// Its joints, each once.
void add_joints(const MujocoFields& f, int t, Tendon& out) {
  const int first = f.integer("tendon_adr", t);
  for (int k = first; k < first + f.integer("tendon_num", t); ++k) {
    const int joint = f.index("wrap_objid", k, 0, f.number("njnt") - 1, "tendon '" + out.name + "' joint");
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

/// Is a body the other one, or does it carry it?
bool carries(const SceneParts& parts, int body, int other) {
  while (other > body)
    other = parts.bodies[other].parent;
  return other == body;
}

/// The body itself, or the next one before it, that has a joint.
int moving_body(const SceneParts& parts, int body) {
  const auto has_joint = [&](int b) {
    return std::any_of(parts.joints.begin(), parts.joints.end(), [b](const JointPart& j) { return j.body == b; });
  };
  while (body > 0 && !has_joint(body))
    body = parts.bodies[body].parent;
  return body;
}

/// Do two of its joints, or of the bodies of its path, lie on different branches of a robot?
bool joins_branches(const SceneParts& parts, const Tendon& tendon) {
  std::vector<int> bodies;
  for (int j : tendon.joints)
    bodies.push_back(parts.joints[j].body);
  for (const TendonPoint& point : tendon.path)
    bodies.push_back(moving_body(parts, point.body));
  for (int a : bodies)
    for (int b : bodies)
      if (!carries(parts, a, b) && !carries(parts, b, a)) return true;
  return false;
}

/// A site's body and place; throws where there is none such.
int site_body(const MujocoFields& f, int site, const std::string& what) {
  if (site < 0 || site >= f.count("nsite")) refuse(what, "site " + std::to_string(site) + " is none of the model's");
  return f.integer("site_bodyid", site);
}

/// One element of a path. MuJoCo's wrap_prm: a pulley's divisor, an obstacle's side site.
TendonPoint path_point(const MujocoFields& f, int k, const std::string& what) {
  const int type = f.integer("wrap_type", k);
  const int object = f.integer("wrap_objid", k);
  TendonPoint out;
  if (type == wrap_pulley) {
    out.kind = TendonPoint::Kind::pulley;
    out.divisor = f.real("wrap_prm", k);
    return out;
  }
  if (type == wrap_site) {
    out.body = site_body(f, object, what);
    out.pos = f.row<3>("site_pos", object);
    return out;
  }
  if (type != wrap_sphere && type != wrap_cylinder)
    refuse(what, "path element of type " + std::to_string(type) + " is not supported");
  out.kind = type == wrap_sphere ? TendonPoint::Kind::sphere : TendonPoint::Kind::cylinder;
  out.body = f.integer("geom_bodyid", object);
  out.pos = f.row<3>("geom_pos", object);
  out.quat = f.row<4>("geom_quat", object);
  out.radius = f.row<3>("geom_size", object)[0];
  const double side = f.real("wrap_prm", k, -1);
  if (side >= 0) {
    const int site = static_cast<int>(side + 0.5);
    out.side_body = site_body(f, site, what);
    out.side_pos = f.row<3>("site_pos", site);
  }
  return out;
}

void add_path(const MujocoFields& f, int t, const std::string& what, Tendon& out) {
  const int first = f.integer("tendon_adr", t);
  for (int k = first; k < first + f.integer("tendon_num", t); ++k)
    out.path.push_back(path_point(f, k, what));
}

}  // namespace

int tendon_index(const MujocoFields& f, int t, const std::string& what) {
  if (t < 0 || t >= f.count("ntendon")) {
    refuse(what, "tendon " + std::to_string(t) + " is none of the model's");
  }
  return t;
}

/// Limits and dry friction as soft as the file's, and limits from their margin on.
static void soften(const MujocoFields& f, int t, Tendon& tendon) {
  tendon.limit_softness = softness_of(f, "tendon", t, "_lim");
  tendon.friction_softness = softness_of(f, "tendon", t, "_fri");
  for (auto* law : {&tendon.limit_softness, &tendon.friction_softness})
    (*law)->mobility = f.real("tendon_invweight0", t, 0);
  if (!tendon.limited) return;
  const double margin = f.real("tendon_margin", t, 0);
  tendon.lower += margin;
  tendon.upper -= margin;
  if (!(tendon.lower <= tendon.upper))
    refuse("tendon '" + tendon.name + "'", "margin " + checks::text(margin) + " leaves no room between its limits");
}

void translate_tendons(const MujocoFields& f, SceneParts& parts) {
  const bool limits_are_on = !(f.count("opt_disableflags") & (mj::disable_limit | mj::disable_constraint));
  int margins = 0;
  int across = 0;
  for (int t = 0; t < f.count("ntendon"); ++t) {
    const std::string what = "tendon '" + f.name("tendon", t) + "'";
    const bool limited = f.integer("tendon_limited", t, 0) != 0 && limits_are_on;
    Tendon out;
    out.name = f.name("tendon", t);
    if (is_fixed_tendon(f, t))
      add_joints(f, t, out);
    else
      add_path(f, t, what, out);
    out.limited = limited;
    if (limited) {
      const auto range = f.row<2>("tendon_range", t);
      out.lower = range[0];
      out.upper = range[1];
      margins += !f.soft() && f.real("tendon_margin", t, 0) != 0;
    }
    if (f.soft()) soften(f, t, out);

    // Its own forces, unless the options switch them off.
    const int flags = f.count("opt_disableflags");
    const auto lengths = f.row<2>("tendon_lengthspring", t);
    out.spring_lower = lengths[0];
    out.spring_upper = lengths[1];
    if (!(flags & mj::disable_spring)) out.stiffness = f.real("tendon_stiffness", t, 0);
    if (!(flags & mj::disable_damper)) out.damping = f.real("tendon_damping", t, 0);
    if (!(flags & (mj::disable_friction_loss | mj::disable_constraint)))
      out.dry_friction = f.real("tendon_frictionloss", t, 0);
    out.armature = f.real("tendon_armature", t, 0);
    across += out.armature != 0 && joins_branches(parts, out);
    parts.tendons.push_back(out);
  }
  if (across > 0)
    parts.deviate("armature of " + std::to_string(across) +
                  " tendons across branches: it couples them, which MuJoCo's mass matrix leaves out");
  if (margins > 0) {
    parts.deviate("margin of " + std::to_string(margins) + " tendon limits: they act at the limit itself");
  }
}

}  // namespace coulomb
