// Gathers rows from arrays of one type into a new array, each buffer allocated once.
#pragma once

#include <cstdint>
#include <vector>

#include "array/row_access.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "util/overflow.hpp"

namespace arrowdl {

/// Consecutive rows of one of several source arrays.
struct RowRange {
  std::size_t source = 0;
  Range rows;
};

/// Appends a piece, unless it is empty; joins it to the last one where it goes on there.
void append_range(std::vector<RowRange>* pieces, std::size_t source, Range rows);

/// a + b rows. Raises BufferError when an Arrow length can't count them.
int64_t add_rows(int64_t a, int64_t b);

/// Rows of `pieces` altogether.
int64_t count_rows(const std::vector<RowRange>& pieces);

/// The rows of `pieces`, none of them empty, in that order. `sources` are one or more arrays in
/// host memory (require_host_readable) that agree in type. Data buffers of views and dictionaries
/// are shared with the sources where they can be. Offsets, views, indices and run ends are checked
/// before they are followed (ValueError). Raises BufferError for what the type can't hold, such
/// as int32 offsets that overflow.
OwnedArray gather_rows(const std::vector<DeviceArray>& sources,
                       const std::vector<RowRange>& pieces);

/// New memory for `count` elements.
template <typename T>
Buffer allocate_elements(int64_t count, T** target) {
  int64_t size = 0;
  if (!checked_multiply(count, sizeof(T), &size)) size = -1;  // which no memory has
  uint8_t* bytes = nullptr;
  Buffer buffer = Buffer::allocate(size, &bytes);
  *target = reinterpret_cast<T*>(bytes);
  return buffer;
}

// The parts of gather_rows that are files of their own.

/// What to gather.
struct Selection {
  const std::vector<DeviceArray>& sources;
  const std::vector<RowRange>& pieces;
  int64_t length;  ///< count_rows(pieces)

  const Type& type() const noexcept { return sources.front().type(); }
};

/// Child `i` of each source.
std::vector<DeviceArray> select_child(const std::vector<DeviceArray>& sources, int64_t i);

/// ElementReader of `width` bytes from buffer `buffer`.
Buffer gather_elements(const Selection& selection, int64_t buffer, int64_t width);

// Each appends the buffers after the validity, the children and the dictionary.
void gather_binary_views(const Selection& selection, ArrayParts* parts);
void gather_lists(const Selection& selection, ArrayParts* parts);
void gather_unions(const Selection& selection, ArrayParts* parts);
void gather_runs(const Selection& selection, ArrayParts* parts);
void gather_indices(const Selection& selection, ArrayParts* parts);

/// New offsets of `selection`; `values` becomes the pieces of the sources' values, of which
/// source i has limits[i].
template <typename Offset>
Buffer gather_offsets(const Selection& selection, const std::vector<int64_t>& limits,
                      std::vector<RowRange>* values);

extern template Buffer gather_offsets<int32_t>(const Selection&, const std::vector<int64_t>&,
                                               std::vector<RowRange>*);
extern template Buffer gather_offsets<int64_t>(const Selection&, const std::vector<int64_t>&,
                                               std::vector<RowRange>*);

/// Raises BufferError when `count` values are more than offsets of type Offset can count.
template <typename Offset>
void require_offset_fits(const Type& type, int64_t count);

extern template void require_offset_fits<int32_t>(const Type&, int64_t);
extern template void require_offset_fits<int64_t>(const Type&, int64_t);

}  // namespace arrowdl
