// `__cuda_array_interface__` and `__sycl_usm_array_interface__`: dictionaries that describe device
// memory, spoken by libraries that know no DLPack.
#pragma once

#include <pybind11/pybind11.h>

#include "arrowdl/device_array.hpp"
#include "import/tensor.hpp"

namespace arrowdl::python {

/// Whether `object` has one of the two.
bool has_array_interface(PyObject* object);

/// The memory that one of them describes, which keeps `object` alive. Its event is recorded on
/// `stream`, where that is not None, else on the stream or queue that the dictionary names. Raises
/// ValueError for a dictionary that breaks its protocol, BufferError for what Arrow can't carry and
/// where nobody can tell the device.
TakenTensor take_array_interface(PyObject* object, PyObject* stream);

// What `array` has under these names: a dict. Both raise AttributeError, which makes hasattr()
// False, where the protocol has no words for the array. Who uses the memory keeps the array.

/// Version 3: what its `stream` is given comes after the array's event. The host does not wait.
pybind11::object make_cuda_array_interface(const DeviceArray& array);
/// Version 1, which knows no order: the host waits for the array's event.
pybind11::object make_sycl_usm_array_interface(const DeviceArray& array);

}  // namespace arrowdl::python
