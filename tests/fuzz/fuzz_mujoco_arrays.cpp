// The arrays of a compiled MJCF model, some of them changed: translated or refused; what is translated steps.
#include "coulomb/model/loaders/mjcf.hpp"
#include "coulomb/scene.hpp"
#include "trial.hpp"

namespace {

using namespace coulomb;
using fuzz::Bytes;

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
  static const MujocoArrays compiled = read_mjcf(COULOMB_TEST_DATA "/many_kinds.xml");
  MujocoArrays arrays = compiled;
  Bytes bytes(data, size);
  const int changes = 1 + bytes.choice(4);
  for (int i = 0; i < changes; ++i) change(arrays, bytes);

  Scene scene;
  std::shared_ptr<const Model> model;
  if (fuzz::accepted([&] { scene.add_mujoco_arrays(arrays), model = scene.build(); })) fuzz::check_steps(model, bytes);
  return 0;
}
