// Owns memory on a device that is allocated for arrowdl.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include "arrowdl/backend.hpp"
#include "arrowdl/owned.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Memory of a device runtime. Must be idle when destroyed.
class DeviceAllocation {
 public:
  DeviceAllocation(MemoryOps& memory, const Device& device, int64_t size, StreamHandle stream)
      : memory_(memory), device_(device), address_(memory.allocate(device, size, stream)) {}
  /// Memory that `owner` frees.
  DeviceAllocation(MemoryOps& memory, const Device& device, void* address,
                   std::shared_ptr<const void> owner)
      : memory_(memory), device_(device), address_(address), owner_(std::move(owner)) {}
  ~DeviceAllocation() {
    try {
      if (owner_ != nullptr) {  // may free the memory in the current context
        memory_.call_on(device_, [this] { owner_.reset(); });
        return;
      }
      const BorrowedStream idle(memory_, device_);
      memory_.free(device_, address_, idle.get());
    } catch (const std::exception&) {  // the driver has ended, and with it its memory
    }
  }
  DeviceAllocation(const DeviceAllocation&) = delete;
  DeviceAllocation& operator=(const DeviceAllocation&) = delete;

  const Device& device() const noexcept { return device_; }
  uint8_t* address() const noexcept { return static_cast<uint8_t*>(address_); }

 private:
  MemoryOps& memory_;
  const Device device_;
  void* const address_;
  std::shared_ptr<const void> owner_;  ///< nullptr: allocated here
};

/// Memory of an array or a tensor on a device, counted by `live_objects`.
class DeviceMemory : public DeviceAllocation, private Counted {
 public:
  using DeviceAllocation::DeviceAllocation;
};

ARROWDL_END_NAMESPACE
