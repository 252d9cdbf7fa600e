"""Model's dynamics refuse bad states by name: every function, every argument."""

import numpy as np
import pytest
from mjcf_scenes import ACTUATORS

import coulomb

ARGUMENTS = {
    "mass_matrix": "q",
    "bias": "qv",
    "inverse_dynamics": "qva",
    "inverse_dynamics_derivatives": "qva",
    "passive_forces": "qv",
    "actuator_forces": "qvu",
    "body_placements": "q",
    "geometry_placements": "q",
    "energy": "qv",
}


@pytest.fixture(scope="module")
def model():
    return coulomb.load(ACTUATORS)


def good(model):
    q, v = model.neutral()
    return {"q": q, "v": v, "a": v.copy(), "u": np.zeros(model.nu)}


@pytest.mark.parametrize("function", ARGUMENTS)
def test_arguments_are_checked_by_name(model, function):
    names = ARGUMENTS[function]
    call = getattr(model, function)
    call(*[good(model)[name] for name in names])
    for name in names:
        for bad in (np.nan, np.inf):
            values = good(model)
            values[name][2 if name != "q" else 1] = bad
            with pytest.raises(ValueError, match=rf"^{name}\[\d+\].*(nan|inf)"):
                call(*[values[n] for n in names])
        values = good(model)
        values[name] = values[name][:-1]
        with pytest.raises(ValueError, match=rf"^{name}: .*shape"):
            call(*[values[n] for n in names])
        values[name] = ["x"]
        with pytest.raises((TypeError, ValueError), match=rf"^{name}"):
            call(*[values[n] for n in names])
    values = good(model)
    values["q"][2:6] *= 1.1
    with pytest.raises(ValueError, match=r"^q\[2:6\]: quaternion of norm 1\.1"):
        call(*[values[n] for n in names])


def test_shapes_and_ownership(model):
    s = good(model)
    assert model.mass_matrix(s["q"]).shape == (model.nv, model.nv)
    positions, rotations = model.geometry_placements(s["q"])
    assert positions.shape == (model.num_geometries, 3) and rotations.shape == (model.num_geometries, 3, 3)
    first = model.bias(s["q"], s["v"])
    kept = first.copy()
    model.bias(s["q"], s["v"] + 1)
    np.testing.assert_array_equal(first, kept)  # results are arrays of their own


def test_a_model_without_degrees_of_freedom():
    scene = coulomb.Scene()
    scene.add_box((1, 1, 1), fixed=True, position=(1, 2, 3))
    model = scene.build()
    assert model.mass_matrix([]).shape == (0, 0)
    assert model.bias([], []).shape == (0,)
    assert model.energy([], [])[0] == 0
    np.testing.assert_allclose(model.geometry_placements([])[0], [[1, 2, 3]])
