// Allocates device memory by torch's functions of C.
#include "export/torch_allocator.hpp"

#include <pybind11/pybind11.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "arrowdl/backends.hpp"
#include "arrowdl/dtype.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "backends/dynamic_library.hpp"
#include "export/exchange_api.hpp"
#include "support/exchange_api.hpp"
#include "support/gil.hpp"
#include "support/python_hooks.hpp"

namespace arrowdl::python {

StreamHandle find_allocation_stream(MemoryOps& memory, const Device& device) {
  static auto* const mutex = new std::mutex;  // never freed: copies ahead may run at exit, too
  static auto* const streams = new std::map<std::pair<int32_t, int32_t>, StreamHandle>;
  const std::lock_guard<std::mutex> lock(*mutex);
  const std::pair<int32_t, int32_t> key(device.type, device.id);
  const auto found = streams->find(key);
  if (found != streams->end()) return found->second;
  return streams->emplace(key, memory.acquire_stream(device)).first->second;  // never returned
}

namespace {

namespace py = pybind11;

std::atomic<const TorchAllocator*> found{nullptr};  // one: torch is built for CUDA or for ROCm
/// Once, since it lists all libraries: a version of torch has the functions or not.
std::atomic<bool> has_searched{false};

/// A tensor that owns memory. Leaked once the interpreter has ended, as all objects of libraries.
class TensorOfTorch {
 public:
  explicit TensorOfTorch(OwnedTensor tensor) noexcept : tensor_(std::move(tensor)) {}
  ~TensorOfTorch() {
    if (is_ending()) static_cast<void>(tensor_.take_versioned());
  }
  TensorOfTorch(const TensorOfTorch&) = delete;
  TensorOfTorch& operator=(const TensorOfTorch&) = delete;

  void* address() const noexcept {
    return static_cast<uint8_t*>(tensor_->data) + tensor_->byte_offset;
  }

 private:
  OwnedTensor tensor_;
};

DynamicLibrary find_library() {
  for (const char* name :
       {"libtorch_cuda.so", "libtorch_hip.so", "torch_cuda.dll", "torch_hip.dll"}) {
    if (DynamicLibrary library = DynamicLibrary::find_loaded(name)) return library;
  }
  return {};
}

}  // namespace

/// Torch's current stream of this thread, for a while.
class TorchAllocator::CurrentStream {
 public:
  CurrentStream(const TorchAllocator& torch, const Device& device, StreamHandle stream)
      : delete_guard_(torch.delete_guard_) {
    if (torch.create_guard_(stream.get(), to_dl_device(device).device_id, &guard_) == 0) return;
    raise_buffer_error("torch cannot make a stream of ", to_string(device), " the current one");
  }
  ~CurrentStream() { delete_guard_(guard_); }
  CurrentStream(const CurrentStream&) = delete;
  CurrentStream& operator=(const CurrentStream&) = delete;

 private:
  const DeleteGuard delete_guard_;
  Guard* guard_ = nullptr;
};

const TorchAllocator* TorchAllocator::get(const Device& device) noexcept {
  const TorchAllocator* const torch = found.load(std::memory_order_acquire);
  return torch != nullptr && torch->type_ == device.type && !is_ending() ? torch : nullptr;
}

void TorchAllocator::find(const Device& device) {
  if (has_searched.exchange(true)) return;
  const py::object torch = find_module("torch");
  if (!torch) return;
  const py::object type = py::getattr(torch, "Tensor", py::none());
  if (!PyType_Check(type.ptr())) return;
  const DLPackExchangeAPI* const api =
      find_exchange_api(reinterpret_cast<PyTypeObject*>(type.ptr()));
  DynamicLibrary library = find_library();
  if (api == nullptr || !library) return;
  const auto create =
      reinterpret_cast<CreateGuard>(library.find("aoti_torch_create_cuda_stream_guard"));
  const auto remove =
      reinterpret_cast<DeleteGuard>(library.find("aoti_torch_delete_cuda_stream_guard"));
  if (create == nullptr || remove == nullptr) return;
  library.keep();
  found.store(new TorchAllocator(device.type, *api, create, remove), std::memory_order_release);
}

AllocatedMemory TorchAllocator::allocate(const Device& device, int64_t size) const {
  MemoryOps& memory = require_memory(device, "allocate");
  const StreamHandle stream = find_allocation_stream(memory, device);
  AllocatedMemory made;
  memory.call_on(device, [&] {
    const CurrentStream current(*this, device, stream);
    const auto tensor =
        std::make_shared<TensorOfTorch>(allocate_by(api_, *find_dtype("uint8"), size, device));
    made.address = tensor->address();
    made.owner = tensor;
  });
  made.stream = stream;
  return made;
}

}  // namespace arrowdl::python
