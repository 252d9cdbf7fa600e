"""A Franka gripper lifts a plate as thin as paper: no penetration, and friction that holds exactly what it can.

Jade [Yang2024], precise collision detection: plates of 0.02 m and 0.002 m, 0.1 kg, friction 0.8, g = 8 m/s^2, 100 steps of 10 ms. For 20
steps the fingers close with 1 N, or with 10 N until the plate is held and 1 N from then on; for 80 steps the hand rises. At 10 N a finger of
15 g would pass 3 cm in the first step: with contacts found at the end of a step only, it goes through the plate.

Two pads of F each carry 2 mu F; the plate weighs m g = 0.8 N. So 0.5 N a pad is the threshold: shown just below and above.

    python examples/papers/jade/gripper.py [--quick] [--output FOLDER]
"""

import xml.etree.ElementTree as ElementTree

import numpy as np
from jade_common import LAWS, arguments, finish, simulator, strobe

import coulomb
from coulomb.demo import robot_path
from coulomb.pictures import COLOURS, STYLE

TIMESTEP, CLOSE, LIFT, GRAVITY = 1e-2, 20, 80, 8.0
FRICTION, MASS, WIDTH, HEIGHT, OPEN = 0.8, 0.1, 0.1, 0.1, 0.03  # -, kg, m, m, m
THRESHOLD = MASS * GRAVITY / (2 * FRICTION)  # N a pad
DEEP = 0.015  # m: how far the fingers reach over the plate
PAD = 2e-5  # m: the pads reach that much over the middle when the gripper is shut
TIP = 0.0584 + 0.0545  # m: from the hand's frame to the ends of the fingers
GUIDE = 1e4  # N s/m: the hand rises on a rail whose drive follows a speed
RISE = 0.1  # m/s^2: slow, so that the plate's inertia adds little to its weight


def hand():
    """URDF of the hand and fingers of example-robot-data's Panda, fingers down, on a vertical rail; and where its meshes are."""
    path, packages = robot_path("panda_description/urdf/panda.urdf")
    robot = ElementTree.parse(path).getroot()
    keep = {"panda_hand", "panda_leftfinger", "panda_rightfinger"}
    out = ElementTree.Element("robot", name="gripper")
    for element in robot:
        child = element.find("child")
        if (element.tag == "link" and element.get("name") in keep) or (
            element.tag == "joint" and child is not None and child.get("link") in keep - {"panda_hand"}
        ):
            out.append(element)
    out.extend(
        ElementTree.fromstring(
            f"""<rail><link name="world"/><joint name="rail" type="prismatic"><parent link="world"/><child link="panda_hand"/>
            <origin xyz="0 0 {HEIGHT - DEEP + TIP}" rpy="3.141592653589793 0 0"/><axis xyz="0 0 -1"/><dynamics damping="{GUIDE}"/>
            <limit lower="-1" upper="1" effort="1e6" velocity="10"/></joint></rail>"""
        )
    )
    return ElementTree.tostring(out, encoding="unicode"), packages


def scene(thickness):
    urdf, packages = hand()
    scene = coulomb.Scene(gravity=(0, 0, -GRAVITY), timestep=TIMESTEP)
    scene.add_ground(friction=FRICTION)
    scene.add_urdf(urdf, package_dirs=packages, friction=FRICTION, self_collision=False, ignore_mimic=True)
    scene.add_box((WIDTH, thickness, HEIGHT), mass=MASS, position=(0, 0, HEIGHT / 2), friction=FRICTION, name="plate")
    return scene.build()


def lift(thickness, force, held_with, law, continuous=True):
    """Close with `force` (N a pad), rise with `held_with`. Model, configurations, heights of hand and plate, distance of the pads from the
    plate (negative: in it).
    """
    model = scene(thickness)
    sim = simulator(model, law) if continuous else coulomb.Simulator(model, contact=law)
    q, v = model.neutral()
    place = {name: model.joint_q[model.joint_names.index(name)] for name in model.joint_names}
    fingers = [place["panda_finger_joint1"], place["panda_finger_joint2"]]
    q[fingers] = OPEN
    plate = place["plate"] if "plate" in place else model.nq - 7
    motors = [motor.name for motor in model.actuators]
    weight = GRAVITY * (model.body_mass.sum() - MASS)
    path = [q]
    for k in range(CLOSE + LIFT):
        squeeze, speed = (force, 0.0) if k < CLOSE else (held_with, RISE * TIMESTEP * (k - CLOSE + 1))
        drive = {"rail": weight + GUIDE * speed, "panda_finger_joint1": -squeeze, "panda_finger_joint2": -squeeze}
        q, v = sim.step(q, v, np.array([drive[name] for name in motors]))
        assert sim.status.converged or not continuous, sim.status
        path.append(q)
    path = np.array(path)
    centre = path[:, plate + 1]  # of the plate, along y
    rise, height = path[:, place["rail"]], path[:, plate + 2] - HEIGHT / 2
    gap = np.minimum(path[:, fingers[0]] + centre, path[:, fingers[1]] - centre) - PAD - thickness / 2
    gap[rise - height > DEEP] = np.inf  # the pads have slipped off the plate
    return model, path, rise, height, gap


def picture(runs, tunnel, path):
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        figure, (left, middle, right) = plt.subplots(
            1, 3, figsize=(14.5, 4.8), layout="constrained", width_ratios=(1.25, 1, 1)
        )
        colours = {"plate": COLOURS[1], "panda_hand_0": "#bbbbbb"}
        views = (
            (runs[0.002, 1.0, 1.0], "1 N: held"),
            (runs[0.002, 0.49, 0.49], "0.49 N: slips"),
            (tunnel, "10 N, no time of impact:\nthrough the plate"),
        )
        for k, ((model, q, *_), label) in enumerate(views):
            strobe(left, model, [q[-1] if k < 2 else q[CLOSE]], colours=colours, along=(1, 2), shift=0.0)
            for patch in left.patches[-model.num_geometries + 1 :]:
                patch.set_xy(patch.get_xy() + [0.24 * k, 0])
            left.annotate(label, (0.24 * k, -0.008), ha="center", va="top", fontsize=9)
        left.axhline(0, color="#555555")
        left.set(
            xlim=(-0.13, 0.61), ylim=(-0.06, 0.27), title="Plate of 2 mm (orange), from the side", xticks=[], xlabel=""
        )
        times, rise = TIMESTEP * np.arange(CLOSE + LIFT + 1), views[0][0][2]
        thin = {key[1:]: run for key, run in runs.items() if key[0] == 0.002}
        for k, ((force, held_with), (_, _, _, height, gap)) in enumerate(thin.items()):
            label = f"{force:g} N" + (f", then {held_with:g} N" if force != held_with else "")
            middle.plot(times, 1e3 * height, linewidth=6 - k, color=COLOURS[k], label=label)
            right.plot(
                1e3 * times, 1e3 * gap, "o-", linewidth=3.5 - 0.7 * k, markersize=3, color=COLOURS[k], label=label
            )
        middle.plot(times, 1e3 * rise, ":", color="black", label="hand")
        middle.set(
            xlabel="time [s]",
            ylabel="rise of the plate [mm]",
            title=f"It rises with the hand above {THRESHOLD:g} N a pad",
        )
        middle.legend()
        right.plot(1e3 * times, 1e3 * tunnel[4], "o:", color="black", markersize=3, label="10 N, no time of impact")
        right.axhline(0, color="#555555", linewidth=0.8)
        right.set(xlabel="time [ms]", ylabel="distance of the pads from the plate [mm]", xlim=(-3, 120), ylim=(-2, 31))
        right.set_title("They close and never enter the plate")
        right.legend()
        finish(figure, path)


def main():
    options = arguments(__doc__, "does nothing here: it takes three seconds")
    print(f"published: no penetration, no drop at 1 N and 10 N; threshold {THRESHOLD:g} N a pad")
    for law in LAWS:
        runs = {}
        for thickness in (0.02, 0.002):
            for force, held_with in ((1.0, 1.0), (10.0, 1.0), (0.51, 0.51), (0.49, 0.49), (10.0, 0.49)):
                run = lift(thickness, force, held_with, law)
                runs[thickness, force, held_with] = run
                _, q, rise, height, gap = run
                holds = 2 * FRICTION * held_with > MASS * (GRAVITY + RISE)
                slip = np.abs(rise - height)[CLOSE:].max()
                print(
                    f"{law}, {1e3 * thickness:4g} mm, {force:5g} N to close, {held_with:5g} N to lift: "
                    f"{'held, slips' if height[-1] > 1e-3 else 'dropped, slips'} {slip:.0e} m; pads at least {gap.min():.0e} m from the plate"
                )
                assert gap.min() > -1e-8, (law, thickness, force, gap.min())
                assert np.abs(q[:, -3:]).max() < 1e-6, "the plate turned"
                assert slip < 1e-9 if holds else height[-1] < 1e-6, (law, thickness, force, held_with, slip, height[-1])
        tunnel = lift(0.002, 10.0, 1.0, law, continuous=False)
        print(
            f"{law}, without the time of impact, 2 mm, 10 N: pads {-tunnel[4].min() * 1e3:.2f} mm in the plate: "
            "what the next step would close is a contact already"
        )
        assert tunnel[4].min() > -1e-6
        if law == LAWS[0]:
            picture(runs, tunnel, options.output / "jade_gripper.png")


if __name__ == "__main__":
    main()
