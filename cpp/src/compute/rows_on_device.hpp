// Finds and gathers rows of arrays with the kernels of a device.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "sync/kernel_work.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The bytes of an integer that kernels read and write.
constexpr int64_t kIntegerSize = sizeof(int64_t);

/// Rows that an operation takes from several arrays, numbered through, one array after the other.
/// The addresses are of int64 on the device. See `Taken` of rows.cuh.
struct TakenRows {
  int64_t length = 0;
  int64_t rows = 0;    ///< the address of their numbers; 0: all rows
  int64_t starts = 0;  ///< of ranges, the address of where each is taken; 0: single rows
  int64_t ranges = 0;
  int64_t width = 1;  ///< each stands for this number of rows of the arrays

  bool is_all() const noexcept { return rows == 0 && starts == 0; }
};

/// The values of lists, binary or run ends, as kernels find them.
struct FoundValues {
  std::shared_ptr<DeviceMemory> offsets;  ///< int64, one more than rows; nullptr for run ends
  std::shared_ptr<DeviceMemory> first;    ///< int64, the first value of each row
  bool is_address = false;                ///< whether `first` has addresses of bytes
};

/// Adds up the `count` integers at `values`, in place: each becomes the sum up to it.
void scan_on_device(KernelWork& work, int64_t values, int64_t count);

/// Finds the values of the rows `taken` of `sources`: lists, list views, maps, binary or strings.
/// A row whose bit in `valid` is not set has none; nullptr: all are set. Sets the integer at
/// `error` for malformed offsets. Raises BufferError for offsets that are not aligned.
FoundValues find_lists(KernelWork& work, const std::vector<DeviceArray>& sources,
                       const TakenRows& taken, const uint8_t* valid, int64_t error);

/// Finds the values of the rows `taken` of run-end encoded `sources`. Writes run ends of one row
/// each to `ends` unless it is nullptr. Sets the integer at `error` for malformed run ends.
FoundValues find_runs(KernelWork& work, const std::vector<DeviceArray>& sources,
                      const TakenRows& taken, uint8_t* ends, int64_t error);

/// The elements of `width` bytes in buffer `buffer` of the rows `taken`.
Buffer gather_elements_on_device(KernelWork& work, const std::vector<DeviceArray>& sources,
                                 const TakenRows& taken, int64_t buffer, int64_t width);

/// The bytes at the addresses of `taken`.
Buffer gather_bytes_on_device(KernelWork& work, const TakenRows& taken);

/// The bits of buffer `buffer` of the rows `taken`; those of a missing buffer are set.
Buffer gather_bits_on_device(KernelWork& work, const std::vector<DeviceArray>& sources,
                             const TakenRows& taken, int64_t buffer);

/// `count` offsets of `itemsize` bytes (4 or 8) with the values of the int64 at `offsets`, or the
/// differences of neighbours.
Buffer write_offsets_on_device(KernelWork& work, const std::shared_ptr<DeviceMemory>& offsets,
                               int64_t count, int64_t itemsize, bool is_sizes = false);

ARROWDL_END_NAMESPACE
