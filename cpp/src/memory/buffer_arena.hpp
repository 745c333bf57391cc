// Memory that buffers of one thread are taken from, one behind the other.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "arrowdl/owned.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Memory of which `Buffer::allocate` takes what fits, on the thread that has made this, as long as
/// it is in scope.
class BufferArena {
 public:
  /// What a buffer of `size` bytes takes: as much as without an arena.
  static constexpr int64_t pad(int64_t size) noexcept { return (size / 64 + 1) * 64; }

  /// `size` bytes at `block`, aligned to 64. nullptr changes nothing.
  BufferArena(std::shared_ptr<uint8_t> block, int64_t size) noexcept
      : block_(std::move(block)), next_(block_.get()), left_(size), before_(current_) {
    if (block_ != nullptr) current_ = this;
  }
  ~BufferArena() { current_ = before_; }
  BufferArena(const BufferArena&) = delete;
  BufferArena& operator=(const BufferArena&) = delete;

  explicit operator bool() const noexcept { return block_ != nullptr; }

  /// The arena of this thread, if it has room for a buffer of `size` bytes; else nullptr.
  static BufferArena* find(int64_t size) noexcept {
    return current_ != nullptr && pad(size) <= current_->left_ ? current_ : nullptr;
  }

  /// The next buffer. There must be room for it.
  Buffer take(int64_t size, uint8_t** writable) {
    *writable = std::exchange(next_, next_ + pad(size));
    left_ -= pad(size);
    return Buffer(block_, *writable, size);
  }

 private:
  static inline thread_local BufferArena* current_ = nullptr;

  const std::shared_ptr<uint8_t> block_;
  uint8_t* next_;
  int64_t left_;
  BufferArena* const before_;
};

ARROWDL_END_NAMESPACE
