"""Frames of environments, by MuJoCo's renderer: the scene as MJCF, put into the state that Coulomb computed."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

MODES = ["rgb_array", "depth_array"]
SCENERY = """<visual><map znear="0.02"/><headlight ambient=".35 .35 .35" diffuse=".35 .35 .35" specular="0 0 0"/></visual>
<asset>
<texture type="skybox" builtin="gradient" rgb1=".9 .94 1" rgb2=".5 .6 .8" width="64" height="64"/>
<texture name="squares" type="2d" builtin="checker" rgb1=".78 .8 .83" rgb2=".66 .69 .73" width="256" height="256"/>
<material name="squares" texture="squares" texrepeat="80 80"/>
</asset>
<worldbody>
<light directional="true" pos="0 0 4" dir="-.3 .4 -1" diffuse=".5 .5 .5" specular=".1 .1 .1"/>"""
COLOUR = '<default><geom rgba=".85 .55 .3 1"/></default>'


class Camera(NamedTuple):
    """Size of the frames in pixels, and which camera: one of the file by name or number, else a free one of that configuration."""

    width: int
    height: int
    name: str | None
    number: int | None
    configuration: dict[str, Any] | None


def scene_of(model):
    """The model as MJCF, all of one colour."""
    from coulomb.mjcf_export import to_mjcf

    return to_mjcf(model).replace("<worldbody>", COLOUR + "<worldbody>", 1)


def with_scenery(text):
    """MJCF with light, sky, and floors of squares; one that brings a sky of its own stays as it is."""
    if "skybox" in text:
        return text

    def floor(tag):
        plain = re.sub(r'\s(rgba|size)="[^"]*"', "", tag.group())
        return plain.replace("<geom", '<geom size="40 40 1" material="squares" rgba="1 1 1 1"', 1)

    text = re.sub(r'<geom [^>]*type="plane"[^>]*>', floor, text)
    return text.replace("<worldbody>", SCENERY, 1)


class Pictures:
    """Frames of a task's environments. ValueError: a render mode that is not offered; RuntimeError: MuJoCo cannot draw here."""

    def __init__(self, task, mode, camera):
        self.metadata = {"render_modes": MODES, "render_fps": int(np.round(1 / task.control_timestep))}
        self._task, self._mode, self._camera = task, mode, camera
        self._renderer = None
        if mode is not None and mode not in MODES:
            raise ValueError(f"render_mode is {mode!r}, expected one of {MODES}, or None")

    def frame(self, q, v):
        """uint8 (height, width, 3), or of "depth_array" float32 (height, width), m; None without a render mode."""
        if self._mode is None:
            return None
        if self._renderer is None:
            self._open()

        import mujoco

        self._data.qpos[:] = q
        self._data.qvel[:] = v
        mujoco.mj_forward(self._model, self._data)
        self._renderer.update_scene(self._data, self._view)
        return self._renderer.render()

    def close(self):
        if self._renderer is not None:
            self._renderer.close()
        self._renderer = None

    def _open(self):
        import mujoco

        from coulomb.mjcf import compile_mjcf

        camera = self._camera
        self._model = compile_mjcf(with_scenery(self._task.mjcf()))
        self._data = mujoco.MjData(self._model)
        offscreen = self._model.vis.global_
        offscreen.offwidth = max(offscreen.offwidth, camera.width)
        offscreen.offheight = max(offscreen.offheight, camera.height)
        try:
            self._renderer = mujoco.Renderer(self._model, camera.height, camera.width)
        except Exception as error:  # of OpenGL, of many types
            message = "MuJoCo's renderer does not start here: set MUJOCO_GL=egl (or osmesa) before Python starts"
            raise RuntimeError(f"{message}; it said: {error}") from error
        if self._mode == "depth_array":
            self._renderer.enable_depth_rendering()
        self._view = self._viewpoint(mujoco)

    def _viewpoint(self, mujoco):
        """The camera that was asked for; else the file's `track`; else a free one that follows the task's body."""
        camera = self._camera
        if camera.number is not None:
            return camera.number
        name = camera.name or "track"
        found = mujoco.mj_name2id(self._model, mujoco.mjtObj.mjOBJ_CAMERA, name)
        if camera.name is not None and found < 0:
            raise ValueError(f"camera_name is {camera.name!r}: the task's MJCF has no such camera")
        if found >= 0 and camera.configuration is None:
            return found

        view = mujoco.MjvCamera()
        mujoco.mjv_defaultFreeCamera(self._model, view)
        for key, value in {**self._task.camera, **(camera.configuration or {})}.items():
            if key == "trackbodyid":
                view.type = mujoco.mjtCamera.mjCAMERA_TRACKING
            if isinstance(value, np.ndarray) or isinstance(value, (list, tuple)):
                getattr(view, key)[:] = value
            else:
                setattr(view, key, value)
        return view
