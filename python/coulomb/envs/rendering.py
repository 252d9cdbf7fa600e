"""Frames of environments, by coulomb.Renderer: no display, no graphics card."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coulomb.view import Renderer

MODES = ["rgb_array", "depth_array"]
FIELD_OF_VIEW = 45.0  # degrees: MuJoCo's
CONFIGURATION = ("azimuth", "elevation", "distance", "lookat", "trackbodyid")


class Camera(NamedTuple):
    """Size of the frames in pixels, and which camera: one of the file by name or number, else a free one of that configuration."""

    width: int
    height: int
    name: str | None
    number: int | None
    configuration: dict[str, Any] | None


class Pictures:
    """Frames of a task's environments. ValueError: a render mode or a camera that there is not."""

    def __init__(self, task, mode, camera):
        self.metadata = {"render_modes": MODES, "render_fps": int(np.round(1 / task.control_timestep))}
        self._task, self._mode, self._camera = task, mode, camera
        self._renderer = None
        self._of_file = None
        if mode is not None and mode not in MODES:
            raise ValueError(f"render_mode is {mode!r}, expected one of {MODES}, or None")

    def frame(self, q, v=None):
        """uint8 (height, width, 3), or of "depth_array" float32 (height, width), m; None without a render mode. v is not seen."""
        if self._mode is None:
            return None
        if self._renderer is None:
            self._open()
        if self._of_file is not None:
            self._renderer.place(*self._of_file.at(q))
        return self._renderer.depth(q) if self._mode == "depth_array" else self._renderer.render(q)

    def close(self):
        self._renderer = None

    def _open(self):
        """The camera that was asked for; else the file's `track`; else a free one that follows the task's body."""
        camera = self._camera
        self._of_file = self._found_in_file()
        angle = FIELD_OF_VIEW if self._of_file is None else self._of_file.field_of_view
        self._renderer = Renderer(self._task.model, camera.width, camera.height, field_of_view=angle)
        if self._of_file is None:
            self._orbit({**self._task.camera, **(camera.configuration or {})})

    def _found_in_file(self):
        camera = self._camera
        mjcf = self._task.mjcf()
        named = camera.number is not None or camera.name is not None
        if mjcf is None:
            if named:
                raise ValueError(
                    f"camera_name is {camera.name!r}, camera_id {camera.number!r}: the task has no MJCF with cameras"
                )
            return None
        if not named and camera.configuration is not None:
            return None
        return FileCamera.of(mjcf, camera.name, camera.number)

    def _orbit(self, configuration):
        for key in configuration:
            if key not in CONFIGURATION:
                raise ValueError(f"default_camera_config has {key!r}, expected some of {CONFIGURATION}")
        model = self._task.model
        body = configuration.get("trackbodyid")
        if body is not None and not 0 <= body < model.num_bodies:
            raise ValueError(f"default_camera_config: trackbodyid is {body!r}, expected 0 to {model.num_bodies - 1}")
        target = np.zeros(3) if body is not None else configuration.get("lookat", np.zeros(3))
        self._renderer.orbit(
            azimuth=configuration.get("azimuth", 90.0),
            elevation=configuration.get("elevation", -20.0),
            distance=configuration.get("distance"),
            target=target,
            track=None if body is None else model.body_names[body],
        )


class FileCamera:
    """A camera of an MJCF file, wherever it rides: placed by MuJoCo's kinematics."""

    def __init__(self, compiled, number):
        import mujoco

        self._mujoco, self._compiled, self._number = mujoco, compiled, number
        self._data = mujoco.MjData(compiled)
        self.field_of_view = float(compiled.cam_fovy[number])

    @classmethod
    def of(cls, mjcf, name, number):
        """The one asked for; else `track`, or None if there is none. ValueError: no such camera."""
        import mujoco

        from coulomb.mjcf import compile_mjcf

        compiled = compile_mjcf(mjcf)
        if number is not None:
            if not 0 <= number < compiled.ncam:
                raise ValueError(f"camera_id is {number}: the task's MJCF has {compiled.ncam} cameras")
            return cls(compiled, number)
        found = mujoco.mj_name2id(compiled, mujoco.mjtObj.mjOBJ_CAMERA, name or "track")
        if found < 0 and name is not None:
            raise ValueError(f"camera_name is {name!r}: the task's MJCF has no such camera")
        return cls(compiled, found) if found >= 0 else None

    def at(self, q):
        """(position (3,), rows right, up, forward (3, 3)) in the configuration q."""
        self._data.qpos[:] = q
        self._mujoco.mj_kinematics(self._compiled, self._data)
        self._mujoco.mj_comPos(self._compiled, self._data)
        self._mujoco.mj_camlight(self._compiled, self._data)
        right, up, back = self._data.cam_xmat[self._number].reshape(3, 3).T
        return self._data.cam_xpos[self._number].copy(), np.stack([right, up, -back])
