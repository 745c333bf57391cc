#include "classes/device_array.hpp"

#include <structmember.h>

#include <cstddef>
#include <new>
#include <optional>
#include <string_view>

#include "arrowdl/copy.hpp"
#include "arrowdl/copy_policy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/lists.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "classes/device.hpp"
#include "classes/repr.hpp"
#include "classes/schema.hpp"
#include "export/array_interface.hpp"
#include "export/arrow.hpp"
#include "import/tensor.hpp"
#include "support/arguments.hpp"
#include "support/capsule.hpp"
#include "support/device_streams.hpp"
#include "support/errors.hpp"
#include "support/objects.hpp"
#include "support/python_hooks.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

struct Object {
  PyObject_HEAD DeviceArray array;
  PyObject* weak_references;
};

PyTypeObject* device_array_type = nullptr;

Object* cast(PyObject* self) noexcept { return reinterpret_cast<Object*>(self); }

[[noreturn]] void raise_released() {
  raise_value_error(
      "this DeviceArray has been released: take what you need from it before "
      "release(), or let garbage collection release it");
}

/// The array, copied out: what a concurrent release() leaves is still whole.
DeviceArray get(PyObject* self) {
#ifdef Py_GIL_DISABLED
  DeviceArray array;
  Py_BEGIN_CRITICAL_SECTION(self);
  array = cast(self)->array;
  Py_END_CRITICAL_SECTION();
#else
  const DeviceArray& array = cast(self)->array;
#endif
  if (!array) raise_released();
  return array;
}

/// The array for as long as no Python code runs: under the GIL it can stay where it lies.
#ifdef Py_GIL_DISABLED
using Borrowed = DeviceArray;
Borrowed borrow(PyObject* self) { return get(self); }
#else
using Borrowed = const DeviceArray&;
Borrowed borrow(PyObject* self) {
  if (!cast(self)->array) raise_released();
  return cast(self)->array;
}
#endif

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
#ifdef Py_GIL_DISABLED
  Py_BEGIN_CRITICAL_SECTION(self);
  std::swap(dropped, cast(self)->array);
  Py_END_CRITICAL_SECTION();
#else
  std::swap(dropped, cast(self)->array);
#endif
  Py_RETURN_NONE;
}

PyObject* is_released(PyObject* self, void*) noexcept {
  return PyBool_FromLong(cast(self)->array ? 0 : 1);
}

PyObject* reduce(PyObject*, PyObject*) noexcept {
  PyErr_SetString(PyExc_TypeError,
                  "a DeviceArray cannot be pickled, it refers to memory of this process: send "
                  "pyarrow.array(arr) instead, or its values with arrowdl.to_numpy(arr)");
  return nullptr;
}

/// What cannot change needs no copy.
PyObject* copy_shallow(PyObject* self, PyObject*) noexcept { return Py_NewRef(self); }

PyObject* copy_deep(PyObject* self, PyObject*) noexcept {
  return guarded([&] {
    const DeviceArray array = get(self);
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
  return guarded([&] { return static_cast<Py_ssize_t>(get(self).length()); },
                 static_cast<Py_ssize_t>(-1));
}

/// A text with the names of fields in it, which may come from a producer that knows no UTF-8.
py::object decode(const std::string& text) {
  return checked(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

PyObject* repr(PyObject* self) noexcept {
  return guarded([&] {
    if (!cast(self)->array) return py::str("<arrowdl.DeviceArray (released)>").release().ptr();
    return decode(describe(get(self))).release().ptr();
  });
}

PyObject* repr_html(PyObject* self, PyObject*) noexcept {
  return guarded([&] { return decode(describe_html(get(self))).release().ptr(); });
}

/// A property whose value `read` makes: a Python object, or something that pybind11 casts.
template <typename Read>
PyObject* read_property(PyObject* self, const Read& read) noexcept {
  return guarded([&] {
    auto value = read(get(self));
    if constexpr (std::is_base_of_v<py::handle, decltype(value)>) {
      return value.release().ptr();
    } else {
      return py::cast(std::move(value)).release().ptr();
    }
  });
}

PyObject* get_type(PyObject* self, void*) noexcept {
  return read_property(self, [](const DeviceArray& array) { return to_string(array.type()); });
}

PyObject* get_schema(PyObject* self, void*) noexcept {
  return read_property(self,
                       [](const DeviceArray& array) { return Schema(array.export_schema()); });
}

PyObject* get_device(PyObject* self, void*) noexcept {
  return read_property(self, [](const DeviceArray& array) { return array.device(); });
}

PyObject* get_nbytes(PyObject* self, void*) noexcept {
  return read_property(self, [](const DeviceArray& array) { return array.nbytes(); });
}

PyObject* get_null_count(PyObject* self, void*) noexcept {
  return read_property(self, [](const DeviceArray& array) { return array.null_count(); });
}

/// The type that `__dlpack__` reads: run ends are decoded on the way.
const Type& tensor_type(const DeviceArray& array) {
  const Type& type = array.type();
  return type.layout == Layout::kRunEndEncoded ? type.children[1] : type;
}

PyObject* get_shape(PyObject* self, void*) noexcept {
  return read_property(self, [](const DeviceArray& array) {
    const Type& type = tensor_type(array);
    if (!why_not_tensor(type).empty()) return py::tuple(py::make_tuple(array.length()));
    const TensorView view = describe_tensor(type, array.length());
    py::tuple shape(static_cast<std::size_t>(view.ndim));
    for (int32_t i = 0; i < view.ndim; ++i) {
      shape[static_cast<std::size_t>(i)] = py::int_(view.shape[i]);
    }
    return shape;
  });
}

PyObject* get_dtype(PyObject* self, void*) noexcept {
  return read_property(self, [](const DeviceArray& array) -> py::object {
    const Type& type = tensor_type(array);
    if (!why_not_tensor(type).empty()) return py::none();
    return py::str(describe_tensor(type, 0).dtype->name);
  });
}

// ---------------------------------------------------------------- parts

PyObject* get_field(PyObject* self, PyObject* key) noexcept {
  return guarded([&] {
    const DeviceArray array = get(self);
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

PyObject* get_field_names(PyObject* self, void*) noexcept {
  return read_property(self, [](const DeviceArray& array) {
    py::list names;
    if (array.type().layout != Layout::kStruct) return names;
    for (const Type& child : array.type().children) names.append(child.name());
    return names;
  });
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
    const DeviceArray array = get(self);
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

PyObject* get_values(PyObject* self, void*) noexcept {
  return guarded([&] {
    const DeviceArray array = get(self);
    if (array.type().layout == Layout::kFixedSizeList) return wrap(array.child(0)).release().ptr();
    return wrap(split_list(array).values).release().ptr();
  });
}

PyObject* get_offsets(PyObject* self, void*) noexcept {
  return guarded([&] { return wrap(split_list(get(self)).offsets).release().ptr(); });
}

PyObject* get_indices(PyObject* self, void*) noexcept {
  return guarded([&] { return wrap(get(self).indices()).release().ptr(); });
}

PyObject* get_sync_event(PyObject* self, void*) noexcept {
  return read_property(self, [](const DeviceArray& array) -> py::object {
    if (!array.sync_event()) return py::none();
    return py::int_(array.sync_event().value());
  });
}

PyObject* is_ready(PyObject* self, PyObject*) noexcept {
  return guarded([&] { return PyBool_FromLong(get(self).is_ready() ? 1 : 0); });
}

PyObject* synchronize(PyObject* self, PyObject*) noexcept {
  return guarded([&] {
    const DeviceArray array = get(self);
    array.synchronize();
    return py::none().release().ptr();
  });
}

/// `use(array, stream)` for a stream that has to be one.
template <typename Use>
PyObject* use_stream(PyObject* self, PyObject* stream, const Use& use) noexcept {
  return guarded([&] {
    const DeviceArray array = get(self);
    if (const std::optional<StreamHandle> read = read_stream(array.device(), stream)) {
      use(array, *read, find_stream_owner(stream));
      return py::none().release().ptr();
    }
    raise_type_error("a stream or queue is needed, got None");
  });
}

PyObject* wait(PyObject* self, PyObject* stream) noexcept {
  return use_stream(self, stream,
                    [](const DeviceArray& a, StreamHandle s, std::shared_ptr<const void> owner) {
                      a.wait(s, std::move(owner));
                    });
}

PyObject* record_stream(PyObject* self, PyObject* stream) noexcept {
  return use_stream(self, stream,
                    [](const DeviceArray& a, StreamHandle s, std::shared_ptr<const void> owner) {
                      a.record_stream(s, std::move(owner));
                    });
}

PyObject* to(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) noexcept {
  return guarded([&] {
    CopyOptions options;
    PyObject* target = n > 0 ? args[0] : nullptr;
    PyObject* stream = nullptr;
    read_keywords("to", n, 1, args, names, [&](std::string_view name, PyObject* value) {
      if (name == "device" && target == nullptr) {
        target = value;
      } else if (name == "stream") {
        stream = value;
      } else if (name == "non_blocking") {
        options.non_blocking = read_bool("non_blocking", value);
      } else if (name == "pin_memory") {
        options.pin = read_bool("pin_memory", value);
      } else {
        return false;
      }
      return true;
    });
    if (target == nullptr) raise_type_error("to() needs a device");
    const DeviceArray array = get(self);
    const Device device = read_device(target);
    options.stream = read_stream(device.type == kDLCPU ? array.device() : device, stream);
    if (options.stream) options.stream_owner = find_stream_owner(stream);
    DeviceArray copied;
    {
      const py::gil_scoped_release release;  // drivers wait in the middle of copies
      copied = copy_array(array, device, options);
    }
    return wrap(std::move(copied)).release().ptr();
  });
}

PyObject* get_dictionary(PyObject* self, void*) noexcept {
  return guarded([&] { return wrap(get(self).dictionary()).release().ptr(); });
}

PyObject* get_validity(PyObject* self, void*) noexcept {
  return guarded([&] {
    const DeviceArray array = get(self);
    if (array.validity() == nullptr) return py::none().release().ptr();
    return wrap(array.validity_array()).release().ptr();
  });
}

// ---------------------------------------------------------------- Arrow protocols

PyObject* arrow_c_schema(PyObject* self, PyObject*) noexcept {
  return guarded([&] { return make_capsule(get(self).export_schema()).release().ptr(); });
}

// ---------------------------------------------------------------- DLPack protocol

/// There is one CPU, whatever its number: JAX counts as many as it is told to make.
constexpr int32_t kMaxCpus = 1 << 16;

/// The arguments of `__dlpack__`, as plain values.
struct DlpackRequest {
  PyObject* stream = nullptr;
  bool versioned = false;
  std::optional<Device> device;
  Copy copy = Copy::kIfNeeded;
};

bool is_versioned(PyObject* max_version) {
  if (PyTuple_Check(max_version) == 0 || PyTuple_GET_SIZE(max_version) != 2) {
    raise_type_error("max_version must be a tuple (major, minor), got ",
                     py::repr(max_version).cast<std::string>());
  }
  return read_int("max_version[0]", PyTuple_GET_ITEM(max_version, 0)) >= 1;
}

Device read_dl_device(PyObject* dl_device) {
  if (PyTuple_Check(dl_device) == 0 || PyTuple_GET_SIZE(dl_device) != 2) {
    raise_type_error("dl_device must be a tuple (device_type, device_id), got ",
                     py::repr(dl_device).cast<std::string>());
  }
  PyObject* id = PyTuple_GET_ITEM(dl_device, 1);
  const int32_t type = read_int32("dl_device[0]", PyTuple_GET_ITEM(dl_device, 0));
  const int32_t number = id == Py_None ? 0 : read_int32("dl_device[1]", id);
  if (find_device_type(type) == nullptr) {
    raise_buffer_error("dl_device=", py::repr(dl_device).cast<std::string>(), ": device type ",
                       type, " is unknown, DLPack defines 1-4 and 7-18");
  }
  if (number < 0 || (type == kDLCPU && number >= kMaxCpus)) {
    raise_buffer_error("dl_device=", py::repr(dl_device).cast<std::string>(),
                       ": there is no such device, the CPU is (1, 0)");
  }
  return from_dl_device(DLDevice{static_cast<DLDeviceType>(type), number});
}

DlpackRequest read_dlpack_arguments(PyObject* const* args, Py_ssize_t n, PyObject* names) {
  static const Keywords<4> keywords("__dlpack__", {"stream", "max_version", "dl_device", "copy"});
  PyObject* values[4] = {};
  keywords.read(n, args, names, values);
  const auto is_given = [&](std::size_t i) { return values[i] != nullptr && values[i] != Py_None; };
  DlpackRequest request;
  request.stream = values[0];
  if (is_given(1)) request.versioned = is_versioned(values[1]);
  if (is_given(2)) request.device = read_dl_device(values[2]);
  if (is_given(3)) request.copy = read_copy(values[3]);
  return request;
}

enum class Target { kOwn, kCpuLabel, kCpuCopy };

/// Where the tensor has to lie: `dl_device` is the array's own or the CPU, by DLPack. Host memory
/// only takes another label there.
Target find_target(const DeviceArray& array, const DlpackRequest& request) {
  if (!request.device || *request.device == array.device()) return Target::kOwn;
  if (request.device->type != kDLCPU) {
    raise_buffer_error("the array is on ", to_string(array.device()), ", dl_device asks for ",
                       to_string(*request.device),
                       ": __dlpack__ copies to the CPU alone, use to() first");
  }
  if (is_host_readable(array.device())) return Target::kCpuLabel;
  if (request.copy != Copy::kNever) return Target::kCpuCopy;
  raise_buffer_error("the array is on ", to_string(array.device()),
                     ", which takes a copy to reach from the CPU: allow it with copy=None");
}

/// The tensor in new memory of the CPU, which is there.
OwnedTensor copy_to_cpu(const DeviceArray& array) {
  DeviceArray copied;
  {
    const py::gil_scoped_release release;
    copied = copy_array(array, Device{});
  }
  auto shared = std::make_shared<OwnedTensor>(to_dlpack(copied));
  const TensorView view = view_tensor(**shared);
  return make_tensor(view, std::move(shared), DLPACK_FLAG_BITMASK_IS_COPIED);
}

PyObject* dlpack(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) noexcept {
  return guarded([&] {
    const DlpackRequest request = read_dlpack_arguments(args, n, names);
    // Reading a stream runs Python code, and a wait lets other threads run: the array may be
    // released meanwhile.
    const bool is_on_device = borrow(self).device().type != kDLCPU;
    const DeviceArray held = is_on_device ? get(self) : DeviceArray();
    Borrowed array = is_on_device ? held : borrow(self);
    ToDlpackOptions options;
    options.copy = request.copy;
    const Target target = find_target(array, request);
    options.as_cpu = target == Target::kCpuLabel;
    options.order = read_order(array.device(), request.stream);
    if (target == Target::kCpuCopy) {
      OwnedTensor copy = copy_to_cpu(held);
      if (!request.versioned) copy = to_legacy(std::move(copy));
      return make_capsule(std::move(copy)).release().ptr();
    }
    OwnedTensor tensor =
        request.versioned ? to_dlpack(array, options) : to_legacy_dlpack(array, options);
    return make_capsule(std::move(tensor)).release().ptr();
  });
}

PyObject* dlpack_device(PyObject* self, PyObject*) noexcept {
  return guarded([&] {
    const DLDevice device = to_dl_device(borrow(self).device());
    py::object pair = checked(PyTuple_New(2));
    PyTuple_SET_ITEM(pair.ptr(), 0, checked(PyLong_FromLong(device.device_type)).release().ptr());
    PyTuple_SET_ITEM(pair.ptr(), 1, checked(PyLong_FromLong(device.device_id)).release().ptr());
    return pair.release().ptr();
  });
}

PyObject* array_interface(PyObject* self, PyObject* const* args, Py_ssize_t n,
                          PyObject* names) noexcept {
  return guarded([&] {
    py::object dtype = n > 0 ? py::reinterpret_borrow<py::object>(args[0]) : py::none();
    py::object copy = n > 1 ? py::reinterpret_borrow<py::object>(args[1]) : py::none();
    read_keywords("__array__", n, 2, args, names, [&](std::string_view name, PyObject* value) {
      if (n > (name == "dtype" ? 0 : 1)) {
        raise_type_error("__array__() got several values for the argument '", name, "'");
      }
      (name == "dtype" ? dtype : copy) = py::reinterpret_borrow<py::object>(value);
      return name == "dtype" || name == "copy";
    });
    return find_hook(Hook::kToArray)(py::handle(self), dtype, copy).release().ptr();
  });
}

PyObject* dataframe(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) noexcept {
  return guarded([&] {
    bool nan_as_null = false;
    bool allow_copy = true;
    if (n > 0) nan_as_null = read_bool("nan_as_null", args[0]);
    if (n > 1) allow_copy = read_bool("allow_copy", args[1]);
    read_keywords("__dataframe__", n, 2, args, names, [&](std::string_view name, PyObject* value) {
      if (name == "nan_as_null" && n < 1) {
        nan_as_null = read_bool("nan_as_null", value);
      } else if (name == "allow_copy" && n < 2) {
        allow_copy = read_bool("allow_copy", value);
      } else {
        return false;
      }
      return true;
    });
    py::list chunks;
    chunks.append(py::reinterpret_borrow<py::object>(self));
    return find_hook(Hook::kMakeDataFrame)(chunks, py::arg("nan_as_null") = nan_as_null,
                                           py::arg("allow_copy") = allow_copy)
        .release()
        .ptr();
  });
}

PyObject* get_cuda_array_interface(PyObject* self, void*) noexcept {
  return read_property(self, make_cuda_array_interface);
}

PyObject* get_sycl_usm_array_interface(PyObject* self, void*) noexcept {
  return read_property(self, make_sycl_usm_array_interface);
}

// ---------------------------------------------------------------- the type

template <typename Function>
PyCFunction as_method(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;

PyMethodDef methods[] = {
    {"field", as_method(get_field), METH_O,
     "field($self, key, /)\n--\n\nThe field named or numbered `key` of a struct array, null "
     "wherever the struct is."},
    {"is_ready", as_method(is_ready), METH_NOARGS,
     "is_ready($self, /)\n--\n\nWhether the memory is there: no event, or one that has happened. "
     "Does "
     "not wait."},
    {"synchronize", as_method(synchronize), METH_NOARGS,
     "synchronize($self, /)\n--\n\nWait on the host until the memory is there."},
    {"wait", as_method(wait), METH_O,
     "wait($self, stream, /)\n--\n\nMake what `stream` is given from now on run when the memory is "
     "there; the host does not wait.\n\n"
     "The memory is then kept until the work of the stream is done, as `record_stream` does."},
    {"record_stream", as_method(record_stream), METH_O,
     "record_stream($self, stream, /)\n--\n\nGive the memory back only when the work that `stream` "
     "holds at that time is done.\n\nFor streams that read it without having come through "
     "arrowdl. The stream must live as long."},
    {"to", as_method(to), kFast,
     "to($self, device, *, stream=None, non_blocking=True, pin_memory=True)\n--\n\nThe same rows "
     "on "
     "another "
     "device.\n\n"
     "Copies the bytes that the rows take, nested values and dictionaries included, into one "
     "piece\n"
     "of new memory. On a device that carries one event for all of them.\n\n"
     "Parameters\n----------\n"
     "device : Device, str, tuple or device object\n"
     "    ``Device(\"cuda\", 0)``, ``\"cuda:0\"``, ``(2, 0)`` or ``torch.device(\"cuda\")``.\n"
     "stream : int or stream object, optional\n"
     "    What runs the copies: a stream of the device that is not the CPU, of the target's when\n"
     "    neither is. None: one of arrowdl's own.\n"
     "non_blocking : bool\n"
     "    Whether the copies may still be under way on return. To the CPU they never are.\n"
     "pin_memory : bool\n"
     "    Whether pageable memory goes to CUDA and ROCm devices through pinned memory of "
     "arrowdl's,\n"
     "    which is used again (see `config.staging_limit`): it has been read on return, and "
     "nobody\n"
     "    waits for the device. Otherwise the driver copies it as it can. Memory that is known "
     "to\n"
     "    be pinned goes as it is.\n\n"
     "Returns\n-------\n"
     "DeviceArray\n"
     "    The same memory where it lies there already. Host memory of a device (cuda_host, "
     "cuda_managed)\n"
     "    becomes the CPU's without a copy.\n\n"
     "Raises\n------\n"
     "BufferError\n"
     "    A device without a runtime, a stream that is captured into a graph, string and binary\n"
     "    views."},
    {"release", as_method(release), METH_NOARGS,
     "release($self, /)\n--\n\nGive this object's hold on the memory back now. Exports made "
     "before stay valid."},
    {"__arrow_c_schema__", as_method(arrow_c_schema), METH_NOARGS,
     "__arrow_c_schema__($self, /)\n--\n\nArrow PyCapsule interface: the schema."},
    {"__arrow_c_array__", as_method(arrow_c_array), kFast,
     "__arrow_c_array__($self, requested_schema=None)\n--\n\nArrow PyCapsule interface: schema "
     "and array, for memory that the host can read.\n\n"
     "Given as `requested_schema` has them where the same buffers or a cheap conversion serve, and "
     "as\nthey are otherwise.\n\n"
     "Raises\n------\n"
     "ValueError\n    A schema that is incompatible with the data, or has been consumed.\n"
     "TypeError\n    No schema capsule.\n"
     "BufferError\n    Memory that the host cannot read."},
    {"__arrow_c_device_array__", as_method(arrow_c_device_array), kFast,
     "__arrow_c_device_array__($self, requested_schema=None, **kwargs)\n--\n\nArrow PyCapsule "
     "interface: schema and device array."},
    {"__dlpack__", as_method(dlpack), kFast,
     "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "DLPack: a capsule of the tensor, zero-copy and read-only where the layout allows."},
    {"__dlpack_device__", as_method(dlpack_device), METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\nDLPack: (device_type, device_id)."},
    {"__array__", as_method(array_interface), kFast,
     "__array__($self, dtype=None, copy=None)\n--\n\nThe array as numpy's, read-only where it is "
     "not a copy."},
    {"__dataframe__", as_method(dataframe), kFast,
     "__dataframe__($self, nan_as_null=False, allow_copy=True)\n--\n\n"
     "The dataframe interchange protocol, for a struct: its fields are the columns.\n\n"
     "Zero-copy for numbers, booleans, dates and times, strings and dictionaries, on any device; "
     "string\nviews are gathered. Memory that the host cannot read has no ``ptr`` under "
     "``allow_copy=False``, and\nthat of a copy on the host otherwise; its ``__dlpack__`` is on "
     "the device.\n\n"
     "Raises\n------\n"
     "TypeError\n    An array that is not a struct.\n"
     "BufferError\n    ``nan_as_null=True``, which the protocol gave up; later, columns of a type "
     "that it has not."},
    {"_repr_html_", as_method(repr_html), METH_NOARGS,
     "_repr_html_($self, /)\n--\n\nThe representation for notebooks."},
    {"__copy__", copy_shallow, METH_NOARGS,
     "__copy__($self, /)\n--\n\nThe array itself: it cannot change."},
    {"__deepcopy__", copy_deep, METH_O,
     "__deepcopy__($self, memo, /)\n--\n\nThe same rows in memory of their own, on the same "
     "device: nested values, dictionaries and the\ndata of views too."},
    {"__reduce__", as_method(reduce), METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"__arrow_c_stream__", get_arrow_c_stream, nullptr,
     "Of a struct: the method of the Arrow PyCapsule interface that gives a stream of this one "
     "array,\nfor memory that the host can read.",
     nullptr},
    {"__arrow_c_device_stream__", get_arrow_c_device_stream, nullptr,
     "Of a struct: the same as a device stream.", nullptr},
    {"type", get_type, nullptr, "The Arrow type, as text.", nullptr},
    {"schema", get_schema, nullptr, "The Arrow schema.", nullptr},
    {"shape", get_shape, nullptr,
     "The shape of the tensor, or (len,) where there is no single tensor.", nullptr},
    {"dtype", get_dtype, nullptr,
     "The tensor's element type by name, or None where there is no single tensor.", nullptr},
    {"device", get_device, nullptr, "Where the memory lies.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of the buffers that these rows take.", nullptr},
    {"sync_event", get_sync_event, nullptr,
     "The address of the event after which the memory is there, of the type that Arrow defines for "
     "the device; None without one.",
     nullptr},
    {"null_count", get_null_count, nullptr, "Nulls among the rows (not in nested values).",
     nullptr},
    {"field_names", get_field_names, nullptr, "Names of a struct's fields.", nullptr},
    {"values", get_values, nullptr,
     "The elements of a list, string or binary array (uint8 for the latter two).", nullptr},
    {"offsets", get_offsets, nullptr,
     "Where each list begins in `values`, and where the last one ends.", nullptr},
    {"indices", get_indices, nullptr, "The codes of a dictionary array.", nullptr},
    {"dictionary", get_dictionary, nullptr, "The values of a dictionary array.", nullptr},
    {"validity", get_validity, nullptr,
     "The validity bitmap as a boolean array, or None when there is none.", nullptr},
    {"__cuda_array_interface__", get_cuda_array_interface, nullptr,
     "The memory as the CUDA array interface, version 3, describes it.\n\n"
     "Read-only. A consumer has to come after ``stream``, which the data is ordered on and which "
     "is "
     "None\nwhere it is there. By the protocol, who uses the memory keeps this array alive.\n\n"
     "Raises\n------\n"
     "AttributeError\n    Other devices than cuda and cuda_managed, nulls, and types without a "
     "typestr.",
     nullptr},
    {"__sycl_usm_array_interface__", get_sycl_usm_array_interface, nullptr,
     "The memory as dpctl's protocol for SYCL's unified shared memory, version 1, describes it.\n\n"
     "Read-only. ``syclobj`` is dpctl's own queue of the device. The protocol knows no order: the "
     "host\nwaits until the memory is there. By the protocol, who uses it keeps this array "
     "alive.\n\n"
     "Raises\n------\n"
     "AttributeError\n    Other devices than oneapi, nulls, and types without a typestr; dpctl is "
     "not there.",
     nullptr},
    {"is_released", is_released, nullptr, "Whether release() was called.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Object, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

constexpr const char* kDoc =
    "An Arrow array with its schema, on any device: owned, immutable, cheap to slice.\n\n"
    "Made by `to_arrow_device`, `from_arrow` and `c_data`. Speaks the Arrow PyCapsule "
    "protocols, DLPack\nand its C exchange API, numpy's `__array__`, and on CUDA and SYCL devices "
    "their array interfaces.";

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>(kDoc)},
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

py::object wrap(DeviceArray array) {
  py::object object = checked(device_array_type->tp_alloc(device_array_type, 0));
  new (&cast(object.ptr())->array) DeviceArray(std::move(array));
  return object;
}

DeviceArray find_array(PyObject* object) {
  return Py_TYPE(object) == device_array_type ? get(object) : DeviceArray();
}

void register_device_array(py::module_& m) {
  py::object type = checked(PyType_FromModuleAndSpec(m.ptr(), &spec, nullptr));
  type.attr("__dlpack_c_exchange_api__") = make_exchange_api();
  m.add_object("DeviceArray", type);
  device_array_type = reinterpret_cast<PyTypeObject*>(type.release().ptr());
}

}  // namespace arrowdl::python
