// Lists the backends, one row for each runtime, and opens them.
#include <algorithm>
#include <iterator>
#include <mutex>

#include "arrowdl/backends.hpp"
#include "arrowdl/error.hpp"
#include "backends/dynamic_library.hpp"
#include "backends/runtimes.hpp"
#include "backends/synchronizer.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

struct Row {
  int32_t types[3];  ///< the device types of one runtime; 0 ends them
  Backend* (*open)(std::string* why_not);
  const char* libraries[4];  ///< of the runtime: without one in the process, no work is pending
  std::optional<int64_t> (*find_current)(const DynamicLibrary& library) = nullptr;
};

// A backend is one file and one row here.
constexpr Row kRows[] = {
    {{kDLCUDA, kDLCUDAHost, kDLCUDAManaged},
     open_cuda,
     {"libcuda.so.1", "nvcuda.dll"},
     find_current_cuda},
    {{kDLROCM, kDLROCMHost, 0},
     open_hip,
     {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"},
     find_current_hip},
    {{kDLOneAPI, 0, 0}, open_oneapi, {"libsycl.so.9", "libsycl.so.8", "libsycl.so.7"}},
    {{kDLOpenCL, 0, 0}, open_opencl, {"libOpenCL.so.1", "OpenCL.dll"}},
};
constexpr std::size_t kRowCount = std::size(kRows);

/// A runtime once it is open. A failed opening is tried again: the library may be loaded later, as
/// with torch or dpctl imported after arrowdl.
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

[[noreturn]] void raise_unable(const Device& device, const char* verb, const char* reason) {
  raise_buffer_error("cannot ", verb, " on ", to_string(device), ": ", reason);
}

}  // namespace

Backend* find_backend(int32_t device_type, std::string* why_not) noexcept {
  std::string ignored;
  std::string* reason = why_not == nullptr ? &ignored : why_not;
  try {
    if (const Row* row = find_row(device_type); row != nullptr) return open(*row, reason);
    if (Backend* registered = find_synchronizer(device_type)) return registered;
    *reason =
        "arrowdl has no backend for this device type: synchronize the data in its own library "
        "first, or register a synchronizer with register_synchronizer()";
  } catch (const std::exception& error) {
    *reason = error.what();
  }
  return nullptr;
}

Backend& require_backend(const Device& device, const char* verb) {
  std::string why_not;
  Backend* backend = find_backend(device.type, &why_not);
  if (backend == nullptr) raise_unable(device, verb, why_not.c_str());
  return *backend;
}

StreamOps& require_streams(const Device& device, const char* verb) {
  Backend& backend = require_backend(device, verb);
  StreamOps* const streams = backend.streams();
  if (streams == nullptr) raise_unable(device, verb, backend.limits());
  return *streams;
}

MemoryOps& require_memory(const Device& device, const char* verb) {
  if (find_row(device.type) == nullptr && find_synchronizer(device.type) == nullptr) {
    raise_unable(
        device, verb,
        "arrowdl has no backend for this device type: do it with the library that made the "
        "data");
  }
  Backend& backend = require_backend(device, verb);
  MemoryOps* const memory = backend.memory();
  if (memory == nullptr) raise_unable(device, verb, backend.limits());
  return *memory;
}

KernelOps* find_kernels(const Device& device) noexcept {
  Backend* const backend = find_backend(device.type);
  return backend != nullptr ? backend->kernels(device) : nullptr;
}

KernelOps& require_kernels(const Device& device) {
  KernelOps* const kernels = find_kernels(device);
  if (kernels == nullptr) {
    raise_buffer_error("arrowdl has no kernels for ", to_string(device),
                       ": copy the data to the CPU first");
  }
  return *kernels;
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
    return name != nullptr && DynamicLibrary::find_loaded(name);
  });
}

std::optional<int64_t> find_current_device(int32_t device_type) {
  const Row* row = find_row(device_type);
  if (row == nullptr || row->find_current == nullptr) return {};
  for (const char* name : row->libraries) {
    if (name == nullptr) break;
    if (const DynamicLibrary library = DynamicLibrary::find_loaded(name)) {
      return row->find_current(library);
    }
  }
  return {};
}

void register_synchronizer(int32_t device_type, Synchronizer synchronizer) {
  if (device_type < 1) raise_value_error("device type ", device_type, " is unknown");
  if (device_event_type(device_type) == nullptr) {
    raise_value_error("Arrow defines no events for ", device_type_name(device_type),
                      ": sync_event is always NULL there, and needs no synchronizer");
  }
  if (find_row(device_type) != nullptr) {
    raise_value_error("arrowdl waits for events of ", device_type_name(device_type), " itself");
  }
  set_synchronizer(device_type, std::move(synchronizer));
}

ARROWDL_END_NAMESPACE
