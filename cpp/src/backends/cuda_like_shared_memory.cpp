// Shares device memory between processes through file descriptors.
#include "backends/cuda_like_shared_memory.hpp"

#include <algorithm>
#include <iterator>

#include "backends/free_caches.hpp"
#include "backends/pool_properties.hpp"

// Memory of cuMemCreate, and not of cuIpcGetMemHandle, since "the memory allocation will be freed
// when all outstanding mappings to the memory are unmapped and when all outstanding references to
// the handle (including it's shareable counterparts) are also released" (cuMemRelease): the system
// counts them, also those of processes that were killed. Memory of cuIpcOpenMemHandle must be
// closed before its owner frees it, or else the behavior is undefined (cuMemFree,
// cuIpcCloseMemHandle).

ARROWDL_BEGIN_NAMESPACE
namespace {

constexpr int kOutOfMemory = 2;
// CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR and CU_MEM_ALLOC_GRANULARITY_MINIMUM, as in HIP.
constexpr int kPosixDescriptor = 1;
constexpr int kMinimum = 0;

/// CUmemAllocationProp; HIP's has the same fields.
struct MemoryProperties {
  int type = 1;  // "pinned", the only one
  int handle_types = kPosixDescriptor;
  Location location;
  void* security = nullptr;
  unsigned char flags[8] = {};
};
static_assert(sizeof(MemoryProperties) == 32, "as in cuda.h");

}  // namespace

/// Memory without an address. Mappings and descriptors keep it after its handle is released.
class CudaLikeSharedMemory::Handle {
 public:
  Handle(CudaLikeSharedMemory& runtime, void* handle) : runtime_(runtime), handle_(handle) {}
  ~Handle() { runtime_.run(runtime_.calls_.release_memory, handle_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  void* get() const noexcept { return handle_; }

 private:
  CudaLikeSharedMemory& runtime_;
  void* const handle_;
};

SharedMemoryOps* CudaLikeSharedMemory::shared_memory() noexcept {
#ifdef _WIN32
  return nullptr;  // has no file descriptors of memory
#else
  const AnyCall* const needed[] = {
      &calls_.get_pci_id,     &calls_.get_uuid,      &calls_.get_granularity, &calls_.create_memory,
      &calls_.release_memory, &calls_.export_memory, &calls_.import_memory,   &calls_.reserve_range,
      &calls_.free_range,     &calls_.map_memory,    &calls_.unmap_memory,    &calls_.set_access};
  const bool has_all = std::all_of(std::begin(needed), std::end(needed),
                                   [](const AnyCall* call) { return call->function != nullptr; });
  return has_all ? this : nullptr;
#endif
}

void CudaLikeSharedMemory::raise_unable(const Device& device, const char* call, int status) const {
  if (status == kOutOfMemory) raise(device, call, status);
  raise_buffer_error("memory on ", to_string(device), " cannot be shared with other processes (",
                     call, ": ", describe(status), "): copy the array to the CPU first");
}

/// Needs no context, which would take memory on each device that is asked. Two names, since GPUs of
/// one card and partitions of one GPU may have one of them in common.
std::string CudaLikeSharedMemory::identify(const Device& device) {
  require_own_process(device);
  char pci_id[32] = {};
  unsigned char uuid[16] = {};
  const auto id = static_cast<int>(device.id);
  require(device, calls_.get_pci_id, static_cast<char*>(pci_id), static_cast<int>(sizeof(pci_id)),
          id);
  require(device, calls_.get_uuid, static_cast<void*>(uuid), id);
  std::string name = concat(pci_id, " GPU-");
  for (const unsigned char byte : uuid) {
    for (const int digit : {byte >> 4, byte & 15}) name += "0123456789abcdef"[digit];
  }
  return name;
}

Mapping CudaLikeSharedMemory::create_shared(const Device& device, int64_t size,
                                            FileDescriptor* descriptor) {
  for (const bool is_last : {false, true}) {
    try {
      return create(device, size, descriptor);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kMemory) throw;
      if (is_last) {
        throw Error(ErrorKind::kMemory,
                    concat("no memory for a copy that other processes share (", error.what(),
                           "): free some, or send fewer rows at once"));
      }
    }
    free_cache(device);
    call_on(device, [&] { free_caches(device); });
  }
  return {};
}

Mapping CudaLikeSharedMemory::create(const Device& device, int64_t size,
                                     FileDescriptor* descriptor) {
  Mapping mapping;
  call_on(device, [&] {
    MemoryProperties properties;
    properties.location.id = static_cast<int>(device.id);
    const void* const given = &properties;
    std::size_t unit = 0;
    int status = run(calls_.get_granularity, &unit, given, kMinimum);
    if (status != 0 || unit == 0) raise_unable(device, calls_.get_granularity.name, status);
    const std::size_t rounded = (static_cast<std::size_t>(size) + unit - 1) / unit * unit;
    void* created = nullptr;
    status = run(calls_.create_memory, &created, rounded, given, 0ULL);
    if (status != 0) raise_unable(device, calls_.create_memory.name, status);
    const Handle handle(*this, created);
    int number = -1;
    status = run(calls_.export_memory, static_cast<void*>(&number), handle.get(), kPosixDescriptor,
                 0ULL);
    if (status != 0) raise_unable(device, calls_.export_memory.name, status);
    FileDescriptor exported(number);
    exported.close_on_exec();
    mapping = map(device, rounded, handle);
    *descriptor = std::move(exported);
  });
  return mapping;
}

Mapping CudaLikeSharedMemory::map_shared(const Device& device, int64_t size, int descriptor) {
  Mapping mapping;
  call_on(device, [&] {
    void* imported = nullptr;
    const int status =
        run(calls_.import_memory, &imported, pass_descriptor(&descriptor), kPosixDescriptor);
    if (status != 0) raise_unable(device, calls_.import_memory.name, status);
    mapping = map(device, static_cast<std::size_t>(size), Handle(*this, imported));
  });
  return mapping;
}

/// Requires that the device has been entered.
Mapping CudaLikeSharedMemory::map(const Device& device, std::size_t size, const Handle& handle) {
  void* address = nullptr;
  require(device, calls_.reserve_range, &address, size, std::size_t{0}, static_cast<void*>(nullptr),
          0ULL);
  const char* call = calls_.map_memory.name;
  int status = run(calls_.map_memory, address, size, std::size_t{0}, handle.get(), 0ULL);
  if (status == 0) {
    call = calls_.set_access.name;
    status = allow_access(device, address, size);
    if (status == 0) return {address, static_cast<int64_t>(size)};
    run(calls_.unmap_memory, address, size);
  }
  run(calls_.free_range, address, size);
  raise(device, call, status);
}

/// Peers access the memory too, if they can: copies to and from the others need no access.
int CudaLikeSharedMemory::allow_access(const Device& device, void* address,
                                       std::size_t size) noexcept {
  int own = 0;
  for (int64_t id = 0; id < device_count(); ++id) {
    if (id != device.id && !are_peers(device, {device.type, id})) continue;
    AccessDescription access;
    access.location.id = static_cast<int>(id);
    const int status =
        run(calls_.set_access, address, size, static_cast<const void*>(&access), std::size_t{1});
    if (id == device.id) own = status;
  }
  return own;
}

void CudaLikeSharedMemory::unmap_shared(const Device& device, const Mapping& mapping) noexcept {
  try {
    call_on(device, [&] {
      const auto size = static_cast<std::size_t>(mapping.size);
      if (run(calls_.unmap_memory, mapping.address, size) != 0) return;
      run(calls_.free_range, mapping.address, size);
    });
  } catch (...) {  // a forked child, or the driver has ended, and with it the mapping
  }
}

ARROWDL_END_NAMESPACE
