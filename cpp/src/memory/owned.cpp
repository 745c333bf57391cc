// Owners of tensors, buffers and arrays, and the count of live ones.
#include "arrowdl/owned.hpp"

#include <limits>

#include "arrowdl/error.hpp"
#include "memory/aligned_alloc.hpp"
#include "memory/buffer_arena.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

std::atomic<int64_t> live{0};

/// The private data of an array that arrowdl makes: its parts, and the pointer tables of its
/// struct.
struct ArrayHolder : private Counted {
  explicit ArrayHolder(ArrayParts&& from) : parts(std::move(from)) {
    buffers.reserve(parts.buffers.size());
    for (const Buffer& buffer : parts.buffers) buffers.push_back(buffer.data());
    children.reserve(parts.children.size());
    for (OwnedArray& child : parts.children) children.push_back(child.get());
  }

  ArrayParts parts;
  std::vector<const void*> buffers;
  std::vector<ArrowArray*> children;
};

void release_array(ArrowArray* array) noexcept {
  delete static_cast<ArrayHolder*>(array->private_data);
  array->release = nullptr;
}

}  // namespace

int64_t live_objects() noexcept { return live.load(std::memory_order_relaxed); }

Counted::Counted() noexcept { live.fetch_add(1, std::memory_order_relaxed); }

Counted::~Counted() { live.fetch_sub(1, std::memory_order_relaxed); }

void OwnedTensor::reset() noexcept {
  if (DLManagedTensor* legacy = take_legacy(); legacy != nullptr && legacy->deleter != nullptr) {
    legacy->deleter(legacy);
  }
  if (DLManagedTensorVersioned* versioned = take_versioned();
      versioned != nullptr && versioned->deleter != nullptr) {
    versioned->deleter(versioned);
  }
}

Buffer Buffer::allocate(int64_t size, uint8_t** writable) {
  const bool is_possible = size >= 0 && size < std::numeric_limits<int64_t>::max() / 2;
  BufferArena* const arena = is_possible ? BufferArena::find(size) : nullptr;
  if (arena != nullptr) return arena->take(size, writable);
  const auto bytes = static_cast<std::size_t>(size);
  void* memory = is_possible ? allocate_aligned(bytes) : nullptr;
  if (memory == nullptr) raise_memory_error(size);
  live.fetch_add(1, std::memory_order_relaxed);
  std::shared_ptr<const void> owner(memory, [bytes](void* p) noexcept {
    free_aligned(p, bytes);
    live.fetch_sub(1, std::memory_order_relaxed);
  });
  *writable = static_cast<uint8_t*>(memory);
  return Buffer(std::move(owner), memory, size);
}

OwnedArray make_array(ArrayParts parts) {
  auto holder = std::make_unique<ArrayHolder>(std::move(parts));
  OwnedArray array;
  array->length = holder->parts.length;
  array->null_count = holder->parts.null_count;
  array->offset = holder->parts.offset;
  array->n_buffers = static_cast<int64_t>(holder->buffers.size());
  array->buffers = holder->buffers.data();
  array->n_children = static_cast<int64_t>(holder->children.size());
  array->children = holder->children.data();
  ArrowArray* dictionary = holder->parts.dictionary.get();
  array->dictionary = dictionary->release == nullptr ? nullptr : dictionary;
  array->private_data = holder.release();
  array->release = release_array;
  return array;
}

ARROWDL_END_NAMESPACE
