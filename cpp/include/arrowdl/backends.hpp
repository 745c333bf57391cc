// Finds the backends of device types, and registers synchronizers for types without one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "arrowdl/backend.hpp"
#include "arrowdl/device.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The backend of `device_type`, opened by the first call; it lives as long as the process. nullptr
/// if arrowdl has none for the type, a library is missing, or the runtime has no device.
/// `*why_not`, if given, says which, and what to do.
Backend* find_backend(int32_t device_type, std::string* why_not = nullptr) noexcept;

/// The same. Raises BufferError, "cannot `verb` on cuda:0: …", if there is none.
Backend& require_backend(const Device& device, const char* verb);

/// The streams, or the memory, of the backend of `device`. Raise BufferError, "cannot `verb` on
/// cuda:0: …", if there are none.
StreamOps& require_streams(const Device& device, const char* verb);
MemoryOps& require_memory(const Device& device, const char* verb);

/// The kernels that run on memory of `device`, or nullptr.
KernelOps* find_kernels(const Device& device) noexcept;

/// The same. Raises BufferError if there are none.
KernelOps& require_kernels(const Device& device);

/// The id of the current device of the runtime of `device_type` on the calling thread: of the
/// current context in CUDA, of hipSetDevice in HIP. Empty if the process has not started the
/// runtime or the thread has no context. Starts nothing.
std::optional<int64_t> find_current_device(int32_t device_type);

/// The device types of each runtime that arrowdl has a backend for, its first type first.
std::vector<std::vector<int32_t>> list_runtimes();

/// Whether the process has loaded a library of the type's runtime. Without one, no memory of that
/// type can have pending work.
bool has_runtime(int32_t device_type);

/// Frees device memory that other libraries of the process keep without using it.
using FreeCaches = std::function<void(const Device& device)>;

/// Registers what an allocation that finds no memory on a device calls, on any thread and with no
/// lock of ours held, before it tries once more. An empty function removes it.
void set_free_caches(FreeCaches function);

/// Waits on the host for an event of a device type that arrowdl has no backend for.
using Synchronizer = std::function<void(EventHandle event, int64_t device_id)>;

/// Lets arrays of `device_type` carry events: `synchronizer` waits for each of them on the host. An
/// empty one removes the registered one. Raises ValueError for a type whose events are always NULL,
/// or that has a backend.
void register_synchronizer(int32_t device_type, Synchronizer synchronizer);

ARROWDL_END_NAMESPACE
