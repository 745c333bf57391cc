// Device memory that processes share, on CUDA and HIP: allocated and mapped by separate calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "arrowdl/file_descriptor.hpp"
#include "backends/cuda_like_runtime.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The calls of virtual memory management and for the names of devices, all optional.
struct VirtualMemoryCalls {
  Call<char*, int, int> get_pci_id;                      // result, its length, device
  Call<void*, int> get_uuid;                             // result of 16 bytes, device
  Call<std::size_t*, const void*, int> get_granularity;  // result, properties, option
  Call<void**, std::size_t, const void*, unsigned long long> create_memory;  // handle, size, ...
  Call<void*> release_memory;
  Call<void*, void*, int, unsigned long long> export_memory;  // result, handle, its type, flags
  Call<void**, void*, int> import_memory;                     // handle, descriptor, its type
  Call<void**, std::size_t, std::size_t, void*, unsigned long long> reserve_range;
  Call<void*, std::size_t> free_range;
  Call<void*, std::size_t, std::size_t, void*, unsigned long long> map_memory;
  Call<void*, std::size_t> unmap_memory;
  Call<void*, std::size_t, const void*, std::size_t> set_access;
};

class CudaLikeSharedMemory : public CudaLikeRuntime, private SharedMemoryOps {
 public:
  SharedMemoryOps* shared_memory() noexcept override;

 protected:
  CudaLikeSharedMemory(const RuntimeText& text, std::string library_name, const StreamCalls& calls,
                       const VirtualMemoryCalls& memory_calls)
      : CudaLikeRuntime(text, std::move(library_name), calls), calls_(memory_calls) {}

  /// A file descriptor as `import_memory` takes it.
  virtual void* pass_descriptor(int* descriptor) {
    return reinterpret_cast<void*>(static_cast<intptr_t>(*descriptor));
  }

 private:
  class Handle;

  std::string identify(const Device& device) override;
  Mapping create_shared(const Device& device, int64_t size, FileDescriptor* descriptor) override;
  Mapping map_shared(const Device& device, int64_t size, int descriptor) override;
  void unmap_shared(const Device& device, const Mapping& mapping) noexcept override;

  Mapping create(const Device& device, int64_t size, FileDescriptor* descriptor);
  Mapping map(const Device& device, std::size_t size, const Handle& handle);
  int allow_access(const Device& device, void* address, std::size_t size) noexcept;
  [[noreturn]] void raise_unable(const Device& device, const char* call, int status) const;

  const VirtualMemoryCalls calls_;
};

ARROWDL_END_NAMESPACE
