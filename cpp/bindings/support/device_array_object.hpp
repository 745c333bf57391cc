// The Python object of a DeviceArray.
#pragma once

#include <pybind11/cast.h>

#include "arrowdl/device_array.hpp"

namespace arrowdl::python {

struct DeviceArrayObject {
  PyObject_HEAD DeviceArray array;
  PyObject* weak_references;
};

/// The type, which `register_device_array` makes. Never freed.
extern PyTypeObject* device_array_type;

/// A new DeviceArray object that owns `array`.
pybind11::object wrap(DeviceArray array);

/// The array in a DeviceArray object, or an empty one for any other object. Raises ValueError if it
/// has been released.
DeviceArray find_array(PyObject* object);

/// The array in the DeviceArray object `self`: a copy, which stays valid if another thread releases
/// the object. Raises ValueError if it has been released.
DeviceArray get_array(PyObject* self);

/// The same, or an empty array if it has been released.
DeviceArray peek_array(PyObject* self) noexcept;

/// As `get_array`, valid until Python code runs. With a GIL this is a reference, without one a
/// copy.
#ifdef Py_GIL_DISABLED
using BorrowedArray = DeviceArray;
#else
using BorrowedArray = const DeviceArray&;
#endif
BorrowedArray borrow_array(PyObject* self);

}  // namespace arrowdl::python
