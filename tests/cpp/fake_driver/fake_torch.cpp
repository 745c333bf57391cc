// A test double of torch's library for CUDA: what arrowdl calls in it without the GIL. Memory comes
// from the driver's double, through a cache of blocks for each stream, as torch's does. Sources:
// free and get_free_block in c10/cuda/CUDACachingAllocator.cpp.
#include <dlfcn.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "arrowdl/dlpack.hpp"

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Key = std::pair<void*, int64_t>;  // the stream and the size

struct Cache {
  std::mutex mutex;
  std::condition_variable changed;
  int64_t open = INT64_MAX;  ///< allocations that may pass
  std::map<Key, std::vector<void*>> free;
  std::vector<void*> streams;  ///< that each allocation was for
  int64_t left = INT64_MAX;    ///< allocations until memory runs out
  int64_t live = 0;
};

Cache& cache() {
  static auto* const made = new Cache;
  return *made;
}

/// torch gives blocks of many sizes from segments of 2 MiB: sizes that differ little share blocks.
int64_t round_up(int64_t size) {
  int64_t rounded = 512;
  while (rounded < size) rounded *= 2;
  return rounded;
}

int64_t count() { return static_cast<int64_t>(cache().streams.size()); }

thread_local void* current_stream = nullptr;

struct Tensor {
  DLManagedTensorVersioned managed{};
  int64_t size = 0;
  Key key;
};

int allocate_from_driver(void** address, int64_t size) {
  using Allocate = int (*)(void**, std::size_t);
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const auto function = reinterpret_cast<Allocate>(dlsym(driver, "cuMemAlloc_v2"));
  return function(address, static_cast<std::size_t>(size));
}

void delete_tensor(DLManagedTensorVersioned* managed) {
  const std::unique_ptr<Tensor> tensor(static_cast<Tensor*>(managed->manager_ctx));
  const std::lock_guard<std::mutex> lock(cache().mutex);
  cache().free[tensor->key].push_back(managed->dl_tensor.data);
  --cache().live;
}

int allocate(DLTensor* prototype, DLManagedTensorVersioned** out, void* context,
             void (*set_error)(void*, const char*, const char*)) {
  auto tensor = std::make_unique<Tensor>();
  tensor->size = prototype->shape[0];
  tensor->key = {current_stream, round_up(tensor->size)};
  DLManagedTensorVersioned& managed = tensor->managed;
  managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed.deleter = delete_tensor;
  managed.dl_tensor = *prototype;
  managed.dl_tensor.shape = &tensor->size;
  std::unique_lock<std::mutex> lock(cache().mutex);
  cache().changed.wait(lock, [] { return count() < cache().open; });
  if (cache().left == 0) {
    set_error(context, "MemoryError", "CUDA out of memory. Tried to allocate\nC++ frames");
    return -1;
  }
  --cache().left;
  std::vector<void*>& blocks = cache().free[tensor->key];
  if (!blocks.empty()) {
    managed.dl_tensor.data = blocks.back();
    blocks.pop_back();
  } else if (allocate_from_driver(&managed.dl_tensor.data, tensor->key.second) != 0) {
    set_error(context, "MemoryError", "the driver's double has no memory");
    return -1;
  }
  cache().streams.push_back(current_stream);
  cache().changed.notify_all();
  ++cache().live;
  managed.manager_ctx = tensor.get();
  *out = &tensor.release()->managed;
  return 0;
}

int find_current_stream(DLDeviceType, int32_t, void** stream) {
  *stream = current_stream;
  return 0;
}

}  // namespace

FAKE_EXPORT int32_t aoti_torch_create_cuda_stream_guard(void* stream, int32_t, void*** made) {
  *made = new void*(std::exchange(current_stream, stream));
  return 0;
}

FAKE_EXPORT int32_t aoti_torch_delete_cuda_stream_guard(void** guard) {
  current_stream = *guard;
  delete guard;
  return 0;
}

/// The exchange API of torch.Tensor.
FAKE_EXPORT const DLPackExchangeAPI* fake_torch_exchange_api() {
  static DLPackExchangeAPI api{};
  api.header.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  api.managed_tensor_allocator = allocate;
  api.current_work_stream = find_current_stream;
  return &api;
}

FAKE_EXPORT void fake_torch_set_left(int64_t count) {
  const std::lock_guard<std::mutex> lock(cache().mutex);
  cache().left = count;
}

FAKE_EXPORT int64_t fake_torch_live() {
  const std::lock_guard<std::mutex> lock(cache().mutex);
  return cache().live;
}

FAKE_EXPORT int64_t fake_torch_count() {
  const std::lock_guard<std::mutex> lock(cache().mutex);
  return count();
}

/// Allocations after the first `passing` wait.
FAKE_EXPORT void fake_torch_close(int64_t passing) {
  const std::lock_guard<std::mutex> lock(cache().mutex);
  cache().open = passing;
}

/// Lets all pass, and waits until there are `wanted` allocations, a minute at most. Returns how
/// many there are.
FAKE_EXPORT int64_t fake_torch_open(int64_t wanted) {
  std::unique_lock<std::mutex> lock(cache().mutex);
  cache().open = INT64_MAX;
  cache().changed.notify_all();
  cache().changed.wait_for(lock, std::chrono::minutes(1), [wanted] { return count() >= wanted; });
  return count();
}

/// The stream of allocation `index`.
FAKE_EXPORT void* fake_torch_stream(int64_t index) {
  const std::lock_guard<std::mutex> lock(cache().mutex);
  return cache().streams[static_cast<std::size_t>(index)];
}
