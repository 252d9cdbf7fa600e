"""coulomb.morphology: solids, cages, and the parameters that follow them, against closed forms and differences."""

import numpy as np
import pytest

import coulomb
from coulomb import _differences
from coulomb.morphology import (
    BodyPoints,
    Cage,
    ChainCage,
    Link,
    Marker,
    Morphology,
    Part,
    Scales,
    finger_pieces,
    mass_description,
    solid_properties,
)

BOX = Cage.box((0, 0, 0), (1, 1, 1))
RANDOM = np.random.default_rng(7)


def differences(function, x, step=1e-6):
    """Central differences of an array function, the inputs last."""
    x = np.asarray(x, dtype=float)
    columns = []
    for i in np.ndindex(x.shape):
        e = np.zeros_like(x)
        e[i] = step
        columns.append((np.asarray(function(x + e)) - np.asarray(function(x - e))) / (2 * step))
    return np.moveaxis(np.array(columns), 0, -1).reshape(*columns[0].shape, *x.shape)


def close_to_differences(gradient, function, x, tolerance):
    """Of a number by x (n,), against differences that know their own error, which is below the tolerance. None: no number there."""
    x, start = np.asarray(x, dtype=float), function(x)

    def change(dx):
        end = function(x + dx)
        return None if end is None else end - start

    noise = _differences.noise_of(change, 1e-9 * np.random.default_rng(0).normal(size=(8, x.size))) + 1.1e-16 * abs(
        start
    )
    steps, enough = _differences.sizes(2.5e-8, 4e-3), 0.03 * tolerance
    columns = [_differences.slope(lambda h, e=e: change(h * e), noise, steps, enough) for e in np.eye(x.size)]
    expected, error = (np.array([column[i] for column in columns]) for i in (0, 1))
    assert np.abs(error).max() <= tolerance * np.abs(expected).max(), (expected, error)
    close(gradient, expected, tolerance)


def close(found, expected, tolerance):
    scale = np.abs(expected).max()
    assert scale > 0
    assert np.abs(np.asarray(found) - expected).max() <= tolerance * scale


def rotation(w):
    angle = np.linalg.norm(w)
    K = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]]) / angle
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


# --- solids ---------------------------------------------------------------------------------------------------------


def test_solid_of_a_turned_box_in_closed_form():
    size, R, place = np.array([0.2, 0.5, 0.3]), rotation(np.array([0.4, -1.0, 0.3])), np.array([3.0, -2.0, 1.0])
    corners = (BOX.handles - 0.5) * size @ R.T + place
    solid = solid_properties(corners, BOX.triangles)
    a, b, c = size
    own = a * b * c / 12 * np.diag([b * b + c * c, a * a + c * c, a * a + b * b])
    assert solid.volume == pytest.approx(a * b * c, rel=1e-13)
    assert solid.area == pytest.approx(2 * (a * b + b * c + c * a), rel=1e-13)
    close(solid.com, place, 1e-13)
    close(solid.inertia, R @ own @ R.T, 1e-12)
    mass, com, inertia = mass_description(1000 * solid.ten)
    assert mass == pytest.approx(1000 * solid.volume)
    close(com, place, 1e-13)
    close(inertia, 1000 * (R @ own @ R.T), 1e-9)  # about a far origin and back


def test_solid_that_is_not_convex_against_its_boxes():
    """An L of three cubes, as one surface of 14 corners' worth of triangles, and as a sum of boxes."""
    outline = np.array([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)], dtype=float)
    points = np.array([(x, y, z) for z in (0, 1) for x, y in outline])
    top = [(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)]
    sides = [t for i in range(6) for j in [(i + 1) % 6] for t in ((i, j, 6 + j), (i, 6 + j, 6 + i))]
    triangles = [tuple(6 + i for i in t) for t in top] + [t[::-1] for t in top] + sides
    solid = solid_properties(points, np.array(triangles))
    boxes = [solid_properties(BOX.handles + shift, BOX.triangles) for shift in ([0, 0, 0], [1, 0, 0], [0, 1, 0])]
    close(solid.ten, sum(box.ten for box in boxes), 1e-14)
    assert solid.area == pytest.approx(14)


def test_solid_converges_to_the_ball():
    def error(n):
        angles, heights = np.linspace(0, 2 * np.pi, 2 * n, endpoint=False), np.linspace(0, np.pi, n + 1)[1:-1]
        ring = [(np.sin(h) * np.cos(a), np.sin(h) * np.sin(a), np.cos(h)) for h in heights for a in angles]
        points, m = np.array([(0, 0, 1), *ring, (0, 0, -1)]), 2 * n
        triangles = [(0, 1 + i, 1 + (i + 1) % m) for i in range(m)]
        for r in range(n - 2):
            for i in range(m):
                a, b = 1 + r * m + i, 1 + r * m + (i + 1) % m
                triangles += [(a, a + m, b + m), (a, b + m, b)]
        last = 1 + (n - 2) * m
        triangles += [(len(points) - 1, last + (i + 1) % m, last + i) for i in range(m)]
        solid = solid_properties(points, np.array(triangles))
        ball = 4 / 3 * np.pi
        return abs(solid.volume / ball - 1), abs(solid.inertia[0, 0] / (0.4 * ball) - 1)

    coarse, fine = error(10), error(20)
    assert np.all(np.array(fine) < np.array(coarse) / 3.8) and max(fine) < 0.03  # second order


@pytest.mark.parametrize(
    "quantity, slope",
    [("volume", "d_volume"), ("com", "d_com"), ("inertia", "d_inertia"), ("ten", "d_ten"), ("area", "d_area")],
)
def test_solid_derivatives(quantity, slope):
    corners = BOX.handles + 0.2 * RANDOM.normal(size=(8, 3)) + np.array([1.0, -0.5, 2.0])
    expected = differences(lambda p: getattr(solid_properties(p, BOX.triangles), quantity), corners)
    close(getattr(solid_properties(corners, BOX.triangles), slope), expected, 1e-8)


def test_solid_errors():
    triangles = BOX.triangles.copy()
    with pytest.raises(ValueError, match=r"triangles\[0\]: edge .* has no neighbour"):
        solid_properties(BOX.handles, triangles[:-1])
    with pytest.raises(ValueError, match=r"triangles\[12\]: edge .* is used twice"):
        solid_properties(BOX.handles, np.concatenate([triangles, triangles[:1]]))
    triangles[3, 1] = 8
    with pytest.raises(ValueError, match=r"triangles\[3, 1\]: 8 is none of the 8 vertices"):
        solid_properties(BOX.handles, triangles)
    with pytest.raises(ValueError, match=r"vertices\[2, 1\]: nan is not finite"):
        solid_properties(np.where(np.arange(24).reshape(8, 3) == 7, np.nan, BOX.handles), BOX.triangles)
    assert solid_properties(BOX.handles, BOX.triangles[:, ::-1]).volume == pytest.approx(-1)


# --- cages ----------------------------------------------------------------------------------------------------------


def tapered():
    cage = ChainCage(finger_pieces(), {}).cages[-1]
    return cage


@pytest.mark.parametrize("cage", [BOX, Cage.box((-1, 0, 2), (1, 3, 4), centres=True), tapered()])
def test_weights_reproduce_linear_functions(cage):
    low, high = cage.handles.min(axis=0), cage.handles.max(axis=0)
    middle = (low + high) / 2
    inside = middle + 0.4 * RANDOM.uniform(-1, 1, size=(20, 3)) * (high - low)
    faces = cage.handles[cage.triangles].mean(axis=1)
    outside = middle + 1.5 * (inside - middle)
    for points in (inside, faces, outside, cage.handles):
        W = cage.weights(points)
        close(W.sum(axis=1), np.ones(len(points)), 1e-13)
        close(W @ cage.handles, points, 1e-12)
    close(cage.weights(cage.handles), np.eye(len(cage.handles)), 1e-12)
    assert cage.weights(inside).min() > -1e-12
    matrix, shift = RANDOM.normal(size=(3, 3)), RANDOM.normal(size=3)
    close(cage.deform(inside, cage.handles @ matrix.T + shift), inside @ matrix.T + shift, 1e-12)


def test_mean_value_weights_are_continuous_at_the_surface():
    cage = Cage.box((0, 0, 0), (1, 2, 1), centres=True)
    on = np.array([[0.3, 0.7, 0.0], [0.0, 1.9, 0.4]])
    for gap in (1e-5, 1e-4):
        inward = on + gap * np.array([[0, 0, 1.0], [1.0, 0, 0]])
        assert np.abs(cage.weights(inward) - cage.weights(on)).max() < 20 * gap


def test_cage_errors():
    with pytest.raises(ValueError, match="lie in one plane"):
        Cage(np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)]), weights=lambda p: p)
    with pytest.raises(ValueError, match="look inward"):
        Cage(BOX.handles, BOX.triangles[:, ::-1])
    with pytest.raises(ValueError, match=r"high\[1\]: 0.0 must be above low\[1\], 0.0"):
        Cage.box((0, 0, 0), (1, 0, 1))
    with pytest.raises(ValueError, match="triangles: needed"):
        Cage(BOX.handles)
    with pytest.raises(ValueError, match="row 0 has the sum 2.0, not 1"):
        Cage(BOX.handles, weights=lambda p: np.full((len(p), 8), 0.25)).weights(np.zeros((1, 3)))
    with pytest.raises(ValueError, match=r"handles: expected shape \(8, 3\), got \(7, 3\)"):
        BOX.deform(np.zeros((1, 3)), np.zeros((7, 3)))


# --- parameters of a model ------------------------------------------------------------------------------------------

ARM = """<mujoco><option gravity="0 0 -9.81" timestep="0.002"/><compiler angle="radian"/>
<asset><mesh name="wedge" vertex="0 -.1 -.1 0 .1 -.1 0 -.1 .1 0 .1 .1 .4 -.05 -.06 .4 .05 -.06 .4 -.05 .06 .4 .05 .06"/>
</asset><worldbody><geom name="floor" type="plane" size="5 5 1"/>
<body name="upper" pos="0 0 .5"><joint name="shoulder" type="ball"/>
  <geom name="upper" type="box" pos=".15 .01 0" euler="0 .3 .4" size=".15 .04 .03" density="600"/>
  <body name="lower" pos=".3 0 .05" euler=".2 -.5 .7"><joint name="elbow" axis="0 1 .2" damping=".1"/>
    <geom name="lower" type="mesh" mesh="wedge" density="500"/>
    <geom name="ball" type="sphere" pos=".42 0 0" size=".05" density="700"/></body></body></worldbody></mujoco>"""


def arm(**options):
    """An arm in two cages that shear, turn and grow: a box that only grows, a mesh that takes any form."""
    model = coulomb.load(ARM)
    g = model.geometry_names.index("upper")
    turn = rotation(model.parameters()["geometry_placement/upper"].value[3:])
    unit = Cage.box((-0.2, -0.1, -0.1), (0.2, 0.1, 0.1))
    upper = Cage(unit.handles @ turn.T + model.geometry_pos[g], unit.triangles, name="upper cage")
    lower = Cage.box((0, -0.1, -0.1), (0.45, 0.1, 0.1), centres=True, name="lower cage")
    parts = [Part("upper", upper, 600), Part("lower", lower, 500), Part("ball", lower)]
    links = [Link("elbow", upper, turn=0.05)]
    markers = [Marker("end", lower, (0.45, 0.02, 0.01))]
    # x: three sides of the upper box, then every handle of the lower cage
    count, along = 3 + lower.handles.size, (upper.handles - model.geometry_pos[g]) @ turn
    matrix = np.zeros((8 + 14, 3, count))
    for k in range(3):
        matrix[:8, :, k] = np.outer(along[:, k] + (0.15, 0, 0)[k], turn[:, k])  # grows to one side
    matrix[8:, :, 3:] = np.eye(lower.handles.size).reshape(14, 3, -1) * lower.handles.ravel()
    matrix[8:, :, 3:] += 0.05 * np.eye(lower.handles.size).reshape(14, 3, -1)
    design = Scales([upper, lower], matrix, [f"s{i}" for i in range(count)])
    design.start[:] = 1
    return Morphology(model, parts, links, markers=markers, design=design, **{"keep": ["lower"], **options})


def bent(morphology, size=0.1):
    """A design in which nothing is flat."""
    return morphology.start + size * np.random.default_rng(1).uniform(-1, 1, morphology.design.size)


def test_the_design_at_rest_is_the_model():
    morphology = arm()
    built = morphology.model.parameters()
    values = morphology.parameters(morphology.start)
    assert set(values) == {
        *("joint_placement/elbow", "size/upper", "geometry_placement/upper", "vertices/lower", "inertia/upper"),
        *("geometry_placement/ball", "inertia/lower"),
    }
    for name, value in values.items():
        assert np.abs(value - built[name].value).max() < 1e-8 * np.abs(value).max(), name  # meshes in single precision


def test_jacobian_against_differences():
    morphology = arm()
    for x in (bent(morphology), bent(morphology, 0.03)):
        jacobian = morphology.jacobian(x)
        assert list(jacobian) and set(jacobian) == set(morphology.names)
        for name, slope in jacobian.items():
            close(slope, differences(lambda y, name=name: morphology.parameters(y)[name], x), 1e-7)
        close(morphology.points_jacobian(x)["end"], differences(lambda y: morphology.points(y)["end"], x), 1e-9)
        gradient = {name: RANDOM.normal(size=len(slope)) for name, slope in jacobian.items()}
        close(morphology.vjp(x, gradient), sum(gradient[name] @ slope for name, slope in jacobian.items()), 1e-13)


def test_solids_are_those_of_the_collision_shapes():
    """Mass properties of the design against those that a new model gets from its own corners."""
    morphology = arm(keep=())
    x = bent(morphology)
    values, model = morphology.parameters(x), morphology.model_of(x)
    corners = model.mesh_vertices(model.geometry_mesh[model.geometry_names.index("lower")])
    scene = coulomb.Scene()
    scene.add_mesh(corners, density=500, name="lower")
    mass, com, inertia = mass_description(values["inertia/lower"])
    fresh = scene.build()
    assert mass == pytest.approx(fresh.body_mass[1], rel=1e-9)
    placement = morphology.model.parameters()["geometry_placement/lower"].value
    turn = rotation(placement[3:])
    close(com, turn @ fresh.body_com[1] + placement[:3], 1e-9)
    six = fresh.body_inertia[1]
    own = np.array([[six[0], six[1], six[3]], [six[1], six[2], six[4]], [six[3], six[4], six[5]]])
    close(inertia, turn @ own @ turn.T, 1e-8)
    assert np.allclose(model.body_mass[2], mass, rtol=1e-14)


def test_morphology_errors():
    model, cage = coulomb.load(ARM), Cage.box((0, -0.1, -0.1), (0.45, 0.1, 0.1), centres=True, name="wrap")
    with pytest.raises(ValueError, match=r"parts\[0\].geometry: unknown 'nobody'; there are 'floor', 'upper'"):
        Morphology(model, [Part("nobody", cage)])
    with pytest.raises(ValueError, match=r"parts\[0\].geometry: 'floor' is a half-space"):
        Morphology(model, [Part("floor", cage)])
    with pytest.raises(ValueError, match=r"parts\[0\].density: 'ball' is a sphere"):
        Morphology(model, [Part("ball", cage, 700)])
    with pytest.raises(ValueError, match="density of 'lower': -1 must be positive"):
        Part("lower", cage, -1)
    with pytest.raises(ValueError, match=r"links\[0\].joint: unknown 'knee'"):
        Morphology(model, [], [Link("knee", cage)])
    with pytest.raises(ValueError, match=r"parts\[1\]: 'lower' appears twice"):
        Morphology(model, [Part("lower", cage), Part("lower", cage)])
    with pytest.raises(ValueError, match="cage 'wrap': carries points of 'lower' and 'upper'"):
        Morphology(model, [Part("lower", cage)], [Link("elbow", cage)])
    with pytest.raises(ValueError, match="keep: body 'lower' has no part with a density"):
        Morphology(model, [Part("lower", cage)], keep=["lower"])
    with pytest.raises(TypeError, match=r"parts\[0\].cage: expected a Cage, got str"):
        Morphology(model, [Part("lower", "wrap")])
    with pytest.raises(TypeError, match="model: expected a coulomb.Model"):
        Morphology("model", [])
    morphology = Morphology(model, [Part("lower", cage, 500)])
    with pytest.raises(ValueError, match=r"x: expected shape \(42,\), got \(41,\)"):
        morphology.parameters(np.zeros(41))
    with pytest.raises(ValueError, match=r"x\[3\]: nan is not finite"):
        morphology.parameters(np.where(np.arange(42) == 3, np.nan, morphology.start))
    with pytest.raises(ValueError, match="gradient: 'mass/lower' does not follow x"):
        morphology.vjp(morphology.start, {"mass/lower": [1.0]})
    mirrored = (cage.handles * [-1, 1, 1]).ravel()
    with pytest.raises(ValueError, match="cage 'wrap': handles .* are inverted"):
        morphology.parameters(mirrored)
    with pytest.raises(ValueError, match="cage 'wrap': handles .* are inverted"):
        morphology.parameters((cage.handles * [1, 0, 1]).ravel())  # no volume
    free = Cage(cage.handles, weights=cage.weights, name="free")
    loose = Morphology(model, [Part("lower", free, 500)])
    with pytest.raises(ValueError, match="geometry 'lower': its volume becomes -.* must be positive"):
        loose.parameters(mirrored)
    dented = cage.handles.copy()
    dented[0] = 0.5 * dented[7]  # a corner pushed inside
    with pytest.raises(ValueError, match="vertices/lower.*not a corner of the convex hull|handles .* are inverted"):
        loose.parameters(dented.ravel())


def test_box_must_stay_a_box():
    model = coulomb.load(ARM)
    cage = Cage.box((0, -0.1, -0.1), (0.45, 0.1, 0.1), name="wrap")
    morphology = Morphology(model, [Part("upper", cage, 600)])
    x = morphology.start.copy()
    x[0] -= 0.01
    with pytest.raises(ValueError, match="geometry 'upper': its cage makes it no box: corner .* m off; use a mesh"):
        morphology.parameters(x)
    free = Cage(cage.handles, weights=cage.weights)
    loose = Morphology(model, [Part("upper", free, 600)])
    with pytest.raises(ValueError, match="geometry 'upper': half side 0 becomes -"):
        loose.parameters(-loose.start)


# --- points in the world --------------------------------------------------------------------------------------------


def test_points_of_bodies():
    model = coulomb.load(ARM)
    q = model.integrate(model.neutral()[0], [0.3, -0.8, 0.5, 0.7])
    point, direction = np.array([0.4, 0.02, -0.03]), np.array([0.3, -1.0, 0.5])
    by_q, by_point, placements = BodyPoints(model, q).vjp("lower", point, direction)
    close(
        by_q,
        differences(
            lambda d: direction @ BodyPoints(model, model.integrate(q, d)).position("lower", point), np.zeros(4)
        ),
        1e-8,
    )
    close(by_point, differences(lambda p: direction @ BodyPoints(model, q).position("lower", p), point), 1e-8)
    assert set(placements) == {"joint_placement/shoulder", "joint_placement/elbow"}
    for name, found in placements.items():
        value = model.parameters()[name].value

        def height(p, name=name):
            return direction @ BodyPoints(model.with_parameters({name: p}), q).position("lower", point)

        close(found, differences(height, value), 1e-8)


def test_points_of_bodies_with_several_joints():
    model = coulomb.load("""<mujoco><compiler angle="radian"/><worldbody><body name="a" pos="1 0 0"><freejoint/>
      <geom size=".1"/><body name="b" pos=".3 .1 0" euler="1 2 .5"><joint axis="0 1 0" pos=".1 0 .2" name="h1"/>
      <joint axis="1 0 .3" type="slide" name="s"/><joint axis="0 .2 1" pos="0 .1 0" name="h2"/><geom size=".1"/>
      </body></body></worldbody></mujoco>""")
    q = model.integrate(model.neutral()[0], [0.1, 0.2, 0.3, 0.4, -0.5, 0.6, 0.7, 0.2, -0.9])
    point, direction = np.array([0.4, 0.02, -0.03]), np.array([0.3, -1.0, 0.5])
    by_q, _, placements = BodyPoints(model, q).vjp("b", point, direction)

    def along(d):
        return direction @ BodyPoints(model, model.integrate(q, d)).position("b", point)

    close(by_q, differences(along, np.zeros(model.nv)), 1e-8)
    (name,) = placements

    def height(p):
        return direction @ BodyPoints(model.with_parameters({name: p}), q).position("b", point)

    close(placements[name], differences(height, model.parameters()[name].value), 1e-8)
