// The fake driver's memory pools, and the copies between devices that depend on them.
#include <cstring>
#include <utility>

#include "machine.hpp"

namespace arrowdl::testing::fake {
namespace {

// CUmemLocation, CUmemPoolProps and CUmemAccessDesc of cuda.h; HIP's have the same fields.
struct Location {
  int type;
  int id;
};
struct PoolProperties {
  int allocation_type;
  int handle_types;
  Location location;
  void* security;
  std::size_t max_size;
  unsigned char reserved[56];
};
struct AccessDescription {
  Location location;
  int flags;
};
constexpr int kReleaseThreshold = 4;
constexpr int kConcurrentManaged = 89;
constexpr int kHasPools = 115;
constexpr int kHostNode = 134;

template <typename Body>
int call_on_pool(void* handle, const Body& body) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    const auto found = m.pools.find(handle);
    if (found == m.pools.end()) {
      ++m.misuses;
      return static_cast<int>(kInvalidValue);
    }
    return static_cast<int>(body(m, found->second));
  });
}

}  // namespace

bool Machine::has_room(int device, uint64_t size) const {
  uint64_t taken = 0;
  for (const auto& [address, one] : allocations) {
    if (one.device == device && one.memory == Memory::kDevice && !one.is_freed && !one.is_pooled) {
      taken += one.size;
    }
  }
  for (const auto& [handle, pool] : pools) taken += pool.device == device ? pool.reserved : 0;
  return taken + size >= taken && taken + size <= capacity;
}

/// A pool takes memory in steps (cuMemGetAllocationGranularity), and where no room for one is left,
/// what there is.
void* Machine::add_pooled(std::size_t size, void* handle, int device) {
  void*& own = default_pools[static_cast<std::size_t>(device)];
  if (own == nullptr) pools[own = make_handle()].device = device;
  Pool& pool = pools[handle == nullptr ? own : handle];
  if (pool.used + size > pool.reserved) {
    constexpr uint64_t kStep = uint64_t{2} << 20;
    const uint64_t missing = pool.used + size - pool.reserved;
    const uint64_t steps = (missing + kStep - 1) / kStep * kStep;
    if (!has_room(pool.device, missing)) return nullptr;
    pool.reserved += has_room(pool.device, steps) ? steps : missing;
    ++growths;
  }
  pool.used += size;
  ++pool_allocations;
  void* const memory = add_allocation(size, true, Memory::kDevice);
  Allocation& allocation = *find_allocation(memory);
  allocation.device = pool.device;
  allocation.pool = handle == nullptr ? own : handle;
  return memory;
}

void Machine::return_to_pool(const Allocation& allocation) {
  const auto found = pools.find(allocation.pool);
  if (found != pools.end()) found->second.used -= allocation.size;
}

/// cuMemPoolSetAttribute: a pool above its threshold gives memory back at the next synchronization.
void Machine::trim_pools() {
  for (auto& [handle, pool] : pools) {
    if (pool.reserved > pool.threshold) {
      pool.reserved = pool.used > pool.threshold ? pool.used : pool.threshold;
    }
  }
}

/// Memory of a pool is mapped on its own device, and on those that the pool grants access
/// (cuMemPoolCreate). PyTorch's CUDAMallocAsyncAllocator treats it so. HIP is not known to.
bool Machine::may_access(int device, const Allocation* memory) const {
  if (!kHasContexts || memory == nullptr) return true;
  if (memory->is_mapped) return memory->granted.count(device) != 0;
  if (!memory->is_pooled) return true;
  const auto found = pools.find(memory->pool);
  return memory->device == device || found == pools.end() ||
         (has_peers && found->second.granted.count(device) != 0);
}

int get_context_device(int* device) {
  return call_in_context(kAnyCall, [&](Machine&, Lock&) {
    *device = current_device();
    return kSuccess;
  });
}

int get_device_attribute(int* value, int attribute, int device) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    if (device < 0 || device >= m.device_count) return kInvalidDevice;
    if (attribute == kHostNode) {
      *value = m.host_node;
      return kSuccess;
    }
    if (attribute != kConcurrentManaged && attribute != kHasPools) return kInvalidValue;
    *value = (attribute == kHasPools ? m.has_pools : m.has_concurrent_managed) ? 1 : 0;
    return kSuccess;
  });
}

int can_access_peer(int* can, int device, int peer) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    if (device < 0 || device >= m.device_count || peer < 0 || peer >= m.device_count) {
      return kInvalidDevice;
    }
    *can = m.has_peers && device != peer ? 1 : 0;
    return kSuccess;
  });
}

int create_pool(void** pool, const void* given) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    const auto& properties = *static_cast<const PoolProperties*>(given);
    if (!m.has_pools) return kNotSupported;
    for (const unsigned char byte : properties.reserved) {
      if (byte != 0) return kInvalidValue;
    }
    const Location& at = properties.location;
    if (properties.allocation_type != kPinned || at.type != kDeviceLocation || at.id < 0 ||
        at.id >= m.device_count || properties.security != nullptr) {
      return kInvalidValue;
    }
    *pool = m.make_handle();
    m.pools[*pool].device = at.id;
    return kSuccess;
  });
}

int set_pool_attribute(void* handle, int attribute, void* value) {
  return call_on_pool(handle, [&](Machine&, Pool& pool) {
    if (attribute != kReleaseThreshold) return kInvalidValue;
    std::memcpy(&pool.threshold, value, sizeof(pool.threshold));
    return kSuccess;
  });
}

/// The driver refuses all entries if one is of the pool's own device (cuda-python issue 2807).
int set_pool_access(void* handle, const void* given, std::size_t count) {
  return call_on_pool(handle, [&](Machine& m, Pool& pool) {
    const auto* descriptions = static_cast<const AccessDescription*>(given);
    for (std::size_t i = 0; i < count; ++i) {
      const Location& at = descriptions[i].location;
      if (at.type != kDeviceLocation) return kInvalidValue;
      if (at.id == pool.device || at.id < 0 || at.id >= m.device_count || !m.has_peers) {
        return kInvalidDevice;
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (descriptions[i].flags == kReadWrite) pool.granted.insert(descriptions[i].location.id);
    }
    return kSuccess;
  });
}

int get_pool_access(int* flags, void* handle, const void* location) {
  return call_on_pool(handle, [&](Machine& m, const Pool& pool) {
    const int id = static_cast<const Location*>(location)->id;
    const bool is_granted = m.has_peers && pool.granted.count(id) != 0;
    *flags = id == pool.device || is_granted ? kReadWrite : 0;
    return kSuccess;
  });
}

/// Knows only memory of cuMemMap (cuMemGetAccess).
int get_access(unsigned long long* flags, const void* location, const void* memory) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    const Allocation* const found = m.find_allocation(memory);
    if (found == nullptr || !found->is_mapped) return kInvalidValue;
    *flags = found->granted.count(static_cast<const Location*>(location)->id) ? kReadWrite : 0;
    return kSuccess;
  });
}

int trim_pool(void* handle, std::size_t keep) {
  return call_on_pool(handle, [&](Machine&, Pool& pool) {
    const uint64_t least = pool.used > keep ? pool.used : keep;
    if (pool.reserved > least) pool.reserved = least;
    return kSuccess;
  });
}

int allocate_from_pool(void** memory, std::size_t size, void* pool, void* handle) {
  return call_on_stream(kAnyCall, handle, [&](Machine& m, Lock&, const StreamPtr&) {
    if (m.pools.count(pool) == 0 || size == 0) return kInvalidValue;
    if (size > (std::size_t{1} << 40)) return kOutOfMemory;
    *memory = m.add_pooled(size, pool, m.pools[pool].device);
    return *memory == nullptr ? kOutOfMemory : kSuccess;
  });
}

/// Needs no access. Into memory of a pool that has granted access, drivers write nothing
/// (CUDA.jl pull request 3112: sm_75, driver 590, CUDA 13.2).
int copy_peer_async(void* target, void* target_context, const void* source, void* source_context,
                    std::size_t size, void* handle) {
  return call_on_stream(kAnyCall, handle, [&](Machine& m, Lock&, const StreamPtr& stream) {
    const Allocation* const read = m.find_allocation(source);
    const Allocation* const written = m.find_allocation(target);
    const auto is_of = [&m](const Allocation* memory, void* context) {
      return memory != nullptr && context == &m.contexts[static_cast<std::size_t>(memory->device)];
    };
    if (!is_of(read, source_context) || !is_of(written, target_context)) {
      return static_cast<int>(kInvalidValue);
    }
    const auto pool = m.pools.find(written->pool);
    if (pool != m.pools.end() && m.has_peers && !pool->second.granted.empty()) {
      return static_cast<int>(kSuccess);
    }
    if (!m.is_usable(source, size, false) || !m.is_usable(target, size, false)) {
      ++m.misuses;
      return static_cast<int>(kInvalidValue);
    }
    m.submit_use(stream, {{source, size}, {target, size}},
                 [target, source, size] { std::memcpy(target, source, size); });
    return failure_of(m, stream->device);
  });
}

}  // namespace arrowdl::testing::fake
