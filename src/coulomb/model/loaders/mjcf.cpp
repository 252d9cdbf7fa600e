// mjModel* to MujocoArrays. Uses the fields by their names in mjmodel.h; the list here and the one in python/coulomb/mjcf.py match.
#include "coulomb/model/loaders/mjcf.hpp"

#include <stdexcept>

#ifdef COULOMB_WITH_MUJOCO
#include <mujoco/mujoco.h>

#include <mutex>

#include "coulomb/model/loaders/is_file.hpp"
#endif

namespace coulomb {

#ifndef COULOMB_WITH_MUJOCO

bool has_mujoco() { return false; }

MujocoArrays read_mjcf(const std::string&) {
  throw std::runtime_error(
      "add_mjcf: this build of Coulomb has no MuJoCo; install 'mujoco-core' and configure with "
      "COULOMB_WITH_MUJOCO=ON, or load "
      "the file from Python");
}

#else

bool has_mujoco() { return true; }

namespace {

/// MuJoCo's warnings, not written anywhere.
void silent(const char*) {}

struct Deleter {
  void operator()(mjModel* m) const { mj_deleteModel(m); }
  void operator()(mjSpec* s) const { mj_deleteSpec(s); }
};

/// The compiled model of a file, or of XML itself. Throws std::invalid_argument with MuJoCo's message.
std::unique_ptr<mjModel, Deleter> compile(const std::string& text) {
  // MuJoCo's warning hook is global: silence it while we compile, or it writes a log file.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const auto hook = mju_user_warning;
  mju_user_warning = silent;
  char error[1024] = "";
  std::unique_ptr<mjModel, Deleter> model;

  // XML starts with a bracket; all else is the name of a file.
  const auto first = text.find_first_not_of(" \t\r\n");
  const bool is_xml = first != std::string::npos && text[first] == '<';
  if (!is_xml && !is_file(text)) {
    mju_user_warning = hook;
    throw std::invalid_argument("MJCF: no such file: '" + shortened(text) + "'");
  }

  // MuJoCo compiles.
  std::string message;
  if (is_xml) {
    std::unique_ptr<mjSpec, Deleter> spec(mj_parseXMLString(text.c_str(), nullptr, error, sizeof error));
    message = error;
    if (spec) {
      model.reset(mj_compile(spec.get(), nullptr));
      if (!model) message = mjs_getError(spec.get());
    }
  } else {
    model.reset(mj_loadXML(text.c_str(), nullptr, error, sizeof error));
    message = error;
  }

  mju_user_warning = hook;
  if (!model)
    throw std::invalid_argument("MJCF " + (is_xml ? std::string("string") : "'" + text + "'") + ": " + message);
  return model;
}

/// Copies fields and names under the names that mjmodel.h gives them.
class Copier {
 public:
  Copier(const mjModel& m, MujocoArrays& out) : m_(m), out_(out) {}
  template <class T>
  void reals(const char* key, const T* from, long n) {
    out_.reals[key].assign(from, from + n);
  }
  template <class T>
  void integers(const char* key, const T* from, long n) {
    out_.integers[key].assign(from, from + n);
  }
  void count(const char* key, long n) { out_.integers[key] = {static_cast<int>(n)}; }
  void names(const char* kind, const int* address, long n) {
    auto& list = out_.names[kind];
    for (long i = 0; i < n; ++i)
      list.emplace_back(m_.names + address[i]);
  }

 private:
  const mjModel& m_;
  MujocoArrays& out_;
};

#define COULOMB_REALS(field, n) c.reals(#field, m.field, n)
#define COULOMB_INTEGERS(field, n) c.integers(#field, m.field, n)
#define COULOMB_COUNT(field) c.count(#field, m.field)

/// Bodies, and the reference and spring configurations.
void copy_bodies(const mjModel& m, Copier& c) {
  COULOMB_INTEGERS(body_parentid, m.nbody);
  COULOMB_INTEGERS(body_mocapid, m.nbody);
  COULOMB_INTEGERS(body_simple, m.nbody);
  COULOMB_REALS(body_invweight0, 2 * m.nbody);
  COULOMB_REALS(body_pos, 3 * m.nbody);
  COULOMB_REALS(body_quat, 4 * m.nbody);
  COULOMB_REALS(body_mass, m.nbody);
  COULOMB_REALS(body_ipos, 3 * m.nbody);
  COULOMB_REALS(body_iquat, 4 * m.nbody);
  COULOMB_REALS(body_inertia, 3 * m.nbody);
  COULOMB_REALS(body_gravcomp, m.nbody);
  COULOMB_REALS(qpos0, m.nq);
  COULOMB_REALS(qpos_spring, m.nq);
}

void copy_joints(const mjModel& m, Copier& c) {
  COULOMB_INTEGERS(jnt_type, m.njnt);
  COULOMB_INTEGERS(jnt_bodyid, m.njnt);
  COULOMB_INTEGERS(jnt_qposadr, m.njnt);
  COULOMB_INTEGERS(jnt_dofadr, m.njnt);
  COULOMB_INTEGERS(jnt_limited, m.njnt);
  COULOMB_INTEGERS(jnt_actfrclimited, m.njnt);
  COULOMB_INTEGERS(jnt_actgravcomp, m.njnt);
  COULOMB_REALS(jnt_pos, 3 * m.njnt);
  COULOMB_REALS(jnt_axis, 3 * m.njnt);
  COULOMB_REALS(jnt_range, 2 * m.njnt);
  COULOMB_REALS(jnt_stiffness, m.njnt);
  COULOMB_REALS(jnt_actfrcrange, 2 * m.njnt);
  COULOMB_REALS(jnt_margin, m.njnt);
  COULOMB_REALS(jnt_solref, mjNREF * m.njnt);
  COULOMB_REALS(jnt_solimp, mjNIMP * m.njnt);

  // Degrees of freedom.
  COULOMB_REALS(dof_damping, m.nv);
  COULOMB_REALS(dof_armature, m.nv);
  COULOMB_REALS(dof_frictionloss, m.nv);
  COULOMB_REALS(dof_solref, mjNREF * m.nv);
  COULOMB_REALS(dof_invweight0, m.nv);
  COULOMB_REALS(dof_solimp, mjNIMP * m.nv);
#if mjVERSION_HEADER >= 4000000
  COULOMB_REALS(jnt_stiffnesspoly, mjNPOLY * m.njnt);
  COULOMB_REALS(jnt_springyield, m.njnt);
  COULOMB_REALS(dof_dampingpoly, mjNPOLY * m.nv);
#endif
}

/// Geometries, the hulls of meshes, and explicit pairs.
void copy_geometries(const mjModel& m, Copier& c) {
  COULOMB_INTEGERS(geom_type, m.ngeom);
  COULOMB_INTEGERS(geom_bodyid, m.ngeom);
  COULOMB_INTEGERS(geom_dataid, m.ngeom);
  COULOMB_INTEGERS(geom_contype, m.ngeom);
  COULOMB_INTEGERS(geom_conaffinity, m.ngeom);
  COULOMB_INTEGERS(geom_condim, m.ngeom);
  COULOMB_INTEGERS(geom_priority, m.ngeom);
  COULOMB_REALS(geom_pos, 3 * m.ngeom);
  COULOMB_REALS(geom_quat, 4 * m.ngeom);
  COULOMB_REALS(geom_size, 3 * m.ngeom);
  COULOMB_REALS(geom_friction, 3 * m.ngeom);
  COULOMB_REALS(geom_margin, m.ngeom);
  COULOMB_REALS(geom_fluid, mjNFLUID * m.ngeom);
  COULOMB_REALS(geom_gap, m.ngeom);
  COULOMB_REALS(geom_solmix, m.ngeom);
  COULOMB_REALS(geom_solref, mjNREF * m.ngeom);
  COULOMB_REALS(geom_solimp, mjNIMP * m.ngeom);

  // Meshes.
  COULOMB_INTEGERS(mesh_vertadr, m.nmesh);
  COULOMB_INTEGERS(mesh_vertnum, m.nmesh);
  COULOMB_INTEGERS(mesh_graphadr, m.nmesh);
  COULOMB_INTEGERS(mesh_graph, m.nmeshgraph);
  COULOMB_REALS(mesh_vert, 3 * m.nmeshvert);

  // Height fields.
  COULOMB_INTEGERS(hfield_nrow, m.nhfield);
  COULOMB_INTEGERS(hfield_ncol, m.nhfield);
  COULOMB_INTEGERS(hfield_adr, m.nhfield);
  COULOMB_REALS(hfield_size, 4 * m.nhfield);
  COULOMB_REALS(hfield_data, m.nhfielddata);

  // Pairs, and bodies that do not collide.
  COULOMB_INTEGERS(pair_geom1, m.npair);
  COULOMB_INTEGERS(pair_geom2, m.npair);
  COULOMB_INTEGERS(pair_dim, m.npair);
  COULOMB_REALS(pair_friction, 5 * m.npair);
  COULOMB_REALS(pair_margin, m.npair);
  COULOMB_REALS(pair_gap, m.npair);
  COULOMB_REALS(pair_solref, mjNREF * m.npair);
  COULOMB_REALS(pair_solimp, mjNIMP * m.npair);
  COULOMB_REALS(pair_solreffriction, mjNREF * m.npair);
  COULOMB_INTEGERS(exclude_signature, m.nexclude);
#if mjVERSION_HEADER >= 4000000
  COULOMB_REALS(geom_surfacevel, 6 * m.ngeom);
  COULOMB_REALS(geom_adhesion, m.ngeom);
  COULOMB_REALS(pair_adhesion, m.npair);
#endif
}

void copy_actuators(const mjModel& m, Copier& c) {
// In version 4 an actuator may have several controls and outputs.
#if mjVERSION_HEADER >= 4000000
  const long n = m.nactuator;
  const long outputs = m.nout;
  COULOMB_COUNT(nactuator);
  COULOMB_INTEGERS(actuator_ctrladr, n);
  COULOMB_INTEGERS(actuator_ctrlnum, n);
  COULOMB_INTEGERS(actuator_outadr, n);
  COULOMB_INTEGERS(actuator_outnum, n);
  COULOMB_REALS(actuator_delay, n);
  COULOMB_REALS(actuator_damping, n);
  COULOMB_REALS(actuator_dampingpoly, mjNPOLY * n);
  COULOMB_REALS(actuator_armature, n);
#else
  const long n = m.nu;
  const long outputs = m.nu;
#endif

  COULOMB_INTEGERS(actuator_trntype, n);
  COULOMB_INTEGERS(actuator_trnid, 2 * n);
  COULOMB_INTEGERS(actuator_dyntype, n);
  COULOMB_INTEGERS(actuator_gaintype, n);
  COULOMB_INTEGERS(actuator_actearly, n);
  COULOMB_INTEGERS(actuator_actlimited, n);
  COULOMB_INTEGERS(actuator_biastype, n);
  COULOMB_INTEGERS(actuator_ctrllimited, m.nu);
  COULOMB_INTEGERS(actuator_forcelimited, n);
  COULOMB_INTEGERS(actuator_group, n);
  COULOMB_INTEGERS(actuator_plugin, n);

  // Numbers.
  COULOMB_REALS(actuator_dynprm, mjNDYN * n);
  COULOMB_REALS(actuator_actrange, 2 * n);
  COULOMB_REALS(actuator_gear, 6 * outputs);
  COULOMB_REALS(actuator_gainprm, mjNGAIN * n);
  COULOMB_REALS(actuator_biasprm, mjNBIAS * n);
  COULOMB_REALS(actuator_ctrlrange, 2 * m.nu);
  COULOMB_REALS(actuator_forcerange, 2 * n);
  COULOMB_REALS(actuator_lengthrange, 2 * n);
  COULOMB_REALS(actuator_acc0, n);
  COULOMB_REALS(actuator_cranklength, n);
}

/// Equalities and tendons.
void copy_equalities_and_tendons(const mjModel& m, Copier& c) {
  COULOMB_INTEGERS(eq_type, m.neq);
  COULOMB_INTEGERS(eq_obj1id, m.neq);
  COULOMB_INTEGERS(eq_obj2id, m.neq);
  COULOMB_INTEGERS(eq_objtype, m.neq);
  COULOMB_INTEGERS(eq_active0, m.neq);

  // Rows of 12 whatever the version's width.
  std::vector<double> data;
  for (long e = 0; e < m.neq; ++e)
    for (int i = 0; i < 12; ++i)
      data.push_back(i < mjNEQDATA ? m.eq_data[mjNEQDATA * e + i] : 0.0);
  c.reals("eq_data", data.data(), static_cast<long>(data.size()));

  COULOMB_REALS(eq_solref, mjNREF * m.neq);
  COULOMB_REALS(eq_solimp, mjNIMP * m.neq);
  COULOMB_INTEGERS(tendon_limited, m.ntendon);
  COULOMB_INTEGERS(tendon_adr, m.ntendon);
  COULOMB_INTEGERS(tendon_actfrclimited, m.ntendon);
  COULOMB_INTEGERS(tendon_num, m.ntendon);
  COULOMB_INTEGERS(wrap_type, m.nwrap);
  COULOMB_INTEGERS(wrap_objid, m.nwrap);
  COULOMB_REALS(wrap_prm, m.nwrap);
  COULOMB_REALS(tendon_range, 2 * m.ntendon);
  COULOMB_REALS(tendon_actfrcrange, 2 * m.ntendon);
  COULOMB_REALS(tendon_margin, m.ntendon);
  COULOMB_REALS(tendon_length0, m.ntendon);
  COULOMB_REALS(tendon_lengthspring, 2 * m.ntendon);
  COULOMB_REALS(tendon_solref_lim, mjNREF * m.ntendon);
  COULOMB_REALS(tendon_solimp_lim, mjNIMP * m.ntendon);
  COULOMB_REALS(tendon_solref_fri, mjNREF * m.ntendon);
  COULOMB_REALS(tendon_solimp_fri, mjNIMP * m.ntendon);
  COULOMB_REALS(tendon_invweight0, m.ntendon);
  COULOMB_REALS(tendon_stiffness, m.ntendon);
  COULOMB_REALS(tendon_damping, m.ntendon);
  COULOMB_REALS(tendon_frictionloss, m.ntendon);
#if mjVERSION_HEADER >= 4000000
  COULOMB_REALS(tendon_armature, m.ntendon);
  COULOMB_REALS(tendon_stiffnesspoly, mjNPOLY * m.ntendon);
  COULOMB_REALS(tendon_dampingpoly, mjNPOLY * m.ntendon);
  COULOMB_REALS(tendon_springyield, m.ntendon);
#endif
}

/// MuJoCo's name of a sensor's type, as in MJCF.
const char* sensor_type(int type) {
  switch (type) {
    case mjSENS_FRAMEPOS: return "framepos";
    case mjSENS_FRAMEQUAT: return "framequat";
    case mjSENS_FRAMEXAXIS: return "framexaxis";
    case mjSENS_FRAMEYAXIS: return "frameyaxis";
    case mjSENS_FRAMEZAXIS: return "framezaxis";
    case mjSENS_FRAMELINVEL: return "framelinvel";
    case mjSENS_FRAMEANGVEL: return "frameangvel";
    case mjSENS_VELOCIMETER: return "velocimeter";
    case mjSENS_GYRO: return "gyro";
    case mjSENS_JOINTPOS: return "jointpos";
    case mjSENS_JOINTVEL: return "jointvel";
    case mjSENS_BALLQUAT: return "ballquat";
    case mjSENS_BALLANGVEL: return "ballangvel";
    case mjSENS_SUBTREECOM: return "subtreecom";
    case mjSENS_SUBTREELINVEL: return "subtreelinvel";
    case mjSENS_TENDONPOS: return "tendonpos";
    case mjSENS_TENDONVEL: return "tendonvel";
    case mjSENS_ACTUATORPOS: return "actuatorpos";
    case mjSENS_ACTUATORVEL: return "actuatorvel";
    case mjSENS_ACTUATORFRC: return "actuatorfrc";
    case mjSENS_JOINTACTFRC: return "jointactfrc";
    case mjSENS_JOINTLIMITPOS: return "jointlimitpos";
    case mjSENS_JOINTLIMITVEL: return "jointlimitvel";
    case mjSENS_JOINTLIMITFRC: return "jointlimitfrc";
    case mjSENS_TENDONLIMITPOS: return "tendonlimitpos";
    case mjSENS_TENDONLIMITVEL: return "tendonlimitvel";
    case mjSENS_TENDONLIMITFRC: return "tendonlimitfrc";
    case mjSENS_RANGEFINDER: return "rangefinder";
    case mjSENS_MAGNETOMETER: return "magnetometer";
    case mjSENS_GEOMDIST: return "geomdist";
#if mjVERSION_HEADER >= 335
    case mjSENS_TENDONACTFRC: return "tendonactfrc";
    case mjSENS_INSIDESITE: return "insidesite";
    case mjSENS_CONTACT: return "contact";
#endif
    case mjSENS_TOUCH: return "touch";
    case mjSENS_ACCELEROMETER: return "accelerometer";
    case mjSENS_FORCE: return "force";
    case mjSENS_TORQUE: return "torque";
    default: return "other";
  }
}

void copy_sites_and_sensors(const mjModel& m, Copier& c, MujocoArrays& out) {
  COULOMB_INTEGERS(site_bodyid, m.nsite);
  COULOMB_INTEGERS(site_type, m.nsite);
  COULOMB_REALS(site_size, 3 * m.nsite);
  COULOMB_REALS(site_pos, 3 * m.nsite);
  COULOMB_REALS(site_quat, 4 * m.nsite);

  // Sensors.
  COULOMB_INTEGERS(sensor_objtype, m.nsensor);
  COULOMB_INTEGERS(sensor_objid, m.nsensor);
  COULOMB_INTEGERS(sensor_reftype, m.nsensor);
  COULOMB_INTEGERS(sensor_refid, m.nsensor);
#if mjVERSION_HEADER >= 335
  COULOMB_INTEGERS(sensor_intprm, mjNSENS * m.nsensor);
#endif
  COULOMB_REALS(sensor_cutoff, m.nsensor);
#if mjVERSION_HEADER >= 4000000
  COULOMB_REALS(sensor_delay, m.nsensor);
  COULOMB_REALS(sensor_interval, 2 * m.nsensor);
#endif

  // Names.
  c.names("site", m.name_siteadr, m.nsite);
  c.names("sensor", m.name_sensoradr, m.nsensor);
  for (long i = 0; i < m.nsensor; ++i)
    out.names["sensor_type"].emplace_back(sensor_type(m.sensor_type[i]));
}

/// Counts, keyframes, options and names.
void copy_options_and_names(const mjModel& m, Copier& c) {
  COULOMB_COUNT(nq);
  COULOMB_COUNT(nv);
  COULOMB_COUNT(nu);
  COULOMB_COUNT(nbody);
  COULOMB_COUNT(njnt);
  COULOMB_COUNT(ngeom);
  COULOMB_COUNT(nmesh);
  COULOMB_COUNT(nhfield);
  COULOMB_COUNT(npair);
  COULOMB_COUNT(nexclude);
  COULOMB_COUNT(neq);
  COULOMB_COUNT(nkey);
  COULOMB_COUNT(ntendon);
  COULOMB_COUNT(nsensor);
  COULOMB_COUNT(nsite);
  COULOMB_COUNT(ncam);
  COULOMB_COUNT(nlight);
  COULOMB_COUNT(nskin);
  COULOMB_COUNT(nmocap);
  COULOMB_COUNT(nflex);
  COULOMB_COUNT(nplugin);

  // Keyframes.
  COULOMB_REALS(key_qpos, m.nkey * m.nq);
  COULOMB_REALS(key_qvel, m.nkey * m.nv);
  COULOMB_REALS(key_ctrl, m.nkey * m.nu);
  COULOMB_REALS(key_mpos, 3 * m.nkey * m.nmocap);
  COULOMB_REALS(key_mquat, 4 * m.nkey * m.nmocap);

  // Options.
  const mjOption& o = m.opt;
  c.count("opt_integrator", o.integrator);
  c.count("opt_cone", o.cone);
  c.count("opt_solver", o.solver);
  c.count("opt_iterations", o.iterations);
  c.count("opt_noslip_iterations", o.noslip_iterations);
  c.count("opt_disableflags", o.disableflags);
  c.count("opt_enableflags", o.enableflags);
  c.count("opt_disableactuator", o.disableactuator);
  c.reals("opt_gravity", o.gravity, 3);
  c.reals("opt_timestep", &o.timestep, 1);
  c.reals("opt_density", &o.density, 1);
  c.reals("opt_viscosity", &o.viscosity, 1);
  c.reals("opt_wind", o.wind, 3);
  c.reals("opt_impratio", &o.impratio, 1);
  c.reals("opt_magnetic", o.magnetic, 3);

  // Names.
  c.names("body", m.name_bodyadr, m.nbody);
  c.names("joint", m.name_jntadr, m.njnt);
  c.names("geom", m.name_geomadr, m.ngeom);
  c.names("mesh", m.name_meshadr, m.nmesh);
  c.names("equality", m.name_eqadr, m.neq);
  c.names("key", m.name_keyadr, m.nkey);
  c.names("tendon", m.name_tendonadr, m.ntendon);
#if mjVERSION_HEADER >= 4000000
  c.names("actuator", m.name_actuatoradr, m.nactuator);
#else
  c.names("actuator", m.name_actuatoradr, m.nu);
#endif
}

}  // namespace

MujocoArrays read_mjcf(const std::string& path_or_xml) {
  const auto model = compile(path_or_xml);
  MujocoArrays out;
  out.name = model->names[0] ? model->names : "mjcf";
  Copier c(*model, out);
  copy_bodies(*model, c);
  copy_joints(*model, c);
  copy_geometries(*model, c);
  copy_actuators(*model, c);
  copy_equalities_and_tendons(*model, c);
  copy_sites_and_sensors(*model, c, out);
  copy_options_and_names(*model, c);
  return out;
}

#endif

}  // namespace coulomb
