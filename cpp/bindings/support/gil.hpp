// The interpreter lock in callbacks that run on any thread, at any time.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "arrowdl/error.hpp"
#include "support/errors.hpp"

namespace arrowdl::python {

inline bool is_finalizing() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

/// Whether the interpreter is on its way out, or gone.
inline bool is_ending() noexcept { return Py_IsInitialized() == 0 || is_finalizing(); }

/// Whether this thread holds the GIL (where there is none: whether it is attached), at any time.
/// PyGILState_Check says yes to every thread once there has been a sub-interpreter.
inline bool holds_gil() noexcept {
  PyThreadState* const current = pybind11::detail::get_thread_state_unchecked();
#if PY_VERSION_HEX >= 0x030C0000
  return current != nullptr;
#else  // the thread state of whoever holds it
  return current != nullptr && current == PyGILState_GetThisThreadState();
#endif
}

/// Lets go of the GIL where this thread holds it: exported callbacks are called either way.
class WithoutGil {
 public:
  WithoutGil() noexcept : state_(holds_gil() ? PyEval_SaveThread() : nullptr) {}
  ~WithoutGil() {
    if (state_ != nullptr) PyEval_RestoreThread(state_);
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

/// Runs `body` with the GIL held and a pending Python error put aside. Once the interpreter is
/// gone, or going while this thread does not hold the GIL, `body` is not run and the result is
/// false: what it would free goes with the process.
template <typename Body>
bool with_gil(const Body& body) {
  if (Py_IsInitialized() == 0) return false;
  if (!holds_gil() && is_finalizing()) return false;
  struct Gil {
    const PyGILState_STATE state = PyGILState_Ensure();
    ~Gil() { PyGILState_Release(state); }
  } const gil;
  const PendingError pending;
  body();
  return true;
}

/// The same for what has to run to go on. Raises RuntimeError where the interpreter is gone.
template <typename Body>
void require_gil(const Body& body) {
  if (!with_gil(body)) {
    throw Error(ErrorKind::kRuntime,
                "Python code has to run for this, and the interpreter is gone");
  }
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
