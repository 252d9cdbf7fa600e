"""MJCF strings that together use every feature the loader supports, for the comparison with MuJoCo. Every geom has a name."""

import mujoco
import numpy as np

import coulomb

TETRAHEDRON = "-.1 -.1 -.1  .2 0 0  0 .2 0  0 0 .25"
HULL = "-.1 -.1 -.1  .1 -.1 -.1  .1 .1 -.1  -.1 .1 -.1  -.08 -.08 .1  .08 -.08 .1  .08 .08 .12  -.08 .08 .1  0 0 0"

JOINTS = """<mujoco model="joints"><compiler angle="radian"/><option gravity="0.3 -0.2 -9.7" timestep="0.004"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 .1" pos="0 0 -1" euler="0.1 0.2 0.3"/>
    <body name="free" pos="0.1 0.2 0.3" euler="0.2 0.3 0.4"><freejoint name="root"/>
      <inertial pos="0.02 -0.03 0.04" mass="1.3" fullinertia="0.03 0.04 0.05 0.002 -0.003 0.001"/>
      <geom name="trunk" type="box" size=".1 .2 .15" pos="0.05 0 0" quat="0.8 0.6 0 0"/>
      <body name="arm" pos="0.1 0 0.2" quat="0.5 0.5 -0.5 0.5">
        <joint name="ball" type="ball" pos="0.01 0.02 -0.03" damping="0.2" stiffness="1.5" armature="0.03" range="0 1.2" limited="true"/>
        <geom name="ball_arm" type="capsule" fromto="0 0 0 0.1 0.2 0.3" size="0.05" mass="0.4"/>
        <body name="hand" pos="0.1 0.2 0.3">
          <joint name="h1" axis="1 2 3" pos="0.02 0 0.01" damping="0.1" frictionloss="0.3" range="-1 2" ref="0.4" springref="0.7" stiffness="3"/>
          <joint name="s1" type="slide" axis="0 -1 2" damping="0.5" armature="0.2" range="-0.1 0.3" ref="0.05" springref="-0.1" stiffness="20"/>
          <joint name="h2" axis="0 0 1" pos="0 0.03 0"/>
          <geom name="hand_ball" type="sphere" size="0.07" density="800"/>
        </body>
      </body>
      <body name="welded" pos="-0.2 0 0" euler="0 0.5 0"><geom name="fixed_ellipsoid" type="ellipsoid" size="0.05 0.08 0.1"/></body>
    </body>
    <body name="spinning" pos="1 0 0">
      <joint name="sx" type="slide" axis="1 0 0"/><joint name="sy" type="slide" axis="0 1 0"/><joint name="turn" type="ball"/>
      <geom name="wheel" type="cylinder" size="0.1 0.05" pos="0 0.1 0" euler="1.1 0 0"/>
    </body>
    <body name="spring" pos="-1 0 0.5"><joint name="bouncy" type="free" stiffness="4" damping="0.3" armature="0.1"/>
      <geom name="cube" type="box" size="0.1 0.1 0.1"/></body>
    <body name="fixed" pos="0 2 0"><geom name="post" type="cylinder" size="0.1 1"/>
      <body name="door" pos="0.1 0 0"><joint name="doorhinge" axis="0 0 1" pos="-0.1 0 0"/><geom name="leaf" type="box" size="0.4 0.02 0.9" pos="0.4 0 0"/></body>
    </body>
  </worldbody></mujoco>"""

SHAPES = f"""<mujoco model="shapes"><compiler angle="degree" eulerseq="ZYX" inertiafromgeom="true"/>
  <default><geom density="500" friction="0.7"/><joint damping="0.05" armature="0.01"/>
    <default class="heavy"><geom density="3000" rgba="1 0 0 1"/><joint damping="0.4"/></default></default>
  <asset><mesh name="tetra" vertex="{TETRAHEDRON}"/><mesh name="hull" vertex="{HULL}" scale="1.5 1 0.5"/></asset>
  <worldbody>
    <body name="a" pos="0 0 1" euler="30 20 -40"><joint name="ja" axis="1 1 0" range="-30 45"/><geom name="mesh_a" type="mesh" mesh="tetra"/>
      <inertial pos="5 5 5" mass="99" diaginertia="9 9 9"/>
      <body name="b" pos="0.3 0 0" axisangle="0 1 1 70" childclass="heavy"><joint name="jb" axis="0 1 0" range="-170 170"/>
        <geom name="mesh_b" type="mesh" mesh="hull" pos="0.1 0 0" euler="10 0 0"/>
        <geom name="tip" type="capsule" size="0.03 0.1" zaxis="1 1 1" pos="0.2 0 0"/>
        <body name="c" pos="0 0.3 0" xyaxes="1 1 0 -1 1 0"><joint name="jc" type="slide" axis="0 0 3"/>
          <geom name="cyl" type="cylinder" fromto="0 0 -.1 0.05 0 .1" size="0.04"/>
          <geom name="ell" type="ellipsoid" size="0.03 0.04 0.05" pos="0.1 0 0"/></body></body></body>
    <body name="d" pos="2 0 1"><freejoint/><geom name="d1" type="box" size="0.1 0.2 0.3" class="heavy"/><geom name="d2" type="sphere" size="0.1" pos="0.3 0 0" mass="2"/></body>
    <body name="e" pos="3 0 1"><joint name="je" type="ball"/><geom name="e1" type="box" fromto="0 0 0 0.3 0.1 0" size="0.05"/></body>
  </worldbody></mujoco>"""

ACTUATORS = """<mujoco model="actuators"><compiler angle="radian" autolimits="true"/>
  <default><motor ctrlrange="-2 3"/><default class="servo"><position kp="30" ctrlrange="-1 1"/></default></default>
  <worldbody>
    <body name="b0"><joint name="j0" axis="0 1 0" ref="0.3"/><geom name="g0" type="capsule" fromto="0 0 0 0.3 0 0" size="0.04"/>
      <body name="b1" pos="0.3 0 0"><joint name="j1" type="slide" axis="1 0 0" actuatorfrcrange="-4 6"/><geom name="g1" type="sphere" size="0.1"/>
        <body name="b2" pos="0.2 0 0"><joint name="j2" type="ball"/><geom name="g2" type="box" size="0.1 0.05 0.07"/></body></body></body>
    <body name="b3" pos="0 1 0"><freejoint name="j3"/><geom name="g3" type="box" size="0.1 0.05 0.07"/></body>
    <body name="b4" pos="0 2 0"><joint name="j4" axis="0 0 1" damping="0.1" armature="0.01"/><geom name="g4" type="box" size="0.1 0.05 0.07"/></body>
  </worldbody>
  <actuator>
    <motor name="a0" joint="j0" gear="50"/>
    <position name="a1" joint="j1" class="servo" forcerange="-5 5"/>
    <position name="a2" joint="j0" kp="12" kv="0.8" gear="2"/>
    <velocity name="a3" joint="j1" kv="3" gear="0.5" ctrlrange="-1 1"/>
    <general name="a4" joint="j4" gaintype="affine" gainprm="2 0.5 -0.3" biastype="affine" biasprm="0.4 -3 -0.2" forcerange="-1.5 2.5"/>
    <motor name="a5" joint="j2" gear="1 2 3"/>
    <motor name="a6" jointinparent="j2" gear="-1 0.5 2"/>
    <position name="a7" joint="j2" kp="4" gear="0 1 0.5"/>
    <motor name="a8" joint="j3" gear="1 2 3 4 5 6" ctrllimited="false"/>
    <motor name="a9" jointinparent="j3" gear="0 0 0 1 -2 3" ctrllimited="false"/>
    <general name="a10" joint="j1" gear="3" gainprm="5" ctrlrange="-0.2 0.2"/>
    <damper name="a11" joint="j4" kv="2" ctrlrange="0 2"/>
    <motor name="a12" joint="j0" gear="2" armature="0.02" damping="0.3"/>
    <position name="a13" joint="j4" kp="5" dampratio="0.7" inheritrange="0"/>
  </actuator>
  <keyframe><key name="home" qpos="0.1 0.2 1 0 0 0 1 2 3 0 1 0 0 0.5" qvel="1 2 3 4 5 6 7 8 9 10 11 12" ctrl="1 2 3 4 5 6 7 8 9 10 11 12 13 14"/></keyframe>
</mujoco>"""

EQUALITIES = """<mujoco model="equalities"><compiler angle="radian"/><option gravity="0 0 0" timestep="0.001"/>
  <worldbody>
    <site name="sw" pos="0.5 0.1 0.2" quat="0.8 0 0.6 0"/>
    <body name="p" pos="0 0 1"><joint name="p1" axis="0 1 0"/><geom name="gp" type="box" size="0.1 0.05 0.07"/>
      <body name="q" pos="0.3 0 0"><joint name="q1" type="ball"/><geom name="gq" type="box" size="0.1 0.05 0.07"/></body></body>
    <body name="r" pos="0.4 0.1 1"><freejoint/><geom name="gr" type="box" size="0.1 0.05 0.07"/></body>
    <body name="s" pos="1 0 1"><freejoint/><geom name="gs" type="box" size="0.1 0.05 0.07"/><site name="ss" pos="0.05 0 0" euler="0.1 0.2 0.3"/></body>
    <body name="t" pos="2 0 1"><joint name="t1" axis="1 0 0" ref="0.2"/><geom name="gt" type="box" size="0.1 0.05 0.07"/></body>
    <body name="u" pos="3 0 1"><joint name="u1" type="slide" axis="1 0 0" ref="-0.1"/><geom name="gu" type="box" size="0.1 0.05 0.07"/></body>
    <body name="w" pos="4 0 1"><joint name="w1" axis="1 0 0"/><geom name="gw" type="box" size="0.1 0.05 0.07"/></body>
  </worldbody>
  <contact><exclude body1="q" body2="r"/></contact>
  <equality>{}</equality></mujoco>"""

CONTACTS = """<mujoco model="contacts"><worldbody>
    <geom name="floor" type="plane" size="5 5 .1" friction="0.4"/>
    <body name="a" pos="0 0 1"><freejoint/><geom name="a1" type="box" size=".1 .1 .1" friction="0.9"/>
      <geom name="a2" type="sphere" size=".05" pos="0.3 0 0" contype="2" conaffinity="4"/>
      <body name="b" pos="0 0 .3"><joint name="jb" axis="1 0 0"/><geom name="b1" type="capsule" size=".05 .1" friction="0.2" priority="2"/>
        <body name="c" pos="0 0 .3"><joint name="jc" axis="1 0 0"/><geom name="c1" type="capsule" size=".05 .1" condim="1"/></body></body></body>
    <body name="d" pos="1 0 1"><freejoint/><geom name="d1" type="box" size=".1 .1 .1" contype="4" conaffinity="2"/></body>
    <body name="e" pos="2 0 1"><freejoint/><geom name="e1" type="sphere" size=".1" contype="0" conaffinity="0"/>
      <geom name="e2" type="cylinder" size=".1 .1" contype="0" conaffinity="1" friction="0.3"/></body>
  </worldbody>
  <contact><exclude body1="a" body2="c"/><pair geom1="e1" geom2="floor" friction="0.11 0.11"/><pair geom1="a1" geom2="b1" friction="0.6 0.6"/></contact>
</mujoco>"""


def compiled(xml):
    """(mujoco.MjModel, mujoco.MjData, coulomb.Model)"""
    theirs = mujoco.MjModel.from_xml_string(xml) if xml.lstrip().startswith("<") else mujoco.MjModel.from_xml_path(xml)
    return theirs, mujoco.MjData(theirs), coulomb.load(xml)


def random_states(model, n, seed, spread=1.0):
    """(q, v, u) around the neutral configuration: every joint up to about `spread` rad or m away."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        q = model.integrate(model.neutral()[0], spread * rng.standard_normal(model.nv))
        yield q, 2 * rng.standard_normal(model.nv), 2 * rng.standard_normal(model.nu)
