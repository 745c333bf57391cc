// Takes and releases the GIL in callbacks that run on any thread, at any time.
#pragma once

#include <pybind11/cast.h>

#include <memory>
#include <string>

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

/// Whether the interpreter is finalizing, or has ended.
inline bool is_ending() noexcept { return Py_IsInitialized() == 0 || is_finalizing(); }

/// Whether this thread holds the GIL (in free-threaded Python: is attached). Callable at any time.
/// PyGILState_Check is true for every thread once a sub-interpreter has existed.
inline bool holds_gil() noexcept {
  PyThreadState* const current = pybind11::detail::get_thread_state_unchecked();
#if PY_VERSION_HEX >= 0x030C0000
  return current != nullptr;
#else  // `current` is the thread state of the thread that holds the GIL
  return current != nullptr && current == PyGILState_GetThisThreadState();
#endif
}

/// Releases the GIL if this thread holds it: consumers call exported callbacks with and without it.
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

/// Gives this thread a Python thread state until its end, if it is one of arrowdl's that read
/// streams. Otherwise each call on it makes and destroys one, with the values of threading.local.
void keep_thread_state() noexcept;

/// Runs `body` with the GIL held and a pending Python error saved. If the interpreter has ended, or
/// is finalizing and this thread does not hold the GIL, this does not run `body` and returns false:
/// memory that `body` would free is leaked.
template <typename Body>
bool with_gil(const Body& body) {
  if (Py_IsInitialized() == 0) return false;
  if (!holds_gil()) {
    if (is_finalizing()) return false;
    keep_thread_state();
  }
  struct Gil {
    const PyGILState_STATE state = PyGILState_Ensure();
    ~Gil() { PyGILState_Release(state); }
  } const gil;
  const PendingError pending;
  body();
  return true;
}

/// The same for a `body` that has to run. Raises RuntimeError if it cannot.
template <typename Body>
void require_gil(const Body& body) {
  if (!with_gil(body)) {
    throw Error(ErrorKind::kRuntime, "this has to run Python code, and the interpreter has ended");
  }
}

/// A reference to `object` that any thread may release.
inline std::shared_ptr<const void> share_object(PyObject* object) {
  Py_INCREF(object);  // first: if the allocation fails, the deleter runs
  return std::shared_ptr<const void>(static_cast<const void*>(object), [](const void* held) {
    with_gil([held] { Py_DECREF(static_cast<PyObject*>(const_cast<void*>(held))); });
  });
}

/// Holds the lock of `object` in free-threaded Python, so that a check holds until its use.
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

/// A Python exception that passes through streams; any thread may call `what`. pybind11's own makes
/// the text in `what`, and aborts the process if there is no memory.
class PassingError final : public pybind11::error_already_set {
 public:
  explicit PassingError(const pybind11::error_already_set& error);
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

/// Runs pending signal handlers, for a thread that waits without the GIL. Raises the errors of the
/// handlers, and RuntimeError if the interpreter is ending.
void check_signals();

}  // namespace arrowdl::python
