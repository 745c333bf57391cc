// Waits for arrays that the CPU reads.
#include "array/host_access.hpp"

#include "arrowdl/backends.hpp"

namespace arrowdl {

void require_host_readable(const DeviceArray& array, const char* verb) {
  require_host_readable(array.device(), verb);
  array.synchronize();
}

bool is_read_by_kernels(const Device& device, const char* verb) {
  if (is_host_readable(device)) return false;
  if (find_kernels(device) == nullptr) require_host_readable(device, verb);
  return true;
}

}  // namespace arrowdl
