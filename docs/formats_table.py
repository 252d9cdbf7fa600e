"""Writes docs/formats.md from the table below, which tests/reference/test_formats.py tries row by row: python docs/formats_table.py.

A row: what it is, what becomes of it ("read", "changed", "listed", "refused"), in which words, and an example. The example of what is read
loads without a line in Model.ignored; that of "changed" and "listed" with a line that has the given words; that of "refused" not at all.
"""

import pathlib

PAGE = pathlib.Path(__file__).parent / "formats.md"
HEAD = """# What files may say

What the loaders make of MJCF and of URDF: **read**, with the law that the file means; **changed**, read with another
law, and listed in `model.ignored` and, where the motion may feel it, in `model.deviations`; **listed**, left out
without a consequence for the motion; **refused**, by an error that names the element.
[formats_table.py](formats_table.py) writes this page; a test loads an example of every row.

MJCF is compiled by MuJoCo: includes, defaults, frames, composites and replicates are resolved before Coulomb sees them.
`softness="file"` reads `solref`, `solimp` and margins as well
([softness](conventions.md#the-softness-of-mjcf-files)).
"""

BODY = '<body name="b"{body}><joint name="j" axis="0 1 0"{joint}/><geom name="g" type="box" size=".1 .2 .3"{geom}/><site name="s"/>{inside}</body>'
FREE = '<body name="c" pos="2 0 0"><freejoint name="k"/><geom name="h" size=".1"/></body>'


def mjcf(option="", asset="", joint="", geom="", inside="", world="", after="", body=""):
    """A document with one hinge and one free body, and what is asked for."""
    inner = BODY.format(joint=joint, geom=geom, inside=inside, body=body)
    return f"<mujoco>{option}<asset>{asset}</asset><worldbody>{inner}{FREE}{world}</worldbody>{after}</mujoco>"


def actuator(text, **parts):
    return mjcf(after=f"<actuator>{text}</actuator>", **parts)


def fixed_tendon(attributes="", after="", joint=""):
    tendon = f'<tendon><fixed name="t"{attributes}><joint joint="j" coef="1"/></fixed></tendon>'
    return mjcf(after=tendon + after, joint=joint)


def spatial_tendon(attributes="", after="", middle=""):
    tendon = f'<tendon><spatial name="t"{attributes}><site site="s"/>{middle}<site site="w"/></spatial></tendon>'
    world = '<site name="w" pos="0 0 3"/><site name="o" pos=".5 0 1"/>'
    return mjcf(world=world + '<geom name="drum" type="cylinder" size=".1 .1" pos="0 0 1.5"/>', after=tendon + after)


def option(text):
    return mjcf(option=f"<option {text}/>")


def flag(text):
    return mjcf(option=f"<option><flag {text}/></option>")


FIELD = '<hfield name="f" nrow="2" ncol="2" size="1 1 1 1" elevation="0 0 0 1"/>'
MESH = '<mesh name="f" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>'

MJCF = {
    "Bodies and joints": [
        ("`body`, `inertial`, inertia from geoms", "read", "", mjcf()),
        (
            "`joint` free, ball, slide, hinge; several on a body",
            "read",
            "",
            mjcf(inside='<body><joint type="ball"/><geom size=".1"/></body>'),
        ),
        (
            "`range`",
            "read",
            "rigid; [with a stiffness](conventions.md#soft-joint-limits) on request",
            mjcf(joint=' range="-10 10"'),
        ),
        (
            "`stiffness`, `springref`, `damping`, `armature`, `frictionloss`",
            "read",
            "dampers implicit, dry friction exact",
            mjcf(joint=' stiffness="1" springref="3" damping="1" armature="1" frictionloss="1"'),
        ),
        ("`actuatorfrcrange` of a joint", "read", "", mjcf(joint=' actuatorfrcrange="-1 1"')),
        (
            "polynomial `stiffness`, `damping`",
            "refused",
            "joint 'j': polynomial stiffness",
            mjcf(joint=' stiffness="1 2 3"'),
        ),
        ("`springyield`", "refused", "joint 'j': springyield", mjcf(joint=' stiffness="1" springyield="0.3"')),
        ("`gravcomp`", "read", "", mjcf(body=' gravcomp="1"')),
        (
            "`mocap`",
            "read",
            "[moved by the caller](conventions.md#bodies-that-the-caller-moves)",
            mjcf(world='<body mocap="true"><geom size=".1"/></body>'),
        ),
        ("`margin` of a joint", "changed", "jnt_margin of 1", mjcf(joint=' margin="0.01" range="-10 10"')),
        (
            "`solreflimit`, `solimplimit`, `solreffriction`, `solimpfriction`",
            "changed",
            "(solref, solimp) of 1 joint limits",
            mjcf(joint=' range="-10 10" solimplimit="0.5 0.6 0.01"'),
        ),
        ("`camera`, `light`", "listed", "1 cameras", mjcf(inside="<camera/>")),
        ("`skin`", "listed", "", None),
        (
            "`flex`, `flexcomp`",
            "refused",
            "flex: deformable bodies",
            mjcf(
                world='<flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" radius="0.01" dim="2" mass="1"/>'
            ),
        ),
        ("`plugin`", "refused", "", None),
    ],
    "Geometries and contact": [
        (
            "`geom` plane, sphere, capsule, ellipsoid, cylinder, box",
            "read",
            "",
            mjcf(world='<geom type="plane" size="1 1 1" pos="0 0 -5"/>'),
        ),
        (
            "`geom` mesh that collides",
            "read",
            "its convex hull, as in MuJoCo; [`decompose=True`](conventions.md#meshes-that-are-not-convex): convex parts",
            mjcf(asset=MESH, world='<geom type="mesh" mesh="f" pos="9 9 9"/>'),
        ),
        (
            "`geom` mesh that does not collide",
            "listed",
            "1 geoms that cannot collide",
            mjcf(asset=MESH, world='<geom type="mesh" mesh="f" contype="0" conaffinity="0"/>'),
        ),
        (
            "`geom` hfield",
            "read",
            "[ground that is not flat](conventions.md#ground-that-is-not-flat)",
            mjcf(asset=FIELD, world='<geom type="hfield" hfield="f" pos="0 0 -9"/>'),
        ),
        ("`geom` sdf", "refused", "", None),
        (
            "`contype`, `conaffinity`, `exclude`, `pair`, `priority`",
            "read",
            "",
            mjcf(after='<contact><exclude body1="b" body2="c"/></contact>'),
        ),
        ("`friction`, sliding", "read", "the larger of a pair; cones are exact", mjcf(geom=' friction=".3"')),
        ("`condim` 1", "read", "", mjcf(geom=' condim="1"')),
        (
            "`condim` 4, 6",
            "changed",
            "torsional and rolling friction (condim 4 or 6) of 1 geoms or pairs: act in steps with contact 'ncp' and 'lcp'",
            mjcf(geom=' condim="4"'),
        ),
        (
            "anisotropic friction of a pair",
            "refused",
            "pair 0: anisotropic friction",
            mjcf(after='<contact><pair geom1="g" geom2="h" friction="0.5 0.6"/></contact>'),
        ),
        ("`solref`, `solimp`", "changed", "(solref, solimp) of 1 geoms", mjcf(geom=' solref="0.01 1"')),
        ("`margin`, `gap`", "changed", "geom_margin of 1", mjcf(geom=' margin="0.01"')),
        ("`surfacevel`", "refused", "geom 'g': surfacevel", mjcf(geom=' surfacevel="1 0 0 0 0 0"')),
        ("`adhesion` of a geom", "refused", "geom 'g': adhesion", mjcf(geom=' adhesion="1"')),
        (
            "`fluidshape`, `fluidcoef`",
            "read",
            "[ellipsoids](conventions.md#drag-and-rotors) in a medium",
            mjcf(option='<option density="1"/>', geom=' fluidshape="ellipsoid"'),
        ),
    ],
    "Actuators": [
        (
            "`motor`, `position`, `velocity`, `damper`, `general` with affine gain and bias",
            "read",
            "velocity gains implicit: [servos](conventions.md#servos)",
            actuator('<position joint="j" kp="3" kv="1"/>'),
        ),
        (
            "`ctrlrange`, `forcerange`, `gear`, `jointinparent`",
            "read",
            "",
            actuator('<motor joint="j" gear="3" ctrlrange="-1 1" forcerange="-1 1"/>'),
        ),
        ("transmission by a tendon", "read", "", fixed_tendon(after='<actuator><motor tendon="t"/></actuator>')),
        (
            "transmission by a site",
            "read",
            "[rotors](conventions.md#drag-and-rotors)",
            actuator('<motor site="h" gear="0 0 1 0 0 0"/>', inside='<site name="h"/>'),
        ),
        (
            "`refsite`",
            "read",
            "[sites that push off another](conventions.md#drag-and-rotors)",
            actuator(
                '<motor site="h" refsite="w" gear="0 0 1 0 0 0"/>',
                world='<site name="w"/>',
                inside='<site name="h" pos="1 0 0"/>',
            ),
        ),
        (
            "slider-crank (`cranksite`, `slidersite`, `cranklength`)",
            "read",
            "a [tendon](conventions.md#tendons) of its own",
            actuator('<motor slidersite="s" cranksite="w" cranklength="1"/>', world='<site name="w"/>'),
        ),
        (
            "`adhesion`",
            "refused",
            "transmission by body (adhesion)",
            actuator('<adhesion body="c" ctrlrange="0 1" gain="1"/>'),
        ),
        (
            "activations (`dyntype`): `filter`, `filterexact`, `integrator`, `intvelocity`, `cylinder`",
            "changed",
            "activations of 1 actuators",
            actuator('<intvelocity joint="j" actrange="-1 1" kp="1"/>'),
        ),
        (
            "`muscle`",
            "changed",
            "velocity of 1 muscles",
            actuator('<muscle joint="j" lengthrange="0 1"/>'),
        ),
        ("`delay`", "refused", "delay", actuator('<motor joint="j" nsample="2" interp="zoh" delay="0.01"/>')),
        (
            "`actuatorgroupdisable`",
            "listed",
            "actuator 'm' is disabled",
            actuator('<motor name="m" joint="j" group="2"/>', option='<option actuatorgroupdisable="2"/>'),
        ),
    ],
    "Tendons and equalities": [
        (
            "`fixed` tendon with actuators, limits, equalities",
            "read",
            "[tendons](conventions.md#tendons)",
            fixed_tendon(' limited="true" range="-1 1"'),
        ),
        (
            "`stiffness`, `springlength`, `damping`, `frictionloss` of a tendon",
            "read",
            "implicit; dry friction exact",
            fixed_tendon(' stiffness="3" springlength="0 1" damping="3" frictionloss="1"'),
        ),
        ("`armature` of a tendon", "read", "exact, also across branches", fixed_tendon(' armature="3"')),
        (
            "`actuatorfrcrange` of a tendon with one actuator",
            "read",
            "as `forcerange` of the actuator",
            fixed_tendon(' actuatorfrcrange="-1 1"', '<actuator><motor tendon="t"/></actuator>'),
        ),
        (
            "`actuatorfrcrange` of a tendon with several actuators",
            "read",
            "all of them shrink alike",
            fixed_tendon(' actuatorfrcrange="-1 1"', "<actuator>" + '<motor tendon="t"/>' * 2 + "</actuator>"),
        ),
        (
            "`spatial` tendon, `pulley`",
            "read",
            "[tendons](conventions.md#tendons)",
            spatial_tendon(
                ' range="0 5" limited="true"', middle='<site site="o"/><pulley divisor="2"/><site site="s"/>'
            ),
        ),
        (
            "`spatial` tendon around a `geom`, `sidesite`",
            "read",
            "spheres and cylinders, as in MuJoCo",
            spatial_tendon(' stiffness="1"', middle='<geom geom="drum" sidesite="o"/>'),
        ),
        (
            "`connect`, `weld`, `joint`, `tendon`",
            "read",
            "exact",
            mjcf(after='<equality><joint joint1="j"/></equality>'),
        ),
        (
            "`torquescale` of a weld",
            "changed",
            "torquescale of 1 welds",
            mjcf(after='<equality><weld body1="b" body2="c" torquescale="0.5"/></equality>'),
        ),
        (
            "`solref`, `solimp` of an equality",
            "changed",
            "(solref, solimp) of 1 equalities",
            mjcf(after='<equality><joint joint1="j" solref="0.01 1"/></equality>'),
        ),
        ("`flex`, `flexvert`, `flexstrain`", "refused", "of deformable bodies", None),
        ("`distance`", "refused", "MuJoCo has removed it", None),
    ],
    "Options": [
        ("`timestep`, `gravity`", "read", "", option('timestep="0.001" gravity="0 0 -3"')),
        (
            "`density`, `viscosity`, `wind`",
            "read",
            "[drag](conventions.md#drag-and-rotors)",
            option('density="1" viscosity="1" wind="1 0 0"'),
        ),
        (
            "`integrator` Euler, implicitfast",
            "read",
            "the Simulator's own stepper is MuJoCo's implicitfast",
            option('integrator="implicitfast"'),
        ),
        ("`integrator` RK4, implicit", "changed", "integrator RK4", option('integrator="RK4"')),
        ("`cone`", "listed", "cone elliptic", option('cone="elliptic"')),
        ("`solver`, `iterations`", "listed", "solver and iterations", option('solver="PGS"')),
        ("`noslip_iterations`, `impratio`", "changed", "noslip_iterations", option('noslip_iterations="3"')),
        (
            "flags `contact`, `limit`, `equality`, `frictionloss`, `spring`, `damper`, `gravity`, `clampctrl`, `actuation`, `filterparent`",
            "read",
            "",
            flag('limit="disable"'),
        ),
        ("flag `eulerdamp`", "changed", "flag eulerdamp disable", flag('eulerdamp="disable"')),
        ("flag `sleep`", "listed", "flag sleep", flag('sleep="enable"')),
        ("flag `override`", "refused", "flag override", flag('override="enable"')),
        (
            "`keyframe`",
            "read",
            "`model.keyframes`",
            mjcf(after='<keyframe><key name="k" qpos="0 2 0 0 1 0 0 0"/></keyframe>'),
        ),
    ],
    "Sensors": [
        (
            "frames, velocities, accelerations, joints, tendons, actuators, limits, subtrees, energies, touch, gyro, force, torque, magnetometer, insidesite",
            "read",
            "[outputs](outputs.md), with derivatives",
            mjcf(after='<sensor><gyro site="s"/><framelinacc objtype="site" objname="s"/><e_kinetic/></sensor>'),
        ),
        (
            'rangefinder (`data="dist"`), distance, normal, fromto',
            "read",
            "[of what can collide](outputs.md#rays-and-distances); meshes are hulls",
            mjcf(after='<sensor><rangefinder site="s"/><normal geom1="g" geom2="h" cutoff="9"/></sensor>'),
        ),
        (
            "contact (but `linvel`, `angvel`)",
            "read",
            "[contacts of the step](outputs.md#contact-sensors)",
            mjcf(after='<sensor><contact site="s" num="2" data="found force"/></sensor>'),
        ),
        (
            "clock, camprojection, others",
            "listed",
            "1 sensors (clock)",
            mjcf(after="<sensor><clock/></sensor>"),
        ),
        (
            "`delay`, `interval`",
            "listed",
            "delay or interval of 1 sensors",
            mjcf(after='<sensor><gyro site="s" delay="0.01" nsample="3"/></sensor>'),
        ),
    ],
}

LINK = '<link name="{name}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>{inside}</link>'


SOLID = (
    '<link name="cube"><inertial><density value="250"/></inertial><collision><geometry><box size=".1 .1 .1"/></geometry></collision></link>'
    '<joint name="k" type="continuous"><parent link="arm"/><child link="cube"/><axis xyz="0 0 1"/></joint>'
)


def urdf(inside="", kind="continuous", limit="", more="", links=""):
    """Two links and a joint, and what is asked for."""
    base, arm = LINK.format(name="base", inside=""), LINK.format(name="arm", inside=inside)
    joint = f'<joint name="j" type="{kind}"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>{limit}{more}</joint>'
    return f'<robot name="r">{base}{arm}{joint}{links}</robot>'


def collision(shape):
    return f"<collision><geometry>{shape}</geometry></collision>"


URDF = {
    "Links and joints": [
        (
            "`link`, `inertial`, `origin`",
            "read",
            "links behind fixed joints are part of the body that carries them",
            urdf(),
        ),
        ("`joint` revolute, continuous, prismatic, fixed, floating, planar", "read", "", urdf()),
        (
            "`limit` lower, upper, effort",
            "read",
            "effort bounds the motor",
            None,
        ),
        (
            "`limit` velocity",
            "changed",
            "velocity",
            urdf(kind="revolute", limit='<limit lower="-1" upper="1" effort="9" velocity="9"/>'),
        ),
        (
            "`dynamics` damping, friction",
            "read",
            "friction is dry friction",
            urdf(more='<dynamics damping="1" friction="1"/>'),
        ),
        (
            "`limit` without effort or velocity",
            "changed",
            "<limit> of 1 joints without effort or velocity: no bound",
            urdf(kind="revolute", limit='<limit lower="-1" upper="1"/>'),
        ),
        ("`.xacro` files, macros", "read", "by the package `xacro` (an extra); `$(find)` and `$(arg)` need ROS", None),
        ("links without `inertial`", "read", "no mass; `link_density` computes it from their collision shapes", None),
        (
            "`density` of an `inertial` without mass",
            "changed",
            "computed from collision shapes",
            urdf(links=SOLID),
        ),
        ("inertia that no body has", "refused", "belongs to no rigid body", urdf().replace('ixx="1"', 'ixx="9"')),
        ("`mimic`", "read", "an equality; `ignore_mimic` leaves it out", None),
        (
            "`safety_controller`, `calibration`, `transmission`, `gazebo`",
            "listed",
            "1 <safety_controller> elements",
            urdf(more='<safety_controller k_velocity="1"/>'),
        ),
    ],
    "Geometries": [
        ("`collision` sphere, box, cylinder, capsule", "read", "", urdf(collision('<sphere radius=".1"/>'))),
        (
            "`collision` mesh (OBJ, STL, DAE, ...)",
            "read",
            "its convex hull; [`decompose=True`](conventions.md#meshes-that-are-not-convex): convex parts",
            None,
        ),
        ("`visual`", "read", "[looks](viewer.md) only", None),
    ],
}
RESULTS = ("read", "changed", "listed", "refused")


def rows():
    """(format, section, what, result, words, example) of all rows."""
    for name, table in (("MJCF", MJCF), ("URDF", URDF)):
        for section, lines in table.items():
            for line in lines:
                yield (name, section, *line)


def page():
    text, last = HEAD, (None, None)
    for name, section, what, result, words, _ in rows():
        if name != last[0]:
            text += f"\n## {name}\n"
        if (name, section) != last:
            text += f"\n### {section}{' in URDF' if name == 'URDF' else ''}\n\n| | | |\n|---|---|---|\n"
        last = (name, section)
        shown = words if result == "read" or words == "" else f"`{words}`"
        text += f"| {what} | {result} | {shown} |\n"
    return text


if __name__ == "__main__":
    PAGE.write_text(page())
    print(PAGE)
