// Reads GPU streams from Python: DLPack's integers, and the stream and queue objects of libraries.
#pragma once

#include <pybind11/cast.h>

#include <optional>

#include "arrowdl/backends.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/order.hpp"

namespace arrowdl::python {

/// The stream that `stream` names on `device`: an integer as in `__dlpack__`, a torch or cupy
/// stream, something with `__cuda_stream__`, a dpctl.SyclQueue, a pyopencl.CommandQueue. Empty for
/// None. Raises BufferError for anything else, and for the default stream of another device.
std::optional<StreamHandle> read_stream(const Device& device, PyObject* stream);

/// A stream, and the device that tells which one its handle means.
struct StreamOfDevice {
  Device device;
  StreamHandle handle;
};

/// The same, also for the default stream of another device of the runtime.
std::optional<StreamOfDevice> read_stream_of_device(const Device& device, PyObject* stream);

/// An owner that keeps the handle of `stream` valid: the object, or for an integer the stream of
/// CuPy with this handle. nullptr for another integer.
std::shared_ptr<const void> find_stream_owner(const Device& device, PyObject* stream);

/// The order that the `stream` of `__dlpack__` requests on `device`: a stream waits with its later
/// work, for None the host waits, for -1 the consumer orders the work itself. With None a consumer
/// computes on the default stream.
Order read_order(const Device& device, PyObject* stream);

/// Records the default stream as a user of the memory of `array`, for consumers that name no
/// stream.
void record_assumed_stream(const DeviceArray& array);

/// The queue of the work on `object`, an array of dpctl or dpnp; empty for other objects.
std::optional<StreamHandle> find_queue(PyObject* object);

/// Whether streams on `device` are queues, for which `__dlpack__` has no numbers: producers get no
/// stream, and the queue of their work has to be known otherwise.
bool has_queues(const Device& device);

/// `stream` as the integer for `__dlpack__`.
pybind11::object to_dlpack_stream(StreamHandle stream);

/// The stream that a producer assumes if it gets none. Raises BufferError for devices for which
/// DLPack defines none.
StreamHandle default_stream(const Device& device);

/// The backend that records the work of streams on `device`. nullptr for the CPU, for types without
/// events, and if the process has not loaded the runtime, so that no work can be pending. Raises
/// BufferError if it has and arrowdl cannot use it.
Backend* find_stream_backend(const Device& device);

/// Makes every wait on the host release the GIL, which the awaited work may need.
void register_wait_guard();

}  // namespace arrowdl::python
