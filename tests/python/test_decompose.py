"""Meshes that are not convex: how far their hull is from them, what loaders say of it, and convex parts that hold what the mesh holds."""

import re

import numpy as np
import pytest

import coulomb
from coulomb import decompose
from coulomb.__main__ import main
from coulomb.decompose import convex_parts, hull_distance

WALL, INSIDE, HEIGHT, FLOOR = (
    0.01,
    0.04,
    0.06,
    0.01,
)  # m: thickness, half width of the pocket, outer height, thickness of the floor


def square(half, z):
    return [[-half, -half, z], [half, -half, z], [half, half, z], [-half, half, z]]


def cup():
    """A square cup, open at the top: a closed mesh."""
    outer = INSIDE + WALL
    rings = [square(outer, 0), square(outer, HEIGHT), square(INSIDE, HEIGHT), square(INSIDE, FLOOR)]
    vertices = np.array(sum(rings, []), dtype=float)
    faces = [[0, 2, 1], [0, 3, 2], [12, 13, 14], [12, 14, 15]]
    for ring in range(3):
        for i in range(4):
            a, b = 4 * ring + i, 4 * ring + (i + 1) % 4
            faces += [[a, b, b + 4], [a, b + 4, a + 4]]
    return vertices, np.array(faces)


CUBE = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=float)
CUBE_FACES = [
    [0, 1, 3],
    [0, 3, 2],
    [4, 6, 7],
    [4, 7, 5],
    [0, 4, 5],
    [0, 5, 1],
    [2, 3, 7],
    [2, 7, 6],
    [0, 2, 6],
    [0, 6, 4],
    [1, 5, 7],
    [1, 7, 3],
]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    pytest.importorskip("coacd")
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    return tmp_path


@pytest.fixture
def robots(tmp_path):
    """The cup as an OBJ file, on a link of a URDF and in an MJCF, turned, scaled and lifted alike."""
    vertices, faces = cup()
    lines = [f"v {x} {y} {z}" for x, y, z in 100 * vertices] + [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in faces]
    (tmp_path / "cup.obj").write_text("\n".join(lines))
    inertia = (
        '<inertial><mass value=".2"/><inertia ixx=".001" iyy=".001" izz=".001" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    mesh = '<mesh filename="cup.obj" scale=".01 .01 .01"/>'
    urdf = tmp_path / "cup.urdf"
    urdf.write_text(
        f'<robot name="r"><link name="base">{inertia}<collision><origin xyz="0 0 .1" rpy="0 0 .3"/><geometry>{mesh}</geometry></collision></link></robot>'
    )
    mjcf = tmp_path / "cup.xml"
    mjcf.write_text(
        '<mujoco><compiler angle="radian"/><asset><mesh name="cup" file="cup.obj" scale=".01 .01 .01"/></asset><worldbody>'
        '<geom name="cup" type="mesh" mesh="cup" pos="0 0 .1" euler="0 0 .3" friction=".7" condim="3"/></worldbody></mujoco>'
    )
    return {"urdf": urdf, "mjcf": mjcf}


def test_hull_distance():
    assert hull_distance(CUBE, CUBE_FACES) == 0

    # From the middle of the opening, as far to the walls as to the floor or nearer.
    assert hull_distance(*cup()) == pytest.approx(INSIDE, rel=0.03)
    assert hull_distance(*cup(), negligible=0.5 * INSIDE) == hull_distance(*cup())
    assert hull_distance(*cup(), negligible=1.1 * INSIDE) == 0
    deep = cup()[0]
    deep[12:, 2] = HEIGHT - 0.02
    assert hull_distance(deep, cup()[1]) == pytest.approx(0.02, rel=0.03)
    with pytest.raises(ValueError, match="vertex 9 is none of the 8 vertices"):
        hull_distance(CUBE, [[0, 1, 9]])


def test_parts_of_a_cup_fill_it(cache):
    vertices, faces = cup()
    parts = convex_parts(vertices, faces)
    assert len(parts) >= 5

    # Each part is within the walls: none reaches into the pocket by more than the threshold lets it.
    for part in parts:
        assert (part >= vertices.min(axis=0) - 1e-3).all() and (part <= vertices.max(axis=0) + 1e-3).all()
        depth = np.minimum(INSIDE - np.abs(part[:, :2]).max(axis=1), part[:, 2] - FLOOR)
        assert depth.max() < 2e-3


def test_parts_are_kept(cache, monkeypatch):
    vertices, faces = cup()
    first = convex_parts(vertices, faces)
    calls = []
    run = decompose._run_coacd
    monkeypatch.setattr(decompose, "_run_coacd", lambda *a: calls.append(a) or run(*a))
    again = convex_parts(vertices, faces)
    assert not calls and all((a == b).all() for a, b in zip(first, again, strict=True))

    # Another threshold is another entry; a damaged one is made again.
    convex_parts(vertices, faces, 0.2)
    assert len(calls) == 1
    for file in (cache / "coulomb").rglob("*.npz"):
        file.write_bytes(b"no archive")
    convex_parts(vertices, faces)
    assert len(calls) == 2


def drop(model_of):
    """Where a ball comes to rest that falls on the cup, seen from the cup's bottom."""
    scene = coulomb.Scene()
    model_of(scene)
    scene.add_sphere(0.02, mass=0.05, position=(0.01, 0, 0.25), friction=0.5, name="ball")
    model = scene.build()
    sim = coulomb.Simulator(model, timestep=2e-3)
    q, v = (np.array(x) for x in model.neutral())
    for _ in range(500):
        q, v = sim.step(q, v)
        assert sim.status.converged
    return q[2] - 0.1, model


@pytest.mark.parametrize("kind", ["urdf", "mjcf"])
def test_a_cup_holds_a_ball(kind, robots, cache):
    def add(scene, **options):
        (scene.add_urdf if kind == "urdf" else scene.add_mjcf)(robots[kind], **options)

    closed, model = drop(add)
    assert closed > HEIGHT
    line = [line for line in model.deviations if "convex hulls in the place of 1 meshes" in line]
    assert len(line) == 1 and re.search("(39|40) mm", line[0]) and "decompose=True" in line[0]

    held, model = drop(lambda scene: add(scene, decompose=True))
    assert held == pytest.approx(FLOOR + 0.02, abs=2e-3)
    assert not [line for line in model.deviations if "convex hulls" in line]
    parts = [name for name in model.geometry_names if "_part" in name]
    assert len(parts) >= 5
    if kind == "mjcf":
        friction = [model.geometry_friction[model.geometry_names.index(name)] for name in parts]
        assert np.allclose(friction, 0.7)


def test_parts_of_a_body_that_moves_leave_its_mass(robots, cache):
    text = (
        robots["mjcf"]
        .read_text()
        .replace("<geom", '<body name="b"><freejoint/><geom')
        .replace("</worldbody>", "</body></worldbody>")
    )
    robots["mjcf"].write_text(text)
    whole, cut = (coulomb.load(robots["mjcf"], decompose=d) for d in (False, True))
    assert cut.body_mass == pytest.approx(whole.body_mass) and cut.body_inertia == pytest.approx(whole.body_inertia)
    assert cut.num_geometries >= whole.num_geometries + 4


def test_nearly_convex_meshes_stay(cache):
    """A dent of less than a millimetre is no reason to cut."""
    text = '<mujoco><asset><mesh name="m" vertex="{}" face="{}"/></asset><worldbody><geom type="mesh" mesh="m"/></worldbody></mujoco>'
    vertices, faces = cup()
    vertices[12:, 2] = HEIGHT - 5e-4
    model = coulomb.load(
        text.format(" ".join(map(str, vertices.ravel())), " ".join(map(str, faces.ravel()))), decompose=True
    )
    assert model.num_geometries == 1 and not [line for line in model.deviations if "convex hulls" in line]


def test_bad_arguments(robots, cache, tmp_path):
    for bad, error in ((0.001, ValueError), (2, ValueError), (0, ValueError), ("yes", TypeError)):
        for robot in robots.values():
            with pytest.raises(error, match="decompose: got|decompose: expected"):
                coulomb.load(robot, decompose=bad)
    vertices, faces = cup()
    for wrong, error in (("a", TypeError), (True, TypeError), (5, ValueError)):
        with pytest.raises(error, match="threshold: "):
            convex_parts(vertices, faces, wrong)
    with pytest.raises(ValueError, match="is none of the 16 vertices"):
        convex_parts(vertices, faces + 5)
    saved = tmp_path / "saved"
    coulomb.load(robots["urdf"]).save(saved)
    with pytest.raises(ValueError, match="takes no options"):
        coulomb.load(saved, decompose=True)


def test_the_command(robots, cache, tmp_path, capsys):
    mesh = tmp_path / "cup.obj"
    assert main(["decompose", str(mesh), "--output", str(tmp_path / "parts")]) == 0
    assert "cup.obj" in capsys.readouterr().out
    files = sorted((tmp_path / "parts").glob("part*.obj"))
    assert len(files) >= 5
    trimesh = pytest.importorskip("trimesh")
    assert all(trimesh.load(file).is_watertight for file in files)
    for robot in robots.values():
        assert main(["decompose", str(robot)]) == 0
        assert re.search(r" (39|40)\.\d mm", capsys.readouterr().out)
    assert main(["decompose", str(tmp_path / "none.obj")]) == 2


def corners(model, names):
    """The box of some geometries' vertices, in the world."""
    points = []
    for index, name in enumerate(model.geometry_names):
        if name in names:
            w, *axis = model.geometry_quat[index]
            vertices = np.asarray(model.mesh_vertices(model.geometry_mesh[index]))
            turned = vertices + 2 * np.cross(axis, np.cross(axis, vertices) + w * vertices)
            points.append(turned + model.geometry_pos[index])
    points = np.concatenate(points)
    return np.array([points.min(axis=0), points.max(axis=0)])


@pytest.mark.parametrize(
    "default",
    ['<mesh scale=".01 .01 .01" inertia="shell"/>', '<geom euler="1 0 0"/>', '<geom axisangle="0 1 0 .5" mass="3"/>'],
)
def test_defaults_of_the_file_move_no_parts(default, robots, cache):
    text = robots["mjcf"].read_text()
    if "scale" in default:
        text = text.replace(' scale=".01 .01 .01"', "")
    if "geom" in default:
        text = text.replace(' euler="0 0 .3"', "")
    robots["mjcf"].write_text(text.replace("<asset>", f"<default>{default}</default><asset>"))
    whole, cut = (coulomb.load(robots["mjcf"], decompose=d) for d in (False, True))
    parts = [name for name in cut.geometry_names if "_part" in name]
    assert len(parts) >= 5
    assert corners(cut, parts) == pytest.approx(corners(whole, ["cup"]), abs=2e-3)


def test_names_of_parts_are_free(robots, cache):
    """A mesh and a geom of the file have the names that parts would have."""
    text = robots["mjcf"].read_text()
    other = '<mesh name="cup_part0" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>'
    geom = '<geom name="cup_part1" size=".1" pos="3 0 0"/></worldbody>'
    robots["mjcf"].write_text(text.replace("</asset>", other).replace("</worldbody>", geom))
    model = coulomb.load(robots["mjcf"], decompose=True)
    parts = [name for name in model.geometry_names if "_part" in name and name != "cup_part1"]
    assert len(parts) >= 5
    assert corners(model, parts)[1] - corners(model, parts)[0] == pytest.approx([0.124, 0.124, HEIGHT], abs=5e-3)


def test_what_stays_whole_is_still_said(robots, cache):
    text = robots["mjcf"].read_text()

    # A geom that moves its surface is refused as it is without cutting.
    robots["mjcf"].write_text(text.replace('friction=".7"', 'surfacevel="1 0 0 0 0 0"'))
    with pytest.raises(ValueError, match="surfacevel"):
        coulomb.load(robots["mjcf"], decompose=True)

    # One in a pair stays a hull, and so does a mesh that is one part for this threshold.
    ball = '<body pos="0 0 1"><freejoint/><geom name="ball" size=".02"/></body></worldbody>'
    pair = '<contact><pair geom1="cup" geom2="ball"/></contact></mujoco>'
    robots["mjcf"].write_text(text.replace("</worldbody>", ball).replace("</mujoco>", pair))
    for given, threshold in ((robots["mjcf"], True), (robots["urdf"], 1.0)):
        model = coulomb.load(given, decompose=threshold)
        assert any("convex hulls in the place of 1 meshes" in line for line in model.deviations)


def test_files_of_one_name_are_listed_apart(tmp_path, cache, capsys):
    vertices, faces = cup()
    for folder, points, triangles in (("a", vertices, faces), ("b", CUBE, np.array(CUBE_FACES))):
        (tmp_path / folder).mkdir()
        lines = [f"v {x} {y} {z}" for x, y, z in points] + [f"f {p + 1} {q + 1} {r + 1}" for p, q, r in triangles]
        (tmp_path / folder / "m.obj").write_text("\n".join(lines))
    inertia = (
        '<inertial><mass value=".2"/><inertia ixx=".001" iyy=".001" izz=".001" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    meshes = "".join(
        f'<collision><geometry><mesh filename="{name}" scale="{s} {s} {s}"/></geometry></collision>'
        for name, s in (("a/m.obj", 1), ("b/m.obj", 1), ("a/m.obj", 2))
    )
    urdf = tmp_path / "three.urdf"
    urdf.write_text(f'<robot name="r"><link name="base">{inertia}{meshes}</link></robot>')
    assert main(["decompose", str(urdf)]) == 0
    printed = capsys.readouterr().out
    assert [
        re.search(rf"{re.escape(name)} +([\d.]+) mm", printed) is not None
        for name in ("m.obj", "m.obj (2)", "m.obj (3)")
    ] == [True] * 3
    (line,) = [line for line in coulomb.load(urdf).deviations if "convex hulls" in line]
    assert "2 meshes" in line and re.search(r"m\.obj \(3\) (7[6-9]|80) mm, m\.obj (39|40) mm", line)
