// Allocates device memory by torch's functions of C.
#pragma once

#include <cstdint>

#include "arrowdl/allocator.hpp"
#include "arrowdl/backend.hpp"
#include "arrowdl/device.hpp"

namespace arrowdl::python {

/// Torch's caching allocator without the GIL, which a thread that copies ahead would take several
/// times for each batch, in turns with the training: by the DLPack exchange API of torch.Tensor,
/// and by the stream guards of torch's C ABI (torch/csrc/inductor/aoti_torch/c/shim.h).
class TorchAllocator {
 public:
  /// The allocator of the type of `device`, if `find` has found it; otherwise nullptr.
  static const TorchAllocator* get(const Device& device) noexcept;
  /// Looks for the functions, in the first call, which comes after torch has allocated on `device`.
  /// With the GIL. Versions of torch without them, before 2.10, are called in Python.
  static void find(const Device& device);

  /// Memory of the cache of a stream, which is only a name: see `find_allocation_stream`. Callable
  /// on any thread, with and without the GIL. Raises MemoryError and BufferError.
  AllocatedMemory allocate(const Device& device, int64_t size) const;

 private:
  struct Guard;
  using CreateGuard = int32_t (*)(void* stream, int32_t index, Guard** made);
  using DeleteGuard = int32_t (*)(Guard*);
  class CurrentStream;

  TorchAllocator(int32_t type, const DLPackExchangeAPI& api, CreateGuard create, DeleteGuard remove)
      : type_(type), api_(api), create_guard_(create), delete_guard_(remove) {}

  const int32_t type_;  ///< of Device
  const DLPackExchangeAPI& api_;
  const CreateGuard create_guard_;
  const DeleteGuard delete_guard_;
};

/// One stream of ours on `device`, always the same, on which no work runs and which waits for none:
/// what is allocated for it is ready at once, and it never joins a capture.
StreamHandle find_allocation_stream(MemoryOps& memory, const Device& device);

}  // namespace arrowdl::python
