// The functions of arrowdl's Python modules that the bindings call.
#pragma once

#include <pybind11/cast.h>

namespace arrowdl::python {

enum class Hook {
  kFindDevice,     ///< (torch.device or jax.Device) -> (name, id)
  kExplainDevice,  ///< (name, id) -> str: why torch has no such device, or ""
  kLoadFramework,  ///< (name) -> Framework
  kToArray,        ///< (array, dtype, copy) -> numpy.ndarray
  kToArrow,        ///< (container, the other arguments of to_arrow_device) -> DeviceArray
  kReadFrame,      ///< (object) -> DeviceArray, or None
  kFromDataFrame,  ///< (frame, allow_copy=) -> DeviceArray
  kIterateAsync,   ///< (DeviceStream) -> AsyncDeviceStream
  kFindSyclWork,   ///< (__sycl_usm_array_interface__) -> (queue, device id)
  kFindSyclQueue,  ///< (device id) -> queue
  kFindCurrent,    ///< (device type, driver's current id or None, framework) -> id
  kFindAllocator,  ///< (allocator) -> function of allocate, or None
  kAllocateAuto,   ///< (device type, id, bytes, stream) -> (address, owner, stream or None) or None
  kAllocateByTorch,  ///< the same, without None
  kFreeCaches,       ///< (device type) -> None
  kIsStreamOfJax,    ///< (device type, device id, stream) -> bool
  kOrderAfterJax,    ///< (device type, device id, stream) -> None
  kExplainUnread,    ///< (function, object) -> str: why a function cannot read it, what to pass
  kAnnotate,         ///< (error, method, object) -> None: a note on an error of a producer
  kRefuseObjects,    ///< (object) -> None: raises TypeError for Python objects of polars
  kOpenStream,       ///< (object) -> a stream or an iterator, or None
  kMap,              ///< (DeviceStream, model, the options of map) -> DeviceStream
  kCount,
};

/// The function, imported on first use and never released. Raises the errors of the import.
pybind11::handle find_hook(Hook hook);

/// The module, if the process has imported it; a null object otherwise.
pybind11::object find_module(const char* name);

/// Calls `function` when the interpreter ends, while it still runs Python code.
void call_at_exit(pybind11::handle function);

}  // namespace arrowdl::python
