// Refuses memory that the host cannot read.
#include "array/host_access.hpp"

#include "arrowdl/error.hpp"

namespace arrowdl {

void require_host_readable(const Device& device, const char* verb) {
  if (is_host_readable(device)) return;
  raise_buffer_error("cannot ", verb, " on ", to_string(device),
                     ": arrowdl does that in memory that the CPU can read; copy the data to the "
                     "CPU first, or do it in the library that made it");
}

void require_host_readable(const DeviceArray& array, const char* verb) {
  require_host_readable(array.device(), verb);
  array.synchronize();
}

}  // namespace arrowdl
