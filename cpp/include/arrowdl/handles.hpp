// Types for the raw handles of GPU streams and events.
#pragma once

#include <cstdint>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// A GPU stream: a CUstream, hipStream_t, DPCTLSyclQueueRef or cl_command_queue. Borrows it.
/// DLPack's small numbers (CUDA: 1 legacy default, 2 per-thread default) are the runtime's own
/// handles of those streams; a null handle is the default stream of CUDA and ROCm.
class StreamHandle {
 public:
  constexpr StreamHandle() noexcept = default;
  constexpr explicit StreamHandle(void* raw) noexcept : raw_(raw) {}
  /// From the integer that Python libraries and DLPack pass.
  explicit StreamHandle(uintptr_t value) noexcept : raw_(reinterpret_cast<void*>(value)) {}

  /// What the runtime's functions take.
  constexpr void* get() const noexcept { return raw_; }
  uintptr_t value() const noexcept { return reinterpret_cast<uintptr_t>(raw_); }
  constexpr bool is_null() const noexcept { return raw_ == nullptr; }

  friend constexpr bool operator==(StreamHandle a, StreamHandle b) noexcept {
    return a.raw_ == b.raw_;
  }
  friend constexpr bool operator!=(StreamHandle a, StreamHandle b) noexcept { return !(a == b); }

 private:
  void* raw_ = nullptr;
};

/// A GPU event as in ArrowDeviceArray.sync_event: a pointer to the type in the column `event_type`
/// of the device table. Borrows it. A null event is complete.
class EventHandle {
 public:
  constexpr EventHandle() noexcept = default;
  constexpr explicit EventHandle(void* raw) noexcept : raw_(raw) {}

  /// What ArrowDeviceArray.sync_event and the runtime's functions take.
  constexpr void* get() const noexcept { return raw_; }
  uintptr_t value() const noexcept { return reinterpret_cast<uintptr_t>(raw_); }
  constexpr explicit operator bool() const noexcept { return raw_ != nullptr; }

  friend constexpr bool operator==(EventHandle a, EventHandle b) noexcept {
    return a.raw_ == b.raw_;
  }
  friend constexpr bool operator!=(EventHandle a, EventHandle b) noexcept { return !(a == b); }

 private:
  void* raw_ = nullptr;
};

ARROWDL_END_NAMESPACE
