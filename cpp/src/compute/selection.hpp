// Rows of several arrays: single ones, ranges, and those that a gather takes; equal memory.
#pragma once

#include <cstdint>
#include <vector>

#include "array/row_access.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// A row of one of several arrays.
struct RowIndex {
  uint32_t source;
  uint32_t row;
};

/// Borrowed row indices, each within its array.
struct RowIndices {
  const RowIndex* begin = nullptr;
  int64_t count = 0;
};

/// Consecutive rows of one of several source arrays.
struct RowRange {
  std::size_t source = 0;  ///< index of the array
  Range rows;
};

/// Appends `rows` unless they are empty. Extends the last range where they follow it.
void append_range(std::vector<RowRange>* ranges, std::size_t source, Range rows);

/// a + b rows. Raises BufferError if an Arrow length cannot count them.
int64_t add_rows(int64_t a, int64_t b);

/// The rows of all `ranges`. Raises BufferError as add_rows does.
int64_t count_rows(const std::vector<RowRange>& ranges);

/// Rows to gather. Borrows its arrays and ranges.
struct Selection {
  const std::vector<DeviceArray>& sources;
  const std::vector<RowRange>& ranges;
  int64_t length;  ///< count_rows(ranges)

  const Type& type() const noexcept { return sources.front().type(); }
};

/// Rows to gather one level down: of a child, or of a dictionary.
struct ChildRows {
  std::vector<DeviceArray> sources;
  std::vector<RowRange> ranges;
};

/// Child `i` of each source.
std::vector<DeviceArray> select_child(const std::vector<DeviceArray>& sources, int64_t i);

/// The rows of each array.
std::vector<int64_t> count_each(const std::vector<DeviceArray>& arrays);

/// Whether a source has a validity bitmap.
bool has_bitmap(const std::vector<DeviceArray>& sources);

/// Whether rows of up to `most_bytes` can be copied as their elements: numbers, structs of them,
/// and lists of a fixed size without nulls in them. If not `only_elements`, rows may also be bits,
/// null, or indices of dictionaries. Reads no memory. `run` elements of the sources make a row.
bool has_fixed_rows(const std::vector<DeviceArray>& sources, int64_t most_bytes, bool only_elements,
                    int64_t run = 1);

/// Whether two arrays of one type have the same rows of the same buffers. Reads no memory.
bool is_same_memory(const DeviceArray& a, const DeviceArray& b);

/// Whether arrays of one type have the same dictionaries in memory, those of children included.
bool share_dictionaries(const std::vector<DeviceArray>& arrays);

ARROWDL_END_NAMESPACE
