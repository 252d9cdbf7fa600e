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
        (
            "`springyield`, `plastic` of a keyframe",
            "refused",
            "joint 'j': springyield",
            mjcf(joint=' stiffness="1" springyield="0.3"'),
        ),
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
        (
            "`solreffriction` of a pair",
            "changed",
            "(solreffriction) of 1 contact pairs",
            mjcf(after='<contact><pair geom1="g" geom2="h" solreffriction="0.1 1"/></contact>'),
        ),
        (
            "`adhesion` of a pair",
            "refused",
            "pair 0: adhesion",
            mjcf(after='<contact><pair geom1="g" geom2="h" adhesion="1"/></contact>'),
        ),
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
            "activations (`dyntype`, `dynprm`, `actdim`, `actearly`, `actlimited`, `actrange`, `timeconst`): `filter`, `filterexact`, `integrator`, `intvelocity`, `cylinder`",
            "changed",
            "activations of 1 actuators",
            actuator('<intvelocity joint="j" actrange="-1 1" kp="1"/>'),
        ),
        (
            "`muscle`, with `timeconst`, `tausmooth`",
            "changed",
            "velocity of 1 muscles",
            actuator('<muscle joint="j" lengthrange="0 1"/>'),
        ),
        (
            "`orientation`",
            "refused",
            "transmission by orientation of a ball joint or a site",
            mjcf(
                inside='<body><joint name="m" type="ball"/><geom size=".1"/></body>',
                after='<actuator><orientation joint="m" kp="1"/></actuator>',
            ),
        ),
        ("`pid`", "refused", "the force of a pid", actuator('<pid joint="j" kp="1" kv="1"/>')),
        (
            "`pid` with `ki`",
            "refused",
            "dynamics of a pid with an integral",
            actuator('<pid joint="j" kp="1" kv="1" ki="1"/>'),
        ),
        (
            "`dcmotor`",
            "refused",
            "dynamics of a dcmotor",
            actuator('<dcmotor joint="j" resistance="1" motorconst="1"/>'),
        ),
        (
            "`armature`, `damping` of an actuator",
            "read",
            "as those of its joint or tendon",
            actuator('<motor joint="j" armature="1" damping="1"/>'),
        ),
        (
            "polynomial `damping` of an actuator",
            "refused",
            "actuator 'actuator0': polynomial damping",
            actuator('<motor joint="j" damping="1 1 1"/>'),
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
            "`springyield` of a tendon",
            "refused",
            "tendon 't': springyield",
            fixed_tendon(' stiffness="3" springyield="1"'),
        ),
        (
            "polynomial `stiffness`, `damping` of a tendon",
            "refused",
            "tendon 't': stiffnesspoly",
            fixed_tendon(' stiffness="3 1 1"'),
        ),
        (
            "`margin` of a tendon",
            "changed",
            "margin of 1 tendon limits",
            fixed_tendon(' margin="0.1" limited="true" range="-1 1"'),
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
        ("flags `diagexact`, `speculative`, `ipc`", "changed", "flag speculative", flag('speculative="enable"')),
        ("flag `override`", "refused", "flag override", flag('override="enable"')),
        (
            "`keyframe`",
            "read",
            "`model.keyframes`",
            mjcf(after='<keyframe><key name="k" qpos="0 2 0 0 1 0 0 0"/></keyframe>'),
        ),
        (
            "`mpos`, `mquat` of a keyframe",
            "listed",
            "poses of mocap bodies (mpos, mquat) of 1 keyframes",
            mjcf(
                world='<body mocap="true"><geom size=".1"/></body>',
                after='<keyframe><key name="k" mpos="1 0 0"/></keyframe>',
            ),
        ),
        (
            "`act` of a keyframe",
            "listed",
            "activations of 1 keyframes",
            actuator('<intvelocity joint="j" actrange="-1 1" kp="1"/>').replace(
                "</mujoco>", '<keyframe><key name="k" act="1"/></keyframe></mujoco>'
            ),
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
            "rangefinder with other `data`, or of a `camera`",
            "listed",
            "1 sensors (rangefinder)",
            mjcf(after='<sensor><rangefinder site="s" data="dist point"/></sensor>'),
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
        (
            "`.xacro` files, macros",
            "read",
            "by the package `xacro` (an extra); `$(find)` looks in `package_dirs` and above the file, `xacro_args` gives `$(arg)`",
            None,
        ),
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

# Every attribute of every element of MuJoCo's schema, in the words of the rows above; "silent" has no part in the motion, and no line.
# Elements of one name in different places are told apart by what they stand in: "fixed joint". A result without attributes is the
# element's, whatever it says.
WHOLE = "all that is in it"
LOOKS = "rgba material"
POSE = "pos quat axisangle euler xyaxes zaxis"
SENSOR = {"read": "name cutoff", "listed": "delay interval interp nsample", "silent": "user noise"}
DRIVEN = "name class gear ctrlrange ctrllimited forcerange forcelimited joint jointinparent tendon site refsite slidersite cranksite cranklength"
DRIVEN += " lengthrange armature damping"
ACTUATOR = {"read": DRIVEN, "refused": "delay interp nsample", "silent": "user", "listed": "group"}
SOFT = "solref solimp"
ATTRIBUTES = {
    "mujoco": {"read": "model"},
    "compiler": {
        "read": "alignfree angle assetdir autolimits balanceinertia boundinertia boundmass conflict coordinate discardvisual eulerseq"
        " fitaabb fusestatic inertiafromgeom inertiagrouprange meshdir settotalmass strippath texturedir",
        "silent": "usethread savecanonical savecompiled saveinertial passthrough",
    },
    "lengthrange": {"read": "accel interval inttotal maxforce mode timeconst timestep tolrange useexisting uselimit"},
    "option": {
        "read": "timestep gravity density viscosity wind magnetic",
        "changed": "integrator impratio noslip_iterations",
        "listed": "cone solver iterations actuatorgroupdisable",
        "silent": "ccd_iterations ccd_tolerance jacobian ls_iterations ls_tolerance noslip_tolerance o_friction o_margin o_solimp o_solref"
        " sdf_initpoints sdf_iterations sleep_tolerance tolerance",
    },
    "flag": {
        "read": "actuation clampctrl constraint contact damper equality filterparent frictionloss gravity limit refsafe spring",
        "changed": "eulerdamp diagexact ipc speculative",
        "listed": "sleep",
        "refused": "override",
        "silent": "autoreset energy fwdinv invdiscrete island midphase multiccd nativeccd sensor warmstart",
    },
    "size": {
        "silent": "memory nconmax njmax nkey nstack nuser_actuator nuser_body nuser_cam nuser_geom nuser_jnt nuser_sensor nuser_site"
        " nuser_tendon nuserdata",
    },
    "statistic": {"silent": "center extent meaninertia meanmass meansize"},
    "visual": {"silent": WHOLE},
    "default": {"read": "class"},
    "extension": {"read": ""},
    "plugin": {"refused": WHOLE},
    "asset": {"read": ""},
    "mesh": {
        "read": "name class file content_type vertex face scale refpos refquat inertia builtin params maxhullvert",
        "silent": "material normal smoothnormal texcoord",
    },
    "hfield": {"read": "name file content_type nrow ncol size elevation"},
    "skin": {"listed": WHOLE},
    "texture": {"silent": WHOLE},
    "material": {"silent": WHOLE},
    "model": {"read": "name file content_type"},
    "worldbody": {"read": ""},
    "body": {
        "read": f"name childclass mocap gravcomp fuse {POSE}",
        "silent": "simple sleep user",
    },
    "inertial": {"read": f"mass diaginertia fullinertia {POSE}"},
    "joint": {
        "read": "name class type axis pos range limited ref stiffness springref springdamper damping armature frictionloss actuatorfrcrange"
        " actuatorfrclimited actuatorgravcomp",
        "changed": "margin solimpfriction solimplimit solreffriction solreflimit",
        "refused": "springyield",
        "silent": "group user",
    },
    "freejoint": {"read": "name align", "silent": "group"},
    "geom": {
        "read": f"name class type size fromto mesh hfield fitscale mass density shellinertia contype conaffinity priority friction fluidshape"
        f" fluidcoef {POSE}",
        "changed": f"condim margin gap {SOFT}",
        "refused": "surfacevel adhesion",
        "silent": f"castshadow group solmix user {LOOKS}",
    },
    "attach": {"read": "body frame model prefix"},
    "site": {"read": f"name class type size fromto mesh {POSE}", "silent": f"group user {LOOKS}"},
    "camera": {"listed": WHOLE},
    "light": {"listed": WHOLE},
    "flexcomp": {"refused": WHOLE},
    "deformable": {"read": ""},
    "flex": {"refused": WHOLE},
    "contact": {"read": ""},
    "pair": {
        "read": "name class geom1 geom2 friction",
        "changed": f"condim margin gap solreffriction {SOFT}",
        "refused": "adhesion",
    },
    "exclude": {"read": "name body1 body2"},
    "tendon": {"read": ""},
    "spatial, fixed, default tendon": {
        "read": "name class range limited stiffness springlength damping frictionloss armature actuatorfrcrange actuatorfrclimited",
        "changed": "margin solimpfriction solimplimit solreffriction solreflimit",
        "refused": "springyield",
        "silent": f"group user width {LOOKS}",
    },
    "spatial site": {"read": "site"},
    "spatial geom": {"read": "geom sidesite"},
    "pulley": {"read": "divisor"},
    "fixed joint": {"read": "joint coef"},
    "equality": {"read": "active", "changed": SOFT},
    "connect": {"read": "name class active body1 body2 site1 site2 anchor", "changed": SOFT},
    "weld": {"read": "name class active body1 body2 site1 site2 anchor relpose", "changed": f"torquescale {SOFT}"},
    "equality joint": {"read": "name class active joint1 joint2 polycoef", "changed": SOFT},
    "equality tendon": {"read": "name class active tendon1 tendon2 polycoef", "changed": SOFT},
    "equality flex, flexstrain": {"refused": WHOLE},
    "actuator": {"read": ""},
    "motor, velocity, damper": ACTUATOR | {"read": DRIVEN + " kv"},
    "position": ACTUATOR | {"read": DRIVEN + " kp kv dampratio inheritrange", "changed": "timeconst"},
    "intvelocity": ACTUATOR | {"read": DRIVEN + " kp kv dampratio inheritrange", "changed": "actrange actlimited"},
    "cylinder": ACTUATOR | {"read": DRIVEN + " area bias diameter", "changed": "timeconst"},
    "general": ACTUATOR
    | {
        "read": DRIVEN + " gainprm gaintype biasprm biastype inheritrange",
        "changed": "dyntype dynprm actdim actearly actlimited actrange",
        "refused": "body delay interp nsample",
        "silent": "user ffrange velrange input",
    },
    "muscle": ACTUATOR
    | {
        "read": DRIVEN.replace(" site refsite", "") + " force fpmax fvmax lmax lmin range scale vmax",
        "changed": "timeconst tausmooth",
    },
    "orientation, pid, dcmotor, adhesion": {"refused": WHOLE},
    "sensor": {"read": ""},
    "touch, accelerometer, velocimeter, gyro, force, torque, magnetometer": SENSOR | {"read": "name site cutoff"},
    "rangefinder": SENSOR | {"read": "name site cutoff", "listed": f"{SENSOR['listed']} camera data"},
    "jointpos, jointvel, jointactuatorfrc, ballquat, ballangvel, jointlimitpos, jointlimitvel, jointlimitfrc": SENSOR
    | {"read": "name joint cutoff"},
    "tendonpos, tendonvel, tendonactuatorfrc, tendonlimitpos, tendonlimitvel, tendonlimitfrc": SENSOR
    | {"read": "name tendon cutoff"},
    "actuatorpos, actuatorvel, actuatorfrc": SENSOR | {"read": "name actuator cutoff"},
    "framepos, framequat, framexaxis, frameyaxis, framezaxis, framelinvel, frameangvel, framelinacc, frameangacc": SENSOR
    | {"read": "name objname objtype refname reftype cutoff"},
    "subtreecom, subtreelinvel, subtreeangmom": SENSOR | {"read": "name body cutoff"},
    "insidesite": SENSOR | {"read": "name site objname objtype enclosed cutoff"},
    "distance, normal, fromto": SENSOR | {"read": "name body1 body2 geom1 geom2 cutoff"},
    "sensor contact": SENSOR | {"read": "name body1 body2 geom1 geom2 site subtree1 subtree2 data num reduce cutoff"},
    "e_potential, e_kinetic": SENSOR,
    "clock, camprojection, tactile, sensor user": {"listed": WHOLE},
    "custom": {"silent": WHOLE},
    "keyframe": {"read": ""},
    "key": {"read": "name qpos qvel ctrl", "listed": "act mpos mquat", "refused": "plastic", "silent": "time"},
}


SHOWN = {
    "read": "read",
    "changed": "changed",
    "listed": "listed",
    "refused": "refused",
    "silent": "no part in the motion",
}
ATTRIBUTES_HEAD = """
## Every attribute of MJCF

A test compares this table with the schema of MuJoCo 4.0. What is changed or listed has a line in `model.ignored`, where
a file sets it to something that matters; what is refused is an error then. The last column has no part in the motion,
or is of MuJoCo's own algorithms.
"""


def entry_of(path):
    """The (name, results) in ATTRIBUTES of an element, which a list names: what it stands in, and itself. None: it has none."""
    entries = {part.strip(): (name, results) for name, results in ATTRIBUTES.items() for part in name.split(",")}
    for depth in range(1, len(path)):
        inside = entries.get(path[depth - 1])
        if inside and WHOLE in inside[1].values():
            return inside
    for parent in (*reversed(path[:-1]), ""):
        found = entries.get(f"{parent} {path[-1]}".strip())
        if found:
            return found
    return None


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
    return text + attributes()


def attributes():
    """The part of the page that has every attribute."""
    text = ATTRIBUTES_HEAD + "\n| | " + " | ".join(SHOWN.values()) + " |\n" + "|---" * (1 + len(SHOWN)) + "|\n"
    for name, results in ATTRIBUTES.items():
        if not any(results.values()):
            continue
        names = ", ".join(f"`{part.strip()}`" for part in name.split(","))
        cells = [cell(results.get(result, "")) for result in SHOWN]
        text += f"| {names} | " + " | ".join(cells) + " |\n"
    return text


def cell(words):
    return words if words == WHOLE else " ".join(f"`{word}`" for word in words.split())


if __name__ == "__main__":
    PAGE.write_text(page())
    print(PAGE)
