// The fake driver's memory that processes share: anonymous files, which the system frees with their
// last mapping and descriptor. The rules are those of cuda.h's comments on the calls.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "machine.hpp"

namespace arrowdl::testing::fake {
namespace {

constexpr std::size_t kUnit = std::size_t{2} << 20;  ///< what cuMemGetAllocationGranularity says
constexpr int kPosixDescriptor = 1;
constexpr const char* kFile = kHasContexts ? "fake-cuda-memory" : "fake-hip-memory";

// CUmemAllocationProp and CUmemAccessDesc; HIP's have the same fields.
struct Properties {
  int type;
  int handle_types;
  int location_type;
  int device;
  void* security;
  unsigned char flags[8];
};
struct Access {
  int location_type;
  int device;
  int flags;
};

bool is_valid(const Machine& m, const Properties& properties) {
  unsigned char flags = 0;
  for (const unsigned char byte : properties.flags) flags |= byte;
  return properties.type == kPinned && (properties.handle_types & ~kPosixDescriptor) == 0 &&
         properties.location_type == kDeviceLocation && properties.device >= 0 &&
         properties.device < m.device_count && properties.security == nullptr && flags == 0;
}

bool is_aligned(std::size_t size) { return size != 0 && size % kUnit == 0; }
bool is_aligned(const void* address) { return reinterpret_cast<uintptr_t>(address) % kUnit == 0; }

/// What a process that imports the memory has to know of it, in the file's name: its device.
std::string find_name(int descriptor) {
  char name[128] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  return readlink(link.c_str(), name, sizeof(name) - 1) > 0 ? name : "";
}

/// Garbage at the start of new memory; filling all of it would take most of a test's time.
bool fill(int descriptor) {
  const std::vector<char> garbage(std::size_t{64} << 10, '\xAA');
  return pwrite(descriptor, garbage.data(), garbage.size(), 0) > 0;
}

/// cuMemUnmap and cuMemSetAccess take the addresses of a whole mapping.
Allocation* find_mapping(Machine& m, void* address, std::size_t size) {
  const auto found = m.allocations.find(reinterpret_cast<uintptr_t>(address));
  const bool is_whole =
      found != m.allocations.end() && found->second.is_mapped && found->second.size == size;
  if (!is_whole) ++m.misuses;
  return is_whole ? &found->second : nullptr;
}

}  // namespace

int get_pci_id(char* text, int size, int device) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    if (device < 0 || device >= m.device_count) return kInvalidDevice;
    const int number = m.visible[static_cast<std::size_t>(device)];
    std::snprintf(text, static_cast<std::size_t>(size), "0000:0%d:00.0", number + 1);
    return kSuccess;
  });
}

int get_uuid(void* uuid, int device) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    if (device < 0 || device >= m.device_count) return kInvalidDevice;
    std::memset(uuid, 0xA0 + m.visible[static_cast<std::size_t>(device)], 16);
    return kSuccess;
  });
}

int get_granularity(std::size_t* granularity, const void* properties, int option) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    const bool is_good = is_valid(m, *static_cast<const Properties*>(properties));
    if (!is_good || option != 0) return kInvalidValue;
    *granularity = kUnit;
    return kSuccess;
  });
}

int create_memory(void** handle, std::size_t size, const void* given, unsigned long long flags) {
  return call_in_context(kMaySynchronize, [&](Machine& m, Lock&) {
    const auto& properties = *static_cast<const Properties*>(given);
    if (!is_valid(m, properties) || !is_aligned(size) || flags != 0) return kInvalidValue;
    if (properties.handle_types != 0 && !m.can_share) return kNotSupported;
    if (!m.has_room(properties.device, size)) return kOutOfMemory;
    const int number = m.visible[static_cast<std::size_t>(properties.device)];
    const int file = memfd_create((kFile + ("-" + std::to_string(number))).c_str(), MFD_CLOEXEC);
    if (file < 0) return kOutOfMemory;
    if (ftruncate(file, static_cast<off_t>(size)) != 0 || !fill(file)) {
      close(file);
      return kOutOfMemory;
    }
    *handle = m.make_handle();
    m.shared[*handle] = {file, size, properties.device, properties.handle_types};
    return kSuccess;
  });
}

/// "If handle is not a valid handle the behavior is undefined."
int release_memory(void* handle) {
  return call(kGivesBack, [&](Machine& m, Lock&) {
    const auto found = m.shared.find(handle);
    if (found == m.shared.end()) {
      ++m.misuses;
      return kInvalidValue;
    }
    close(found->second.descriptor);
    m.shared.erase(found);
    return kSuccess;
  });
}

/// The driver does not say that programs do not inherit the descriptor.
int export_memory(void* descriptor, void* handle, int type, unsigned long long flags) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    const auto found = m.shared.find(handle);
    if (found == m.shared.end() || flags != 0 || type != kPosixDescriptor ||
        (found->second.handle_types & type) == 0) {
      return kInvalidValue;
    }
    const int file = dup(found->second.descriptor);
    if (file < 0) return kNotSupported;
    *static_cast<int*>(descriptor) = file;
    return kSuccess;
  });
}

/// "If the current process cannot support the memory described by this shareable handle, this API
/// will error as CUDA_ERROR_NOT_SUPPORTED."
int import_memory(void** handle, int descriptor, int type) {
  return call_in_context(kAnyCall, [&](Machine& m, Lock&) {
    const std::string name = find_name(descriptor);
    struct stat status{};
    if (type != kPosixDescriptor || name.find(kFile) == std::string::npos ||
        fstat(descriptor, &status) != 0) {
      return kInvalidValue;
    }
    const int number = name[name.find(kFile) + std::strlen(kFile) + 1] - '0';
    for (int device = 0; device < m.device_count; ++device) {
      if (m.visible[static_cast<std::size_t>(device)] != number) continue;
      *handle = m.make_handle();
      m.shared[*handle] = {fcntl(descriptor, F_DUPFD_CLOEXEC, 0),
                           static_cast<std::size_t>(status.st_size), device, kPosixDescriptor};
      return kSuccess;
    }
    return kNotSupported;
  });
}

// ---------------------------------------------------------------- addresses

int reserve_range(void** address, std::size_t size, std::size_t alignment, void* wanted,
                  unsigned long long flags) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    if (!is_aligned(size) || alignment != 0 || wanted != nullptr || flags != 0) {
      return kInvalidValue;
    }
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* const all = mmap(nullptr, size + kUnit, PROT_NONE, kFlags, -1, 0);
    if (all == MAP_FAILED) return kOutOfMemory;
    const auto first = reinterpret_cast<uintptr_t>(all);
    const uintptr_t begin = (first + kUnit - 1) / kUnit * kUnit;
    if (begin != first) munmap(all, begin - first);
    const std::size_t rest = first + kUnit - begin;
    if (rest != 0) munmap(reinterpret_cast<void*>(begin + size), rest);
    m.ranges[begin] = size;
    *address = reinterpret_cast<void*>(begin);
    return kSuccess;
  });
}

/// "The size must match what was given to memAddressReserve". A range that is still mapped stays.
int free_range(void* address, std::size_t size) {
  return call(kGivesBack, [&](Machine& m, Lock&) {
    const auto number = reinterpret_cast<uintptr_t>(address);
    const auto found = m.ranges.find(number);
    if (found == m.ranges.end() || found->second != size || m.allocations.count(number) != 0) {
      ++m.misuses;
      return kInvalidValue;
    }
    munmap(address, size);
    m.ranges.erase(found);
    return kSuccess;
  });
}

/// "Does not make the address accessible": a touch is a segmentation fault.
int map_memory(void* address, std::size_t size, std::size_t offset, void* handle,
               unsigned long long flags) {
  return call_in_context(kMaySynchronize, [&](Machine& m, Lock&) {
    const auto number = reinterpret_cast<uintptr_t>(address);
    const auto range = m.ranges.find(number);
    const auto memory = m.shared.find(handle);
    const bool is_good = range != m.ranges.end() && range->second == size &&
                         memory != m.shared.end() && memory->second.size == size && offset == 0 &&
                         flags == 0 && is_aligned(address) && m.allocations.count(number) == 0;
    if (!is_good) return kInvalidValue;
    const int file = memory->second.descriptor;
    if (mmap(address, size, PROT_NONE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
      return kOutOfMemory;
    }
    Allocation mapped;
    mapped.device = memory->second.device;
    mapped.size = size;
    mapped.is_mapped = true;
    m.allocations[number] = std::move(mapped);
    return kSuccess;
  });
}

/// "This function exhibits synchronous behavior for most use cases."
int unmap_memory(void* address, std::size_t size) {
  return call_in_context(kMayFree, [&](Machine& m, Lock& lock) {
    const Allocation* const mapping = find_mapping(m, address, size);
    if (mapping == nullptr) return kInvalidValue;
    const int device = mapping->device;
    for (const StreamPtr& stream : m.all_streams()) {
      if (stream->device == device) m.wait_until_idle(lock, stream);
    }
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    mmap(address, size, PROT_NONE, kFlags, -1, 0);
    m.allocations.erase(reinterpret_cast<uintptr_t>(address));
    return kSuccess;
  });
}

int set_access(void* address, std::size_t size, const void* given, std::size_t count) {
  return call_in_context(kMaySynchronize, [&](Machine& m, Lock&) {
    Allocation* const mapping = find_mapping(m, address, size);
    if (mapping == nullptr) return kInvalidValue;
    const auto* accesses = static_cast<const Access*>(given);
    for (std::size_t i = 0; i < count; ++i) {
      const Access& access = accesses[i];
      if (access.location_type != kDeviceLocation || access.flags != kReadWrite) {
        return kInvalidValue;
      }
      const bool is_peer = access.device != mapping->device;
      if (access.device < 0 || access.device >= m.device_count || (is_peer && !m.has_peers)) {
        return kInvalidDevice;
      }
    }
    for (std::size_t i = 0; i < count; ++i) mapping->granted.insert(accesses[i].device);
    mprotect(address, size, PROT_READ | PROT_WRITE);
    return kSuccess;
  });
}

}  // namespace arrowdl::testing::fake
