// Device memory of another library's allocator.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "arrowdl/device.hpp"
#include "arrowdl/handles.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Memory that another library allocated. The last owner frees it; arrowdl drops its own when no
/// work uses the memory any more.
struct AllocatedMemory {
  void* address = nullptr;  ///< nullptr: the allocator leaves this to arrowdl's pool
  std::shared_ptr<const void> owner = {};
  /// Its earlier work may still use the memory; empty: none does.
  std::optional<StreamHandle> stream = {};
};

/// Allocates `size` bytes, more than 0, on `device`. Called on any thread, with no lock of ours
/// held. Raises MemoryError if there is no memory: arrowdl empties its pool, and calls once more.
using Allocator = std::function<AllocatedMemory(const Device& device, int64_t size)>;

/// What allocates device memory (cuda, rocm) where a call names no allocator. An empty function,
/// the default, is arrowdl's pool.
void set_default_allocator(Allocator allocator);
Allocator default_allocator();

ARROWDL_END_NAMESPACE
