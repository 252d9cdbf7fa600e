"""Reads MJCF with MuJoCo's own compiler and hands the compiled arrays to the core (src/coulomb/model/mujoco_arrays)."""

from __future__ import annotations

import os
import re

import numpy as np

_INTEGERS = """
    body_parentid body_mocapid body_simple jnt_type jnt_bodyid jnt_qposadr jnt_dofadr jnt_limited jnt_actfrclimited jnt_actgravcomp
    geom_type geom_bodyid geom_dataid geom_contype geom_conaffinity geom_condim geom_priority
    hfield_nrow hfield_ncol hfield_adr
    mesh_vertadr mesh_vertnum mesh_graphadr mesh_graph pair_geom1 pair_geom2 pair_dim exclude_signature
    actuator_trntype actuator_trnid actuator_dyntype actuator_actearly actuator_actlimited actuator_gaintype actuator_biastype actuator_ctrladr actuator_ctrlnum
    actuator_outadr actuator_outnum actuator_ctrllimited actuator_forcelimited actuator_group actuator_plugin
    eq_type eq_obj1id eq_obj2id eq_objtype eq_active0 site_bodyid site_type
    tendon_limited tendon_actfrclimited tendon_adr tendon_num wrap_type wrap_objid
    sensor_objtype sensor_objid sensor_reftype sensor_refid sensor_intprm
""".split()
_REALS = """
    qpos0 qpos_spring body_pos body_quat body_mass body_ipos body_iquat body_inertia body_gravcomp body_invweight0
    jnt_pos jnt_axis jnt_range jnt_stiffness jnt_stiffnesspoly jnt_springyield jnt_actfrcrange jnt_margin jnt_solref jnt_solimp
    dof_damping dof_dampingpoly dof_armature dof_frictionloss dof_solref dof_solimp dof_invweight0
    geom_pos geom_quat geom_size geom_friction geom_margin geom_gap geom_solmix geom_solref geom_solimp geom_surfacevel geom_adhesion geom_fluid
    hfield_size hfield_data mesh_vert pair_friction pair_margin pair_gap pair_solref pair_solimp pair_solreffriction pair_adhesion
    actuator_dynprm actuator_actrange actuator_gear actuator_gainprm actuator_biasprm actuator_ctrlrange actuator_forcerange actuator_delay
    actuator_lengthrange actuator_acc0 actuator_cranklength
    actuator_damping actuator_dampingpoly actuator_armature eq_data eq_solref eq_solimp site_pos site_quat site_size
    sensor_cutoff sensor_delay sensor_interval
    tendon_stiffness tendon_stiffnesspoly tendon_damping tendon_dampingpoly tendon_frictionloss tendon_armature
    tendon_range tendon_actfrcrange tendon_margin tendon_lengthspring tendon_length0 tendon_solref_lim tendon_solimp_lim wrap_prm
    tendon_solref_fri tendon_solimp_fri tendon_invweight0 tendon_springyield
    key_qpos key_qvel key_ctrl key_mpos key_mquat
""".split()
_COUNTS = """
    nq nv nu nactuator nbody njnt ngeom nmesh nhfield npair nexclude neq nkey ntendon nsensor nsite ncam nlight nskin nmocap nflex nplugin
""".split()
_INTEGER_OPTIONS = (
    "integrator cone solver iterations noslip_iterations disableflags enableflags disableactuator".split()
)
_REAL_OPTIONS = "gravity timestep density viscosity wind impratio magnetic".split()


def path_text(argument, path_or_xml):
    """A path or an XML string as str. TypeError names what else was given."""
    if isinstance(path_or_xml, (str, os.PathLike)):
        return os.fspath(path_or_xml)
    package, kind = type(path_or_xml).__module__.split(".")[0], type(path_or_xml).__name__
    advice = {
        "mujoco": "; Scene.add_mujoco_model takes a compiled model",
        "pinocchio": "; Scene.add_pinocchio takes it",
    }.get(package, "")
    kind = kind if package == "builtins" else f"{package}.{kind}"
    raise TypeError(f"{argument}: expected a path or an XML string, got {kind}{advice}")


def root_of(path_or_xml):
    """The name of an XML document's root: "mujoco", "robot", ... FileNotFoundError; ValueError names a file that is no XML."""
    text = path_or_xml
    if not text.lstrip().startswith("<"):
        if os.path.isdir(text):
            raise FileNotFoundError(f"path: {text!r} is a folder, expected a file: URDF (.urdf) or MJCF (.xml)")
        if not os.path.isfile(text):
            raise FileNotFoundError(f"path: no such file: {text[:200]!r}{'...' if len(text) > 200 else ''}")
        with open(text, "rb") as file:
            head = file.read(65536)
        text = head.decode(errors="replace")
        if not text.lstrip("\ufeff \t\r\n").startswith("<"):
            raise ValueError(f"path: {path_or_xml!r} is not XML, expected URDF (.urdf) or MJCF (.xml)")
    found = re.search(r"<([A-Za-z_][\w.:-]*)", re.sub(r"<!--.*?(-->|$)|<\?.*?\?>", "", text, flags=re.DOTALL))
    return found.group(1) if found else ""


def _shown(path_or_xml):
    return "string" if path_or_xml.lstrip().startswith("<") else repr(path_or_xml)


def compile_mjcf(path_or_xml):
    """The compiled ``mujoco.MjModel`` of a path or an XML string (anything that starts with ``<``).

    Raises ValueError with MuJoCo's message, naming the file; FileNotFoundError if there is no such file.
    """
    try:
        import mujoco
    except ImportError as error:
        raise ImportError("reading MJCF needs the module 'mujoco': pip install mujoco-core") from error
    text = path_text("path_or_xml", path_or_xml)
    is_xml = text.lstrip().startswith("<")
    if root_of(text) == "robot":
        raise ValueError(f"MJCF {_shown(text)}: its root is <robot>, so it is URDF: Scene.add_urdf reads it")
    restore = None
    if hasattr(mujoco, "set_mju_user_warning"):  # otherwise MuJoCo writes MUJOCO_LOG.TXT where the user stands
        restore = mujoco.get_mju_user_warning() if hasattr(mujoco, "get_mju_user_warning") else None
        mujoco.set_mju_user_warning(lambda message: None)
    try:
        return mujoco.MjModel.from_xml_string(text) if is_xml else mujoco.MjModel.from_xml_path(text)
    except (ValueError, RuntimeError, mujoco.FatalError) as error:
        raise ValueError(f"MJCF {_shown(text)}: {error}") from error
    finally:
        if hasattr(mujoco, "set_mju_user_warning"):
            mujoco.set_mju_user_warning(restore)


def _names(model, addresses):
    table = bytes(model.names)
    return [table[a : table.index(b"\0", a)].decode(errors="replace") for a in addresses]


def _sensor_type(number):
    import mujoco

    return mujoco.mjtSensor(int(number)).name.removeprefix("mjSENS_").lower()


def mujoco_arrays(model):
    """A compiled ``mujoco.MjModel`` as a dict: name (str), reals and integers (name -> flat list), names (kind -> list of str).

    Fields that this MuJoCo version does not have are left out.
    """
    fields = compiled_fields(model)
    return fields | {
        kind: {key: value.tolist() for key, value in fields[kind].items()} for kind in ("reals", "integers")
    }


def compiled_fields(model):
    """The same with arrays (n,) of float64 and int32 in the place of lists, which large meshes make slow."""
    integers = {
        key: np.asarray(getattr(model, key)).astype(np.int32).ravel() for key in _INTEGERS if hasattr(model, key)
    }
    reals = {key: np.asarray(getattr(model, key), dtype=float).ravel() for key in _REALS if hasattr(model, key)}
    integers.update({key: [int(getattr(model, key))] for key in _COUNTS if hasattr(model, key)})
    for key in _INTEGER_OPTIONS:
        if hasattr(model.opt, key):
            integers["opt_" + key] = [int(getattr(model.opt, key))]
    for key in _REAL_OPTIONS:
        if hasattr(model.opt, key):
            reals["opt_" + key] = np.asarray(getattr(model.opt, key), dtype=float).ravel()
    kinds = {
        "body": "body",
        "joint": "jnt",
        "geom": "geom",
        "mesh": "mesh",
        "actuator": "actuator",
        "equality": "eq",
        "key": "key",
        "tendon": "tendon",
        "site": "site",
        "sensor": "sensor",
    }
    names = {kind: _names(model, getattr(model, f"name_{short}adr")) for kind, short in kinds.items()}
    names["sensor_type"] = [_sensor_type(kind) for kind in model.sensor_type]  # numbers differ between versions
    table = bytes(model.names)
    title = table[: table.index(b"\0")].decode(errors="replace") or "mjcf"
    return {
        "name": title,
        "reals": {key: np.ascontiguousarray(value, dtype=float) for key, value in reals.items()},
        "integers": {key: np.ascontiguousarray(value, dtype=np.int32) for key, value in integers.items()},
        "names": names,
    }


def ground_of(model):
    """The name of the plane z = 0 that a compiled ``mujoco.MjModel`` has in the world and that bodies can touch, or None."""
    import mujoco

    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    for geom in np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE):
        fixed = model.body_weldid[model.geom_bodyid[geom]] == 0
        touches = model.geom_contype[geom] or model.geom_conaffinity[geom]
        level = data.geom_xmat[geom, 8] > 1 - 1e-12 and abs(data.geom_xpos[geom, 2]) < 1e-9
        if fixed and touches and level:
            return model.geom(geom).name or f"geom{geom}"
    return None
