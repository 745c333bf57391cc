#include "pyarrow.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "arrowdl/convert.hpp"
#include "capsule.hpp"
#include "objects.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

bool is_numbers(PyObject* object) {
  static constexpr std::string_view kNumbers[] = {
      "pyarrow.lib.DoubleArray", "pyarrow.lib.FloatArray",  "pyarrow.lib.HalfFloatArray",
      "pyarrow.lib.Int64Array",  "pyarrow.lib.Int32Array",  "pyarrow.lib.Int16Array",
      "pyarrow.lib.Int8Array",   "pyarrow.lib.UInt64Array", "pyarrow.lib.UInt32Array",
      "pyarrow.lib.UInt16Array", "pyarrow.lib.UInt8Array",
  };
  const std::string_view name = Py_TYPE(object)->tp_name;
  return std::find(std::begin(kNumbers), std::end(kNumbers), name) != std::end(kNumbers);
}

bool is_vectors(PyObject* object) {
  constexpr std::string_view kVectors = "pyarrow.lib.FixedSizeListArray";
  return Py_TYPE(object)->tp_name == kVectors;
}

OwnedTensor take_numbers(PyObject* numbers) {
  static PyObject* const method = interned("__dlpack__");
  static PyObject* const names = checked(PyTuple_Pack(1, interned("max_version"))).release().ptr();
  static PyObject* const version =
      py::make_tuple(DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION).release().ptr();
  PyObject* const arguments[] = {numbers, version};
  return take_tensor(checked(PyObject_VectorcallMethod(method, arguments, 1, names)).ptr());
}

py::object read(PyObject* object, PyObject* name) {
  return checked(PyObject_GetAttr(object, name));
}

int64_t read_int(PyObject* object, PyObject* name) {
  const int64_t value = PyLong_AsLongLong(read(object, name).ptr());
  if (value == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  return value;
}

/// The rows of `vectors` in the tensor of all their values, which its offset and length cut out.
OwnedTensor take_vectors(PyObject* vectors) {
  static PyObject* const values_name = interned("values");
  static PyObject* const null_count = interned("null_count");
  static PyObject* const offset_name = interned("offset");
  static PyObject* const type = interned("type");
  static PyObject* const list_size = interned("list_size");
  const py::object values = read(vectors, values_name);
  if (!is_numbers(values.ptr())) return {};
  OwnedTensor whole = take_numbers(values.ptr());
  if (read_int(vectors, null_count) != 0) return {};
  const int64_t size = read_int(read(vectors, type).ptr(), list_size);
  const int64_t offset = read_int(vectors, offset_name);
  const Py_ssize_t length = PyObject_Size(vectors);
  if (length < 0) throw py::error_already_set();

  TensorView view;
  view.dtype = find_dtype(whole->dtype);
  view.data = static_cast<const uint8_t*>(whole->data) + whole->byte_offset;
  const int64_t available = size == 0 ? 0 : whole->shape[0] / size;
  if (view.dtype == nullptr || size == 0 || available < length || available - length < offset) {
    return {};
  }
  view.data += offset * size * view.dtype->itemsize();
  view.ndim = 2;
  view.shape[0] = length;
  view.shape[1] = size;
  view.set_contiguous_strides();
  return make_tensor(view, std::move(whole));
}

}  // namespace

OwnedTensor take_pyarrow_tensor(PyObject* object) {
  try {
    if (is_numbers(object)) return take_numbers(object);
    if (is_vectors(object)) return take_vectors(object);
  } catch (const py::error_already_set& refusal) {
    if (!refusal.matches(PyExc_Exception)) throw;  // KeyboardInterrupt and the like
  }
  return {};
}

}  // namespace arrowdl::python
