"""Files that are not what they say: meshes cut off, empty, of other formats, with numbers that are none; robots in other encodings. Each is read or
refused with an error that names it, within seconds; what is read steps, and its names can be read."""

import itertools
import struct
import time

import numpy as np
import pytest

import coulomb

SECONDS = 20  # for one file, on a busy machine

URDF = (
    '<?xml version="1.0" encoding="utf-8"?><robot name="r"><link name="body"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" '
    'iyy="1" iyz="0" izz="1"/></inertial><collision name="shape"><geometry>{}</geometry></collision></link></robot>'
)
MJCF = '<mujoco><asset>{}</asset><worldbody><body name="body"><freejoint/><geom name="shape" {}/></body></worldbody></mujoco>'

POINTS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
FACES = [POINTS[list(face)] for face in ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))]
OBJ = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def stl(triangles, count=None):
    """Binary; `count` is what the file says that it holds."""
    head = bytes(80) + struct.pack("<I", len(triangles) if count is None else count)
    return head + b"".join(struct.pack("<12fH", 0, 0, 0, *np.ravel(t), 0) for t in triangles)


NOISE = np.random.default_rng(0).bytes(4000)
MESHES = {
    "empty.obj": b"",
    "empty.stl": b"",
    "zeros.stl": bytes(84),
    "no_faces.stl": stl([]),
    "cut.stl": stl(FACES)[:200],
    "more_said_than_there.stl": stl(FACES, 10**6),
    "far_more_said_than_there.stl": stl(FACES, 2**32 - 1),
    "text_cut.stl": b"solid x\nfacet normal 0 0 0\nouter loop\nvertex 0 0",
    "infinite.stl": stl([np.full((3, 3), np.inf)] * 4),
    "not_a_number.stl": stl([np.full((3, 3), np.nan)] * 4),
    "overflow.obj": OBJ.replace("v 1", "v 1e308").encode(),
    "overflow_of_floats.obj": OBJ.replace("v 1", "v 1e39").encode(),
    "not_a_number.obj": OBJ.replace("v 1", "v nan").encode(),
    "flat.obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n",
    "needle.obj": OBJ.replace("v 0 1 0", "v 1 1e-12 0").encode(),
    "one_point.obj": OBJ.replace("1", "0").replace("f", "# f").encode(),
    "no_such_vertex.obj": OBJ.replace("f 2 3 4", "f 2 3 999999").encode(),
    "negative_vertex.obj": OBJ.replace("f 2 3 4", "f 2 3 -99").encode(),
    "words.obj": b"v a b c\nf x y z\n",
    "noise.stl": NOISE,
    "noise.obj": NOISE,
    "noise.dae": NOISE,
    "empty.dae": b"",
    "missing.stl": None,
}


def read(load):
    """A model, or the text of the refusal, in time."""
    began = time.monotonic()
    try:
        return load()
    except (ValueError, FileNotFoundError) as error:
        assert not isinstance(error, UnicodeError)
        return str(error)
    finally:
        assert time.monotonic() - began < SECONDS


@pytest.mark.parametrize("name", MESHES)
@pytest.mark.parametrize("kind", ["urdf", "mjcf"])
def test_damaged_meshes_are_refused_by_name(kind, name, tmp_path):
    path = tmp_path / name
    if MESHES[name] is not None:
        path.write_bytes(MESHES[name])
    if kind == "urdf":
        said = read(lambda: coulomb.load(URDF.format(f'<mesh filename="{path}"/>'), floating_base=True))
    else:
        asset = f'<mesh name="surface" file="{path}"/>'
        said = read(lambda: coulomb.load(MJCF.format(asset, 'type="mesh" mesh="surface"')))
    assert isinstance(said, str)
    assert any(word in said for word in (name, "shape", "surface", "body"))


@pytest.mark.parametrize("kind", ["urdf", "mjcf"])
def test_a_good_mesh_is_read(kind, tmp_path):
    """Or the tests above say nothing."""
    kinds = {"good.obj": OBJ.encode(), "good.stl": stl(FACES)}
    if kind == "urdf":
        kinds["utf16.obj"] = OBJ.encode("utf-16")  # says in what it is written
    for name, data in kinds.items():
        path = tmp_path / name
        path.write_bytes(data)
        if kind == "urdf":
            model = coulomb.load(URDF.format(f'<mesh filename="{path}"/>'), floating_base=True)
        else:
            asset = f'<mesh name="surface" file="{path}"/>'
            model = coulomb.load(MJCF.format(asset, 'type="mesh" mesh="surface"'))
        assert model.num_geometries == 1 and len(model.mesh_vertices(0)) == 4


ROBOTS = {"urdf": URDF.format('<sphere radius=".1"/>'), "xml": MJCF.format("", 'size=".1"')}
READ = {
    "as it is": lambda text: text.encode(),
    "with a byte order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "with the ends of lines of another system": lambda text: text.replace(">", ">\r\n").encode(),
    "with names of any alphabet": lambda text: text.replace('"body"', '"тело\U0001f916"').encode(),
}
REFUSED = {
    "empty": lambda text: b"",
    "blank": lambda text: b"  \n",
    "zeros": lambda text: bytes(1000),
    "noise": lambda text: NOISE,
    "UTF-16": lambda text: text.encode("utf-16"),
    "UTF-16, and says so": lambda text: text.replace("utf-8", "utf-16").encode("utf-16"),
    "UTF-32": lambda text: text.encode("utf-32"),
    "cut off": lambda text: text.encode()[:-30],
    "a zero in its middle": lambda text: text.encode()[:60] + b"\0" + text.encode()[61:],
}


@pytest.mark.parametrize("case", READ)
@pytest.mark.parametrize("kind", ROBOTS)
def test_encodings_that_are_read(kind, case, tmp_path):
    path = tmp_path / f"robot.{kind}"
    path.write_bytes(READ[case](ROBOTS[kind]))
    model = coulomb.load(path, floating_base=True) if kind == "urdf" else coulomb.load(path)
    assert len(model.body_names) == 2 and model.body_names[1] in ("body", "тело\U0001f916")
    q, v = coulomb.Simulator(model).step(*model.neutral())
    assert np.isfinite(q).all() and np.isfinite(v).all()


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("kind", ROBOTS)
def test_encodings_that_are_refused(kind, case, tmp_path):
    path = tmp_path / f"robot.{kind}"
    path.write_bytes(REFUSED[case](ROBOTS[kind]))
    said = read(lambda: coulomb.load(path, floating_base=True) if kind == "urdf" else coulomb.load(path))
    assert isinstance(said, str) and path.name in said


@pytest.mark.parametrize(
    "name",
    [
        b"\xe9",
        b"ab\x80",
        b"\xc0\xaf",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xf8\x88\x80\x80\x80",
        b"\xe2\x82",
        b"\xff",
    ],
    ids=["Latin-1", "alone", "two ways", "half of a pair", "beyond Unicode", "five bytes", "cut off", "no byte of it"],
)
def test_names_that_nobody_could_read(name, tmp_path):
    """Refused, and the bytes are shown. An MJCF file's come from MuJoCo, and are read with a mark in their place."""
    text = ROBOTS["urdf"].encode().replace(b'"body"', b'"' + name + b'"')
    path = tmp_path / "robot.urdf"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=r"body number 1 name: '.*\\x[0-9a-f]{2}.*' is not UTF-8"):
        coulomb.load(path, floating_base=True)

    path = tmp_path / "robot.xml"
    path.write_bytes(ROBOTS["xml"].encode().replace(b'"body"', b'"' + name + b'"'))
    model = coulomb.load(path)
    assert "\N{REPLACEMENT CHARACTER}" in model.body_names[1]


def test_errors_show_the_bytes_that_they_quote(tmp_path):
    """Refused before names are looked at."""
    path = tmp_path / "robot.urdf"
    path.write_bytes(b"<robot name='r'><link name='\xe9'/><link name='\xe9'/></robot>")
    with pytest.raises(ValueError, match=r"link '\\xe9': appears twice") as refused:
        coulomb.load(path)
    assert not isinstance(refused.value, UnicodeError)


def test_files_that_include_themselves(tmp_path):
    (tmp_path / "alone.xml").write_text('<mujoco><include file="alone.xml"/></mujoco>')
    for a, b in itertools.permutations(("one", "two")):
        (tmp_path / f"{a}.xml").write_text(f'<mujoco><include file="{b}.xml"/></mujoco>')
    for name in ("alone.xml", "one.xml"):
        said = read(lambda name=name: coulomb.load(tmp_path / name))
        assert isinstance(said, str) and "already included" in said


def test_a_folder_and_nothing(tmp_path):
    for path in (tmp_path, tmp_path / "none.urdf", tmp_path / "none.xml"):
        with pytest.raises(FileNotFoundError, match=path.name):
            coulomb.load(path)
