"""Models with spatial tendons: random robots with a path around an obstacle and one with a pulley, ropes, and closed forms."""

RADIUS = 0.05


def _vector(values):
    return " ".join(f"{x:.4f}" for x in values)


def random_robot(rng, around=None, side=None, root="hinge", **parts):
    """A chain of three bodies with a branch. Tendon "t" goes from the first to the third, around a sphere or cylinder on the second; tendon
    "p" from the world to the third, and over a pulley. side: "outside" or "inside" the obstacle, or None."""
    keys = dict.fromkeys(("tendon", "pulley", "equality"), "") | {"bias": ".1 -3 -.2"} | parts

    def joint(name, kind):
        if kind == "free":
            return f'<freejoint name="{name}"/>'
        axis = "" if kind == "ball" else f'axis="{_vector(rng.normal(size=3))}"'
        position = _vector(0.05 * rng.normal(size=3))
        return f'<joint name="{name}" type="{kind}" {axis} pos="{position}" damping=".05" armature=".01"/>'

    obstacle = element = site = ""
    if around:
        place = f'pos="{_vector(0.03 * rng.normal(size=3))}" euler="{_vector(rng.normal(size=3))}"'
        obstacle = f'<geom name="o" type="{around}" size="{RADIUS} .1" {place} mass=".1"/>'
        element = '<geom geom="o"/>'
    if side:
        direction = rng.normal(size=3)
        distance = {"outside": 4 * RADIUS, "inside": 0.5 * RADIUS}[side]
        direction *= distance / (direction @ direction) ** 0.5
        site = f'<body pos="0 0 0"><site name="side" pos="{_vector(direction)}"/></body>'
        element = '<geom geom="o" sidesite="side"/>'
        # The site is in the obstacle's frame if that is the body's own.
        obstacle = (
            f'<geom name="o" type="{around}" size="{RADIUS} .1" euler="{_vector(rng.normal(size=3))}" mass=".1"/>'
        )
    kinds = rng.choice(["hinge", "slide", "ball"], size=2)
    return f"""<mujoco><compiler angle="radian"/><option timestep=".002"/><default><geom contype="0" conaffinity="0"/></default>
<worldbody><site name="w" pos="{_vector(0.3 * rng.normal(size=3))}"/>
<body name="p" pos="0 0 1">{joint("j0", root)}<geom type="box" size=".1 .05 .03" mass=".7"/><site name="a" pos="{_vector(0.2 * rng.normal(size=3))}"/>
 <body name="m" pos=".1 0 0">{joint("j1", kinds[0])}<geom type="box" size=".02 .05 .03" mass=".5"/>{obstacle}{site}
  <body name="d" pos=".1 0 .05">{joint("j2", kinds[1])}<geom type="box" size=".02 .05 .03" mass=".4"/>
   <site name="b" pos="{_vector(0.2 * rng.normal(size=3))}"/><site name="c" pos="{_vector(0.1 * rng.normal(size=3))}"/></body></body>
 <body name="e" pos="-.1 0 0">{joint("j3", "hinge")}<geom type="sphere" size=".03" mass=".2"/><site name="f" pos=".05 .02 .1"/></body></body>
</worldbody><tendon><spatial name="t" {keys["tendon"]}><site site="a"/>{element}<site site="b"/></spatial>
<spatial name="p" {keys["pulley"]}><site site="w"/><site site="c"/><pulley divisor="2"/><site site="f"/><site site="a"/><site site="b"/></spatial>
</tendon>{keys["equality"]}
<actuator><motor name="m" tendon="t" gear="3"/><general name="g" tendon="p" gear="1.5" gainprm="4" biastype="affine" biasprm="{keys["bias"]}"/></actuator>
<sensor><tendonpos tendon="t"/><tendonvel tendon="t"/><actuatorfrc actuator="g"/><jointactuatorfrc joint="j3"/></sensor></mujoco>"""


# Two bodies in space, tied by a rope; either may touch the floor.
ROPE = """<mujoco><option timestep="0.002" gravity="0 0 {gravity}"/><worldbody>{floor}
  <body name="a" pos="-.3 0 .3"><freejoint/><geom name="a" type="box" size=".1 .05 .05" mass="1"/><site name="a" pos=".1 .02 .03"/></body>
  <body name="b" pos=".3 .05 .35"><freejoint/><geom name="b" type="sphere" size=".08" mass=".5"/><site name="b" pos="-.05 0 .05"/></body>
</worldbody><tendon><spatial name="rope" {tendon}><site site="a"/><site site="b"/></spatial></tendon></mujoco>"""

# Two weights on slides and a rope over two pegs; with a second strand to the first, it climbs half as fast.
ATWOOD = """<mujoco><option timestep="0.001"/><worldbody>
  <site name="left" pos="-.2 0 1"/><site name="right" pos=".2 0 1"/><site name="end" pos="-.2 0 1"/>
  <body name="a" pos="-.2 0 0"><joint type="slide" axis="0 0 1"/><geom size=".05" mass="{a}"/><site name="a"/></body>
  <body name="b" pos=".2 0 0"><joint type="slide" axis="0 0 1"/><geom size=".05" mass="{b}"/><site name="b"/></body>
</worldbody><tendon><spatial name="rope"><site site="a"/><site site="left"/><site site="right"/><site site="b"/>{strand}</spatial></tendon>
<equality><tendon tendon1="rope"/></equality></mujoco>"""

# A weight on a rope that runs over a drum and winds off it as the weight swings.
WINDING = """<mujoco><option timestep="{timestep}" gravity="0 0 -9.81"/><worldbody>
  <geom name="drum" type="cylinder" size=".2 .1" euler="90 0 0" contype="0" conaffinity="0"/>
  <site name="top" pos="-.2 0 .2"/><site name="over" pos=".2 0 .2"/>
  <body name="weight" pos=".2 0 -.6"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><geom size=".05" mass="1"/><site name="weight"/></body>
</worldbody><tendon><spatial name="rope" {tendon}><site site="top"/><geom geom="drum" sidesite="over"/><site site="weight"/></spatial></tendon></mujoco>"""
