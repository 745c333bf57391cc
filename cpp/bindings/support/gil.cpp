// Keeps the Python thread state of arrowdl's own threads.
#include "support/gil.hpp"

#include "stream/background.hpp"

namespace arrowdl::python {
namespace {

void end_thread_state() {
  if (is_ending()) return;  // the interpreter removes it, or has done so
  PyEval_RestoreThread(PyGILState_GetThisThreadState());
  PyGILState_Release(PyGILState_UNLOCKED);
}

}  // namespace

void keep_thread_state() noexcept {
  if (PyGILState_GetThisThreadState() != nullptr || !at_background_end(end_thread_state)) return;
  PyGILState_Ensure();
  PyEval_SaveThread();
}

}  // namespace arrowdl::python
