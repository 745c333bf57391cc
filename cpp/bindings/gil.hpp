// The interpreter lock in callbacks that run on any thread, at any time.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "errors.hpp"

namespace arrowdl::python {

inline bool is_finalizing() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

/// Runs `body` with the GIL held and a pending Python error put aside. Once the interpreter is
/// gone, or going while this thread does not hold the GIL, `body` is not run and the result is
/// false: what it would free goes with the process.
template <typename Body>
bool with_gil(const Body& body) noexcept {
  if (Py_IsInitialized() == 0) return false;
  if (PyGILState_Check() == 0 && is_finalizing()) return false;
  const PyGILState_STATE state = PyGILState_Ensure();
  {
    const PendingError pending;
    body();
  }
  PyGILState_Release(state);
  return true;
}

/// A reference to `object` that any thread may drop.
inline std::shared_ptr<const void> share_object(PyObject* object) {
  Py_INCREF(object);  // first: where there is no memory, the deleter runs
  return std::shared_ptr<const void>(static_cast<const void*>(object), [](const void* held) {
    with_gil([held] { Py_DECREF(static_cast<PyObject*>(const_cast<void*>(held))); });
  });
}

/// Holds the lock of `object` where Python has no GIL: what is checked stays so until it is done.
class CriticalSection {
 public:
#ifdef Py_GIL_DISABLED
  explicit CriticalSection(PyObject* object) noexcept {
    PyCriticalSection_Begin(&section_, object);
  }
  ~CriticalSection() { PyCriticalSection_End(&section_); }
#else
  explicit CriticalSection(PyObject*) noexcept {}
  ~CriticalSection() {}
#endif
  CriticalSection(const CriticalSection&) = delete;
  CriticalSection& operator=(const CriticalSection&) = delete;

#ifdef Py_GIL_DISABLED
 private:
  PyCriticalSection section_;
#endif
};

}  // namespace arrowdl::python
