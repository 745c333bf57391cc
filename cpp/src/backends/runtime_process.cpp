// Refuses the use of a device runtime in a forked child.
#include "backends/runtime_process.hpp"

#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE

void RuntimeProcess::raise_forked(const Device& device, const char* runtime) {
  throw Error(ErrorKind::kRuntime,
              concat("cannot use ", to_string(device), " in a process forked from one that used ",
                     runtime, ": start it another way (multiprocessing's \"spawn\")"));
}

ARROWDL_END_NAMESPACE
