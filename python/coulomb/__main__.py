"""The command ``coulomb`` (also ``python -m coulomb``): demo, simulate MODEL, view MODEL, check MODEL, decompose FILE."""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

from .view.command import add_options as view_options


def _positive(text):
    value = float(text)
    if not (np.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return value


def _count(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return value


URDF = (".urdf", ".xacro")  # how its files end


def _size(text):
    width, cross, height = text.lower().partition("x")
    if not (cross and width.isdecimal() and height.isdecimal() and int(width) and int(height)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a width and a height in pixels, as 640x480")
    return int(width), int(height)


def _assignment(text):
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _parser():
    parser = argparse.ArgumentParser(prog="coulomb", description="Differentiable rigid-body simulation.")
    parser.add_argument("--version", action="store_true", help="print the version and stop")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    demo = commands.add_parser("demo", help="a quadruped falls and stands; contacts, Jacobian, timings, pictures")
    demo.add_argument(
        "--output", default="output/demo", metavar="FOLDER", help="for the pictures (default: %(default)s)"
    )
    demo.add_argument("--quick", action="store_true", help="a shorter run")

    def model_command(name, text):
        command = commands.add_parser(name, help=text)
        command.add_argument("model", metavar="MODEL", help="a .urdf file, an MJCF .xml file, or what Model.save wrote")
        command.add_argument("--timestep", type=_positive, metavar="S", help="seconds (default: the model's, or 0.001)")
        command.add_argument("--no-ground", action="store_true", help="do not add the plane z = 0 (MJCF: never added)")
        command.add_argument("--fixed-base", action="store_true", help="URDF: hold the base instead of letting it fly")
        command.add_argument(
            "--height",
            type=float,
            default=None,
            metavar="M",
            help="URDF: height of the base (default: it just clears the ground)",
        )
        command.add_argument(
            "--package-dir", action="append", default=[], metavar="FOLDER", help="URDF: where package:// is looked up"
        )
        command.add_argument(
            "--xacro-arg",
            action="append",
            default=[],
            type=_assignment,
            metavar="NAME=VALUE",
            help="xacro: the value of an <xacro:arg>",
        )
        command.add_argument(
            "--ignore-mimic",
            action="store_true",
            help="URDF: leave mimic joints independent instead of coupling them to their leaders",
        )
        command.add_argument(
            "--decompose",
            action="store_true",
            help="cut meshes that are not convex into convex parts (coulomb[decompose])",
        )
        command.add_argument(
            "--softness",
            choices=["file"],
            help="MJCF: contacts and joint limits as soft as the file says (default: rigid)",
        )
        command.add_argument(
            "--keyframe",
            type=int,
            metavar="K",
            help="start from the K-th state stored in the model (default: the first, if there is one)",
        )
        return command

    simulate = model_command("simulate", "steps a model without control")
    simulate.add_argument("--duration", type=_positive, default=1.0, metavar="S", help="seconds (default: %(default)s)")
    simulate.add_argument("--output", metavar="FILE", help="a .png of the last state, or a .csv of every state")
    simulate.add_argument("--video", metavar="FILE", help="an .mp4 of the motion, with its contact forces")
    simulate.add_argument(
        "--speed", type=_positive, metavar="X", help="of the video: 0.5 is slow motion (default: 1, as it happens)"
    )
    simulate.add_argument("--size", type=_size, metavar="WxH", help="of the video, in pixels (default: 640x480)")
    simulate.add_argument("--collision", action="store_true", help="show the shapes that collide, not the visual ones")
    view_options(
        model_command("view", "shows a model, or how it falls, in a browser; or writes that as a page"), _positive
    )
    check = model_command("check", "gradients against finite differences, on random states in contact")
    check.add_argument("--states", type=_count, default=20, metavar="N", help="(default: %(default)s)")
    check.add_argument(
        "--tolerance", type=_positive, default=1e-6, help="relative error that passes (default: %(default)s)"
    )
    check.add_argument(
        "--step", type=_positive, default=1e-6, help="size of the least differences (default: %(default)s)"
    )
    check.add_argument("--seed", type=int, default=0, help="of the random states (default: %(default)s)")
    decompose = commands.add_parser(
        "decompose",
        help="cuts a mesh, or the meshes of a robot that collide, into convex parts and keeps them in the cache",
    )
    decompose.add_argument(
        "file", metavar="FILE", help="a mesh (.stl, .obj, .ply, .dae, ...), a .urdf or an MJCF .xml file"
    )
    decompose.add_argument(
        "--threshold", type=_positive, default=0.05, metavar="T", help="0.01: fine, 1: coarse (default: %(default)s)"
    )
    decompose.add_argument(
        "--package-dir", action="append", default=[], metavar="FOLDER", help="URDF: where package:// is looked up"
    )
    decompose.add_argument(
        "--xacro-arg",
        action="append",
        default=[],
        type=_assignment,
        metavar="NAME=VALUE",
        help="xacro: the value of an <xacro:arg>",
    )
    decompose.add_argument("--output", metavar="FOLDER", help="a mesh's parts as files part0.obj, part1.obj, ...")
    return parser


def _load(options):
    """The model and where it starts."""
    from . import Scene
    from ._saved import read
    from .kinematics import lowest_point

    path = Path(options.model)
    if not path.is_file():
        raise ValueError(f"MODEL: no such file: {options.model!r}")
    urdf = path.suffix.lower() in URDF
    saved = read(str(path))
    urdf_only = options.fixed_base or options.height is not None or options.package_dir
    urdf_only = urdf_only or options.xacro_arg or options.ignore_mimic

    def build(height):
        scene = Scene()
        if urdf:
            if options.softness:
                raise ValueError("--softness: only for MJCF; a URDF file says nothing of it")
            if not options.no_ground:
                scene.add_ground()
            scene.add_urdf(
                path,
                floating_base=not options.fixed_base,
                position=(0, 0, height),
                package_dirs=options.package_dir,
                xacro_args=dict(options.xacro_arg),
                ignore_mimic=options.ignore_mimic,
                decompose=options.decompose,
            )
        else:
            if urdf_only:
                raise ValueError(
                    "--fixed-base, --height, --package-dir, --xacro-arg, --ignore-mimic: only for URDF; an MJCF file says itself how "
                    "bodies are attached"
                )
            scene.add_mjcf(path, softness=options.softness, decompose=options.decompose)
        return scene.build()

    if saved is not None and (urdf_only or options.no_ground or options.decompose or options.softness):
        raise ValueError(
            f"{path.name} was written by Model.save and is shown as it was built; --fixed-base, --height, --no-ground, "
            "--package-dir, --xacro-arg, --ignore-mimic, --decompose and --softness do not apply"
        )
    model = saved or build(options.height or 0.0)
    if urdf and options.height is None and not options.fixed_base and not options.no_ground:
        model = build(1e-3 - lowest_point(model, model.neutral()[0]))
    q, v = model.neutral()
    keyframe = options.keyframe if options.keyframe is not None else (0 if model.keyframes else None)
    if keyframe is not None:
        if not 0 <= keyframe < len(model.keyframes):
            raise ValueError(f"--keyframe: got {keyframe}, the model has {len(model.keyframes)}")
        q, v = model.keyframes[keyframe].q, model.keyframes[keyframe].v
    print(
        f"{path.name}: {model.num_bodies - 1} bodies, {model.nv} degrees of freedom, {model.nu} actuators, {model.num_geometries} geometries"
    )
    for line in model.ignored:
        kind = "deviation" if line in model.deviations else "ignored"
        print(f"  {kind}: {line.replace(str(path), path.name)}")
    return model, q, v


def _decompose(options):
    """A table of meshes: how far their hull is from them, and of how many parts they are."""
    from .decompose import Hulls, cut_mjcf, read_file
    from .scene import Scene
    from .xacro_files import expand, is_xacro

    path = Path(options.file)
    if not path.is_file():
        raise ValueError(f"FILE: no such file: {options.file!r}")
    if options.output and path.suffix.lower() in (*URDF, ".xml"):
        raise ValueError(
            "--output: only for a mesh; parts of a robot's meshes are in the cache, where load(..., decompose=True) finds them"
        )
    hulls = Hulls(options.threshold)
    if path.suffix.lower() in URDF:
        text, folders = str(path), options.package_dir
        if is_xacro(text):
            text, folders = expand(text, folders, dict(options.xacro_arg))
        Scene()._add_urdf_with(hulls, text, package_dirs=folders)
    elif path.suffix.lower() == ".xml":
        hulls = cut_mjcf(str(path), options.threshold)[1]
    else:
        pieces = read_file(str(path), "FILE", hulls)
        if options.output:
            _write_parts(pieces, Path(options.output))
    print(f"  {'mesh':40} {'hull beyond it':>14} {'parts':>5}")
    for name, distance in hulls.measured.items():
        print(f"  {name:40} {1e3 * distance:11.1f} mm {hulls.parts.get(name, 1):5d}")
    return 0


def _write_parts(pieces, folder):
    from .scene import Scene

    folder.mkdir(parents=True, exist_ok=True)
    for k, points in enumerate(pieces):
        scene = Scene()
        scene.add_mesh(points, mass=1.0)
        model = scene.build()
        lines = ["v " + " ".join(f"{x:.9g}" for x in vertex) for vertex in model.mesh_vertices(0)]
        lines += ["f " + " ".join(str(v + 1) for v in face) for face in model.mesh_faces(0)]
        (folder / f"part{k}.obj").write_text("\n".join(lines) + "\n")
    print(f"  {len(pieces)} parts in {folder}")


def _columns(model):
    """Headers of q and v by joint: q.knee, q.root.x, ... v.knee, v.root.vx, ..."""
    of_q = {"free": ("x", "y", "z", "qw", "qx", "qy", "qz"), "ball": ("qw", "qx", "qy", "qz")}
    of_v = {"free": ("vx", "vy", "vz", "wx", "wy", "wz"), "ball": ("wx", "wy", "wz")}
    columns = []
    for letter, parts in (("q", of_q), ("v", of_v)):
        for name, kind in zip(model.joint_names, model.joint_types):
            columns += [f"{letter}.{name}.{part}" for part in parts[kind]] if kind in parts else [f"{letter}.{name}"]
    return columns


def _simulate(options):
    from . import Simulator
    from .view.film import Film, check_video

    suffix = Path(options.output).suffix.lower() if options.output else None
    if suffix not in (None, ".png", ".csv"):
        raise ValueError(f"--output: got {options.output!r}, expected a name that ends in .png or .csv")
    if options.output and not Path(options.output).parent.is_dir():
        raise ValueError(
            f"--output: got {options.output!r}, but the folder {str(Path(options.output).parent)!r} does not exist"
        )
    if options.video:
        check_video(options)
    elif options.speed or options.size or options.collision:
        raise ValueError("--speed, --size, --collision: apply to videos only; add --video")
    model, q, v = _load(options)
    sim = Simulator(model, timestep=options.timestep)
    steps = max(1, round(options.duration / sim.timestep))
    filmed = Film(model, sim.timestep, options) if options.video else None
    rows, unsolved = [], 0
    print(f"\n  {'time s':>8} {'kinetic J':>11} {'potential J':>11} {'contacts':>8} {'residual':>9}  status")
    for k in range(1, steps + 1):
        before = q
        q, v = sim.step(q, v)
        if filmed is not None:
            filmed.take(k - 1, before, sim.contacts)
        status = sim.status
        unsolved += not status.converged
        if suffix == ".csv":
            rows.append([k * sim.timestep, *q, *v, len(sim.contacts), status.residual, status.reason])
        if k == 1 or k == steps or k % max(1, steps // 10) == 0:
            kinetic, potential = model.energy(q, v)
            print(
                f"  {k * sim.timestep:8.3f} {kinetic:11.4g} {potential:11.4g} {len(sim.contacts):8d} {status.residual:9.0e}  {status.reason}",
                flush=True,
            )
    print(f"{unsolved} of {steps} steps were not solved as posed")
    if options.output:
        if suffix == ".png":
            from .pictures import scene_picture

            scene_picture(
                model,
                before,
                sim.contacts,
                sim.timestep,
                options.output,
                f"{Path(options.model).name}, {steps * sim.timestep:g} s",
            )
        else:
            with open(options.output, "w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(
                    [
                        "time",
                        *_columns(model),
                        "contacts",
                        "residual",
                        "status",
                    ]
                )
                writer.writerows(rows)
        print(options.output)
    if filmed is not None:
        print(filmed.save())
    return 0


def _view(options):
    from .view import command

    command.check(options)
    return command.run(*_load(options), options)


def _random_states(model, sim, q, v, options):
    """States along a fall under random controls, moved a little off the borders of touching, preferably such that still touch."""
    random = np.random.default_rng(options.seed)
    limits = [a.control_range if a.control_limited else np.array([-1.0, 1.0]) for a in model.actuators]
    found, u, start = [], np.zeros(model.nu), (q, v)

    def moved(q, v):
        return model.integrate(q, 1e-4 * random.normal(size=model.nv)), v + 1e-2 * random.normal(size=model.nv), u

    def touches(state):
        memory = sim.memory
        sim.step(*state)
        touching = any(contact.mode != "separating" for contact in sim.contacts)
        sim.memory = memory
        return touching

    for k in range(200 * options.states):
        if k % 50 == 0:
            u = np.array([random.uniform(*(0.1 * limit)) for limit in limits])
        q, v = sim.step(q, v, u)
        if not (np.isfinite(q).all() and np.abs(v).max(initial=0) < 100):
            q, v = start
            sim.reset()
        if sim.contacts and k % 20 == 0:
            candidates = [moved(q, v) for _ in range(8)]
            found.append(next((state for state in candidates if touches(state)), candidates[0]))
        if len(found) == options.states:
            break
    while not found or len(found) < min(options.states, 3):  # nothing touches: check the free motion
        q, v = start
        found.append((model.integrate(q, 0.1 * random.normal(size=model.nv)), random.normal(size=model.nv), u))
    return found


def _check(options):
    from . import Simulator
    from .gradients import check_gradients

    model, q, v = _load(options)
    sim = Simulator(
        model, timestep=options.timestep, tolerance=1e-14
    )  # differences are to see the step, not the tolerance
    blocks = ["dv_dq", "dv_dv", "dv_du", "dv_dtau", "dq_dq", "dq_dv"]
    print(f"\n  state contacts  {' '.join(f'{name:>8}' for name in blocks)}  columns compared")
    failed, left_out, columns = 0, 0, 0
    for number, state in enumerate(_random_states(model, sim, q, v, options)):
        sim.reset()
        result = check_gradients(sim, *state, step=options.step, tolerance=options.tolerance)
        failed += not (result.passed or (result.compared == 0 and result.converged))
        left_out, columns = left_out + result.columns - result.compared, columns + result.columns
        errors = " ".join(f"{result.errors[name]:8.0e}" if name in result.errors else f"{'-':>8}" for name in blocks)
        remark = "" if result.converged else f"  not converged: {sim.status.reason}"
        if result.changed:
            remark += f"  ({result.changed[0][0]}[{result.changed[0][1]}]: {result.changed[0][2]})"
        print(
            f"  {number:5d} {result.contacts:8d}  {errors}  {result.compared} of {result.columns}{remark}", flush=True
        )
    print(
        f"{failed} states failed at tolerance {options.tolerance:g}; {left_out} of {columns} columns left out because the step has no "
        "two-sided derivative there"
    )
    return 1 if failed or left_out == columns else 0


def main(arguments=None):
    """Runs the command; returns its exit code: 0, 1 (a check failed), 2 (bad input) or 130 (interrupted)."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.version:
        from . import __version__

        print(__version__)
        return 0
    if options.command is None:
        parser.print_help()
        return 2
    try:
        if options.command == "demo":
            from .demo import run

            return run(options.output, options.quick)
        return {"simulate": _simulate, "view": _view, "check": _check, "decompose": _decompose}[options.command](
            options
        )
    except (ValueError, TypeError, ImportError, OSError, RuntimeError) as error:
        print(f"coulomb {options.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
