// Offsets data pointers, and refuses offsets into opaque handles.
#include "device/device_pointer.hpp"

#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE

void require_pointers(const Device& device, int64_t bytes) {
  if (!is_pointer_handle(device)) return;
  raise_buffer_error("an offset of ", bytes, " bytes into memory on ", to_string(device),
                     ", where data is an opaque handle that cannot move: only what begins with "
                     "its buffer can be exchanged there; copy the rows to a buffer of their own "
                     "in the library that made them");
}

ARROWDL_END_NAMESPACE
