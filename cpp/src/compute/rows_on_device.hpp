// Numbers, measures, finds and gathers rows of arrays for the kernels of a device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "compute/selection.hpp"
#include "compute/take.hpp"
#include "sync/stream_work.hpp"

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
  int64_t width = 1;                ///< each stands for this number of rows of the arrays
  int64_t itemsize = kIntegerSize;  ///< of their numbers; those of 4 bytes have no sign

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

/// The arrays as kernels see them: `Source` of rows.cuh.
struct SourceRow {
  int64_t start = 0;
  int64_t data = 0;
  int64_t offset = 0;
  int64_t limit = 0;
  int64_t base = 0;
  int64_t more = 0;
};

/// `Sources` of rows.cuh.
struct SourceTable {
  SourceRow only;
  int64_t all = 0;  ///< the address of several of them, or in a table the number of the first
  int64_t count = 0;
};

/// Gathers elements and bits of several columns by one launch for each 64 KiB of a table of them,
/// which is uploaded.
class ColumnGathers {
 public:
  explicit ColumnGathers(KernelWork& work) noexcept : work_(work) {}

  /// The elements of `width` bytes in buffer `buffer` of the rows `taken`, in new memory, which
  /// `run` writes unless the driver copies them faster.
  Buffer add_elements(const std::vector<DeviceArray>& sources, const TakenRows& taken,
                      int64_t buffer, int64_t width);
  /// The same for the bytes at the addresses of `taken`.
  Buffer add_bytes(const TakenRows& taken);
  /// The same for the bits of buffer `buffer`; those of a missing buffer are set.
  Buffer add_bits(const std::vector<DeviceArray>& sources, const TakenRows& taken, int64_t buffer);
  /// `run` copies `count` elements of `width` bytes to `target`, each `pitch` bytes behind the one
  /// before it.
  void add_spaced(const uint8_t* source, int64_t count, int64_t width, uint8_t* target,
                  int64_t pitch);
  /// Launches what was added since the last time.
  void run();

 private:
  /// `Column` of gather.cu.
  struct Column {
    int64_t first;
    int64_t target;
    int64_t unit;
    int64_t units;
    int64_t pitch;
    SourceTable sources;
    TakenRows taken;
  };

  void add(Column column, int64_t size, const std::vector<SourceRow>& sources);

  KernelWork& work_;
  std::vector<Column> columns_;
  std::vector<SourceRow> sources_;  // of columns of several arrays
  int64_t size_ = 0;                // of all columns
};

/// `count` offsets of `itemsize` bytes (4 or 8) with the values of the int64 at `offsets`, or the
/// differences of neighbours.
Buffer write_offsets_on_device(KernelWork& work, const std::shared_ptr<DeviceMemory>& offsets,
                               int64_t count, int64_t itemsize, bool is_sizes = false);

/// The offsets of the rows of `lists`, less `first`, the first of them. Raises BufferError for
/// offsets that are not aligned.
Buffer rebase_offsets_on_device(KernelWork& work, const DeviceArray& lists, int64_t first);

/// The values of some lists.
struct ListSizes {
  int64_t start = 0;    ///< where those of the first row begin
  int64_t end = 0;      ///< where those of the last row end
  int64_t total = 0;    ///< how many there are
  int64_t longest = 0;  ///< how many the longest row has
};

/// Measures the rows of `lists` on a device; with `empty_nulls` null rows have no values. The host
/// reads the offsets of many windows at once, and waits for them. Empty for layouts without
/// offsets, for no rows, for more than 65,536, which kernels measure faster, and for malformed
/// offsets.
std::optional<ListSizes> measure_lists(const DeviceArray& lists, bool empty_nulls);

/// The numbers that take_on_device needs for rows of `sources`, which are on one device: int64, on
/// that device. The copy there is asynchronous, and the result has an event for it.
DeviceArray number_rows(const std::vector<DeviceArray>& sources, RowIndices indices);
/// The same for numbers that are known: uint32.
DeviceArray number_rows(const Device& device, std::vector<uint32_t> numbers);
DeviceArray number_rows(const std::vector<DeviceArray>& sources,
                        const std::vector<RowRange>& ranges);

ARROWDL_END_NAMESPACE
