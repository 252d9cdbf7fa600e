"""Models with fixed tendons: a gripper like the Panda's hand, a finger whose last joints are coupled, and both with what holds them."""

# Two fingers on slides that one tendon drives, on an arm with a hinge: the tendon's joints lie on two branches.
GRIPPER = """<mujoco><option timestep="0.002"/><compiler angle="radian"/><worldbody>{floor}
  <body name="arm" pos="0 0 .4"><joint name="swing" axis="0 1 0" damping=".1" armature=".01" range="-1 1"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.1" size=".03" mass=".5"/>
    <body name="left" pos="0 0 -.15"><joint name="left" type="slide" axis="0 1 0" damping=".5" armature=".05"/>
      <geom name="left" type="box" size=".02 .01 .04" pos="0 .03 0" mass=".05"/></body>
    <body name="right" pos="0 0 -.15"><joint name="right" type="slide" axis="0 -1 .1" damping=".5" armature=".05"/>
      <geom name="right" type="box" size=".02 .01 .04" pos="0 -.03 0" mass=".06"/></body></body>{world}
</worldbody><tendon><fixed name="split" {tendon}><joint joint="left" coef=".5"/><joint joint="right" coef=".7"/></fixed>
  <fixed name="other"><joint joint="left" coef="1"/><joint joint="swing" coef="-.2"/></fixed>{tendons}</tendon>
{equality}
<actuator><general name="grip" tendon="split" gear="1.5" gainprm="40" biastype="affine" biasprm=".2 -30 -4" {actuator}/>
  <general name="affine" tendon="other" gaintype="affine" gainprm="2 3 -.4" biastype="affine" biasprm="0 -1 -2"/>
  <position name="hold" tendon="other" kp="20" kv="1"/>
  <motor name="swing" joint="swing"/></actuator>
<sensor><tendonpos tendon="split"/><tendonvel tendon="other"/><actuatorpos actuator="grip"/><actuatorvel actuator="grip"/>
  <actuatorfrc actuator="grip"/><jointactuatorfrc joint="left"/></sensor></mujoco>"""

# A chain of hinges: the last two bend together, as in the fingers of the Shadow Hand.
FINGER = """<mujoco><option timestep="0.002"/><compiler angle="radian"/><worldbody>{floor}
  <body name="knuckle" pos="0 0 .3"><joint name="side" axis="1 0 0" damping=".02" armature=".002"/>
    <geom type="sphere" size=".02" mass=".05"/>
    <body name="proximal"><joint name="J3" axis="0 1 0" damping=".02" armature=".002"/>
      <geom type="capsule" fromto="0 0 0 .1 0 0" size=".01" mass=".05"/>
      <body name="middle" pos=".1 0 0"><joint name="J2" axis="0 1 0" damping=".02" armature=".002" range="-.2 2" {joint}/>
        <geom type="capsule" fromto="0 0 0 .06 0 0" size=".01" mass=".03"/>
        <body name="distal" pos=".06 0 0"><joint name="J1" axis="0 1 .1" damping=".02" armature=".002"/>
          <geom name="tip" type="capsule" fromto="0 0 0 .04 0 0" size=".01" mass=".02" friction=".6"/></body></body></body></body>{world}
</worldbody><tendon><fixed name="J0" {tendon}><joint joint="J2" coef="1"/><joint joint="J1" coef="1"/></fixed>
  <fixed name="difference"><joint joint="J2" coef="1"/><joint joint="J1" coef="-1"/></fixed></tendon>
{equality}
<actuator><position name="J0" tendon="J0" kp="1.5" kv=".01" forcerange="-1 1" {actuator}/>
  <position name="J3" joint="J3" kp="2" kv=".05"/><motor name="J2" joint="J2"/><motor name="side" joint="side"/></actuator></mujoco>"""

FLOOR = '<geom name="floor" type="plane" size="2 2 .1" pos="0 0 .05" friction=".8"/>'
KEYS = dict.fromkeys(("floor", "world", "tendon", "tendons", "equality", "actuator", "joint"), "")


def text(scene, **parts):
    return scene.format(**(KEYS | parts))
