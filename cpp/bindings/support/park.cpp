// What becomes of a thread that the ending interpreter ends inside of arrowdl.
//
// Until Python 3.13 a thread that asks for the interpreter lock during finalisation is ended by
// pthread_exit, which glibc makes a forced unwind of its stack. That cannot pass through our
// frames: it aborts the process at the first destructor, callback or other function that is
// noexcept, and where it gets through it drops references to Python objects without the lock. Any
// call of the interpreter may take the lock, so there is no list of places to guard. But the
// unwinder asks the personality routine of every C++ frame before it runs anything there, and the
// linker lets this module have its own (`--wrap`, see CMakeLists.txt): the first frame of ours
// stops the thread for good, as Python 3.14 itself does. Nothing else of exceptions changes, and
// where a thread's end unwinds no stack (macOS, Windows, musl) there is nothing to do.
#ifdef ARROWDL_HAS_OWN_PERSONALITY

#include <unistd.h>
#include <unwind.h>

#include "support/gil.hpp"

extern "C" {

_Unwind_Reason_Code __real___gxx_personality_v0(int version, _Unwind_Action actions,
                                                _Unwind_Exception_Class exception_class,
                                                _Unwind_Exception* exception,
                                                _Unwind_Context* context);

__attribute__((used)) _Unwind_Reason_Code __wrap___gxx_personality_v0(
    int version, _Unwind_Action actions, _Unwind_Exception_Class exception_class,
    _Unwind_Exception* exception, _Unwind_Context* context) {
  // A thread that is ended for another reason (pthread_cancel) unwinds as it would anyway.
  if ((actions & _UA_FORCE_UNWIND) != 0 && arrowdl::python::is_ending()) {
    for (;;) pause();
  }
  return __real___gxx_personality_v0(version, actions, exception_class, exception, context);
}

}  // extern "C"

#endif
