// The slow half of arrays.hpp: conversions, error messages, new arrays.
#include "arrays.hpp"

#include <cmath>

namespace coulomb::python {

namespace {

// numpy's functions, looked up once; never released, so that nothing runs after the interpreter's end.
nb::handle numpy_function(const char* name) { return nb::object(nb::module_::import_("numpy").attr(name)).release(); }

double* elements(nb::handle array) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(array.ptr(), &buffer, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) != 0) throw nb::python_error();
  double* data = static_cast<double*>(buffer.buf);
  PyBuffer_Release(&buffer);  // numpy keeps its memory in place while the array lives
  return data;
}

std::string shape_text(const Py_ssize_t* shape, std::size_t n) {
  std::string text = "(";
  for (std::size_t i = 0; i < n; ++i)
    text += (i ? ", " : "") + (shape[i] < 0 ? std::string("any") : std::to_string(shape[i]));
  return text + (n == 1 ? ",)" : ")");
}

}  // namespace

nb::object ArrayIn::convert(nb::handle object, const char* name) {
  static const nb::handle asarray = numpy_function("asarray"), can_cast = numpy_function("can_cast"),
                          contiguous = numpy_function("ascontiguousarray"), float64 = numpy_function("float64");
  if (object.is_none()) throw nb::type_error((std::string(name) + ": got None, expected an array of numbers").c_str());
  if (is_masked(object))
    throw nb::type_error((std::string(name) + ": a masked array; expected numbers: .filled(value) gives them").c_str());

  nb::object array;
  bool safe = false;
  try {
    array = asarray(object);
    safe = nb::cast<bool>(can_cast(array.attr("dtype"), float64)) || nb::cast<std::size_t>(array.attr("size")) == 0;
  } catch (nb::python_error& error) {
    nb::object reason = nb::borrow(error.value());
    const nb::object calls = nb::module_::import_("coulomb._calls");
    throw nb::value_error(nb::cast<const char*>(calls.attr("not_an_array")(name, object, reason)));
  }
  const std::string dtype = nb::str(nb::object(array.attr("dtype"))).c_str();
  if (!safe || dtype == "bool")
    throw nb::type_error((std::string(name) + ": expected float64, got elements of type " + dtype).c_str());
  // ascontiguousarray makes a scalar one-dimensional: keep its shape for the message.
  return nb::cast<int>(array.attr("ndim")) == 0 ? array.attr("astype")(float64) : contiguous(array, float64);
}

bool ArrayIn::is_masked(nb::handle object) {
  static const nb::handle plain = numpy_function("ndarray");
  if (object.type().is(plain)) return false;
  return nb::hasattr(object, "mask") && nb::hasattr(object, "filled");
}

void ArrayIn::check_shape(const char* name, std::initializer_list<Py_ssize_t> shape) const {
  bool ok = buffer_.ndim == static_cast<int>(shape.size());
  int axis = 0;
  for (Py_ssize_t wanted : shape) {
    if (!ok) break;
    if (wanted >= 0 && buffer_.shape[axis] != wanted) ok = false;
    ++axis;
  }
  if (ok) return;
  throw nb::value_error((std::string(name) + ": expected shape " + shape_text(shape.begin(), shape.size()) + ", got " +
                         shape_text(buffer_.shape, static_cast<std::size_t>(buffer_.ndim)))
                            .c_str());
}

const ArrayIn& ArrayIn::finite(const char* name) const {
  for (std::size_t i = 0; i < size(); ++i) {
    if (std::isfinite(data()[i])) continue;
    std::string at;  // the element's place, one index per axis
    std::size_t rest = i;
    for (int axis = buffer_.ndim - 1; axis >= 0; --axis) {
      const auto extent = static_cast<std::size_t>(buffer_.shape[axis]);
      at = std::to_string(rest % extent) + (at.empty() ? "" : ", ") + at;
      rest /= extent;
    }
    const char* value = std::isnan(data()[i]) ? "nan" : data()[i] > 0 ? "inf" : "-inf";
    throw nb::value_error((std::string(name) + "[" + at + "] is " + value + ", expected a finite number").c_str());
  }
  return *this;
}

ArrayOut new_array(Py_ssize_t size) {
  static const nb::handle empty = numpy_function("empty");
  Array array = nb::borrow<Array>(empty(size));
  double* data = elements(array);
  return {std::move(array), data};
}

ArrayOut new_array(Py_ssize_t rows, Py_ssize_t columns) {
  static const nb::handle empty = numpy_function("empty");
  Array array = nb::borrow<Array>(empty(nb::make_tuple(rows, columns)));
  double* data = elements(array);
  return {std::move(array), data};
}

Array to_numpy(const double* source, Py_ssize_t size) {
  ArrayOut out = new_array(size);
  if (size > 0) std::memcpy(out.data, source, static_cast<std::size_t>(size) * sizeof(double));
  return std::move(out.array);
}

Array to_numpy(const double* source, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t leading_dimension) {
  ArrayOut out = new_array(rows, columns);
  for (Py_ssize_t i = 0; i < rows && columns > 0; ++i)
    std::memcpy(out.data + i * columns, source + i * leading_dimension,
                static_cast<std::size_t>(columns) * sizeof(double));
  return std::move(out.array);
}

}  // namespace coulomb::python
