// The Python type DeviceArray: the one class on the raw C API. Every tensor that crosses calls its
// protocol methods, which cost a tenth of what pybind11's do.
#include <pybind11/pybind11.h>
#include <structmember.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>

#include "arrowdl/copy.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/lists.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "classes/classes.hpp"
#include "classes/device_array_docs.hpp"
#include "classes/device_array_methods.hpp"
#include "classes/schema.hpp"
#include "export/arrow.hpp"
#include "export/exchange_api.hpp"
#include "support/arguments.hpp"
#include "support/capsule.hpp"
#include "support/device_array_object.hpp"
#include "support/device_streams.hpp"
#include "support/errors.hpp"
#include "support/gil.hpp"
#include "support/objects.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;
namespace array_docs = device_array_docs;

using Object = DeviceArrayObject;

Object* cast(PyObject* self) noexcept { return reinterpret_cast<Object*>(self); }

// ---------------------------------------------------------------- life

void dealloc(PyObject* self) noexcept {
  PyTypeObject* type = Py_TYPE(self);
  if (cast(self)->weak_references != nullptr) PyObject_ClearWeakRefs(self);
  {
    const PendingError pending;  // a foreign release may be Python code
    cast(self)->array.~DeviceArray();
  }
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* release(PyObject* self, PyObject*) noexcept {
  DeviceArray dropped;
  {
    const CriticalSection section(self);
    std::swap(dropped, cast(self)->array);
  }
  Py_RETURN_NONE;
}

PyObject* is_released(PyObject* self, void*) noexcept {
  return PyBool_FromLong(peek_array(self) ? 0 : 1);
}

PyObject* reduce(PyObject* self, PyObject*) noexcept {
  return guarded([&]() -> PyObject* {
    const DeviceArray array = peek_array(self);
    const bool is_on_host = !array || is_host_readable(array.device());
    raise_type_error(
        "a DeviceArray cannot be pickled, it refers to memory of this process: send ",
        is_on_host
            ? "pyarrow.array(arr) instead, or its values with arrowdl.to_numpy(arr)"
            : "arrowdl.to_torch(arr).clone() by torch.multiprocessing, which shares its memory, "
              "or pyarrow.array(arr.to(\"cpu\"))");
  });
}

/// What cannot change needs no copy.
PyObject* copy_shallow(PyObject* self, PyObject*) noexcept { return Py_NewRef(self); }

PyObject* copy_deep(PyObject* self, PyObject*) noexcept {
  return guarded([&] {
    const DeviceArray array = get_array(self);
    DeviceArray copied;
    {
      const py::gil_scoped_release release;
      copied = duplicate(array);
    }
    return wrap(std::move(copied)).release().ptr();
  });
}

// ---------------------------------------------------------------- what it is

Py_ssize_t length(PyObject* self) noexcept {
  return guarded([&] { return static_cast<Py_ssize_t>(get_array(self).length()); },
                 static_cast<Py_ssize_t>(-1));
}

/// A text with the names of fields in it, which may come from a producer that knows no UTF-8.
py::object decode(const std::string& text) {
  return checked(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

PyObject* repr(PyObject* self) noexcept {
  return guarded([&] {
    const DeviceArray array = peek_array(self);  // once: another thread may release it in between
    if (!array) return py::str("<arrowdl.DeviceArray (released)>").release().ptr();
    return decode(describe(array)).release().ptr();
  });
}

PyObject* repr_html(PyObject* self, PyObject*) noexcept {
  return guarded([&] { return decode(describe_html(get_array(self))).release().ptr(); });
}

/// The value of `read(array)` as a Python object.
template <typename Read>
PyObject* read_array(PyObject* self, const Read& read) noexcept {
  return guarded([&] {
    auto value = std::invoke(read, get_array(self));
    if constexpr (std::is_base_of_v<py::handle, decltype(value)>) {
      return value.release().ptr();
    } else if constexpr (std::is_same_v<DeviceArray, decltype(value)>) {
      return wrap(std::move(value)).release().ptr();
    } else {
      return py::cast(std::move(value)).release().ptr();
    }
  });
}

/// A property, whose value `read(array)` makes.
template <auto read>
PyObject* get(PyObject* self, void*) noexcept {
  return read_array(self, read);
}

std::string read_type(const DeviceArray& array) { return to_string(array.type()); }

Schema read_schema(const DeviceArray& array) { return Schema(array.export_schema()); }

/// The type that `__dlpack__` reads: run ends are decoded on the way.
const Type& tensor_type(const DeviceArray& array) {
  const Type& type = array.type();
  return type.layout == Layout::kRunEndEncoded ? type.children[1] : type;
}

py::tuple read_shape(const DeviceArray& array) {
  const Type& type = tensor_type(array);
  if (!why_not_tensor(type).empty()) return py::make_tuple(array.length());
  const TensorView view = describe_tensor(type, array.length());
  py::tuple shape(static_cast<std::size_t>(view.ndim));
  for (int32_t i = 0; i < view.ndim; ++i) {
    shape[static_cast<std::size_t>(i)] = py::int_(view.extent(i));
  }
  return shape;
}

PyObject* is_contiguous(PyObject* self, PyObject*) noexcept {
  return read_array(self, [](const DeviceArray& array) {
    const Type& type = tensor_type(array);
    return py::bool_(!why_not_tensor(type).empty() ||
                     describe_tensor(type, array.length()).is_contiguous());
  });
}

py::object read_dtype(const DeviceArray& array) {
  const Type& type = tensor_type(array);
  if (!why_not_tensor(type).empty()) return py::none();
  return py::str(describe_tensor(type, 0).dtype->name);
}

// ---------------------------------------------------------------- parts

PyObject* get_field(PyObject* self, PyObject* key) noexcept {
  return guarded([&] {
    const DeviceArray array = get_array(self);
    const int64_t index = PyUnicode_Check(key) != 0
                              ? array.field_index(py::cast<std::string>(py::handle(key)))
                              : read_int("a field's name or index", key);
    const auto count = static_cast<int64_t>(array.type().children.size());
    if (array.type().layout == Layout::kStruct && (index < -count || index >= count)) {
      raise_index_error("field ", index, " of a struct of ", count);
    }
    return wrap(array.field(index < 0 ? index + count : index)).release().ptr();
  });
}

py::list read_field_names(const DeviceArray& array) {
  py::list names;
  if (array.type().layout != Layout::kStruct) return names;
  for (const Type& child : array.type().children) names.append(child.name());
  return names;
}

PyObject* subscript(PyObject* self, PyObject* key) noexcept {
  if (PySlice_Check(key) == 0) {
    return guarded([&]() -> PyObject* {
      if (PyUnicode_Check(key) != 0) return get_field(self, key);
      raise_type_error("a DeviceArray takes a slice of rows or the name of a field, got ",
                       Py_TYPE(key)->tp_name);
    });
  }
  return guarded([&] {
    const DeviceArray array = get_array(self);
    Py_ssize_t start;
    Py_ssize_t stop;
    Py_ssize_t step;
    if (PySlice_Unpack(key, &start, &stop, &step) != 0) throw py::error_already_set();
    const Py_ssize_t count = PySlice_AdjustIndices(array.length(), &start, &stop, step);
    if (step != 1) {
      raise_value_error("rows are sliced without a step, got step ", step,
                        ": Arrow arrays are contiguous in their rows");
    }
    return wrap(array.slice(start, count)).release().ptr();
  });
}

DeviceArray read_values(const DeviceArray& array) {
  if (array.type().layout == Layout::kFixedSizeList) return array.child(0);
  return split_list(array).values;
}

DeviceArray read_offsets(const DeviceArray& array) { return split_list(array).offsets; }

py::object read_sync_event(const DeviceArray& array) {
  if (!array.sync_event()) return py::none();
  return py::int_(array.sync_event().value());
}

py::object read_validity(const DeviceArray& array) {
  if (array.validity() == nullptr) return py::none();
  return wrap(array.validity_array());
}

// ---------------------------------------------------------------- Arrow protocols

PyObject* arrow_c_schema(PyObject* self, PyObject*) noexcept {
  return guarded([&] { return make_capsule(get_array(self).export_schema()).release().ptr(); });
}

// ---------------------------------------------------------------- the type

PyMethodDef methods[] = {
    {"field", as_method(get_field), METH_O, array_docs::kField},
    {"is_ready", as_method(is_ready), METH_NOARGS, array_docs::kIsReady},
    {"synchronize", as_method(synchronize), METH_NOARGS, array_docs::kSynchronize},
    {"wait", as_method(wait), METH_O, array_docs::kWait},
    {"is_contiguous", as_method(is_contiguous), METH_NOARGS, array_docs::kIsContiguous},
    {"record_stream", as_method(record_stream), METH_O, array_docs::kRecordStream},
    {"to", as_method(to), kFastCall, array_docs::kTo},
    {"release", as_method(release), METH_NOARGS, array_docs::kRelease},
    {"__arrow_c_schema__", as_method(arrow_c_schema), METH_NOARGS, array_docs::kArrowCSchema},
    {"__arrow_c_array__", as_method(arrow_c_array), kFastCall, array_docs::kArrowCArray},
    {"__arrow_c_device_array__", as_method(arrow_c_device_array), kFastCall,
     array_docs::kArrowCDeviceArray},
    {"__dlpack__", as_method(dlpack), kFastCall, array_docs::kDlpack},
    {"__dlpack_device__", as_method(dlpack_device), METH_NOARGS, array_docs::kDlpackDevice},
    {"__array__", as_method(array_method), kFastCall, array_docs::kArray},
    {"_repr_html_", as_method(repr_html), METH_NOARGS, array_docs::kReprHtml},
    {"__copy__", as_method(copy_shallow), METH_NOARGS, array_docs::kCopy},
    {"__deepcopy__", as_method(copy_deep), METH_O, array_docs::kDeepCopy},
    {"__reduce__", as_method(reduce), METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"__arrow_c_stream__", get_arrow_c_stream, nullptr, array_docs::kArrowCStream, nullptr},
    {"__arrow_c_device_stream__", get_arrow_c_device_stream, nullptr,
     array_docs::kArrowCDeviceStream, nullptr},
    {"type", get<read_type>, nullptr, array_docs::kType, nullptr},
    {"schema", get<read_schema>, nullptr, array_docs::kSchema, nullptr},
    {"shape", get<read_shape>, nullptr, array_docs::kShape, nullptr},
    {"dtype", get<read_dtype>, nullptr, array_docs::kDtype, nullptr},
    {"device", get<&DeviceArray::device>, nullptr, array_docs::kDevice, nullptr},
    {"nbytes", get<&DeviceArray::nbytes>, nullptr, array_docs::kNbytes, nullptr},
    {"sync_event", get<read_sync_event>, nullptr, array_docs::kSyncEvent, nullptr},
    {"null_count", get<&DeviceArray::null_count>, nullptr, array_docs::kNullCount, nullptr},
    {"field_names", get<read_field_names>, nullptr, array_docs::kFieldNames, nullptr},
    {"values", get<read_values>, nullptr, array_docs::kValues, nullptr},
    {"offsets", get<read_offsets>, nullptr, array_docs::kOffsets, nullptr},
    {"indices", get<&DeviceArray::indices>, nullptr, array_docs::kIndices, nullptr},
    {"dictionary", get<&DeviceArray::dictionary>, nullptr, array_docs::kDictionary, nullptr},
    {"validity", get<read_validity>, nullptr, array_docs::kValidity, nullptr},
    {"__cuda_array_interface__", get_cuda_array_interface, nullptr, array_docs::kCudaArrayInterface,
     nullptr},
    {"__sycl_usm_array_interface__", get_sycl_usm_array_interface, nullptr,
     array_docs::kSyclUsmArrayInterface, nullptr},
    {"is_released", is_released, nullptr, array_docs::kIsReleased, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Object, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>(array_docs::kClass)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_members, members},
    {Py_mp_length, reinterpret_cast<void*>(length)},
    {Py_mp_subscript, reinterpret_cast<void*>(subscript)},
    {0, nullptr},
};

PyType_Spec spec = {
    "arrowdl.DeviceArray",
    sizeof(Object),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};

}  // namespace

void register_device_array(py::module_& m) {
  py::object type = checked(PyType_FromModuleAndSpec(m.ptr(), &spec, nullptr));
  type.attr("__dlpack_c_exchange_api__") = make_exchange_api();
  m.add_object("DeviceArray", type);
  device_array_type = reinterpret_cast<PyTypeObject*>(type.release().ptr());
}

}  // namespace arrowdl::python
