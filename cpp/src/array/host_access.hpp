// Decides whether the CPU or the kernels of a device read an array, or the CPU a copy of it.
#pragma once

#include <vector>

#include "arrowdl/device_array.hpp"
#include "backends/host_access.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Waits for the event of `array`. Raises BufferError unless the CPU can read its memory.
void require_host_readable(const DeviceArray& array, const char* verb);

/// Whether the CPU reads memory of `device` as a copy on the host, and only so.
bool is_read_as_copy(const Device& device) noexcept;

/// The same, where no kernels read it either: work goes through the host.
bool goes_through_host(const Device& device) noexcept;

/// Whether the kernels of its device read `array`; false if the CPU can read it. Does not wait.
/// Raises BufferError, "cannot `verb` on oneapi:0: ...", if neither can.
bool is_read_by_kernels(const Device& device, const char* verb);

/// The same for one or more arrays that are read together: waits for them if the CPU reads them.
/// Raises BufferError if they are on several devices.
bool are_read_by_kernels(const std::vector<DeviceArray>& arrays, const char* verb);

ARROWDL_END_NAMESPACE
