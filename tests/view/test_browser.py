"""The pages in a real browser, drawn in software: the scene is there, and the panel, and what is shown moves."""

import io
import shutil
import time

import numpy as np
import pytest

import coulomb

pytest.importorskip("viser")
playwright = pytest.importorskip("playwright.sync_api")
Image = pytest.importorskip("PIL.Image")
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
CHROMIUM = next((path for path in map(shutil.which, BROWSERS) if path), None)
if CHROMIUM is None:
    pytest.skip("no Chromium: apt-get install chromium-headless-shell", allow_module_level=True)

SIZE = {"width": 480, "height": 360}
PATIENCE = 90_000  # ms: a frame takes some tenths of a second without a graphics card


@pytest.fixture
def browser():
    """One for each test: pages that are still open go on drawing, and leave others no time."""
    with playwright.sync_playwright() as play:
        in_software = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
        browser = play.chromium.launch(executable_path=CHROMIUM, args=in_software)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def viewer():
    """A red ball that flies from the left to the right, above grey ground."""
    scene = coulomb.Scene(timestep=0.1)
    scene.add_ground()
    scene.add_urdf(
        "<robot name='r'><link name='ball'><inertial><mass value='1'/><inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' izz='1'/></inertial>"
        "<visual><geometry><sphere radius='.3'/></geometry><material name='red'><color rgba='1 0 0 1'/></material></visual></link></robot>",
        floating_base=True,
    )
    model = scene.build()
    Q = np.tile(model.neutral()[0], (11, 1))
    Q[:, 1], Q[:, 2] = np.linspace(-1, 1, 11), 0.6
    with coulomb.Viewer(model, port=0, verbose=False) as viewer:
        viewer.show(Q, play=False)
        viewer.look((4.0, 0.0, 1.2), (0.0, 0.0, 0.6))
        yield viewer


def red(page):
    """Mean place of red pixels, from the left, 0..1; None without any; and how many shades there are."""
    picture = np.asarray(Image.open(io.BytesIO(page.screenshot(timeout=PATIENCE))).convert("RGB")).astype(int)
    mask = (picture[..., 0] > 120) & (picture[..., 1] < 90) & (picture[..., 2] < 90)
    shades = len(np.unique(picture.reshape(-1, 3), axis=0))
    return (np.nonzero(mask)[1].mean() / picture.shape[1] if mask.sum() > 50 else None), shades


def wait_for_red(page, where):
    """The ball is where it should be: the page needs a while for its first frames."""
    for _ in range(60):
        x, shades = red(page)
        if x is not None and where(x):
            return shades
        page.wait_for_timeout(500)
    raise AssertionError(f"the ball is at {x} of the picture's width, {shades} shades")


def opened(browser, address):
    page = browser.new_page(viewport=SIZE)
    page.set_default_timeout(PATIENCE)
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(address)
    page.wait_for_selector("canvas")
    return page, problems


def wait_until(reached, seconds=20):
    """What a click does arrives over the network: a moment later."""
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


def test_the_served_page(browser, viewer):
    """The ball is seen on the left, ground in many shades around it, and the panel; the clock moves it to the right."""
    viewer.playback.seek(0.0)
    page, problems = opened(browser, viewer.url)
    for text in ("Coulomb", "Time", "Show", "speed", "collision shapes"):
        page.get_by_text(text, exact=True).first.wait_for()
    page.get_by_role("button", name="Play").click()
    page.get_by_role("button", name="Pause").click()
    wait_until(lambda: not viewer.playback.playing)
    assert viewer.playback.time > 0
    viewer.playback.seek(0.0)
    page.get_by_text("Coulomb", exact=True).first.click()  # folds the panel, which covers the right
    assert wait_for_red(page, lambda x: x < 0.4) > 50
    viewer.playback.seek(viewer.playback.duration)
    wait_for_red(page, lambda x: x > 0.6)
    assert not problems

    # A browser that is closed does nothing bad, and one that comes later sees the same.
    page.close()
    viewer.playback.seek(0.0)
    again, _ = opened(browser, viewer.url)
    wait_for_red(again, lambda x: x < 0.4)
    again.close()


def test_the_written_page(browser, viewer, tmp_path):
    """Without the server: the ball starts on the left."""
    page, problems = opened(browser, f"file://{viewer.record(tmp_path / 'run.html', start=0.0, stop=0.2)}")
    assert wait_for_red(page, lambda x: x < 0.45) > 50
    assert not problems
    page.close()


def test_a_joint_is_moved_in_the_page(browser):
    """A number that is typed beside the slider of a joint arrives in the viewer."""
    model = coulomb.load(
        "<mujoco><worldbody><body><joint name='knee'/><geom size='.1' pos='.2 0 0'/></body></worldbody></mujoco>"
    )
    with coulomb.Viewer(model, port=0, verbose=False) as viewer:
        page, problems = opened(browser, viewer.url)
        number = page.locator(
            "input.mantine-NumberInput-input"
        ).first  # the first box of text is viser's own, of an address
        number.fill("0.5")
        number.press("Enter")
        wait_until(lambda: viewer.Q[0, 0] == pytest.approx(0.5, abs=0.02))
        assert not problems
