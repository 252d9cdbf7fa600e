"""Random trees with dry friction, limits, equalities, springs and contacts, in the states where these meet.

Equalities hold and limits touch in the neutral pose, so that rows are redundant there: a joint held by its friction beside an equality,
a limit, a foot on the ground. Some states are neutral and at rest, some are moved from there, some have settled for a while.
"""

import numpy as np

import coulomb

STATES = ("neutral", "neutral", "pushed", "settled", "settled_long", "moving")


def _vector(values):
    return " ".join(f"{float(x):.6g}" for x in values)


class Tree:
    """The MJCF text of one tree of bodies with random joints; `names` of its joints, `ends` of its bodies."""

    def __init__(self, random, index, ground):
        self.random, self.index, self.ground = random, index, ground
        self.scalar, self.bodies, self.text = [], [], ""
        self.gap = {}  # depth of the ball at a body's end

    def joint(self, name):
        random = self.random
        kind = random.choice(["hinge", "hinge", "hinge", "slide", "ball"])
        if kind == "ball":
            return f'<joint name="{name}" type="ball" damping="{random.uniform(0, 0.1):.3g}"/>'
        self.scalar.append(name)
        axis = random.normal(size=3) if random.random() < 0.4 else np.eye(3)[random.integers(3)]
        options = f'axis="{_vector(axis)}"'
        if random.random() < 0.6:
            options += f' frictionloss="{10 ** random.uniform(-2, 1):.4g}"'
        if random.random() < 0.35:
            ends = [(0, 1), (-1, 0), (-1, 1), (-0.01, 0.01)][random.integers(4)]
            options += f' limited="true" range="{ends[0]} {ends[1]}"'
        if random.random() < 0.3:
            options += f' stiffness="{random.uniform(1, 20):.3g}" springref="{random.choice([0, 0.1, -0.2]):.3g}"'
        if random.random() < 0.3:
            options += f' damping="{random.uniform(0, 1):.3g}"'
        return f'<joint name="{name}" type="{kind}" {options}/>'

    def body(self, depth, position):
        random = self.random
        name = f"b{self.index}_{len(self.bodies)}"
        self.bodies.append(name)
        joint = self.joint("j" + name[1:])
        reach = random.uniform(0.15, 0.3) * np.array([1, random.uniform(-0.5, 0.5), random.uniform(-0.6, 0.2)])
        ball = 0.03
        text = f'<body name="{name}" pos="{_vector(position)}">{joint}'
        text += f'<geom type="sphere" size="{ball}" pos="{_vector(reach)}" mass="{random.uniform(0.2, 2):.3g}" friction="{random.choice([0, 0.5, 1]):.3g} 0 0" condim="3"/>'
        text += f'<inertial pos="{_vector(reach / 2)}" mass="{random.uniform(0.2, 2):.3g}" diaginertia="{_vector(random.uniform(0.01, 0.02, 3))}"/>'
        self.lowest = min(getattr(self, "lowest", np.inf), position[2] + reach[2] - ball)
        for _ in range(1 if depth > 0 and random.random() < 0.8 else 0):
            text += self.body(depth - 1, reach)
        return text + "</body>"


def _equality(random, trees):
    tree = trees[random.integers(len(trees))]
    kind = random.choice(["joint", "joint", "connect", "weld"])
    if kind == "joint" and tree.scalar:
        first = random.choice(tree.scalar)
        others = [j for t in trees for j in t.scalar if j != first]
        second = (
            f' joint2="{random.choice(others)}" polycoef="0 {random.choice([1, -1, 0.5])} 0.3 0 0"'
            if others and random.random() < 0.6
            else ""
        )
        return f'<joint joint1="{first}"{second}/>'
    if kind == "weld":
        return f'<weld body1="{random.choice(tree.bodies)}"/>' if random.random() < 0.4 else ""
    other = random.choice([b for t in trees for b in t.bodies])
    first = random.choice(tree.bodies)
    second = f' body2="{other}"' if other != first and random.random() < 0.6 else ""
    return f'<connect body1="{first}"{second} anchor="{_vector(random.normal(size=3) * 0.1)}"/>'


def describe(random):
    """(MJCF text, names of the joints with one coordinate, whether there is a free body) of one or two trees."""
    ground = random.random() < 0.7
    trees = []
    bodies = ""
    for index in range(random.integers(1, 3)):
        tree = Tree(random, index, ground)
        height = random.uniform(0.2, 0.4)
        tree.text = tree.body(random.integers(0, 4), [0.7 * index, 0.5 * index, height])
        bodies += tree.text
        trees.append(tree)
    free = ""
    if random.random() < 0.3:
        depth = random.choice([0, 0, 1e-6, 1e-4, -1e-5])
        shape = random.choice(["box", "sphere"])
        mu = random.choice([0, 0.5, 1])
        size = "0.1 0.08 0.05" if shape == "box" else "0.05"
        free = f'<body name="free" pos="-0.5 0 {float(0.05 - depth)!r}"><freejoint/><geom type="{shape}" size="{size}" mass="1" friction="{mu} 0 0" condim="3"/></body>'
    scalar = [j for t in trees for j in t.scalar]
    equalities = "".join(_equality(random, trees) for _ in range(random.integers(0, 4)))
    motors = "".join(
        f'<motor joint="{j}" gear="{random.uniform(0.5, 2):.3g}"/>' for j in scalar if random.random() < 0.4
    )
    lowest = min(t.lowest for t in trees) if random.random() < 0.6 else -1
    lowest += random.choice([0, 1e-6, 1e-4, 1e-3])
    plane = (
        f'<geom name="ground" type="plane" size="5 5 .1" pos="0 0 {float(min(lowest, 0.0) if not free else 0)!r}" friction="0 0 0" condim="3"/>'
        if ground
        else ""
    )
    text = f"""<mujoco><compiler angle="radian"/><option timestep="{random.choice([1e-3, 2e-3, 5e-3])}"/><worldbody>{plane}{bodies}{free}</worldbody>
<equality>{equalities}</equality><actuator>{motors}</actuator></mujoco>"""
    return text, scalar, bool(free)


def build(seed):
    """(model, q, v, u, tau, state) of the scene of this seed."""
    random = np.random.default_rng(seed)
    text, _, free = describe(random)
    model = coulomb.load(text)
    for name, parameter in model.parameters().items():
        if name.startswith("joint_limits/") and np.size(parameter.value) == 2 and random.random() < 0.2:
            model = model.with_parameters({name: np.zeros(2)})

    state = STATES[random.integers(len(STATES))]
    q, v = model.neutral()
    u = random.normal(size=model.nu) * random.choice([0, 0.1, 1, 5])
    tau = random.normal(size=model.nv) * random.choice([0, 0, 0.05, 0.5, 5])
    if free:
        tau[-6:] *= 0.1
    if state == "pushed":
        v = random.normal(size=model.nv) * 10.0 ** random.uniform(-6, 0)
    if state == "moving":
        v = random.normal(size=model.nv)
        q = model.integrate(q, random.normal(size=model.nv) * random.choice([1e-4, 1e-2, 0.1]))
    if state.startswith("settled"):
        sim = coulomb.Simulator(model)
        for _ in range(400 if state == "settled_long" else 30):
            q, v = sim.step(q, v, u, tau=tau)
    return model, q, v, u, tau, state
