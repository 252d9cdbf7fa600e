"""A viser server on a port of this machine, with floor, light and the camera where the model is seen."""

from __future__ import annotations

import contextlib
import errno
import io
import socket

import numpy as np

from .bodies import GROUND
from .meshes import need
from .poses import matrices, quaternions

HOST = "127.0.0.1"  # nobody else on the network looks on, unless asked to


def start(host, port, title):
    """A viser.ViserServer. ImportError without viser; OSError names a host or a port that cannot be had; port 0: any free one."""
    viser = need("viser")
    port = _free_port(host, port)
    with contextlib.redirect_stdout(io.StringIO()):  # its banner
        server = viser.ViserServer(host=host, port=port, label=title, verbose=False)
    server.gui.configure_theme(show_logo=False, show_share_button=False, control_width="medium")
    return server


def stop(server):
    with contextlib.redirect_stdout(io.StringIO()):
        server.stop()


def forget(serializer):
    """A recording that was not finished would go on for ever; viser ends it by writing it."""
    with contextlib.suppress(AssertionError):  # it was written
        serializer.serialize()


def url(host, port):
    """The address for a browser on this machine: localhost if all networks are served, IPv6 in brackets."""
    name = "localhost" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}"


def _free_port(host, port):
    if not isinstance(host, str) or not host:
        raise ValueError(f"host: got {host!r}, expected an address of this machine, as '127.0.0.1', or '0.0.0.0'")
    if isinstance(port, bool) or not isinstance(port, (int, np.integer)) or not 0 <= port <= 65535:
        raise ValueError(f"port: got {port!r}, expected an integer from 0 (any free port) to 65535")
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port)))
        except OSError as error:
            if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
                raise OSError(
                    f"host: {host!r} is not an address of this machine ({error.strerror or error})"
                ) from error
            raise OSError(
                f"port: {port} of {host} cannot be taken ({error.strerror or error}); is a viewer still open there? "
                "Give another port, or 0 for any that is free"
            ) from error
        return probe.getsockname()[1]


def add_floors(scene, visuals, positions, turns, size):
    """A grid for each half-space; bodies as in Bodies.place, of the first environment."""
    cell = 10.0 ** np.floor(np.log10(size))
    for number, visual in enumerate(v for v in visuals if v.kind == GROUND):
        R = turns[0, visual.body] @ matrices(visual.quaternion)
        p = positions[0, visual.body] + turns[0, visual.body] @ visual.position
        scene.add_grid(
            f"/floor/{number}",
            width=400 * cell,
            height=400 * cell,
            cell_size=cell / 2,
            section_size=cell,
            cell_color=(215, 218, 222),
            section_color=(185, 190, 198),
            plane_color=(238, 240, 243),
            plane_opacity=1.0,
            fade_distance=60 * cell,
            shadow_opacity=0.3,
            position=p,
            wxyz=quaternions(R),
        )


def add_light(scene):
    """A soft light from all sides, and one from above and the left that casts shadows: white robots stay grey in their shade."""
    scene.configure_environment_map(hdri=None)
    scene.configure_default_lights(enabled=False)
    scene.add_light_hemisphere("/light/sky", sky_color=(255, 255, 255), ground_color=(170, 170, 180), intensity=1.7)
    scene.add_light_directional("/light/sun", intensity=2.2, position=(3.0, -2.0, 6.0), cast_shadow=True)


def aim(camera, low, high):
    """An initial camera that sees the box between two corners, from the front, the right and a little above."""
    centre, radius = (low + high) / 2, max(0.5 * float(np.linalg.norm(high - low)), 1e-3)
    camera.fov = np.radians(40)
    camera.near = 0.01 * radius
    camera.far = 1000 * radius
    camera.position = centre + 3.2 * radius * np.array([0.72, -0.6, 0.34]) / np.linalg.norm([0.72, -0.6, 0.34])
    camera.look_at = centre
