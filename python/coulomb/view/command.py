"""The command ``coulomb view MODEL``: a model to turn and bend, or a motion without control, in a browser or as a page."""

from __future__ import annotations

from pathlib import Path

from .recording import recorded_steps
from .server import HOST
from .viewer import FRAMES_PER_SECOND, Viewer


def add_options(command, positive):
    """Options of `view` beyond those of every command that takes a model."""
    command.add_argument(
        "--duration",
        type=positive,
        metavar="S",
        help="step it for so long without control, and show the motion with its contact forces (default: the model stands still, "
        "sliders move its joints)",
    )
    command.add_argument("--html", metavar="FILE", help="write one page that needs no server, and stop")
    command.add_argument("--collision", action="store_true", help="show the shapes that collide, not the visual ones")
    command.add_argument("--host", default=HOST, help="who may look: 0.0.0.0 for the network (default: this machine)")
    command.add_argument(
        "--port", type=int, default=8080, help="0: any that is free (default: %(default)s; with --html: 0)"
    )


def check(options):
    """Bad options are found before the model is read."""
    if options.html and not Path(options.html).parent.is_dir():
        raise ValueError(
            f"--html: got {options.html!r}, but the folder {str(Path(options.html).parent)!r} does not exist"
        )


def run(model, q, v, options):
    """Opens the viewer; returns when it was interrupted, or the page is written."""
    visuals = "collision" if options.collision else "files"
    port = 0 if options.html else options.port
    with Viewer(model, options.host, port, visuals=visuals, verbose=not options.html) as viewer:
        viewer.update(q)
        if options.duration:
            show_fall(viewer, q, v, options)
        if options.html:
            print(viewer.record(options.html))
            return 0
        print("Ctrl+C ends it.", flush=True)
        try:
            viewer.wait()
        except KeyboardInterrupt:
            print()
    return 0


def show_fall(viewer, q, v, options):
    """A motion without control."""
    from .. import Simulator

    sim = Simulator(viewer.model, timestep=options.timestep)
    steps = max(1, round(options.duration / sim.timestep))
    every = max(1, round(1 / (FRAMES_PER_SECOND * sim.timestep)))
    viewer.show(recorded_steps(sim, q, v, steps, every=every))
