"""The picture of docs/viewer.md: python docs/pictures/viewer_go1.py. Needs coulomb[view], example-robot-data, playwright and Chromium."""

import pathlib
import shutil

import numpy as np

import coulomb
from coulomb.demo import robot_path
from coulomb.view import recorded_steps

PICTURE = pathlib.Path(__file__).with_suffix(".png")
STAND = np.tile([0.0, 0.8, -1.6], 4)
TIMESTEP = 2e-3
STEPS = 600
SEEN_AT = 0.84  # s


def motion():
    """Go1 on servos that lower and lift it, one diagonal after the other."""
    path, packages = robot_path("go1_description/urdf/go1.urdf")
    scene = coulomb.Scene()
    scene.add_ground(friction=0.8)
    scene.add_urdf(path, floating_base=True, position=(0, 0, 0.33), package_dirs=[packages], kp=80.0, kd=2.0)
    model = scene.build()
    q, v = model.neutral()
    q[7:] = STAND
    phase = 2 * np.pi * 1.0 * TIMESTEP * np.arange(STEPS)[:, None] + np.array([0, np.pi, np.pi, 0])
    U = np.tile(STAND, (STEPS, 1))
    U[:, 1::3] += 0.1 * np.sin(phase)
    U[:, 2::3] -= 0.2 * np.sin(phase)
    sim = coulomb.Simulator(model, timestep=TIMESTEP)
    return model, recorded_steps(sim, q, v, U=U, every=10)


def main():
    from playwright.sync_api import sync_playwright

    model, recording = motion()
    with coulomb.Viewer(model, port=0) as viewer, sync_playwright() as play:
        viewer.show(recording, paths=["FL_foot"], play=False)
        viewer.look(np.array([0.85, -0.95, 0.5]), np.array([0.18, 0.12, 0.15]))
        viewer.playback.seek(SEEN_AT)
        drawn_in_software = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=drawn_in_software)
        page = browser.new_page(viewport={"width": 960, "height": 560})
        page.goto(viewer.url)
        page.wait_for_selector("canvas")
        page.wait_for_timeout(5000)
        warning = page.locator("button[class*=CloseButton]")
        if warning.count():
            warning.first.click()
            page.wait_for_timeout(2000)
        page.screenshot(path=PICTURE, timeout=120000)
        browser.close()
    print(PICTURE, PICTURE.stat().st_size)


if __name__ == "__main__":
    main()
