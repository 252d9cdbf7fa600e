// Arrays in and out: numpy float64, C order.
//
// In: a float64 array of the right shape is read in place; anything else that numpy converts safely (lists, integers, float32) is
// converted; the rest is a TypeError (wrong kind of element) or a ValueError (wrong shape) that names the argument.
// Out: arrays of their own, made by numpy.empty (quicker than wrapping a capsule), or read-only views that keep their owner alive.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <array>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace coulomb::python {

namespace nb = nanobind;

inline bool any_object(const PyObject*) { return true; }

/// A numpy.ndarray, and what numpy takes for one: signatures and stubs say so.
struct Array : nb::object {
  NB_OBJECT_DEFAULT(Array, nb::object, "numpy.ndarray", any_object)
};
struct ArrayLike : nb::object {
  NB_OBJECT_DEFAULT(ArrayLike, nb::object, "numpy.typing.ArrayLike", any_object)
};

/// An argument's elements; valid while this object lives.
class ArrayIn {
 public:
  /// shape: the sizes wanted; -1 accepts any.
  ArrayIn(nb::handle object, const char* name, std::initializer_list<Py_ssize_t> shape) {
    if (!get(object)) {
      converted_ = convert(object, name);
      if (!get(converted_)) throw nb::type_error((std::string(name) + ": expected numbers").c_str());
    }
    check_shape(name, shape);
  }
  ~ArrayIn() {
    if (held_) PyBuffer_Release(&buffer_);
  }
  ArrayIn(const ArrayIn&) = delete;
  ArrayIn& operator=(const ArrayIn&) = delete;

  /// Throws a ValueError that names argument, element and value where an element is NaN or infinite.
  const ArrayIn& finite(const char* name) const;

  const double* data() const { return static_cast<const double*>(buffer_.buf); }
  Py_ssize_t shape(int axis) const { return buffer_.shape[axis]; }
  std::size_t size() const { return static_cast<std::size_t>(buffer_.len) / sizeof(double); }
  std::vector<double> vector() const { return {data(), data() + size()}; }
  template <std::size_t N>
  std::array<double, N> array() const {
    std::array<double, N> out;
    std::memcpy(out.data(), data(), N * sizeof(double));
    return out;
  }

 private:
  bool get(nb::handle object) {
    if (!PyObject_CheckBuffer(object.ptr()) || is_masked(object)) return false;
    if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
      PyErr_Clear();
      return false;
    }
    held_ = buffer_.format != nullptr && buffer_.format[0] == 'd' && buffer_.format[1] == 0;
    if (!held_) PyBuffer_Release(&buffer_);
    return held_;
  }
  static nb::object convert(nb::handle object, const char* name);
  /// numpy.ma: its buffer has numbers that do not count.
  static bool is_masked(nb::handle object);
  void check_shape(const char* name, std::initializer_list<Py_ssize_t> shape) const;

  nb::object converted_;
  Py_buffer buffer_{};
  bool held_ = false;
};

/// An optional argument: null if it is None.
class OptionalArray {
 public:
  OptionalArray(nb::handle object, const char* name, std::initializer_list<Py_ssize_t> shape) {
    if (!object.is_none()) array_.emplace(object, name, shape);
  }
  const double* data() const { return array_ ? array_->data() : nullptr; }
  Py_ssize_t rows() const { return array_->shape(0); }           ///< not of None
  void finite(const char* name) const { array_->finite(name); }  ///< not of None

 private:
  std::optional<ArrayIn> array_;
};

/// A new array to be filled: `array` is what Python gets, `data` its elements.
struct ArrayOut {
  Array array;
  double* data;
};
ArrayOut new_array(Py_ssize_t size);
ArrayOut new_array(Py_ssize_t rows, Py_ssize_t columns);

/// A new array with a copy of `source`.
Array to_numpy(const double* source, Py_ssize_t size);
Array to_numpy(const double* source, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t leading_dimension);
template <std::size_t N>
Array to_numpy(const std::array<double, N>& source) {
  return to_numpy(source.data(), static_cast<Py_ssize_t>(N));
}
inline Array to_numpy(const std::vector<double>& source) {
  return to_numpy(source.data(), static_cast<Py_ssize_t>(source.size()));
}

/// A read-only view of (size / width, width) elements, or (size) for width 1 unless `matrix`, that keeps `owner` alive.
template <typename T>
nb::object view(const std::vector<T>& source, nb::handle owner, std::size_t width = 1, bool matrix = false) {
  const std::size_t shape[2] = {source.size() / width, width};
  return nb::cast(nb::ndarray<nb::numpy, const T>(source.data(), width == 1 && !matrix ? 1 : 2, shape, owner));
}

}  // namespace coulomb::python
