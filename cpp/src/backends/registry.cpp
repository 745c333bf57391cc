#include "backends/registry.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <mutex>

#include "arrowdl/error.hpp"
#include "backends/dynamic_library.hpp"
#include "backends/synchronizer.hpp"

namespace arrowdl {
namespace {

struct Row {
  int32_t types[3];  ///< the device types of one runtime; 0 ends them
  Backend* (*open)(std::string* why_not);
  const char* libraries[4];  ///< of the runtime: none in the process, no work on its devices
};

// A backend is one file and one row here.
constexpr Row kRows[] = {
    {{kDLCUDA, kDLCUDAHost, kDLCUDAManaged}, open_cuda, {"libcuda.so.1"}},
    {{kDLROCM, kDLROCMHost, 0},
     open_hip,
     {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"}},
    {{kDLOneAPI, 0, 0}, open_oneapi, {"libsycl.so.9", "libsycl.so.8", "libsycl.so.7"}},
    {{kDLOpenCL, 0, 0}, open_opencl, {"libOpenCL.so.1", "OpenCL.dll"}},
};
constexpr std::size_t kRowCount = std::size(kRows);

/// A runtime once it has been opened. One that could not be is tried again: its library may be
/// loaded later, as with torch or dpctl imported after arrowdl.
struct Opened {
  std::mutex mutex;
  Backend* backend = nullptr;
};

Opened* opened_backends() {
  static auto* const opened = new Opened[kRowCount];  // never freed: events outlive statics
  return opened;
}

const Row* find_row(int32_t device_type) noexcept {
  for (const Row& row : kRows) {
    for (const int32_t type : row.types) {
      if (type == device_type && type != 0) return &row;
    }
  }
  return nullptr;
}

Backend* open(const Row& row, std::string* why_not) {
  Opened& opened = opened_backends()[&row - kRows];
  const std::lock_guard<std::mutex> lock(opened.mutex);
  if (opened.backend == nullptr) opened.backend = row.open(why_not);
  return opened.backend;
}

}  // namespace

Device Backend::find_device(const void* memory) {
  raise_buffer_error(name(), " cannot tell by the address ", memory, " alone where it lies");
}

void Backend::unpack_bits_on_device(const Device& device, uint8_t*, int64_t, const Bitmap&,
                                    StreamHandle) {
  raise_buffer_error("arrowdl has no kernels for ", to_string(device), ", which expand bits there");
}

void Backend::fill_unset(const Device& device, void*, int64_t, const Bitmap&, const void*, int64_t,
                         StreamHandle) {
  raise_buffer_error("arrowdl has no kernels for ", to_string(device), ", which fill nulls there");
}

void Backend::and_bits(const Device& device, uint8_t*, int64_t, int64_t, const Bitmap&,
                       const Bitmap&, StreamHandle) {
  raise_buffer_error("arrowdl has no kernels for ", to_string(device),
                     ", which join bitmaps there");
}

Backend* find_backend(int32_t device_type, std::string* why_not) noexcept {
  std::string ignored;
  std::string* reason = why_not == nullptr ? &ignored : why_not;
  try {
    if (const Row* row = find_row(device_type); row != nullptr) return open(*row, reason);
    if (Backend* registered = find_synchronizer(device_type)) return registered;
    *reason =
        "arrowdl has no backend for this device type: synchronize the data in its own library "
        "first, or teach arrowdl to wait with register_synchronizer()";
  } catch (const std::exception& error) {
    *reason = error.what();
  }
  return nullptr;
}

std::vector<std::vector<int32_t>> list_runtimes() {
  std::vector<std::vector<int32_t>> runtimes;
  for (const Row& row : kRows) {
    std::vector<int32_t>& types = runtimes.emplace_back(std::begin(row.types), std::end(row.types));
    types.erase(std::remove(types.begin(), types.end(), 0), types.end());
  }
  return runtimes;
}

bool has_runtime(int32_t device_type) {
  const Row* row = find_row(device_type);
  if (row == nullptr) return false;
  return std::any_of(std::begin(row->libraries), std::end(row->libraries), [](const char* name) {
    return name != nullptr && DynamicLibrary::is_loaded(name);
  });
}

Backend& require_backend(const Device& device, const char* verb) {
  std::string why_not;
  Backend* backend = find_backend(device.type, &why_not);
  if (backend == nullptr) {
    raise_buffer_error("cannot ", verb, " on ", to_string(device), ": ", why_not);
  }
  return *backend;
}

void register_synchronizer(int32_t device_type, Synchronizer synchronizer) {
  const DeviceType* row = find_device_type(device_type);
  if (row == nullptr) raise_value_error("device type ", device_type, " is unknown");
  if (row->event_type == nullptr) {
    raise_value_error("Arrow defines no events for ", row->name,
                      ": sync_event is always NULL there, and needs no synchronizer");
  }
  if (find_row(device_type) != nullptr) {
    raise_value_error("arrowdl waits for events of ", row->name, " itself");
  }
  set_synchronizer(device_type, std::move(synchronizer));
}

}  // namespace arrowdl
