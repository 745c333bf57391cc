// Owners of the raw C structs and of memory: `Owned*` releases exactly once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "arrowdl/dlpack.hpp"
#include "arrowdl/namespace.hpp"
#include "nanoarrow/nanoarrow_device.hpp"

ARROWDL_BEGIN_NAMESPACE

using OwnedSchema = nanoarrow::UniqueSchema;
using OwnedArray = nanoarrow::UniqueArray;
using OwnedArrayStream = nanoarrow::UniqueArrayStream;
using OwnedDeviceArray = nanoarrow::device::UniqueDeviceArray;
using OwnedDeviceArrayStream = nanoarrow::device::UniqueDeviceArrayStream;

/// Releases a producer's schema or array, on any thread; the other one is nullptr. Bindings pass
/// one that takes the interpreter lock, for producers whose release needs it.
using Releaser = void (*)(OwnedSchema*, OwnedDeviceArray*) noexcept;

/// The number of live objects in this process that own foreign or exported memory: zero if nothing
/// leaks. For tests and `arrowdl.debug.live_objects()`.
int64_t live_objects() noexcept;

/// Base of everything that `live_objects` counts.
class Counted {
 protected:
  Counted() noexcept;
  ~Counted();
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
};

/// Owns a DLPack tensor, legacy or versioned, and calls its deleter once, on any thread. The
/// deleter may be NULL.
class OwnedTensor {
 public:
  OwnedTensor() noexcept = default;
  /// Takes ownership of `legacy` or `versioned`, which may be nullptr.
  explicit OwnedTensor(DLManagedTensor* legacy) noexcept : legacy_(legacy) {}
  explicit OwnedTensor(DLManagedTensorVersioned* versioned) noexcept : versioned_(versioned) {}
  OwnedTensor(OwnedTensor&& other) noexcept { swap(other); }
  OwnedTensor& operator=(OwnedTensor&& other) noexcept {
    OwnedTensor(static_cast<OwnedTensor&&>(other)).swap(*this);
    return *this;
  }
  ~OwnedTensor() {
    if (*this) reset();
  }

  explicit operator bool() const noexcept { return legacy_ != nullptr || versioned_ != nullptr; }
  const DLTensor& operator*() const noexcept {
    return versioned_ != nullptr ? versioned_->dl_tensor : legacy_->dl_tensor;
  }
  const DLTensor* operator->() const noexcept { return &**this; }
  /// DLPACK_FLAG_BITMASK_*; a legacy tensor has none.
  uint64_t flags() const noexcept { return versioned_ != nullptr ? versioned_->flags : 0; }
  /// The versioned struct, or nullptr for a legacy tensor.
  const DLManagedTensorVersioned* versioned() const noexcept { return versioned_; }

  void reset() noexcept;
  void swap(OwnedTensor& other) noexcept {
    std::swap(legacy_, other.legacy_);
    std::swap(versioned_, other.versioned_);
  }
  /// Passes ownership of the struct to the caller; nullptr if it is of the other kind or empty.
  DLManagedTensorVersioned* take_versioned() noexcept { return std::exchange(versioned_, nullptr); }
  DLManagedTensor* take_legacy() noexcept { return std::exchange(legacy_, nullptr); }

 private:
  DLManagedTensor* legacy_ = nullptr;
  DLManagedTensorVersioned* versioned_ = nullptr;
};

/// Immutable bytes with a shared owner. Copying a Buffer shares the bytes.
class Buffer {
 public:
  /// No buffer: data() is nullptr, as for an absent validity bitmap in Arrow.
  Buffer() noexcept = default;
  /// Borrows `size` bytes at `data`, kept alive by `owner`.
  Buffer(std::shared_ptr<const void> owner, const void* data, int64_t size) noexcept
      : owner_(std::move(owner)), data_(static_cast<const uint8_t*>(data)), size_(size) {}

  /// New host memory of `size` bytes, uninitialised, aligned to 64 bytes (Arrow's recommendation
  /// and JAX's condition for a zero-copy import) and padded to a multiple of it; `*writable` is its
  /// address, to be filled before the Buffer is shared. A size of 0 has an address too.
  /// Raises MemoryError.
  static Buffer allocate(int64_t size, uint8_t** writable);

  const uint8_t* data() const noexcept { return data_; }
  int64_t size() const noexcept { return size_; }
  const std::shared_ptr<const void>& owner() const noexcept { return owner_; }

 private:
  std::shared_ptr<const void> owner_;
  const uint8_t* data_ = nullptr;
  int64_t size_ = 0;
};

/// The parts of an array that arrowdl makes.
struct ArrayParts {
  int64_t length = 0;
  int64_t null_count = 0;  ///< -1: unknown
  int64_t offset = 0;
  std::vector<Buffer> buffers;  ///< in Arrow's order for the layout, variadic ones included
  std::vector<OwnedArray> children;
  OwnedArray dictionary;  ///< released (empty) if the array has none
};

/// An ArrowArray over `parts`, which it keeps alive until its release. Children can be moved out
/// of it one by one, as the C data interface allows.
OwnedArray make_array(ArrayParts parts);

ARROWDL_END_NAMESPACE
