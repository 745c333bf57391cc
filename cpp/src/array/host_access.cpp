// Decides whether the CPU or kernels read an array, and waits for arrays that the CPU reads.
#include "array/host_access.hpp"

#include "arrowdl/backends.hpp"
#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE

void require_host_readable(const DeviceArray& array, const char* verb) {
  require_host_readable(array.device(), verb);
  array.synchronize();
}

bool is_read_as_copy(const Device& device) noexcept {
  if (is_host_readable(device)) return false;
  Backend* const backend = find_backend(device.type);
  return backend != nullptr && backend->memory() != nullptr;
}

bool goes_through_host(const Device& device) noexcept {
  return is_read_as_copy(device) && find_kernels(device) == nullptr;
}

bool is_read_by_kernels(const Device& device, const char* verb) {
  if (is_host_readable(device)) return false;
  if (find_kernels(device) == nullptr) require_host_readable(device, verb);
  return true;
}

bool are_read_by_kernels(const std::vector<DeviceArray>& arrays, const char* verb) {
  const Device device = arrays.front().device();
  const bool by_kernels = is_read_by_kernels(device, verb);
  for (const DeviceArray& array : arrays) {
    if (array.device() != device) {
      raise_buffer_error("cannot ", verb, " on ", to_string(array.device()), " and on ",
                         to_string(device), " together: copy them to one device");
    }
    if (!by_kernels) array.synchronize();
  }
  return by_kernels;
}

ARROWDL_END_NAMESPACE
