// Host memory that a device writes, for reads of a few bytes.
#pragma once

#include <cstdint>
#include <memory>

#include "sync/stream_work.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Host memory for copies from `from` on the stream of `work`, which keeps it: pinned, where the
/// runtime can pin memory, so that a copy does not wait.
class HostBlock {
 public:
  HostBlock(StreamWork& work, const Device& from, int64_t size);

  uint8_t* address() const noexcept { return address_; }
  int64_t size() const noexcept { return size_; }
  /// What `MemoryOps::copy` takes: of the pinned memory, or the CPU.
  const Device& device() const noexcept { return device_; }

 private:
  const int64_t size_;
  Device device_;
  uint8_t* address_ = nullptr;
};

ARROWDL_END_NAMESPACE
