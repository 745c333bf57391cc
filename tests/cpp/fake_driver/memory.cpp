// The fake driver's calls for memory, copies and kernels.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "machine.hpp"

namespace arrowdl::testing::fake {
namespace {

/// The NUMA node that this thread prefers for new pages; -1: none.
int find_preferred_node() {
  constexpr int kPreferred = 1;
  int mode = 0;
  unsigned long nodes[1024 / 64] = {};
  if (syscall(SYS_get_mempolicy, &mode, nodes, 1024, nullptr, 0) != 0 || mode != kPreferred) {
    return -1;
  }
  for (int node = 0; node < 1024; ++node) {
    if (((nodes[node / 64] >> (node % 64)) & 1) != 0) return node;
  }
  return -1;
}

int give_memory(void** memory, std::size_t size, Memory kind) {
  return call_in_context(kMaySynchronize, [&](Machine& m, Lock&) {
    if (size == 0) return kInvalidValue;
    if (size > (std::size_t{1} << 40)) return kOutOfMemory;
    if (kind == Memory::kHost && !m.can_pin) return kOutOfMemory;
    if (kind == Memory::kHost) {
      ++m.page_locks;
      m.pinned_node = find_preferred_node();
    }
    if (kind == Memory::kDevice && !m.has_room(current_device(), size)) return kOutOfMemory;
    if (kind == Memory::kDevice) ++m.device_allocations;
    *memory = m.add_allocation(size, false, kind);
    return kSuccess;
  });
}

int take_memory(void* memory) {
  return call_in_context(kMayFree, [&](Machine& m, Lock&) {
    Allocation* allocation = m.find_allocation(memory);
    if (allocation == nullptr || allocation->is_freed || allocation->is_mapped) {
      ++m.misuses;
      return kInvalidValue;
    }
    allocation->is_freed = allocation->is_gone = true;
    if (allocation->memory == Memory::kHost) ++m.page_locks;
    if (allocation->is_pooled) m.return_to_pool(*allocation);
    std::memset(allocation->bytes.data(), FakeDriver::kPoison, allocation->size);
    return kSuccess;
  });
}

}  // namespace

int allocate(void** memory, std::size_t size) { return give_memory(memory, size, Memory::kDevice); }
int allocate_host(void** memory, std::size_t size, unsigned) {
  return give_memory(memory, size, Memory::kHost);
}
int allocate_managed(void** memory, std::size_t size, unsigned) {
  return give_memory(memory, size, Memory::kManaged);
}
int free(void* memory) { return take_memory(memory); }
int free_host(void* memory) { return take_memory(memory); }

int allocate_async(void** memory, std::size_t size, void* handle) {
  return call_on_stream(kAnyCall, handle, [&](Machine& m, Lock&, const StreamPtr&) {
    if (!m.has_pools) return kNotSupported;
    if (size == 0) return kInvalidValue;
    if (size > (std::size_t{1} << 40)) return kOutOfMemory;
    *memory = m.add_pooled(size, nullptr, current_device());
    return *memory == nullptr ? kOutOfMemory : kSuccess;
  });
}

int free_async(void* memory, void* handle) {
  return call_on_stream(kGivesBack, handle, [&](Machine& m, Lock&, const StreamPtr& stream) {
    Allocation* allocation = m.find_allocation(memory);
    if (allocation == nullptr || allocation->is_freed || !allocation->is_pooled) {
      ++m.misuses;
      return kInvalidValue;
    }
    allocation->is_freed = true;
    m.return_to_pool(*allocation);
    const std::size_t size = allocation->size;
    m.submit_use(stream, {{memory, size}}, [&m, memory, size] {
      const std::lock_guard<std::mutex> running(m.mutex);
      m.find_allocation(memory)->is_gone = true;
      std::memset(memory, FakeDriver::kPoison, size);
    });
    return kSuccess;
  });
}

int copy_async(void* target, const void* source, std::size_t size, void* handle) {
  return call_on_stream(kAnyCall, handle, [&](Machine& m, Lock& lock, const StreamPtr& stream) {
    ++m.copies;
    const Allocation* const read = m.find_allocation(source);
    const Allocation* const written = m.find_allocation(target);
    const bool stages = read == nullptr;
    constexpr std::size_t kMostInCommand = std::size_t{64} << 10;
    const bool waits = written == nullptr || (stages && size > kMostInCommand);
    if (stages && written == nullptr) return static_cast<int>(kInvalidValue);
    if (!m.may_access(stream->device, read) || !m.may_access(stream->device, written)) {
      return static_cast<int>(kInvalidValue);
    }
    if (!m.is_usable(source, size, false) || !m.is_usable(target, size, false)) {
      ++m.misuses;
      return static_cast<int>(kInvalidValue);
    }
    auto staged = std::make_shared<std::vector<uint8_t>>();
    if (stages) {
      const auto* bytes = static_cast<const uint8_t*>(source);
      staged->assign(bytes, bytes + size);
    }
    const void* const from = stages ? staged->data() : source;
    m.submit_use(stream, {{from, size}, {target, size}},
                 [staged, target, from, size] { std::memcpy(target, from, size); });
    if (waits) {
      ++m.host_waits;
      m.wait_until_idle(lock, stream);
    }
    return failure_of(m, stream->device);
  });
}

int get_pointer_attribute(void* value, int attribute, const void* memory) {
  return call(kAnyCall, [&](Machine& m, Lock&) {
    const Allocation* allocation = m.find_allocation(memory);
    if (allocation == nullptr || allocation->is_freed) return kInvalidValue;
    auto& result = *static_cast<int*>(value);
    switch (attribute) {
      case kMemoryType:
        result = allocation->memory == Memory::kHost ? 1 : 2;
        return kSuccess;
      case kIsManaged:
        result = allocation->memory == Memory::kManaged ? 1 : 0;
        return kSuccess;
      case kDeviceOrdinal:
        result = allocation->device;
        return kSuccess;
      case kBufferId:
        *static_cast<uint64_t*>(value) = reinterpret_cast<uintptr_t>(allocation->bytes.data());
        return kSuccess;
      case kPoolHandle:
        *static_cast<void**>(value) = allocation->pool;
        return kSuccess;
      default:
        return kInvalidValue;
    }
  });
}

// ---------------------------------------------------------------- kernels

/// Kernels reach memory of their own device, memory that the driver has pinned or manages, and that
/// of devices that grant access (CUDA Programming Guide, "Peer-to-Peer Memory Access"). A number is
/// an address if it is in an allocation: it must not be freed.
bool Machine::may_use(int device, const Argument& argument) {
  if (argument.value == 0) return true;
  const auto* const address = reinterpret_cast<const void*>(argument.value);
  const Allocation* const memory = find_allocation(address);
  if (memory == nullptr) return !argument.is_pointer;
  if (memory->is_freed) return false;
  return !argument.is_pointer || memory->device == device || memory->memory != Memory::kDevice ||
         ((memory->is_pooled || memory->is_mapped) && may_access(device, memory));
}

int load_module(void** module, const void* image) {
  return call_in_context(kMaySynchronize, [&](Machine& m, Lock&) {
    const auto* text = static_cast<const char*>(image);
    if (m.module_status != 0) return static_cast<Status>(m.module_status);
    if (std::strstr(text, ".version ") == nullptr) return kInvalidImage;
    *module = m.make_handle();
    m.modules[*module] = {current_device(), text};
    return kSuccess;
  });
}

int find_kernel(void** kernel, void* handle, const char* name) {
  return call_in_context(kAnyCall, [&](Machine& m, Lock&) {
    const auto module = m.modules.find(handle);
    if (module == m.modules.end()) return kInvalidHandle;
    const std::string entry = std::string(".entry ") + name + '(';
    const Kernel* const found = find_kernel(name);
    if (found == nullptr || std::strstr(module->second.text, entry.c_str()) == nullptr) {
      return kNotFound;
    }
    *kernel = m.make_handle();
    m.kernels[*kernel] = {module->second.device, found};
    return kSuccess;
  });
}

int launch_kernel(void* handle, unsigned blocks, unsigned threads, void* on, void** arguments) {
  return call_on_stream(kAnyCall, on, [&](Machine& m, Lock&, const StreamPtr& stream) {
    const auto found = m.kernels.find(handle);
    if (found == m.kernels.end() || found->second.device != stream->device) {
      ++m.misuses;
      return static_cast<int>(kInvalidHandle);
    }
    if (blocks == 0 || threads == 0 || threads > 1024) return static_cast<int>(kInvalidValue);
    const Launch launch = found->second.kernel->bind(arguments);
    std::vector<std::pair<const void*, std::size_t>> used;
    for (const Argument& argument : launch.arguments) {
      if (!m.may_use(stream->device, argument)) ++m.misuses;
      used.emplace_back(reinterpret_cast<const void*>(argument.value), 0);
    }
    ++m.launches;
    m.submit_use(stream, std::move(used),
                 [run = launch.run, blocks, threads] { run({blocks, threads}); });
    return failure_of(m, stream->device);
  });
}

}  // namespace arrowdl::testing::fake
