// The defaults of the interfaces of a device runtime.
#include "arrowdl/backend.hpp"

#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE

Backend::~Backend() = default;

Device Backend::find_device(const void* memory) {
  raise_buffer_error(name(), " cannot tell by the address ", memory, " which device it is on");
}

ARROWDL_END_NAMESPACE
