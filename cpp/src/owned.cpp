#include "arrowdl/owned.hpp"

#include <cstdlib>
#include <limits>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "arrowdl/error.hpp"

namespace arrowdl {
namespace {

std::atomic<int64_t> live{0};

constexpr int64_t kAlignment = 64;

/// From this size on, memory fresh from the system costs more in page faults than in writing it:
/// 64 MiB take 53 ms in small pages and 15 ms in huge ones.
constexpr int64_t kHugeSize = int64_t{4} << 20;
constexpr int64_t kHugePage = int64_t{2} << 20;

void ask_for_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t size) noexcept {
#if defined(__linux__)
  madvise(memory, size, MADV_HUGEPAGE);  // advice: that it fails costs time only
#endif
}

/// What an array of our making holds until its release: the parts, and the pointer tables that
/// its struct refers to.
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
  if (size < 0 || size > std::numeric_limits<int64_t>::max() - kHugePage) {
    throw Error(ErrorKind::kMemory, concat("cannot allocate ", size, " bytes"));
  }
  const auto alignment = static_cast<std::align_val_t>(size < kHugeSize ? kAlignment : kHugePage);
  const auto padded = static_cast<std::size_t>((size + kAlignment) / kAlignment * kAlignment);
  void* memory = ::operator new(padded, alignment, std::nothrow);
  if (memory == nullptr) {
    throw Error(ErrorKind::kMemory, concat("cannot allocate ", size, " bytes"));
  }
  if (size >= kHugeSize) ask_for_huge_pages(memory, padded);
  live.fetch_add(1, std::memory_order_relaxed);
  std::shared_ptr<const void> owner(memory, [alignment](void* p) noexcept {
    ::operator delete(p, alignment);
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

}  // namespace arrowdl
