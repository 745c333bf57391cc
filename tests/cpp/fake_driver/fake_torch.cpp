// A test double of torch's library for CUDA: what arrowdl calls in it without the GIL. Memory comes
// from the driver's double in segments, of which each stream's blocks are parts, as torch's does.
// Sources: free, get_free_block and get_allocation_size in c10/cuda/CUDACachingAllocator.cpp.
#include <dlfcn.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "arrowdl/dlpack.hpp"

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Ranges = std::map<uint8_t*, int64_t>;  // addresses and sizes

struct Cache {
  std::mutex mutex;
  std::condition_variable changed;
  int64_t open = INT64_MAX;      ///< allocations that may pass
  std::map<void*, Ranges> free;  ///< of each stream
  std::vector<void*> streams;    ///< that each allocation was for
  int64_t left = INT64_MAX;      ///< allocations until memory runs out
  int64_t live = 0;
};

Cache& cache() {
  static auto* const made = new Cache;
  return *made;
}

int64_t round_up(int64_t size, int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

/// The first free range of a stream that is large enough, cut to `size`; nullptr: there is none.
uint8_t* take_range(void* stream, int64_t size) {
  Ranges& free = cache().free[stream];
  for (const auto& [address, found] : free) {
    if (found < size) continue;
    uint8_t* const taken = address;
    if (found > size) free[taken + size] = found - size;
    free.erase(taken);
    return taken;
  }
  return nullptr;
}

/// Neighbours become one range. Segments never are neighbours: the allocator of the driver's double
/// has a header before each.
void give_range(void* stream, uint8_t* address, int64_t size) {
  Ranges& free = cache().free[stream];
  auto range = free.emplace(address, size).first;
  if (range != free.begin()) {
    const auto before = std::prev(range);
    if (before->first + before->second == address) {
      before->second += size;
      free.erase(range);
      range = before;
    }
  }
  const auto next = std::next(range);
  if (next == free.end() || range->first + range->second != next->first) return;
  range->second += next->second;
  free.erase(next);
}

int64_t count() { return static_cast<int64_t>(cache().streams.size()); }

thread_local void* current_stream = nullptr;

struct Tensor {
  DLManagedTensorVersioned managed{};
  int64_t size = 0;
  void* stream = nullptr;
};

constexpr int64_t kBlock = 512;
constexpr int64_t kSegment = int64_t{2} << 20;

int allocate_from_driver(void** address, int64_t size) {
  using Allocate = int (*)(void**, std::size_t);
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const auto function = reinterpret_cast<Allocate>(dlsym(driver, "cuMemAlloc_v2"));
  return function(address, static_cast<std::size_t>(size));
}

void delete_tensor(DLManagedTensorVersioned* managed) {
  const std::unique_ptr<Tensor> tensor(static_cast<Tensor*>(managed->manager_ctx));
  const std::lock_guard<std::mutex> lock(cache().mutex);
  give_range(tensor->stream, static_cast<uint8_t*>(managed->dl_tensor.data),
             round_up(tensor->size, kBlock));
  --cache().live;
}

int allocate(DLTensor* prototype, DLManagedTensorVersioned** out, void* context,
             void (*set_error)(void*, const char*, const char*)) {
  auto tensor = std::make_unique<Tensor>();
  tensor->size = prototype->shape[0];
  tensor->stream = current_stream;
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
  const int64_t size = round_up(tensor->size, kBlock);
  void* data = take_range(current_stream, size);
  if (data == nullptr) {
    const int64_t segment = round_up(size, kSegment);
    if (allocate_from_driver(&data, segment) != 0) {
      set_error(context, "MemoryError", "the driver's double has no memory");
      return -1;
    }
    give_range(current_stream, static_cast<uint8_t*>(data), segment);
    data = take_range(current_stream, size);
  }
  managed.dl_tensor.data = data;
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
