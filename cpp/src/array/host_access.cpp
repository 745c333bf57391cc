// Waits for an array that the CPU is to read.
#include "array/host_access.hpp"

namespace arrowdl {

void require_host_readable(const DeviceArray& array, const char* verb) {
  require_host_readable(array.device(), verb);
  array.synchronize();
}

}  // namespace arrowdl
