"""softness="file": where it is given, what it refuses, what stays in the lists, and what models and scenes keep of it."""

import pickle
import re

import numpy as np
import pytest

import coulomb
from coulomb.__main__ import main

pytest.importorskip("mujoco")

TEXT = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 1" solref=".01 1"/>
  <body name="b" pos="0 0 .1"><freejoint/><geom name="ball" size=".1" mass="2"/>
  <body pos=".3 0 0"><joint name="j" axis="0 1 0" range="-20 20" margin=".01"/><geom name="arm" size=".05" mass="1" margin=".002"/>
  </body></body></worldbody></mujoco>"""


def load(**options):
    return coulomb.load(TEXT, **options)


def depth(model):
    q, v = model.neutral()
    sim = coulomb.Simulator(model)
    for _ in range(500):
        q, v = sim.step(q, v)
    return 0.1 - q[2]


def test_contacts_and_limits_give_way():
    model = load(softness="file")
    assert depth(model) > 1e-5 > depth(load())
    names = {name.split("/")[0] for name in model.parameters()}
    assert {"pair_stiffness", "pair_dashpot", "pair_inertia", "joint_limit_stiffness", "joint_limit_dashpot"} <= names


def test_the_numbers_are_those_of_the_law():
    """At full depth k d w/A, b w/A and w/A, w = d/(1 - d), of a ball of 2 kg and the usual solref."""
    text = "<mujoco><worldbody><geom name='g' type='plane' size='1 1 1'/><body><freejoint/><geom name='b' size='.1' mass='2'/></body></worldbody></mujoco>"
    values = {name: p.value[0] for name, p in coulomb.load(text, softness="file").parameters().items() if p.size == 1}
    d, time = 0.95, 0.02
    w = d / (1 - d) * 2
    assert values["pair_inertia/g:b"] == pytest.approx(w, rel=1e-12)
    assert values["pair_dashpot/g:b"] == pytest.approx(2 / (d * time) * w, rel=1e-12)
    assert values["pair_stiffness/g:b"] == pytest.approx(d / (d * time) ** 2 * w, rel=1e-12)


@pytest.mark.parametrize("wrong", ["File", "mujoco", "", 1, True, False])
def test_a_wrong_word_names_the_choices(wrong):
    for call in (
        lambda: load(softness=wrong),
        lambda: coulomb.Scene().add_mjcf(TEXT, softness=wrong),
        lambda: coulomb.Scene().add_mujoco_model({}, softness=wrong),
    ):
        with pytest.raises(ValueError, match="softness: got .*expected 'file' .* or None"):
            call()


def test_a_urdf_has_none(tmp_path):
    text = '<robot name="r"><link name="l"/></robot>'
    with pytest.raises(ValueError, match="softness 'file': only for MJCF"):
        coulomb.load(text, softness="file")
    path = tmp_path / "model.bin"
    load().save(path)
    with pytest.raises(ValueError, match="takes no options"):
        coulomb.load(path, softness="file")


def test_what_is_read_leaves_the_lists():
    rigid, soft = load(), load(softness="file")
    told = ("solref", "margin")
    assert any(word in line for line in rigid.deviations for word in told)
    assert [line for line in soft.deviations if any(word in line for word in told)] == []
    assert "softness of contact friction: what sticks does not creep" in soft.deviations


EVERYTHING = """<mujoco><worldbody><body name="a"><joint name="j" frictionloss="1" axis="0 1 0"/><geom size=".1" pos="0 0 .3"/>
  <body name="b"><joint name="k" axis="0 1 0"/><geom size=".1" pos="0 0 .6"/></body></body></worldbody>
  <equality><joint name="e" joint1="j" joint2="k" active="{active}"/><weld name="w" body1="b" torquescale=".5" active="{active}"/></equality>
  <tendon><fixed name="t" range="-1 1" margin=".1" frictionloss="{loss}"><joint joint="j" coef="1"/><joint joint="k" coef="1"/></fixed>
  </tendon></mujoco>"""


def test_what_is_soft_is_in_no_list():
    model = coulomb.load(EVERYTHING.format(active="true", loss=1), softness="file")
    assert model.deviations == ["softness of contact friction: what sticks does not creep"]
    values = model.parameters()
    for name in ("equality_{}/e", "equality_{}/w", "tendon_limit_{}/t"):
        assert all(values[name.format(number)].value[0] > 0 for number in ("stiffness", "dashpot", "inertia"))
    for name in ("joint_friction_{}/j", "tendon_friction_{}/t"):
        assert all(values[name.format(number)].value[0] > 0 for number in ("dashpot", "inertia"))
    np.testing.assert_allclose(values["tendon_limits/t"].value, [-0.9, 0.9])
    rigid = coulomb.load(EVERYTHING.format(active="true", loss=1))
    assert not any(name.startswith("equality_") for name in rigid.parameters())
    assert any("torquescale" in line for line in rigid.deviations)


def test_numbers_of_equalities_may_change():
    model = coulomb.load(EVERYTHING.format(active="true", loss=1), softness="file")
    stiffer = model.with_parameters({"equality_stiffness/e": [1e9]})
    assert stiffer.parameters()["equality_stiffness/e"].value[0] == 1e9
    for name, wrong in (
        ("equality_stiffness/e", 0.0),
        ("equality_inertia/w", -1.0),
        ("joint_friction_dashpot/j", -1.0),
    ):
        with pytest.raises(ValueError, match=name):
            model.with_parameters({name: [wrong]})


def test_a_margin_that_leaves_no_room():
    text = EVERYTHING.format(active="true", loss=1).replace('margin=".1"', 'margin="1.5"')
    with pytest.raises(ValueError, match="tendon 't'.*margin 1.5 leaves no room"):
        coulomb.load(text, softness="file")


def test_margins_move_limits():
    rigid, soft = load(), load(softness="file")
    limits = [m.parameters()["joint_limits/j"].value for m in (rigid, soft)]
    np.testing.assert_allclose(limits[1] - limits[0], [0.01, -0.01], atol=1e-15)


def test_numbers_of_ones_own_come_first():
    model = load(softness="file", limit_stiffness=70.0, limit_dashpot=2.0)
    values = {name: p.value[0] for name, p in model.parameters().items() if p.size == 1}
    assert values["joint_limit_stiffness/j"] == 70 and values["joint_limit_dashpot/j"] == 2
    scene = coulomb.Scene()
    scene.add_mjcf(TEXT, softness="file")
    scene.set_contact("ball", contact_stiffness=500.0)
    scene.set_joint_limits("j", stiffness=float("inf"))
    names = scene.build().parameters()
    assert "pair_stiffness/floor:ball" not in names and "pair_stiffness/floor:arm" in names
    assert "contact_stiffness/ball" in names and "joint_limit_stiffness/j" not in names


def test_a_ground_of_ones_own_takes_the_law_of_the_file():
    text = "<mujoco><worldbody><body pos='0 0 .1'><freejoint/><geom name='b' size='.1' mass='2'/></body></worldbody></mujoco>"
    model = coulomb.load(text, ground=True, softness="file")
    assert "pair_stiffness/ground:b" in model.parameters() and depth(model) > 1e-4


@pytest.mark.parametrize("options", [{"contact": "penalty"}, {"stepper": "bdf2"}, {"continuous_collision": True}])
def test_steppers_of_another_law_refuse(options):
    with pytest.raises(ValueError, match="softness|split at impacts"):
        coulomb.Simulator(load(softness="file"), **options)
    limits = "<mujoco><worldbody><body><joint name='j' axis='0 1 0' range='-1 1'/><geom size='.1' pos='.2 0 0'/></body></worldbody></mujoco>"
    with pytest.raises(ValueError, match="softness|split at impacts"):
        coulomb.Simulator(coulomb.load(limits, softness="file"), **options)


@pytest.mark.parametrize("options", [{"contact": "penalty"}, {"stepper": "bdf1"}])
@pytest.mark.parametrize(
    ("what", "removed"),
    [
        ("equality 'e'", ()),
        ("limits of tendon 't'", ("equality",)),
        ("dry friction of tendon 't'", ("equality", ' range="-1 1"')),
        ("dry friction of joint 'j'", ("equality", "tendon")),
    ],
)
def test_steppers_of_another_law_name_what_is_soft(what, removed, options):
    text = EVERYTHING.format(active="true", loss=1)
    for word in removed:
        text = re.sub(rf"<{word}>.*</{word}>", "", text, flags=re.DOTALL) if word.isalpha() else text.replace(word, "")
    with pytest.raises(ValueError, match=f"softness.*{what}"):
        coulomb.Simulator(coulomb.load(text, softness="file"), **options)


def test_split_steps_name_what_is_soft():
    text = re.sub("<tendon>.*</tendon>", "", EVERYTHING.format(active="true", loss=1), flags=re.DOTALL)
    for what in ("equality 'e'", "dry friction of joint 'j'"):
        with pytest.raises(ValueError, match=f"softness.*{what}"):
            coulomb.Simulator(coulomb.load(text, softness="file"), continuous_collision=True)
        text = re.sub("<equality>.*</equality>", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("text", [TEXT, EVERYTHING.format(active="true", loss=1)], ids=["contacts", "equalities"])
def test_saved_models_and_scenes_keep_it(text):
    model = coulomb.load(text, softness="file")
    other = pickle.loads(pickle.dumps(model))
    scene = coulomb.Scene()
    scene.add_mjcf(text, softness="file")
    built = pickle.loads(pickle.dumps(scene)).build()
    q, v = model.neutral()
    v = v - 0.1
    ends = [coulomb.Simulator(m).step(q, v) for m in (model, other, built)]
    for end in ends[1:]:
        assert np.array_equal(end[0], ends[0][0]) and np.array_equal(end[1], ends[0][1])
    assert built.parameters().keys() == model.parameters().keys()


def test_the_command(tmp_path, capsys):
    path = tmp_path / "ball.xml"
    path.write_text(TEXT)
    main(["simulate", str(path), "--duration", "0.01", "--softness", "file"])
    shown = capsys.readouterr().out
    assert "what sticks does not creep" in shown and "solref" not in shown
