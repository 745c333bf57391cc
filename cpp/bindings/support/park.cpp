// Parks threads that the finalizing interpreter ends inside of arrowdl.
//
// Until Python 3.13, a thread that requests the GIL during finalization is ended by pthread_exit,
// which in glibc unwinds its stack. That aborts the process at the first noexcept function of ours
// (a destructor, a callback), and otherwise drops references to Python objects without the GIL. Any
// call of the interpreter may request the GIL, so single calls cannot be guarded. But the unwinder
// calls the personality routine of each C++ frame before it runs code there, and this module is
// linked with its own (`--wrap`, see CMakeLists.txt): the first frame of ours stops the thread for
// good, as Python 3.14 does. Other exceptions are not affected. Platforms whose thread exit does
// not unwind (macOS, Windows, musl) need none of this.
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
  // A thread that ends for another reason (pthread_cancel) unwinds as usual.
  if ((actions & _UA_FORCE_UNWIND) != 0 && arrowdl::python::is_ending()) {
    for (;;) pause();
  }
  return __real___gxx_personality_v0(version, actions, exception_class, exception, context);
}

}  // extern "C"

#endif
