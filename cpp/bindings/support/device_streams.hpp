// Streams as Python writes them: DLPack's integers, and the stream and queue objects of libraries.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>

#include "arrowdl/backends.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/order.hpp"

namespace arrowdl::python {

/// The stream that `stream` names on `device`: an integer as in `__dlpack__`, a torch, cupy or
/// numba stream, something with `__cuda_stream__`, a dpctl.SyclQueue, a pyopencl.CommandQueue.
/// Empty for None. Raises BufferError for what is no stream of that device.
std::optional<StreamHandle> read_stream(const Device& device, PyObject* stream);

/// What keeps the handle of `stream` good, where that is an object that owns one.
std::shared_ptr<const void> find_stream_owner(PyObject* stream);

/// What the `stream` of `__dlpack__` asks for on `device`: the host waits for None, by which DLPack
/// says that the consumer computes on the default stream, nobody for -1.
Order read_order(const Device& device, PyObject* stream);

/// Counts the default stream among those that use the memory of `array`: for consumers whose own
/// nobody names.
void record_assumed_stream(const DeviceArray& array);

/// The queue that `object`, an array of dpctl or dpnp, computes on; empty for other objects.
std::optional<StreamHandle> find_queue(PyObject* object);

/// Whether streams on `device` are queues, which `__dlpack__` has no numbers for: producers there
/// are told none, and which queue their work is on has to be known.
bool has_queues(const Device& device);

/// `stream` as `__dlpack__` takes it.
pybind11::object to_dlpack_stream(StreamHandle stream);

/// The stream that DLPack says a producer assumes when it is told none. Raises BufferError where
/// it says none.
StreamHandle default_stream(const Device& device);

/// The backend that can record the work of a stream on `device`, or nullptr: for the CPU, for types
/// without events, and where no such runtime is in the process, so that no work can be pending.
/// Raises BufferError where one is and arrowdl cannot use it.
Backend* find_stream_backend(const Device& device);

/// Makes every wait on the host let go of the GIL: the work that it waits for may need it.
void register_wait_guard();

}  // namespace arrowdl::python
