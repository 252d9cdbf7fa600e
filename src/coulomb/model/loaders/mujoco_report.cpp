// What the MJCF loader leaves out: an error where the motion would be another one; a line in `ignored`, and one in `deviations` too where
// the motion may feel it: contacts and joints here are exact where MuJoCo's are soft, and steps and solvers are the Simulator's.
#include <cmath>

#include "coulomb/model/loaders/mujoco_fields.hpp"

namespace coulomb {
namespace {

/// Errors for what acts on bodies and is not here.
void refuse_what_moves(const MujocoFields& f) {
  // What is no rigid body, and what files of their own compute.
  const int num_flexes = f.count("nflex");
  const int num_plugins = f.count("nplugin");
  const bool overrides = f.count("opt_enableflags") & mj::enable_override;
  if (num_flexes > 0) {
    refuse("flex", "deformable bodies are not supported (" + std::to_string(num_flexes) + ")");
  }
  if (num_plugins > 0) {
    refuse("plugin", "plugins are not supported (" + std::to_string(num_plugins) + ")");
  }
  if (overrides) {
    refuse("option", "flag override (contact parameter override) is not supported");
  }

  // Laws of tendons that are not here: springs and dampers that are polynomials, springs that yield.
  constexpr std::size_t prefix = 7;  // of "tendon_"
  for (int t = 0; t < f.count("ntendon"); ++t) {
    const std::string tendon = "tendon '" + f.name("tendon", t) + "'";
    for (const char* field : {"tendon_stiffnesspoly", "tendon_dampingpoly"}) {
      const bool acts = f.real(field, 2 * t, 0) != 0 || f.real(field, 2 * t + 1, 0) != 0;
      if (!acts) continue;
      const std::string law = field + prefix;
      refuse(tendon, law + " is not supported");
    }
    if (f.real("tendon_springyield", t, 0) != 0) refuse(tendon, "springyield (plastic springs) is not supported");
  }
}

/// How many rows of `width` numbers differ from MuJoCo's default.
int differing_rows(const MujocoFields& f, const std::string& key, const std::vector<double>& standard) {
  const auto it = f.arrays().reals.find(key);
  if (it == f.arrays().reals.end()) return 0;
  const std::vector<double>& numbers = it->second;
  const std::size_t width = standard.size();
  int n = 0;
  for (std::size_t i = 0; i + width <= numbers.size(); i += width) {
    bool differs = false;
    for (std::size_t k = 0; k < width; ++k)
      differs = differs || std::abs(numbers[i + k] - standard[k]) > 1e-12;
    n += differs;
  }
  return n;
}

/// Constraints are exact: their softness is left out, where it differs from MuJoCo's default.
void report_exact(const MujocoFields& f, SceneParts& parts) {
  const std::vector<double> reference{0.02, 1};
  const std::vector<double> impedance{0.9, 0.95, 0.001, 0.5, 2};
  const std::pair<const char*, const char*> soft[] = {{"geom", "geoms"},
                                                      {"jnt", "joint limits"},
                                                      {"dof", "joint friction losses"},
                                                      {"eq", "equalities"},
                                                      {"pair", "contact pairs"}};
  for (const auto& [key, what] : soft) {
    const std::string prefix = key;
    const int references = differing_rows(f, prefix + "_solref", reference);
    const int impedances = differing_rows(f, prefix + "_solimp", impedance);
    const int n = std::max(references, impedances);
    if (n == 0) continue;
    const std::string which = std::to_string(n) + " " + what;
    parts.deviate("soft-contact parameters (solref, solimp) of " + which + ": constraints are exact");
  }

  // Of the friction of pairs, if it is not that of their normal.
  const int creeping = differing_rows(f, "pair_solreffriction", {0, 0});
  if (creeping > 0)
    parts.deviate("soft-contact parameters (solreffriction) of " + std::to_string(creeping) +
                  " contact pairs: constraints are exact");

  // Of tendons, if these are limited.
  const int soft_tendons =
      std::max(differing_rows(f, "tendon_solref_lim", reference), differing_rows(f, "tendon_solimp_lim", impedance));
  const bool limited =
      std::any_of(parts.tendons.begin(), parts.tendons.end(), [](const Tendon& t) { return t.limited; });
  if (limited && soft_tendons > 0)
    parts.deviate("soft-contact parameters (solref, solimp) of " + std::to_string(soft_tendons) +
                  " tendon limits: constraints are exact");
}

/// Margins and gaps of exact constraints.
void report_margins(const MujocoFields& f, SceneParts& parts) {
  for (const char* key : {"geom_margin", "geom_gap", "pair_margin", "pair_gap", "jnt_margin"}) {
    const int n = differing_rows(f, key, {0});
    if (n == 0) continue;
    const std::string which = std::string(key) + " of " + std::to_string(n) + " elements";
    parts.deviate(which + ": contacts and limits act at distance zero");
  }
}

/// In how many keyframes do bodies that the caller moves stand elsewhere than in the model?
int keyframes_with_mocap_poses(const MujocoFields& f) {
  constexpr double rounding = 1e-12;
  const int num_mocap = f.count("nmocap");
  int n = 0;
  for (int k = 0; k < f.count("nkey"); ++k) {
    bool differs = false;
    for (int b = 1; b < f.count("nbody"); ++b) {
      const int m = f.integer("body_mocapid", b, -1);
      if (m < 0) continue;
      for (int i = 0; i < 3; ++i) {
        const double moved = f.real("key_mpos", 3 * (k * num_mocap + m) + i, 0) - f.real("body_pos", 3 * b + i);
        differs = differs || std::abs(moved) > rounding;
      }
      for (int i = 0; i < 4; ++i) {
        const double turned = f.real("key_mquat", 4 * (k * num_mocap + m) + i, 0) - f.real("body_quat", 4 * b + i);
        differs = differs || std::abs(turned) > rounding;
      }
    }
    n += differs;
  }
  return n;
}

/// What stays exact in a model that is as soft as its file.
void report_rigid(SceneParts& parts) {
  const auto collides = [](const GeometryPart& g) { return g.contype || g.conaffinity; };
  if (std::any_of(parts.geometries.begin(), parts.geometries.end(), collides) || !parts.pairs.empty())
    parts.deviate("softness of contact friction: what sticks does not creep");
}

}  // namespace

void report_unsupported(const MujocoFields& f, SceneParts& parts) {
  refuse_what_moves(f);

  // Two lists: what has no part in the motion, and what may.
  auto list = [&](const std::string& line) { parts.ignored.push_back(line); };
  auto deviate = [&](const std::string& line) { parts.deviate(line); };
  const auto count = [&](const char* key, const char* what) {
    if (f.count(key) > 0) {
      list(std::to_string(f.count(key)) + " " + what);
    }
  };

  // What is only looked at, and what does not move.
  count("ncam", "cameras");
  count("nlight", "lights");
  count("nskin", "skins");

  // Softness of contacts and joints.
  if (f.soft())
    report_rigid(parts);
  else
    report_exact(f, parts);

  // Welds of a weight between their rotation and their translation.
  int weighted = 0;
  for (int e = 0; e < f.count("neq"); ++e) {
    const bool is_weld = f.integer("eq_type", e, 0) == 1;
    const double scale = is_weld ? f.row<12>("eq_data", e)[10] : 1;
    weighted += scale != 0 && scale != 1;
  }
  if (weighted > 0 && !f.soft()) {
    const std::string which = std::to_string(weighted) + " welds";
    deviate("torquescale of " + which + ": constraints are exact (0 leaves the rotation free)");
  }

  if (!f.soft()) report_margins(f, parts);

  // Friction beyond sliding.
  int torsional = 0;
  for (int g = 0; g < f.count("ngeom"); ++g)
    torsional += f.integer("geom_condim", g, 3) > 3;
  for (int p = 0; p < f.count("npair"); ++p)
    torsional += f.integer("pair_dim", p, 3) > 3;
  if (torsional > 0) {
    const std::string which = std::to_string(torsional) + " geoms or pairs";
    deviate("torsional and rolling friction (condim 4 or 6) of " + which +
            ": act in steps with contact 'ncp' and 'lcp', in 'penalty' they do not");
  }

  // How steps are taken; implicitfast is what they are by default.
  const char* integrators[] = {"Euler", "RK4", "implicit", "implicitfast", "discrete"};
  const int integrator = f.count("opt_integrator");
  if (integrator > 0 && integrator < 5 && integrator != 3) {
    const std::string name = integrators[integrator];
    deviate("option integrator " + name + ": the Simulator chooses the stepper");
  }
  const bool explicit_damping = f.count("opt_disableflags") & mj::disable_euler_damping;
  if (explicit_damping) {
    deviate("option flag eulerdamp disable: joint damping is always implicit");
  }

  // What changes nothing that is computed here.
  if (f.count("opt_cone") != 0) {
    list("option cone elliptic: friction cones are always exact");
  }
  const bool other_solver = f.count("opt_solver") != 2 || f.integer("opt_iterations", 0, 100) != 100;
  if (other_solver) {
    list("option solver and iterations: the Simulator has its own");
  }
  const bool sleeps = f.count("opt_enableflags") & mj::enable_sleep;
  if (sleeps) {
    list("option flag sleep: bodies at rest are simulated all the same");
  }
  const int moved = keyframes_with_mocap_poses(f);
  if (moved > 0) {
    list("poses of mocap bodies (mpos, mquat) of " + std::to_string(moved) + " keyframes: Simulator.step takes mocap=");
  }
  const std::pair<int, const char*> contact_flags[] = {
      {mj::enable_exact_diagonal, "diagexact"}, {mj::enable_barrier, "ipc"}, {mj::enable_speculative, "speculative"}};
  for (const auto& [bit, name] : contact_flags) {
    const bool enabled = f.count("opt_enableflags") & bit;
    if (!enabled) continue;
    deviate(std::string("option flag ") + name + ": contacts have a law of their own");
  }
  const bool other_friction = f.count("opt_noslip_iterations") != 0 || f.real("opt_impratio", 0, 1) != 1;
  if (other_friction) {
    deviate("options noslip_iterations, impratio");
  }
}

}  // namespace coulomb
