"""Numbers of q against tangents: the maps that coulomb.torch and coulomb.jax use, on models with free, ball, hinge
and slide joints.
"""

import subprocess
import sys

import numpy as np
import pytest

import coulomb
from coulomb._coordinates import Coordinates

JOINTS = """<mujoco><worldbody>
  <body><joint type="slide" axis="1 0 0"/><geom size=".1"/>
    <body pos="0 0 1"><joint type="ball"/><geom size=".1"/>
      <body pos="0 0 1"><joint type="hinge" axis="0 1 0"/><geom size=".1"/></body></body></body>
  <body pos="3 0 0"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""


@pytest.fixture
def model():
    scene = coulomb.Scene()
    scene.add_mjcf(JOINTS)
    return scene.build()


def random_state(model, random):
    return model.integrate(model.neutral()[0], random.normal(size=model.nv))


def test_numbers_of_tangent_is_the_derivative_of_integrate(model):
    random = np.random.default_rng(0)
    q, w, h = random_state(model, random), random.normal(size=model.nv), 1e-5
    numeric = (model.integrate(q, h * w) - model.integrate(q, -h * w)) / (2 * h)
    coordinates = Coordinates(model)
    np.testing.assert_allclose(coordinates.numbers_of_tangent(q, w), numeric, atol=1e-9)
    np.testing.assert_allclose(coordinates.expansion(q) @ w, numeric, atol=1e-9)


def test_gradients_and_cotangents_are_transposes(model):
    random = np.random.default_rng(1)
    coordinates = Coordinates(model)
    assert len(coordinates.quaternions) == 2 == model.nq - model.nv
    q = np.stack([random_state(model, random) for _ in range(5)])
    scale = random.uniform(0.5, 2, size=(5, 2))
    raw = q.copy()
    for k, (a, _) in enumerate(coordinates.quaternions):
        raw[:, a : a + 4] *= scale[:, k, None]
    unit, lengths = coordinates.normalized(raw)
    np.testing.assert_allclose(unit, q, atol=1e-15)
    np.testing.assert_allclose(lengths, scale, rtol=1e-15)
    E, P = coordinates.expansion(unit), coordinates.projection(unit, lengths)
    np.testing.assert_allclose(
        P @ (coordinates.expansion(q) * _by_number(coordinates, lengths)),
        np.tile(np.eye(model.nv), (5, 1, 1)),
        atol=1e-14,
    )
    g, c = random.normal(size=(5, model.nv)), random.normal(size=(5, model.nq))
    gradient = coordinates.gradient_of_tangent(unit, lengths, g)
    np.testing.assert_allclose(gradient, np.einsum("nij,ni->nj", P, g), atol=1e-14)
    np.testing.assert_allclose(coordinates.tangent_of_cotangent(unit, c), np.einsum("nij,ni->nj", E, c), atol=1e-14)
    for a, _ in coordinates.quaternions:
        np.testing.assert_allclose(np.einsum("ni,ni->n", gradient[:, a : a + 4], unit[:, a : a + 4]), 0, atol=1e-14)


def _by_number(coordinates, lengths):
    """(n, nq, 1): the length of the quaternion that a number belongs to."""
    out = np.ones((len(lengths), coordinates.nq, 1))
    for k, (a, _) in enumerate(coordinates.quaternions):
        out[:, a : a + 4, 0] = lengths[:, k, None]
    return out


def test_unit_quaternions_keep_their_bits(model):
    random = np.random.default_rng(2)
    coordinates = Coordinates(model)
    for _ in range(100):
        q = random_state(model, random)
        assert np.array_equal(coordinates.normalized(q)[0], q)


def test_importing_coulomb_needs_neither():
    code = "import sys; sys.modules['torch'] = sys.modules['jax'] = None; import coulomb; coulomb.Scene().build()"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import coulomb, sys; assert not {'torch', 'jax'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
