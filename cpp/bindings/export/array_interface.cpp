// Describes a DeviceArray in the dictionaries of the array interfaces.
#include "export/array_interface.hpp"

#include "arrowdl/backend.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "support/array_interface.hpp"
#include "support/device_streams.hpp"
#include "support/objects.hpp"
#include "support/python_hooks.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

/// The result of `make`. A BufferError becomes an AttributeError, so that hasattr() is False.
template <typename Make>
py::object or_attribute_error(const Make& make) {
  try {
    return make();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kBuffer) throw;
    PyErr_SetString(PyExc_AttributeError, error.what());
  } catch (const py::error_already_set& error) {
    if (!error.matches(PyExc_BufferError)) throw;
    PyErr_SetObject(PyExc_AttributeError, py::str(error.value()).ptr());
  }
  throw py::error_already_set();
}

py::tuple to_tuple(const int64_t* values, int32_t count, int64_t factor) {
  py::tuple tuple(static_cast<std::size_t>(count));
  for (int32_t i = 0; i < count; ++i) {
    tuple[static_cast<std::size_t>(i)] = py::int_(values[i] * factor);
  }
  return tuple;
}

/// An address in the array's memory, for an array without elements: its DLPack tensor has none, and
/// dpctl finds the device of an array by it.
const void* find_memory(DeviceArray array) {
  while (array.type().layout == Layout::kFixedSizeList) array = array.child(0);
  const void* memory = array.buffer_count() > 1 ? array.buffer(1) : nullptr;
  if (memory == nullptr && array.length() == 0) {
    raise_buffer_error("an array without rows and memory has no ", kSycl,
                       ", in which the address names the device: use __dlpack__");
  }
  return memory;
}

/// The entries that both protocols have. `empty_address` is the address of an empty array.
py::dict describe(const DeviceArray& array, StrideUnit unit, const void* empty_address) {
  ToDlpackOptions options;
  options.copy = Copy::kNever;
  options.order.kind = Order::kNone;
  const OwnedTensor tensor = to_dlpack(array, options);
  const TensorView view = view_tensor(tensor);
  const int64_t factor = unit == StrideUnit::kBytes ? view.dtype->itemsize() : 1;
  const void* memory = view.data == nullptr ? empty_address : view.data;
  py::dict entries;
  entries["shape"] = to_tuple(view.shape, view.ndim, 1);
  entries["typestr"] = to_typestr(*view.dtype);
  entries["data"] = py::make_tuple(reinterpret_cast<uintptr_t>(memory), true);
  entries["strides"] = view.is_contiguous() ? py::object(py::none())
                                            : py::object(to_tuple(view.strides, view.ndim, factor));
  return entries;
}

void check_device(const DeviceArray& array, const char* name, const char* devices, bool is_one) {
  if (is_one) return;
  raise_buffer_error("a DeviceArray on ", to_string(array.device()), " has no ", name,
                     ", which is for memory on ", devices, ": use __dlpack__");
}

/// The stream that a consumer has to wait for: ours, which waits for the array, or None if the data
/// is ready.
py::object order_cuda(const DeviceArray& array) {
  // The protocol does not name the consumer's stream. The default stream, which waits for the work
  // of most streams, is recorded in its place.
  record_assumed_stream(array);
  if (array.is_ready()) return py::none();
  const Device device = array.device();
  const StreamHandle stream = require_memory(device, "order a consumer").work_stream(device);
  array.wait(stream);
  return to_dlpack_stream(stream);
}

/// dpctl's default queue of the device. In the protocol it only names the context, not an order:
/// consumers read at once, so the host waits, as dpctl does.
py::object order_sycl(const DeviceArray& array) {
  const Device device = array.device();
  require_backend(device, "order a consumer");
  py::object queue = find_hook(Hook::kFindSyclQueue)(device.id);
  array.synchronize();
  array.record_stream(*read_stream(device, queue.ptr()));
  return queue;
}

}  // namespace

py::object make_cuda_array_interface(const DeviceArray& array) {
  return or_attribute_error([&] {
    const int32_t type = array.device().type;
    check_device(array, kCuda, "cuda and cuda_managed", type == kDLCUDA || type == kDLCUDAManaged);
    py::dict entries = describe(array, StrideUnit::kBytes, nullptr);
    entries["version"] = kCudaVersion;
    entries["stream"] = order_cuda(array);
    return py::object(std::move(entries));
  });
}

py::object make_sycl_usm_array_interface(const DeviceArray& array) {
  return or_attribute_error([&] {
    check_device(array, kSycl, "oneapi", array.device().type == kDLOneAPI);
    py::dict entries = describe(array, StrideUnit::kElements, find_memory(array));
    entries["offset"] = 0;
    entries["version"] = kSyclVersion;
    entries["syclobj"] = order_sycl(array);
    return py::object(std::move(entries));
  });
}

}  // namespace arrowdl::python
