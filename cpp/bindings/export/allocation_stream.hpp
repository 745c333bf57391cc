// The stream that names memory to other libraries' allocators.
#pragma once

#include "arrowdl/backend.hpp"

namespace arrowdl::python {

/// One stream of ours on `device`, always the same, on which no work runs and which waits for none:
/// what is allocated for it is ready at once, and it never joins a capture.
StreamHandle find_allocation_stream(MemoryOps& memory, const Device& device);

}  // namespace arrowdl::python
