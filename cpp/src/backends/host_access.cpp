// Says which memory the CPU can read, and refuses its work on other memory.
#include "backends/host_access.hpp"

#include "arrowdl/backends.hpp"
#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

bool is_readable_managed(const Device& device) noexcept {
  try {
    if (!has_runtime(device.type)) return true;  // no work can use it
  } catch (const std::exception&) {              // no memory to look
    return false;
  }
  Backend* const backend = find_backend(device.type);
  return backend == nullptr || backend->can_host_read(device);
}

}  // namespace

bool is_host_readable(const Device& device) noexcept {
  const DeviceType* row = find_device_type(device.type);
  if (row == nullptr || !row->host_readable) return false;
  return device.type != kDLCUDAManaged || is_readable_managed(device);
}

void require_host_readable(const Device& device, const char* verb) {
  if (is_host_readable(device)) return;
  raise_buffer_error("cannot ", verb, " on ", to_string(device),
                     ": arrowdl does that in memory that the CPU can read; copy the data to the "
                     "CPU first, or do it in the library that made it");
}

ARROWDL_END_NAMESPACE
