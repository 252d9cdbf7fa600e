// The arrays of batch.hpp: masks, values of parameters, new arrays of any shape and type.
#include <nanobind/stl/string.h>

#include "batch.hpp"

namespace coulomb::python {

Mask::Mask(nb::handle object, Py_ssize_t n) {
  if (object.is_none()) return;
  nb::object array = nb::borrow(object);
  if (nb::hasattr(object, "dtype") || PyList_Check(object.ptr())) {
    array = nb::module_::import_("numpy").attr("asarray")(object);
    if (nb::cast<std::string>(array.attr("dtype").attr("kind")) == "b") array = array.attr("astype")("float64");
  }
  const ArrayIn in(array, "mask", {n});
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double value = in.data()[i];
    if (value != 0 && value != 1)
      throw nb::value_error(
          ("mask[" + std::to_string(i) + "] is " + std::to_string(value) + ", expected True or False").c_str());
    values_.push_back(value != 0);
  }
}

nb::object poses_of_all(nb::handle mocap, int axes, Py_ssize_t n) {
  if (mocap.is_none()) return nb::none();
  const nb::module_ numpy = nb::module_::import_("numpy");
  if (nb::cast<int>(numpy.attr("ndim")(mocap)) != axes - 1) return nb::borrow(mocap);
  const nb::object shape = nb::make_tuple(n) + numpy.attr("shape")(mocap);
  return numpy.attr("ascontiguousarray")(numpy.attr("broadcast_to")(mocap, shape));
}

BatchParameters batch_parameters(nb::dict values, int n) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  BatchParameters out;
  for (auto [key, value] : values) {
    if (!nb::isinstance<nb::str>(key)) throw nb::type_error("parameters: names of parameters are strings");
    const std::string name = nb::cast<std::string>(key), what = "parameter '" + name + "'";
    nb::object array = nb::borrow(value);
    try {
      array = numpy.attr("asarray")(value);
      if (nb::cast<int>(array.attr("ndim")) == 1) array = array.attr("reshape")(-1, 1);
    } catch (nb::python_error& error) {
      throw nb::value_error((what + ": not an array of numbers: " + error.what()).c_str());
    }
    out.emplace_back(name, ArrayIn(array, what.c_str(), {n, -1}).finite(what.c_str()).vector());
  }
  return out;
}

std::vector<std::string> parameter_names(const ParameterSet& set) {
  std::vector<std::string> names;
  for (const auto& item : set.items()) names.push_back(item.name);
  return names;
}

nb::object parameter_part(const nb::object& array, const ParameterSet& set, const std::string& name) {
  std::string known;
  for (const auto& item : set.items()) {
    known += (known.empty() ? "" : ", ") + item.name;
    if (item.name != name) continue;
    const nb::slice columns(nb::int_(item.first), nb::int_(item.first + item.element.size), nb::int_(1));
    return array[nb::make_tuple(nb::ellipsis(), columns)];
  }
  throw nb::key_error((name + ": not among the parameters of wrt (" + (known.empty() ? "none" : known) + ")").c_str());
}

void* new_array(std::initializer_list<Py_ssize_t> shape, const char* dtype, nb::object& array) {
  static const nb::handle empty = nb::object(nb::module_::import_("numpy").attr("empty")).release();
  nb::list sizes;
  for (Py_ssize_t size : shape) sizes.append(size);
  array = empty(nb::tuple(sizes), dtype);
  Py_buffer buffer;
  if (PyObject_GetBuffer(array.ptr(), &buffer, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) != 0) throw nb::python_error();
  void* data = buffer.buf;
  PyBuffer_Release(&buffer);  // numpy keeps its memory in place while the array lives
  return data;
}

}  // namespace coulomb::python
