// Reads GPU streams from Python objects.
#include "support/device_streams.hpp"

#include "arrowdl/error.hpp"
#include "support/arguments.hpp"
#include "support/gil.hpp"
#include "support/names.hpp"
#include "support/objects.hpp"
#include "support/python_hooks.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

bool is_cuda(int32_t type) {
  return type == kDLCUDA || type == kDLCUDAHost || type == kDLCUDAManaged;
}

bool is_rocm(int32_t type) { return type == kDLROCM || type == kDLROCMHost; }

/// Whether DLPack defines a default stream for `device`.
bool has_default(const Device& device) { return is_cuda(device.type) || is_rocm(device.type); }

[[noreturn]] void raise_no_stream(const Device& device, PyObject* stream) {
  raise_buffer_error("stream=", py::repr(stream).cast<std::string>(), " is not a stream of ",
                     to_string(device),
                     ": pass its handle, its library's stream or queue object, or None");
}

StreamHandle to_stream(int64_t handle) { return StreamHandle(static_cast<uintptr_t>(handle)); }

/// Reads DLPack's integers for streams. Source: array API standard, `__dlpack__`.
StreamHandle read_handle(const Device& device, PyObject* stream) {
  const int64_t handle = find_int("stream", stream).value_or(-1);
  const bool is_ambiguous = is_cuda(device.type) && handle == 0;
  const bool is_cuda_alone = is_rocm(device.type) && (handle == 1 || handle == 2);
  const bool is_null_queue = has_queues(device) && handle == 0;
  const bool has_streams = is_cuda(device.type) || is_rocm(device.type) || has_queues(device);
  if (handle < 0 || is_ambiguous || is_cuda_alone || is_null_queue || !has_streams) {
    raise_no_stream(device, stream);
  }
  return to_stream(handle);
}

/// `object.name`, or an empty object.
py::object find_named(PyObject* object, const char* name) {
  return find_attribute(object, py::str(name).ptr());
}

/// `object.name`, or `object.name()`, if it is an integer.
std::optional<int64_t> find_number(PyObject* object, const char* name) {
  py::object value = find_named(object, name);
  if (!value) return {};
  if (PyCallable_Check(value.ptr()) != 0) value = checked(PyObject_CallNoArgs(value.ptr()));
  if (PyLong_Check(value.ptr()) == 0) return {};
  return read_int(name, value.ptr());
}

/// The same as a handle.
std::optional<StreamHandle> find_handle(PyObject* object, const char* name) {
  const std::optional<int64_t> number = find_number(object, name);
  return number ? std::optional(to_stream(*number)) : std::nullopt;
}

/// The handle of `__cuda_stream__`, a method, or an attribute in its first form: (version, handle).
/// Source: "CUDA Stream Protocol" of cuda.core's documentation.
std::optional<StreamHandle> find_by_protocol(PyObject* stream) {
  py::object pair = find_named(stream, "__cuda_stream__");
  if (!pair) return {};
  if (PyCallable_Check(pair.ptr()) != 0) pair = checked(PyObject_CallNoArgs(pair.ptr()));
  if (PyTuple_Check(pair.ptr()) == 0 || PyTuple_GET_SIZE(pair.ptr()) != 2) {
    raise_type_error("__cuda_stream__ of ", Py_TYPE(stream)->tp_name, " is ",
                     py::repr(pair).cast<std::string>(), ", expected (version, handle)");
  }
  const int64_t version = read_int("the version", PyTuple_GET_ITEM(pair.ptr(), 0));
  if (version != 0) {
    raise_buffer_error("the ", Py_TYPE(stream)->tp_name, " has version ", version,
                       " of __cuda_stream__, and arrowdl reads version 0: pass its handle");
  }
  return to_stream(read_int("the handle", PyTuple_GET_ITEM(pair.ptr(), 1)));
}

/// Whether `stream` is a torch.Stream, of any accelerator, on a device of `name`.
bool is_torch_on(PyObject* stream, const char* name) {
  const py::object device = find_named(stream, "device");
  const py::object type = device ? find_named(device.ptr(), "type") : py::object();
  return type && PyUnicode_Check(type.ptr()) != 0 && type.cast<std::string>() == name;
}

/// The handle of a tvm-ffi StreamContext: a number, or a ctypes.c_void_p.
std::optional<StreamHandle> find_context_handle(const Device& device, PyObject* context) {
  if (find_number(context, "device_type") != (is_cuda(device.type) ? kDLCUDA : kDLROCM)) return {};
  if (const auto handle = find_handle(context, "stream")) return handle;
  const py::object pointer = find_named(context, "stream");
  return pointer ? find_handle(pointer.ptr(), "value") : std::nullopt;
}

/// The handle of a stream of CUDA or ROCm. Events and memory have a `ptr` or a `handle` too.
std::optional<StreamHandle> find_cuda_handle(const Device& device, PyObject* stream) {
  if (const auto handle = find_by_protocol(stream)) return handle;
  if (const auto handle = find_handle(stream, "cuda_stream")) return handle;  // torch.cuda.Stream
  if (!find_named(stream, "wait_event")) return find_context_handle(device, stream);
  if (is_torch_on(stream, "cuda")) return find_handle(stream, "native_handle");
  return find_handle(stream, "ptr");  // CuPy before 14
}

/// The index of the device of a stream object, if it tells: torch's, CuPy's (-1 for the default
/// stream of whichever device is current), cuda.core's.
std::optional<int64_t> find_device_index(PyObject* stream) {
  for (const char* name : {"device_index", "device_id"}) {
    if (const auto index = find_number(stream, name)) return index;
  }
  const py::object device = find_named(stream, "device");
  if (!device) return {};
  for (const char* name : {"index", "device_id"}) {
    if (const auto index = find_number(device.ptr(), name)) return index;
  }
  return {};
}

/// Whether a handle means a stream of whichever device is current.
bool is_default_handle(StreamHandle stream) { return stream.value() <= 2; }

std::optional<StreamOfDevice> read_cuda_object(const Device& device, PyObject* stream) {
  const std::optional<StreamHandle> handle = find_cuda_handle(device, stream);
  if (!handle) return {};
  if (!is_default_handle(*handle)) return StreamOfDevice{device, *handle};  // the driver knows
  const int64_t index = find_device_index(stream).value_or(-1);
  const Device of{is_cuda(device.type) ? kDLCUDA : kDLROCM, index};
  // Libraries write 0 for the default stream, for which DLPack has another number.
  const StreamHandle named = handle->is_null() ? default_stream(device) : *handle;
  return StreamOfDevice{index < 0 || index == device.id ? device : of, named};
}

std::optional<StreamOfDevice> read_object(const Device& device, PyObject* stream) {
  static constexpr const char* kOneApi[] = {"addressof_ref", "sycl_queue"};
  std::optional<StreamHandle> queue;
  if (has_default(device)) return read_cuda_object(device, stream);
  if (device.type == kDLOneAPI) {  // torch.xpu.Stream, dpctl.SyclQueue
    for (const char* name : kOneApi) {
      if (!queue) queue = find_handle(stream, name);
    }
    // torch.Stream of torch.accelerator. Source: getStreamNativeHandle in
    // c10/xpu/impl/XPUGuardImpl.h.
    if (!queue && is_torch_on(stream, "xpu")) queue = find_handle(stream, "native_handle");
  } else if (device.type == kDLOpenCL && find_named(stream, "finish")) {
    queue = find_handle(stream, "int_ptr");  // pyopencl's events and buffers have no `finish`
  }
  return queue ? std::optional(StreamOfDevice{device, *queue}) : std::nullopt;
}

/// CuPy's current stream, if `stream` is its handle. CuPy passes numbers, and destroys a stream
/// together with its Python object.
py::object find_cupy_stream(StreamHandle stream) {
  const py::object module = find_module("cupy.cuda");
  if (!module) return {};
  const py::object get = find_named(module.ptr(), "get_current_stream");
  if (!get) return {};  // it is being imported
  try {
    py::object current = checked(PyObject_CallNoArgs(get.ptr()));
    if (find_handle(current.ptr(), "ptr") == stream) return current;
  } catch (py::error_already_set&) {  // CuPy has no GPU: the stream is another library's
  }
  return {};
}

}  // namespace

std::optional<StreamOfDevice> read_stream_of_device(const Device& device, PyObject* stream) {
  if (stream == nullptr || stream == Py_None) return {};
  if (device.type == kDLCPU) {
    raise_buffer_error("stream=", py::repr(stream).cast<std::string>(),
                       ": CPU memory has no streams, pass None");
  }
  if (PyIndex_Check(stream) != 0) return StreamOfDevice{device, read_handle(device, stream)};
  if (const auto named = read_object(device, stream)) return named;
  raise_no_stream(device, stream);
}

std::optional<StreamHandle> read_stream(const Device& device, PyObject* stream) {
  const std::optional<StreamOfDevice> named = read_stream_of_device(device, stream);
  if (!named) return {};
  if (named->device == device) return named->handle;
  raise_buffer_error("stream=", py::repr(stream).cast<std::string>(), " is the default stream of ",
                     to_string(named->device), ", the memory is on ", to_string(device),
                     ": pass a stream of that device");
}

std::shared_ptr<const void> find_stream_owner(const Device& device, PyObject* stream) {
  if (PyIndex_Check(stream) == 0) return share_object(stream);
  if (!has_default(device)) return nullptr;
  const StreamHandle handle = read_handle(device, stream);
  if (is_default_handle(handle)) return nullptr;
  const py::object owner = find_cupy_stream(handle);
  return owner ? share_object(owner.ptr()) : nullptr;
}

Order read_order(const Device& device, PyObject* stream) {
  if (stream == nullptr || stream == Py_None) {
    if (!has_default(device) || find_stream_backend(device) == nullptr) return {};
    return {Order::kDefaultStream, default_stream(device)};
  }
  const bool is_number = PyIndex_Check(stream) != 0;
  if (device.type == kDLCPU && !is_number) read_int("stream", stream);  // raises
  if (is_number && find_int("stream", stream) == -1) return {Order::kNone, {}};
  Order order{Order::kStream, *read_stream(device, stream), find_stream_owner(device, stream)};
  order.is_borrowed = order.owner == nullptr && has_default(device) &&
                      !is_default_handle(order.stream) && find_stream_backend(device) != nullptr;
  return order;
}

void record_assumed_stream(const DeviceArray& array) {
  const Device device = array.device();
  if (!has_default(device) || find_stream_backend(device) == nullptr) return;
  array.record_stream(default_stream(device));
}

std::optional<StreamHandle> find_queue(PyObject* object) {
  const py::object queue = find_attribute(object, names::sycl_queue);
  if (!queue) return {};
  const auto named = read_object(Device{kDLOneAPI, 0}, queue.ptr());
  return named ? std::optional(named->handle) : std::nullopt;
}

bool has_queues(const Device& device) {
  return device.type == kDLOneAPI || device.type == kDLOpenCL;
}

py::object to_dlpack_stream(StreamHandle stream) { return py::int_(stream.value()); }

StreamHandle default_stream(const Device& device) {
  if (is_cuda(device.type)) return to_stream(1);  // the legacy default stream
  if (is_rocm(device.type)) return to_stream(0);
  raise_buffer_error(
      "a tensor on ", to_string(device), " does not name the queue of its work: pass stream=queue",
      device.type == kDLOneAPI ? ", or the array itself instead of its capsule" : "");
}

void register_wait_guard() {
  set_wait_guard([](const std::function<void()>& wait) {
    const WithoutGil released;
    wait();
  });
}

Backend* find_stream_backend(const Device& device) {
  if (device_event_type(device.type) == nullptr) return nullptr;
  std::string why_not;
  Backend* backend = find_backend(device.type, &why_not);
  if (backend != nullptr) return backend->streams() != nullptr ? backend : nullptr;
  if (has_runtime(device.type)) {
    raise_buffer_error("the work on ", to_string(device), " cannot be ordered: ", why_not);
  }
  return nullptr;
}

}  // namespace arrowdl::python
