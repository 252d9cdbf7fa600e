"""The gradient of a rollout's objective by a design: chains of boxes and cages, PyTorch, JAX, against differences."""

import numpy as np
import pytest
from test_morphology import arm, bent, close, close_to_differences, differences

import coulomb
from coulomb.morphology import BodyPoints, Cage, ChainCage, Morphology, Part, Scales, finger_pieces, scales_of

HINGE = {"axis": "0 1 0", "damping": "0.002", "armature": "1e-5"}
JOINTS = {"knuckle": {**HINGE, "axis": "0 0 1"}, "p0": HINGE, "p1": HINGE, "p2": HINGE}


def finger():
    """A finger above the floor, that its own weight lays down, and its morphology.

    The fixed palm shares a face with the knuckle, and friction would hold its joint: MJCF's filter of parents takes a
    fixed body for the world.
    """
    chain = ChainCage(finger_pieces(), JOINTS)
    assets, bodies = chain.mjcf(1200.0, position=(0, 0, 0.05), euler=(0, 0.2, 0))
    model = coulomb.load(f"""<mujoco><compiler angle="radian"/><option timestep="0.002"/><asset>{assets}</asset>
      <worldbody><geom name="floor" type="plane" size="1 1 1" friction="0.4"/>{bodies}</worldbody>
      <contact><exclude body1="palm" body2="knuckle"/></contact></mujoco>""")
    return chain, Morphology(
        model, chain.parts(1200.0), chain.links(), markers=[chain.tip()], design=scales_of([chain])
    )


def final_tip(morphology, x, steps, direction, with_gradient=False, **options):
    """direction . world position of the tip at the end of a fall onto the floor, and its gradient by x; None: a step did not converge."""
    sim = coulomb.Simulator(morphology.model_of(x), **options)
    q, v = sim.model.neutral()
    r = sim.rollout(q, v, steps=steps)
    if not r.converged and not with_gradient:
        return None
    assert r.converged
    tip = morphology.points(x)["tip"]
    points = BodyPoints(sim.model, r.q[-1])
    value = direction @ points.position("p2", tip)
    if not with_gradient:
        return value
    assert len(sim.contacts) and any(c.mode != "separating" for c in sim.contacts)
    by_q, by_point, placements = points.vjp("p2", tip, direction)
    dQ = np.zeros((steps + 1, sim.model.nv))
    dQ[-1] = by_q
    g = r.vjp(dQ, None, wrt=morphology.names)
    return value, (
        morphology.vjp(x, g)
        + by_point @ morphology.points_jacobian(x)["tip"]
        + morphology.vjp(x, {name: value for name, value in placements.items() if name in morphology.names})
    )


def test_chain_at_rest_is_the_model():
    chain, morphology = finger()
    assert chain.scale_names == [
        *("length 0", "joint 1 width", "length 1", "joint 2 width", "length 2", "neck width", "neck height"),
        *("tip width", "tip height"),
    ]
    built, values = morphology.model.parameters(), morphology.parameters(np.ones(9))
    assert "vertices/tip" in values and "joint_placement/p2" in values and "inertia/p0" in values
    for name, value in values.items():
        assert np.abs(value - built[name].value).max() <= 1e-7 * np.abs(built[name].value).max(), name
    x = np.array([2.0, 1, 1, 1, 1, 1, 1, 1, 1])
    longer = morphology.model_of(x)
    assert longer.body_mass[3] > morphology.model.body_mass[3] + 0.05 * 0.02**2 * 1200 * 0.99
    assert longer.body_pos[4][0] == pytest.approx(morphology.model.body_pos[4][0] + 0.05, abs=1e-9)


def test_chain_jacobian():
    _, morphology = finger()
    x = np.random.default_rng(5).uniform(0.7, 1.4, 9)
    jacobian = morphology.jacobian(x)
    numeric = differences(lambda y: np.concatenate([morphology.parameters(y)[name] for name in jacobian]), x)
    ends = np.cumsum([len(slope) for slope in jacobian.values()])[:-1]
    for slope, expected in zip(jacobian.values(), np.split(numeric, ends)):
        if np.abs(expected).max() > 1e-12:
            close(slope, expected, 1e-8)
        else:
            assert not slope.any() or np.abs(slope).max() < 1e-12


def test_chain_errors():
    pieces = finger_pieces()
    with pytest.raises(ValueError, match=r"length\[0\] of piece 'palm': -1 must be positive"):
        ChainCage(finger_pieces(palm=-1), JOINTS)
    with pytest.raises(ValueError, match="pieces: name 'tip' appears twice"):
        ChainCage([*pieces, pieces[-1]], JOINTS)
    with pytest.raises(ValueError, match="joints: no piece has the body 'p7'"):
        ChainCage(pieces, {"p7": HINGE})
    _, morphology = finger()
    for value in (0.0, -1.0):
        with pytest.raises(ValueError, match=r"x\[4\]: scale 'length 2' is .*; it must be positive"):
            morphology.parameters(np.where(np.arange(9) == 4, value, 1.0))
    with pytest.raises(ValueError, match="names: the scale 'length 0' of piece 'phalanx0' is missing"):
        scales_of([ChainCage(pieces, JOINTS)], ["length 1"])


def test_gradient_of_a_rollout_by_the_scales_of_a_finger():
    _, morphology = finger()
    x, direction = np.linspace(0.9, 1.2, 9), np.array([1.0, -0.5, 0.7])
    value, gradient = final_tip(morphology, x, 120, direction, with_gradient=True)
    close_to_differences(gradient, lambda y: final_tip(morphology, y, 120, direction), x, 1e-6)
    assert np.abs(gradient).min() > 1e-8 * np.abs(gradient).max()


def test_gradient_of_a_rollout_by_every_handle_of_a_bent_mesh():
    """A wedge on an elbow swings in the air and drags a ball along: 14 handles of its cage, box sides, a turned joint."""
    morphology = arm()
    x = bent(morphology, 0.05)
    weights = np.random.default_rng(2).normal(size=morphology.model.nv)

    def objective(y):
        r = run(y)
        return weights @ r.v[-1]

    def run(y):
        sim = coulomb.Simulator(morphology.model_of(y))
        r = sim.rollout(*sim.model.neutral(), steps=200)
        assert r.converged
        return r

    r = run(x)
    dV = np.zeros_like(r.v)
    dV[-1] = weights
    gradient = morphology.vjp(x, r.vjp(None, dV, wrt=morphology.names))
    close(gradient, differences(objective, x, 1e-6), 1e-6)


def block():
    """A tapered block that slides, tips and comes to rest; its 8 corners are the design."""
    scene = coulomb.Scene(timestep=2e-3)
    scene.add_ground(friction=0.4)
    cage = Cage.box((-0.1, -0.15, -0.05), (0.1, 0.15, 0.05), name="block")
    corners = cage.handles * (1 - 3 * np.maximum(cage.handles[:, 2:], 0))
    scene.add_mesh(corners, density=800, position=(0, 0, 0.0502), name="block")
    model = scene.build()
    return model, cage


def test_torch_has_first_derivatives_only():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    import coulomb.morphology.torch as morphology_torch

    _, morphology = finger()

    def loss(x):
        return sum((y**2).sum() for y in morphology_torch.parameters(morphology, x).values()) + (x**3).sum()

    x = torch.ones(9, dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(loss(x), x, create_graph=True)
    assert torch.equal(g.detach(), torch.autograd.grad(loss(x), x)[0])
    with pytest.raises(RuntimeError, match="coulomb.morphology.torch: has first derivatives only"):
        torch.autograd.grad((g**2).sum(), x)
    with pytest.raises(RuntimeError, match="coulomb.morphology.torch: torch.func and vmap"):
        torch.func.grad(loss)(x.detach())


def test_torch_chains():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("coulomb.torch")
    import coulomb.morphology.torch as morphology_torch
    import coulomb.torch

    _, morphology = finger()
    sim = coulomb.Simulator(morphology.model)
    q, v = morphology.model.neutral()

    def objective(raw):
        x = torch.exp(raw) * torch.ones(9, dtype=torch.float64)  # the user's own map
        values = morphology_torch.parameters(morphology, x)
        Q, V = coulomb.torch.rollout(sim, q, v, parameters=values, steps=60)
        tip = morphology_torch.points(morphology, x)["tip"]
        return (Q[-1] ** 2).sum() + 0.1 * V[-1].sum() + tip.sum()

    raw = torch.linspace(-0.1, 0.2, 9, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(objective, (raw,), eps=1e-6, atol=1e-7, rtol=1e-5)
    batch = torch.tensor(np.array([1.0, 1.2])[:, None] * np.ones(9)).requires_grad_()
    values = morphology_torch.parameters(morphology, batch)
    assert values["inertia/p2"].shape == (2, 10)
    values["inertia/p2"][1, 0].backward()
    close(batch.grad[1].numpy(), morphology.jacobian(1.2 * np.ones(9))["inertia/p2"][0], 1e-14)
    assert not batch.grad[0].any()
    with pytest.raises(TypeError, match="x: expected a tensor"):
        morphology_torch.parameters(morphology, np.ones(9))
    with pytest.raises(ValueError, match="scale 'length 2' is -1"):
        morphology_torch.parameters(morphology, torch.tensor([1.0, 1, 1, 1, -1, 1, 1, 1, 1]).double())


def test_jax_chains():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    pytest.importorskip("coulomb.jax")
    import coulomb.jax
    import coulomb.morphology.jax as morphology_jax

    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    _, morphology = finger()
    sim = coulomb.Simulator(morphology.model)
    q, v = morphology.model.neutral()

    def objective(raw):
        x = jnp.exp(raw)
        values = morphology_jax.parameters(morphology, x)
        Q, V = coulomb.jax.rollout(sim, q, v, parameters=values, steps=20)
        return (Q[-1] ** 2).sum() + 0.1 * V[-1].sum() + morphology_jax.points(morphology, x)["tip"].sum()

    raw = jnp.linspace(-0.1, 0.2, 9)
    gradient = jax.jit(jax.grad(objective))(raw)
    close(np.array(gradient), differences(lambda y: float(objective(jnp.asarray(y))), np.array(raw)), 1e-6)
    slopes = jax.vmap(jax.jacfwd(lambda x: morphology_jax.parameters(morphology, x)["inertia/p2"]))(jnp.ones((2, 9)))
    close(slopes[1], morphology.jacobian(np.ones(9))["inertia/p2"], 1e-13)


def test_one_scale_of_a_sliding_block():
    model, cage = block()
    design = Scales([cage], cage.handles[:, :, None] * [[[0.0], [0.0], [1.0]]], ["height"])
    morphology = Morphology(model, [Part("block", cage, 800)], design=design)

    def run(x):
        sim = coulomb.Simulator(morphology.model_of(x))
        q, v = sim.model.neutral()
        v[:3] = 1.0, 0.4, -0.1
        q[2] = 0.0502
        v[5] = 2.0
        return sim.rollout(q, v, steps=100)

    x = np.array([1.01])
    r = run(x)
    dV = np.zeros_like(r.v)
    dV[-1, :2] = 1.0, 0.3
    gradient = morphology.vjp(x, r.vjp(None, dV, wrt=morphology.names))
    close_to_differences(gradient, lambda y: dV[-1] @ run(y).v[-1], x, 1e-5)


def pad(stepper="bdf2"):
    """A box with four contact points under it on an arm, above a block that it presses on; cage: three sides."""
    scene = coulomb.Scene(timestep=2e-3)
    scene.add_ground(friction=0.5)
    points = [(x, y, -0.03) for x in (-0.05, 0.05) for y in (-0.04, 0.04)]
    scene.add_box((0.12, 0.1, 0.06), density=800, position=(0, 0, 0.0297), contact_points=points, name="pad")
    model = scene.build()
    cage = Cage.box((-0.06, -0.05, -0.03), (0.06, 0.05, 0.03), name="pad")
    matrix = np.stack([cage.handles * np.eye(3)[k] for k in range(3)], axis=2)
    matrix[:, 2, 2] += 0.03  # grows upward
    design = Scales([cage], matrix, ["length", "width", "height"])
    return Morphology(model, [Part("pad", cage, 800, contact_scale=True)], design=design)


def test_contact_points_and_scale_follow():
    morphology = pad()
    x = np.array([1.2, 0.9, 1.5])
    values = morphology.parameters(x)
    a, b, c = 0.12 * 1.2, 0.1 * 0.9, 0.06 * 1.5
    surface, before = a * b + b * c + c * a, 0.12 * 0.1 + 0.1 * 0.06 + 0.06 * 0.12
    assert values["contact_scale/pad"][0] == pytest.approx(surface / before, rel=1e-12)
    corners = np.array([(0.05 * 1.2 * i, 0.04 * 0.9 * j, -c / 2) for i in (-1, 1) for j in (-1, 1)])
    assert np.abs(values["contact_points/pad"].reshape(-1, 3) - corners).max() < 1e-15
    assert np.abs(values["geometry_placement/pad"][:3] - [0, 0, c / 2 - 0.03]).max() < 1e-15
    for name, slope in morphology.jacobian(x).items():
        close(slope, differences(lambda y, name=name: morphology.parameters(y)[name], x), 1e-8)
    assert morphology.model_of(x).parameters()["contact_scale/pad"].value[0] == values["contact_scale/pad"][0]


def test_gradient_of_penalty_contact_by_a_cage():
    """200 steps of the pad, thrown and sliding on its contact points: scale of contact, points, mass."""
    morphology = pad()
    weights = np.random.default_rng(4).normal(size=6)

    def run(x):
        sim = coulomb.Simulator(morphology.model_of(x), stepper="bdf2", contact="penalty")
        q, v = sim.model.neutral()
        v[:] = 0.6, 0.3, 0.0, 0.1, 0.2, 1.0
        r = sim.rollout(q, v, steps=200)
        assert r.converged and len(sim.contacts)
        return r

    x = np.array([1.1, 0.95, 1.2])
    r = run(x)
    dV = np.zeros_like(r.v)
    dV[40::40] = weights
    gradient = morphology.vjp(x, r.vjp(None, dV, wrt=morphology.names))
    close(gradient, differences(lambda y: np.sum(dV * run(y).v), x, 1e-7), 1e-6)
