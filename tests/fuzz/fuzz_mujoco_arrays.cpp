// The arrays of a compiled MJCF model, some of them changed: translated or refused; what is translated steps.
#include "coulomb/model/loaders/mjcf.hpp"
#include "coulomb/scene.hpp"
#include "trial.hpp"

namespace {

using namespace coulomb;
using fuzz::Bytes;

const char* const base = R"(<mujoco model="m"><option timestep="0.002"/><asset>
  <mesh name="t" vertex="0 0 0 .1 0 0 0 .1 0 0 0 .1"/></asset>
<worldbody><geom name="floor" type="plane" size="1 1 1" friction="0.7"/>
  <body name="one" pos="0 0 0.2" euler="0 20 0"><freejoint/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".05"/>
    <body name="two" pos=".3 0 0"><joint name="j" axis="0 1 0" range="-60 60" limited="true" damping=".1" frictionloss=".05"/>
      <geom type="box" size=".08 .06 .05" pos=".1 0 0"/>
      <body name="three" pos="0 .2 0"><joint name="k" type="ball"/><geom type="mesh" mesh="t"/></body></body></body>
  <body name="four" pos="1 0 1"><joint name="s" type="slide"/><geom size=".1" mass="2"/></body></worldbody>
<equality><connect body1="three" body2="four" anchor="0 0 0" active="false"/></equality>
<contact><exclude body1="one" body2="three"/></contact>
<actuator><motor joint="j" gear="3"/><position joint="s" kp="10" ctrlrange="-1 1"/></actuator>
<keyframe><key qpos="0 0 1 1 0 0 0 0 1 0 0 0 0"/></keyframe></mujoco>)";

/// One entry of an array, or its length.
template <class Value, class Number>
void change(std::vector<Value>& array, Bytes& bytes, Number&& number) {
  if (bytes.choice(16) == 0) {
    array.resize(static_cast<std::size_t>(bytes.byte()));
  } else if (!array.empty()) {
    array[(bytes.byte() * 256u + bytes.byte()) % array.size()] = number();
  }
}

void change(MujocoArrays& arrays, Bytes& bytes) {
  if (bytes.choice(3) == 0) {
    auto entry = std::next(arrays.integers.begin(), bytes.choice(static_cast<int>(arrays.integers.size())));
    change(entry->second, bytes,
           [&] { return bytes.coin() ? bytes.choice(16) - 4 : static_cast<int>(bytes.byte()) << 6; });
  } else {
    auto entry = std::next(arrays.reals.begin(), bytes.choice(static_cast<int>(arrays.reals.size())));
    change(entry->second, bytes, [&] { return bytes.number(); });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (!has_mujoco()) return 0;
  static const MujocoArrays compiled = read_mjcf(base);
  MujocoArrays arrays = compiled;
  Bytes bytes(data, size);
  const int changes = 1 + bytes.choice(4);
  for (int i = 0; i < changes; ++i) change(arrays, bytes);

  Scene scene;
  std::shared_ptr<const Model> model;
  if (fuzz::accepted([&] { scene.add_mujoco_arrays(arrays), model = scene.build(); })) fuzz::check_steps(model, bytes);
  return 0;
}
