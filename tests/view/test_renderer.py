"""Renderer: what is in front, what the camera sees, arrows of forces, the same bits every time, and errors."""

import subprocess
import sys

import numpy as np
import pytest

import coulomb
from coulomb.view import Visual
from coulomb.view.cameras import axes_of
from coulomb.view.meshes import SIDES, cone, is_closed, primitive, simplified, smoothed

RED, BLUE = (1.0, 0, 0, 1), (0, 0, 1.0, 1)


def boxes(*positions, ground=False):
    scene = coulomb.Scene()
    if ground:
        scene.add_ground()
    for number, position in enumerate(positions):
        scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=position, name=f"box{number}")
    return scene.build()


def coloured(model, *colours):
    """Boxes of these colours on bodies 1, 2, ..."""
    return [Visual("box", body, "box", np.full(3, 0.1), rgba=colour) for body, colour in enumerate(colours, 1)]


def is_red(picture):
    return (picture[..., 0] > 80) & (picture[..., 2] < 40)


def is_blue(picture):
    return (picture[..., 2] > 80) & (picture[..., 0] < 40)


def test_the_nearer_box_hides_the_one_behind():
    """Seen along x the red box covers the blue one, from the other side the blue one the red; neither depends on their order."""
    model = boxes((0, 0, 0), (1, 0, 0))
    q, _ = model.neutral()
    for colours in ((RED, BLUE), (BLUE, RED)):
        renderer = coulomb.Renderer(model, 160, 120, visuals=coloured(model, *colours))
        renderer.look((-3, 0, 0), (0, 0, 0))
        first, second = (is_red, is_blue) if colours[0] == RED else (is_blue, is_red)
        picture = renderer.render(q)
        assert first(picture).sum() > 80 and second(picture).sum() == 0
        renderer.look((4, 0, 0), (0, 0, 0))
        picture = renderer.render(q)
        assert second(picture).sum() > 80 and first(picture).sum() == 0


def test_a_transparent_box_shows_what_is_behind():
    model = boxes((0, 0, 0), (1, 0, 0))
    renderer = coulomb.Renderer(model, 64, 64, visuals=coloured(model, (1.0, 0, 0, 0.5), BLUE))
    renderer.look((-2, 0, 0), (0, 0, 0))
    red, green, blue = renderer.render(model.neutral()[0])[32, 32].astype(int)
    assert red > 60 and blue > 60 and green < 5


@pytest.mark.parametrize("threads", [1, 2, 3, 0])
def test_the_bits_are_the_same_every_time(threads):
    model = boxes((0, 0, 0.2), (0.3, 0.1, 0.5), ground=True)
    q, v = model.neutral()
    sim = coulomb.Simulator(model)
    for _ in range(5):
        sim.step(q, v)
    pictures = []
    for count in (1, threads):
        renderer = coulomb.Renderer(model, 203, 117, num_threads=count)
        pictures += [renderer.render(q, sim.contacts), renderer.render(q, sim.contacts)]
    assert all(picture.shape == (117, 203, 3) and picture.dtype == np.uint8 for picture in pictures)
    assert all((picture == pictures[0]).all() for picture in pictures)
    assert pictures[0].std() > 5


@pytest.mark.parametrize("size", [(640, 480), (200, 400)])
@pytest.mark.parametrize("shape", [(2, 0.1, 0.1), (0.1, 2, 0.1), (0.1, 0.1, 2), (1, 1, 1)])
def test_the_first_picture_sees_the_whole_model(size, shape):
    scene = coulomb.Scene()
    scene.add_box(shape, mass=1.0, position=(5, -3, 2))
    model = scene.build()
    seen = np.isfinite(coulomb.Renderer(model, *size).depth(model.neutral()[0]))
    border = np.concatenate([seen[0], seen[-1], seen[:, 0], seen[:, -1]])
    assert not border.any()
    across, down = np.ptp(np.flatnonzero(seen.any(0))), np.ptp(np.flatnonzero(seen.any(1)))
    assert max(across / size[0], down / size[1]) > 0.5  # and it is not lost in it


def test_depth_is_along_the_axis_and_infinite_in_the_sky():
    model = boxes((0, 0, 0))
    renderer = coulomb.Renderer(model, 80, 60)
    renderer.look((0, -3, 0), (0, 0, 0))
    depth = renderer.depth(model.neutral()[0])
    assert depth.dtype == np.float32 and depth.shape == (60, 80)
    assert depth[30, 40] == pytest.approx(2.9, abs=1e-5)
    assert np.isinf(depth[0, 0])
    assert np.ptp(depth[np.isfinite(depth)]) < 1e-5  # its front, which is square to the axis


def test_an_orbit_is_mujocos():
    """azimuth 90, elevation -30: from -y and above, along +y and down; azimuth 0 looks along x."""
    axes = axes_of(90, -30)
    np.testing.assert_allclose(axes[2], [0, np.cos(np.pi / 6), -0.5], atol=1e-15)
    np.testing.assert_allclose(axes[0], [1, 0, 0], atol=1e-15)
    np.testing.assert_allclose(np.cross(axes[0], axes[1]), -axes[2], atol=1e-15)

    model = boxes((0.5, 0, 0))
    renderer = coulomb.Renderer(model, 80, 60)
    renderer.orbit(azimuth=0, elevation=0, distance=2)
    assert renderer.depth(model.neutral()[0])[30, 40] == pytest.approx(2.4, abs=1e-5)


def test_straight_down_y_is_up():
    model = boxes((0.0, 0.5, 0))
    renderer = coulomb.Renderer(model, 60, 60)
    renderer.look((0, 0, 3), (0, 0, 0))
    seen = np.isfinite(renderer.depth(model.neutral()[0]))
    assert seen[:30].any() and not seen[30:].any()


def test_a_camera_that_tracks_sees_its_body_where_it_was():
    model = boxes((0, 0, 0))
    q, _ = model.neutral()
    renderer = coulomb.Renderer(model, 120, 90)
    renderer.orbit(azimuth=130, elevation=-20, track="box0")
    before = renderer.depth(q)
    q[:3] += (7, -4, 1)
    np.testing.assert_allclose(renderer.depth(q), before, rtol=1e-5)
    renderer.orbit(azimuth=130, elevation=-20)
    assert not np.isfinite(renderer.depth(q)).any()


def test_motions_are_seen_whole_or_followed():
    model = boxes((0, 0, 0))
    q, _ = model.neutral()
    near, far = np.tile(q, (11, 1)), np.tile(q, (11, 1))
    near[:, 0] = np.linspace(0, 0.4, 11)
    far[:, 0] = np.linspace(0, 400, 11)
    renderer = coulomb.Renderer(model, 120, 90)
    for motion in (near, far):
        renderer.follow(motion)
        for state in motion:
            seen = np.isfinite(renderer.depth(state))
            assert seen.sum() > 100 and not seen[:, [0, -1]].any() and not seen[[0, -1]].any()


def test_forces_are_arrows_of_their_length():
    """A box that rests: its weight is carried by green arrows that point up, twice as long at twice the scale."""
    model = boxes((0, 0, 0.1), ground=True)
    q, v = model.neutral()
    sim = coulomb.Simulator(model, timestep=1e-2)
    for _ in range(3):
        q, v = sim.step(q, v)
    renderer = coulomb.Renderer(model, 320, 240)
    renderer.look((0, -2, 0.5), (0, 0, 0.3))

    def height(**options):
        picture = renderer.render(q, sim.contacts, sim.timestep, **options).astype(int)
        green = (picture[..., 1] > picture[..., 0] + 30) & (picture[..., 1] > picture[..., 2] + 10)
        return np.ptp(np.flatnonzero(green.any(1)))

    base = height(force_scale=0.1)
    assert height(force_scale=0.2) > 1.5 * base > 10
    assert (renderer.render(q) == renderer.render(q, [])).all()


def test_environments_stand_side_by_side():
    model = boxes((0, 0, 0))
    q, _ = model.neutral()
    renderer = coulomb.Renderer(model, 200, 150)
    one = renderer.render(q)
    assert (renderer.render(q[None]) == one).all()

    many = coulomb.Renderer(model, 200, 150, visuals=coloured(model, RED))
    picture = many.render(np.tile(q, (4, 1)))
    many.look((0, 0, 4), (0, 0, 0))
    from_above = is_red(many.render(np.tile(q, (4, 1))))
    columns = np.flatnonzero(np.diff(from_above.any(0).astype(int)) == 1)
    assert is_red(picture).any() and len(columns) == 2  # two rows of two


def test_shadows_fall_to_the_side_of_the_light():
    model = boxes((0, 0, 1.0), ground=True)
    q, _ = model.neutral()
    renderer = coulomb.Renderer(model, 100, 100)
    renderer.look((0, 0, 6), (0, 0, 0))
    with_box = renderer.render(q).astype(int)
    q[2] = 100
    without = renderer.render(q).astype(int)
    darker = (without - with_box).sum(-1) > 60
    rows, columns = np.nonzero(darker)
    assert len(rows) > 10
    assert columns.mean() < 50 and rows.mean() < 50  # the light comes from +x and -y: left and up in this picture


def test_visuals_of_files_or_collision_shapes():
    text = """<mujoco><worldbody><body><freejoint/><geom type="sphere" size=".1" group="3"/>
      <geom type="box" size=".2 .2 .2" contype="0" conaffinity="0" rgba="1 0 0 1"/></body></worldbody></mujoco>"""
    model = coulomb.load(text)
    q, _ = model.neutral()
    pictures = []
    for visuals in ("files", "collision", model.visuals):
        renderer = coulomb.Renderer(model, 100, 80, visuals=visuals)
        renderer.look((0, -2, 0), (0, 0, 0))
        pictures.append(is_red(renderer.render(q)).sum())
    assert pictures[0] == pictures[2] > 200 and pictures[1] == 0


def test_primitives_are_closed_and_their_normals_point_outward():
    for kind, size in (("box", (1, 2, 3)), ("sphere", (1, 0, 0)), ("cylinder", (1, 2, 0)), ("capsule", (1, 2, 0))):
        for sides in (SIDES, SIDES // 2):
            vertices, faces, _ = primitive(kind, np.array(size, float), sides)
            vertices, faces = simplified(vertices, faces)
            assert is_closed(vertices, faces), kind
            assert not is_closed(vertices, faces[:, ::-1]), kind
            assert not is_closed(vertices, faces[len(faces) // 2 :]), kind
            points, normals, corners = smoothed(vertices, faces)
            np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1)
            assert (np.einsum("ij,ij->i", points, normals) > 0).all(), kind
            assert corners.max() < len(points)
    assert is_closed(*simplified(*cone()))


def test_a_box_keeps_its_edges_and_a_sphere_is_smooth():
    vertices, faces, _ = primitive("box", np.ones(3))
    _, normals, _ = smoothed(*simplified(vertices * (1, 2, 7), faces))
    assert len(normals) == 24 and np.allclose(np.sort(np.abs(normals), axis=1), [0, 0, 1])
    vertices, faces, _ = primitive("sphere", np.ones(3))
    points, normals, _ = smoothed(*simplified(vertices, faces))
    assert np.einsum("ij,ij->i", points, normals).min() > 0.99


def test_nothing_of_opengl_is_loaded():
    program = """
import coulomb
scene = coulomb.Scene(); scene.add_sphere(0.1, mass=1.0); model = scene.build()
coulomb.Renderer(model, 32, 32).render(model.neutral()[0])
loaded = open("/proc/self/maps").read()
assert not any(name in loaded for name in ("libGL", "libEGL", "libOSMesa", "libX11")), loaded
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_bad_input_is_named():
    model = boxes((0, 0, 0))
    q, _ = model.neutral()
    with pytest.raises(ValueError, match="width: got 0"):
        coulomb.Renderer(model, 0, 480)
    with pytest.raises(ValueError, match="height: got 9000"):
        coulomb.Renderer(model, 640, 9000)
    with pytest.raises(ValueError, match="num_threads: got -2"):
        coulomb.Renderer(model, num_threads=-2)
    with pytest.raises(ValueError, match="visuals: got 'all'"):
        coulomb.Renderer(model, visuals="all")
    with pytest.raises(ValueError, match=r"visuals\[0\]: body 9"):
        coulomb.Renderer(model, visuals=[Visual("a", 9, "box")])
    with pytest.raises(ValueError, match="field_of_view: got 180"):
        coulomb.Renderer(model, field_of_view=180)

    renderer = coulomb.Renderer(model, 32, 32)
    with pytest.raises(ValueError, match=r"q: got shape \(3,\), expected \(nq,\) or \(n, nq\) with nq = 7"):
        renderer.render(q[:3])
    with pytest.raises(ValueError, match=r"q: not finite.*q\[2\] is nan"):
        renderer.render(np.where(np.arange(7) == 2, np.nan, q))
    with pytest.raises(ValueError, match="position: the camera is at its target"):
        renderer.look((1, 2, 3), (1, 2, 3))
    with pytest.raises(ValueError, match="target: got"):
        renderer.look((1, 2, 3), (1, np.nan, 3))
    with pytest.raises(ValueError, match="distance: got 0"):
        renderer.orbit(distance=0)
    with pytest.raises(ValueError, match="track: no body 'head'"):
        renderer.orbit(track="head")
    with pytest.raises(ValueError, match="axes: got"):
        renderer.place((0, 0, 0), np.ones((3, 3)))
    with pytest.raises(ValueError, match="contacts: got 1 lists, expected one for each of the 2"):
        renderer.render(np.tile(q, (2, 1)), [[]])
    with pytest.raises(ValueError, match="contact_time: got 0"):
        renderer.render(q, [], 0)
    assert not renderer.is_placed  # nothing of this has moved the camera
