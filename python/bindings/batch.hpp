// What the bindings of batches share: the object that Python holds, and arrays with one row per environment.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "coulomb/batch.hpp"
#include "module.hpp"
#include "one_call.hpp"

namespace coulomb::python {

/// The batch, and a flag that refuses a second thread, or a signal handler, while a call is running.
struct Batch {
  static constexpr const char* busy_text = "BatchSimulator: another call is running; use one batch per thread";
  BatchSimulator simulator;
  int requested_threads = 0;  ///< 0: all cores
  std::atomic<bool> busy{false};
  Py_ssize_t n() const { return simulator.num_envs(); }
  const Model& model() const { return simulator.model(); }
};

/// While it lives no other call may use the batch, and the GIL is released. RuntimeError if one does already.
class Working {
 public:
  explicit Working(Batch& batch) : idle_(batch) {}

 private:
  Idle<Batch> idle_;
  nb::gil_scoped_release release_;
};

/// An optional mask of n booleans: null if it is None.
class Mask {
 public:
  Mask(nb::handle object, Py_ssize_t n);
  const unsigned char* data() const { return values_.empty() ? nullptr : values_.data(); }

 private:
  std::vector<unsigned char> values_;
};

/// Poses of mocap bodies, (n, ..., m, 7) with `axes` axes, or without the first one: then the same for every environment. None: None.
nb::object poses_of_all(nb::handle mocap, int axes, Py_ssize_t n);

/// {name: (n, size)}; (n,) will do for size 1. ValueError names the parameter and the element.
BatchParameters batch_parameters(nb::dict values, int n);

/// The part of that parameter along the last axis. KeyError lists what was asked for.
nb::object parameter_part(const nb::object& array, const ParameterSet& set, const std::string& name);
std::vector<std::string> parameter_names(const ParameterSet& set);

/// Poses that a step can be given.
inline Py_ssize_t num_mocap(const Model& model) { return static_cast<Py_ssize_t>(model.mocap_bodies.size()); }

void bind_batch_rollout(nb::module_& module, nb::class_<Batch>& batch);
void bind_control_step(nb::module_& module, nb::class_<Batch>& batch);

/// What loops without the GIL ask: has a signal handler raised? Looks every 50 ms; the error is then set on this thread.
std::function<bool()> signals_raised();

/// Runs loop(interrupted) without the GIL, where it looks for signals every 50 ms; what a signal handler raises is raised once all threads have
/// stopped.
void run_interruptible(Batch& batch, const std::function<bool(const std::function<bool()>& interrupted)>& loop);

/// numpy.empty of that shape into `array`; returns its elements.
void* new_array(std::initializer_list<Py_ssize_t> shape, const char* dtype, nb::object& array);
template <class T>
T* new_array(std::initializer_list<Py_ssize_t> shape, const char* dtype, nb::object& array) {
  return static_cast<T*>(new_array(shape, dtype, array));
}

}  // namespace coulomb::python
