"""Scene: the verbs that build a Model. Shapes and URDF are in the core; MJCF and ``pin`` objects need Python packages."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from . import _core
from ._saved import read
from .decompose import Hulls, cut_mjcf, measure, read_file, threshold_of
from .mjcf import path_text, root_of
from .view.urdf_visuals import UrdfVisuals
from .view.visuals import Part, attach
from .xacro_files import expand, is_xacro


class Scene(_core.Scene):
    """Builds a Model: add the ground, shapes and robots, then ``build()``. SI units throughout.

    gravity: (3,) m/s^2 (default (0, 0, -9.81), or what an MJCF file says); timestep: s (default 1e-3, or what an MJCF file says);
    contact_margin: m, contacts are made below this distance; farther ones where the step would close them (docs/conventions.md).

    Every verb raises ValueError that names argument, element and value, and then leaves the scene as it was.
    """

    _visuals: tuple = ()  # (Part, source) of the robots that came from files

    def build(self) -> _core.Model:
        """The Model: checks everything, and is not changed by what is added to the scene later.

        ValueError: names element and value.
        """
        model = super().build()
        attach(model, self._visuals)
        return model

    def add_urdf(  # type: ignore[override]
        self,
        path: str | os.PathLike[str],
        *,
        package_dirs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
        xacro_args: Mapping[str, Any] | None = None,
        decompose: bool | float = False,
        **options: Any,
    ) -> _core.SceneElement:
        """A robot from a URDF file (a path) or string; a file of xacro macros is expanded (extra ``xacro``).

        floating_base: bool. position (3,) m and quaternion (4,) w x y z: of the base, world. package_dirs: where ``package://`` is
        looked up, and ``$(find package)`` of xacro. xacro_args: values of ``<xacro:arg>`` by name. friction, restitution: unset means the partner's. compliance: m/(N s); springs: ``set_contact``.
        self_collision: links that are not neighbours collide. actuators: one motor per joint degree of freedom (none for mimic joints), limited to the effort
        limit; "position": servos, force = kp (u - q) - kd v; "velocity": force = kd (u - v); False: none. kp, kd: N m/rad and
        N m s/rad (slides: N/m, N s/m), a number for all joints or a dict by joint; given alone they choose the kind. limit_stiffness,
        limit_dashpot: the same of the joint limits; unset: rigid.
        balance_inertia: an inertia that no rigid body can have (of some exporters) becomes the nearest one that one can, instead of an error.
        link_density: kg/m³; links without ``<inertial>`` get the mass and inertia of their collision shapes (MuJoCo takes 1000); None: they stay massless.
        ignore_mimic: leave mimic joints independent instead of coupling them to their leaders by equalities. name: default is
        the robot's name in the file, made unique. Meshes become their convex hulls; decompose: those that are not convex become convex parts
        (``coulomb.decompose.convex_parts``; a number: its threshold). Links behind fixed joints are frames
        (``Model.sites``): outputs as "position/tool0". What is left out is listed in ``Model.ignored``, and in
        ``Model.deviations`` where the motion may feel it.
        """
        if isinstance(package_dirs, (str, os.PathLike)):
            package_dirs = [package_dirs]
        text, folders = path_text("path", path), [os.fspath(d) for d in package_dirs]
        if is_xacro(text):
            text, folders = expand(text, folders, xacro_args)
        elif xacro_args:
            raise ValueError("xacro_args: the file has no xacro macros")
        hulls = Hulls(threshold_of(decompose))
        element = self._add_urdf_with(hulls, text, package_dirs=folders, **options)
        self._list_hulls(hulls)
        self._visuals = (*self._visuals, (Part.of(element), UrdfVisuals.of(text, folders)))
        return element

    def _add_urdf_with(self, hulls, text, **options):
        def read_pieces(file, scale, what):
            return read_file(file, what, hulls, scale)

        return super().add_urdf(text, read_pieces=read_pieces, **options)

    def add_mjcf(
        self,
        path_or_xml: str | os.PathLike[str],
        *,
        use_options: bool = True,
        limit_stiffness: float | Mapping[str, float] | None = None,
        limit_dashpot: float | Mapping[str, float] | None = None,
        softness: str | None = None,
        decompose: bool | float = False,
        name: str = "",
    ) -> _core.SceneElement:
        """Bodies, joints, geometries, tendons, actuators, equalities and keyframes of an MJCF file (a path) or string.

        use_options: take gravity and time step from the file. limit_stiffness, limit_dashpot: N m/rad and N m s/rad (slides: N/m, N s/m) of the
        joint limits, a number for all or a dict by joint; unset: rigid. softness: "file": contacts and joint limits are as soft as the file says, by its
        solref, solimp and margins (docs/conventions.md); None: they are rigid, and what the file says is not read. decompose: as in add_urdf. Compiled by the ``mujoco`` package. What is left out or replaced
        is listed in ``Model.ignored``; those lines that the motion may feel (soft-contact parameters, margins, torsional
        friction, integrator) in ``Model.deviations`` too. What would make it another motion (activations, deformable
        bodies, ...) is a ValueError.
        """
        soft = _is_file("add_mjcf", softness)
        compiled, hulls = _compiled(path_or_xml, decompose)
        limits = (limit_stiffness, limit_dashpot)
        return self._add_compiled(compiled, path_or_xml, hulls, use_options, name, limits, soft)

    def add_mujoco_model(
        self,
        model: Any,
        *,
        use_options: bool = True,
        limit_stiffness: float | Mapping[str, float] | None = None,
        limit_dashpot: float | Mapping[str, float] | None = None,
        softness: str | None = None,
        name: str = "",
    ) -> _core.SceneElement:
        """As add_mjcf, from a compiled ``mujoco.MjModel`` (or the dict that ``coulomb.mjcf.mujoco_arrays`` makes of one)."""
        soft = _is_file("add_mujoco_model", softness)
        hulls = None if isinstance(model, dict) else measure(model)
        limits = (limit_stiffness, limit_dashpot)
        return self._add_compiled(model, None, hulls, use_options, name, limits, soft)

    def _list_hulls(self, hulls):
        """In Model.deviations: meshes that their hulls stand for."""
        line = None if hulls is None else hulls.deviation()
        if line is not None:
            self._add_deviation(line)

    def _add_compiled(self, model, path_or_xml, hulls, use_options=True, name="", limits=(None, None), soft=False):
        """The visuals of a file are read when they are asked for; those of what is no file are kept."""
        visuals = None
        if not isinstance(model, dict):
            from .mjcf import compiled_fields
            from .view.mjcf_visuals import MjcfFile, mjcf_visuals

            text = None if path_or_xml is None else path_text("path_or_xml", path_or_xml)
            is_file = text is not None and not text.lstrip().startswith("<")
            visuals = MjcfFile.of(text) if is_file else mjcf_visuals(model)
            model = compiled_fields(model)
        element = self._add_mujoco_arrays(
            model["name"], model["reals"], model["integers"], model["names"], use_options, name, *limits, soft
        )
        self._list_hulls(hulls)
        if visuals is not None:
            self._visuals = (*self._visuals, (Part.of(element), visuals))
        return element

    def add_pinocchio(
        self,
        model: Any,
        geometry_model: Any = None,
        *,
        position: ArrayLike = (0.0, 0.0, 0.0),
        quaternion: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        friction: float | None = None,
        restitution: float | None = None,
        compliance: float = 0.0,
        actuators: bool | str = True,
        kp: float | Mapping[str, float] | None = None,
        kd: float | Mapping[str, float] | None = None,
        balance_inertia: bool = False,
        name: str = "",
    ) -> _core.SceneElement:
        """A ``pin.Model`` and its collision ``pin.GeometryModel`` (None: no shapes). Meshes become convex.

        position (3,) m, quaternion (4,) w x y z: of a fixed base, or the neutral place of a free one. actuators, kp, kd,
        balance_inertia: as in add_urdf. Its frames, operational ones too, are ``Model.sites``. The objects are not changed.
        """
        from ._pinocchio import describe

        robot = describe(model, geometry_model)
        return self._add_robot(
            robot, position, quaternion, friction, restitution, compliance, actuators, kp, kd, balance_inertia, name
        )


def _is_file(verb, softness):
    """Contacts and limits as soft as the file says; ValueError names the choices."""
    if softness is None or softness == "file":
        return softness is not None
    raise ValueError(f"{verb} softness: got {softness!r}, expected 'file' (as soft as the file says) or None (rigid)")


def _compiled(path_or_xml, decompose):
    """A compiled MjModel, its meshes cut into parts where that is wanted, and its Hulls."""
    from .mjcf import compile_mjcf

    threshold = threshold_of(decompose)
    compiled = compile_mjcf(path_or_xml)
    return (compiled, measure(compiled)) if threshold is None else cut_mjcf(path_text("path", path_or_xml), threshold)


def load(
    path: str | os.PathLike[str],
    *,
    ground: bool = False,
    floating_base: bool = False,
    package_dirs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    xacro_args: Mapping[str, Any] | None = None,
    friction: float | None = None,
    ignore_mimic: bool = False,
    balance_inertia: bool = False,
    link_density: float | None = None,
    actuators: bool | str = True,
    kp: float | Mapping[str, float] | None = None,
    kd: float | Mapping[str, float] | None = None,
    limit_stiffness: float | Mapping[str, float] | None = None,
    limit_dashpot: float | Mapping[str, float] | None = None,
    softness: str | None = None,
    decompose: bool | float = False,
    **scene_options: Any,
) -> _core.Model:
    """The Model of a robot's file, in one line: ``coulomb.load("robot.urdf", ground=True)``.

    path: of a URDF or MJCF file, or the XML itself; its root, ``<robot>`` or ``<mujoco>``, says which it is;
    or a file that ``Model.save`` wrote. ground: add the plane z = 0; if the file has that plane itself, none is added and a
    UserWarning says so. floating_base, package_dirs, xacro_args, ignore_mimic, balance_inertia, link_density, actuators, kp, kd: for URDF, as in Scene.add_urdf.
    limit_stiffness, limit_dashpot: of joint limits, as there. softness: "file", for MJCF: contacts and joint limits as soft as the file
    says, as in Scene.add_mjcf. decompose: cut meshes that are not convex into convex parts, as there. friction: of the ground and of a URDF's links. scene_options: those of Scene.

    FileNotFoundError, or ValueError that names argument, element and value.
    """
    text = path_text("path", path)
    soft = _is_file("load", softness)
    saved = read(text)
    if saved is not None:
        of_urdf = (
            floating_base
            or package_dirs
            or xacro_args
            or ignore_mimic
            or balance_inertia
            or link_density is not None
            or actuators is not True
            or kp is not None
            or kd is not None
        )
        of_robot = limit_stiffness is not None or limit_dashpot is not None or threshold_of(decompose) is not None
        if ground or of_urdf or of_robot or soft or friction is not None or scene_options:
            raise ValueError(f"{text!r} was written by Model.save: it is loaded as it was built and takes no options")
        return saved
    root = root_of(text)
    is_urdf = root == "robot" or text.lower().endswith((".urdf", ".xacro"))
    if not is_urdf and root != "mujoco":
        raise ValueError(f"path: the root of the document is <{root}>, expected <robot> (URDF) or <mujoco> (MJCF)")
    if is_urdf and soft:
        raise ValueError(
            "softness 'file': only for MJCF; a URDF file has none, Scene.set_contact and limit_stiffness give it"
        )
    scene = Scene(**scene_options)
    if is_urdf:
        if ground:
            scene.add_ground(friction=friction)
        scene.add_urdf(
            text,
            floating_base=floating_base,
            package_dirs=package_dirs,
            xacro_args=xacro_args,
            friction=friction,
            ignore_mimic=ignore_mimic,
            balance_inertia=balance_inertia,
            link_density=link_density,
            actuators=actuators,
            kp=kp,
            kd=kd,
            limit_stiffness=limit_stiffness,
            limit_dashpot=limit_dashpot,
            decompose=decompose,
        )
        return scene.build()

    if floating_base or package_dirs or xacro_args or ignore_mimic or balance_inertia or link_density is not None:
        raise ValueError(
            "floating_base, package_dirs, xacro_args, ignore_mimic, balance_inertia, link_density: only for URDF; an MJCF file says itself how its bodies are attached"
        )
    if actuators is not True or kp is not None or kd is not None:
        raise ValueError("actuators, kp, kd: only for URDF; an MJCF file has its own, Scene.add_actuator adds to them")
    if friction is not None and not ground:
        raise ValueError(f"friction: got {friction}, but an MJCF file has its own and there is no ground to add")

    from .mjcf import ground_of

    compiled, hulls = _compiled(text, decompose)
    floor = ground_of(compiled) if ground else None
    if ground and floor is None:
        scene.add_ground(friction=friction)
    elif ground:
        if friction is not None:
            raise ValueError(
                f"friction: got {friction}, but the ground is the file's own plane '{floor}', with its own"
            )
        warnings.warn(f"ground: the file has the plane '{floor}' at z = 0, no second one is added", stacklevel=2)
    scene._add_compiled(compiled, text, hulls, limits=(limit_stiffness, limit_dashpot), soft=soft)
    return scene.build()
