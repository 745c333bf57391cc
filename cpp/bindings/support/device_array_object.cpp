// Makes the Python objects of DeviceArrays.
#include "support/device_array_object.hpp"

#include <new>

#include "arrowdl/error.hpp"
#include "support/gil.hpp"
#include "support/objects.hpp"

namespace arrowdl::python {
namespace {

DeviceArrayObject* cast(PyObject* self) noexcept {
  return reinterpret_cast<DeviceArrayObject*>(self);
}

[[noreturn]] void raise_released() {
  raise_value_error(
      "this DeviceArray has been released: read it before release(), or let garbage collection "
      "release it");
}

}  // namespace

PyTypeObject* device_array_type = nullptr;

pybind11::object wrap(DeviceArray array) {
  pybind11::object object = checked(device_array_type->tp_alloc(device_array_type, 0));
  new (&cast(object.ptr())->array) DeviceArray(std::move(array));
  return object;
}

DeviceArray peek_array(PyObject* self) noexcept {
  const CriticalSection section(self);
  return cast(self)->array;
}

DeviceArray find_array(PyObject* object) {
  return Py_TYPE(object) == device_array_type ? get_array(object) : DeviceArray();
}

#ifdef Py_GIL_DISABLED

DeviceArray get_array(PyObject* self) {
  DeviceArray array = peek_array(self);
  if (!array) raise_released();
  return array;
}

BorrowedArray borrow_array(PyObject* self) { return get_array(self); }

#else

DeviceArray get_array(PyObject* self) { return borrow_array(self); }

BorrowedArray borrow_array(PyObject* self) {
  if (!cast(self)->array) raise_released();
  return cast(self)->array;
}

#endif

}  // namespace arrowdl::python
