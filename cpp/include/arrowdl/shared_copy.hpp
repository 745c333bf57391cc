// Copies of arrays in device memory that other processes can open.
#pragma once

#include <string>
#include <string_view>

#include "arrowdl/device_array.hpp"
#include "arrowdl/file_descriptor.hpp"

ARROWDL_BEGIN_NAMESPACE

/// An array in memory that processes share, as one of them sends it to another.
struct SharedCopy {
  std::string description;    ///< its schema, rows and device, for `open_shared_copy`
  FileDescriptor descriptor;  ///< of the memory of its buffers; empty if it has none
};

/// Copies the rows of `array`, nested values and dictionaries included, to new memory on its device
/// that every process with its description and descriptor can open. The system frees the memory
/// when no process has it open or has a descriptor of it: no process has to outlive another.
/// Waits on the host for the copy. Raises BufferError for memory of other devices than cuda and
/// rocm, and where the driver cannot share any; MemoryError; and what `copy_array` raises.
SharedCopy make_shared_copy(const DeviceArray& array);

/// Maps the memory of a `make_shared_copy` of any process, as often as wanted. The result is ready.
/// Its device is the GPU that has the memory, by the number that this process gives it. The caller
/// may close `descriptor` afterwards; -1 if the copy has none. Raises ValueError for a description
/// that another version of arrowdl wrote, BufferError if this process has no such GPU.
DeviceArray open_shared_copy(std::string_view description, int descriptor);

ARROWDL_END_NAMESPACE
