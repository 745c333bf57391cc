// Reads GPU streams from Python objects.
#include "support/device_streams.hpp"

#include "arrowdl/error.hpp"
#include "support/arguments.hpp"
#include "support/gil.hpp"
#include "support/objects.hpp"

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
  raise_buffer_error("stream=", py::repr(stream).cast<std::string>(), " is no stream of ",
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

/// `object.name`, or `object.name()`, as an integer.
std::optional<StreamHandle> find_handle(PyObject* object, const char* name) {
  py::object value = find_attribute(object, py::str(name).ptr());
  if (!value) return {};
  if (PyCallable_Check(value.ptr()) != 0) value = checked(PyObject_CallNoArgs(value.ptr()));
  if (PyTuple_Check(value.ptr()) != 0) {  // __cuda_stream__: (version, handle)
    value = py::reinterpret_borrow<py::object>(checked(PySequence_GetItem(value.ptr(), 1)));
  }
  if (PyLong_Check(value.ptr()) == 0) return {};
  return to_stream(read_int(name, value.ptr()));
}

std::optional<StreamHandle> read_object(const Device& device, PyObject* stream) {
  // torch.cuda.Stream, cupy.cuda.Stream; torch.xpu.Stream, dpctl.SyclQueue.
  static constexpr const char* kCuda[] = {"__cuda_stream__", "cuda_stream", "ptr"};
  static constexpr const char* kOneApi[] = {"addressof_ref", "sycl_queue"};
  if (is_cuda(device.type) || is_rocm(device.type)) {
    for (const char* name : kCuda) {
      // Libraries write 0 for the default stream, for which DLPack has another number.
      if (const auto handle = find_handle(stream, name)) {
        return handle->is_null() ? default_stream(device) : *handle;
      }
    }
  } else if (device.type == kDLOneAPI) {
    for (const char* name : kOneApi) {
      if (const auto handle = find_handle(stream, name)) return handle;
    }
  } else if (device.type == kDLOpenCL && find_attribute(stream, py::str("finish").ptr())) {
    return find_handle(stream, "int_ptr");  // pyopencl's events and buffers have it, but no finish
  }
  return {};
}

}  // namespace

std::optional<StreamHandle> read_stream(const Device& device, PyObject* stream) {
  if (stream == nullptr || stream == Py_None) return {};
  if (device.type == kDLCPU) {
    raise_buffer_error("stream=", py::repr(stream).cast<std::string>(),
                       ": CPU memory has no streams, pass None");
  }
  if (PyIndex_Check(stream) != 0) return read_handle(device, stream);
  if (const auto handle = read_object(device, stream)) return handle;
  raise_no_stream(device, stream);
}

std::shared_ptr<const void> find_stream_owner(PyObject* stream) {
  return PyIndex_Check(stream) != 0 ? nullptr : share_object(stream);
}

Order read_order(const Device& device, PyObject* stream) {
  if (stream == nullptr || stream == Py_None) {
    if (!has_default(device) || find_stream_backend(device) == nullptr) return {};
    return {Order::kDefaultStream, default_stream(device)};
  }
  const bool is_number = PyIndex_Check(stream) != 0;
  if (device.type == kDLCPU && !is_number) read_int("stream", stream);  // raises
  if (is_number && find_int("stream", stream) == -1) return {Order::kNone, {}};
  return {Order::kStream, *read_stream(device, stream), find_stream_owner(stream)};
}

void record_assumed_stream(const DeviceArray& array) {
  const Device device = array.device();
  if (!has_default(device) || find_stream_backend(device) == nullptr) return;
  array.record_stream(default_stream(device));
}

std::optional<StreamHandle> find_queue(PyObject* object) {
  static PyObject* const name = interned("sycl_queue");
  const py::object queue = find_attribute(object, name);
  if (!queue) return {};
  return read_object(Device{kDLOneAPI, 0}, queue.ptr());
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
  const DeviceType* type = find_device_type(device.type);
  if (type == nullptr || type->event_type == nullptr) return nullptr;
  std::string why_not;
  Backend* backend = find_backend(device.type, &why_not);
  if (backend != nullptr) return backend->streams() != nullptr ? backend : nullptr;
  if (has_runtime(device.type)) {
    raise_buffer_error("the work on ", to_string(device), " cannot be ordered: ", why_not);
  }
  return nullptr;
}

}  // namespace arrowdl::python
