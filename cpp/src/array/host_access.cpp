// Waits for arrays that the CPU reads.
#include "array/host_access.hpp"

namespace arrowdl {

void require_host_readable(const DeviceArray& array, const char* verb) {
  require_host_readable(array.device(), verb);
  array.synchronize();
}

}  // namespace arrowdl
