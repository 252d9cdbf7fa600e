"""derivatives(sparse=True): the numbers of the dense Jacobian; and reverse products of many islands against it."""

import sys

import numpy as np
import pytest

import coulomb

NAMES = ["A", "dq_dq", "dq_dv", "dv_dq", "dv_dv", "B", "dq_du", "dv_du", "B_tau", "dq_dtau", "dv_dtau"]
ARM = """<mujoco><worldbody>
  <body pos="5 0 .5"><joint name="a" type="hinge" axis="0 1 0" range="-1 1" limited="true" frictionloss=".01"/>
    <geom type="capsule" size=".05 .2"/>
    <body pos="0 0 .4"><joint name="b" type="ball" damping=".1"/><geom type="box" size=".1 .1 .1"/></body>
  </body>
  <body pos="0 3 .5"><joint name="c" type="slide" axis="0 0 1"/><geom type="box" size=".2 .2 .2"/></body>
</worldbody><actuator><motor joint="c"/><motor joint="a" gear="2"/></actuator></mujoco>"""


def scene():
    """Boxes alone, in stacks, flying, sliding and bouncing, and joints between them."""
    out = coulomb.Scene(gravity=(0, 0, -9.81))
    out.add_ground(friction=0.6)
    for k in range(9):  # every third flies, every third has another on top
        height = 2.0 if k % 3 == 1 else 0.1
        out.add_box(
            size=(0.2, 0.2, 0.2), mass=1 + 0.1 * k, position=(k % 3, k // 3, height), friction=0.5, name=f"b{k}"
        )
    for k in range(0, 9, 3):
        out.add_box(size=(0.2, 0.2, 0.2), mass=0.5, position=(0.02, k // 3, 0.3), friction=0.5, name=f"top{k}")
    out.add_sphere(radius=0.1, mass=0.4, position=(-1, 0, 0.1), restitution=0.7, name="ball")
    out.add_mjcf(ARM)
    return out.build()


def simulate(steps=3, **options):
    model = scene()
    sim = coulomb.Simulator(model, **options)
    q, v = model.neutral()
    v = v + 0.1 * np.sin(1 + np.arange(model.nv))
    index = model.nv - 11  # the ball falls
    v[index + 2] = -0.8
    u = np.linspace(-1, 1, model.nu)
    for _ in range(steps):
        sim.step(q, v, u=u)
        q_before, v_before = q, v
        q, v = sim.step(q_before, v_before, u=u)
    return model, sim


@pytest.mark.parametrize("options", [{}, {"contact": "lcp"}, {"continuous_collision": True}])
def test_equals_the_dense_jacobian(options):
    model, sim = simulate(**options)
    wrt = ["mass/b4", "friction/b0", "gravity"]
    dense, sparse = sim.derivatives(wrt), sim.derivatives(wrt, sparse=True)
    for name in NAMES:
        want, got = getattr(dense, name), getattr(sparse, name)
        assert got.shape == want.shape
        assert np.array_equal(got.toarray(), want), name
        assert got.has_sorted_indices
    for name in wrt:
        assert np.array_equal(sparse[name], dense[name])
    assert sparse.parameters == wrt
    assert sparse.ambiguous == dense.ambiguous
    assert sorted(sum(sparse.islands, [])) == list(range(model.nv))
    if not options.get("continuous_collision"):
        assert len(sparse.islands) >= 10
        assert sparse.A.nnz < 0.2 * dense.A.size


def test_implicit_steppers_have_one_island():
    model, sim = simulate(stepper="bdf1", contact="penalty")
    sparse = sim.derivatives(sparse=True)
    assert sparse.islands == [list(range(model.nv))]
    assert np.array_equal(sparse.A.toarray(), sim.derivatives().A)


def test_not_sparse_is_dense():
    _, sim = simulate()
    assert isinstance(sim.derivatives(sparse=False), coulomb.StepDerivatives)
    assert isinstance(sim.derivatives(sparse=True), coulomb.SparseStepDerivatives)


def test_vjp_of_many_islands():
    model, sim = simulate()
    wrt = ["mass/b4", "friction/b0", "gravity", "timestep"]
    dense = sim.derivatives(wrt)
    random = np.random.default_rng(0)
    for _ in range(5):
        w = random.normal(size=2 * model.nv)
        g = sim.vjp(w[: model.nv], w[model.nv :], wrt)
        got = np.concatenate([g.q, g.v, g.u, g.tau] + [g[name] for name in wrt])
        want = np.concatenate([w @ dense.A, w @ dense.B, w @ dense.B_tau] + [w @ dense[name] for name in wrt])
        scale = np.concatenate(
            [abs(w) @ abs(dense.A), abs(w) @ abs(dense.B), abs(w) @ abs(dense.B_tau)]
            + [abs(w) @ abs(dense[name]) for name in wrt]
        )
        # Both are rounded by the conditioning of the contact problem: to 1.1e-10 at most in forty draws, under each instruction set.
        assert np.max(abs(got - want) / (1e-3 + scale)) < 1e-9


def test_without_scipy(monkeypatch):
    _, sim = simulate()
    d = sim.derivatives(sparse=True)
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(ImportError, match="SciPy is missing"):
        _ = d.A


def test_needs_a_step():
    sim = coulomb.Simulator(scene())
    with pytest.raises(RuntimeError, match="no step was taken yet"):
        sim.derivatives(sparse=True)
