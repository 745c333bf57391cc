#include "compute/gather.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "arrowdl/error.hpp"
#include "util/bitmap_writer.hpp"
#include "util/parallel_for.hpp"

namespace arrowdl {
namespace {

/// Pieces in any order lie where no processor expects them: it is told of each a few before its
/// turn.
constexpr std::size_t kAhead = 3;

void fetch([[maybe_unused]] const uint8_t* memory, [[maybe_unused]] int64_t size) {
#if defined(__GNUC__)
  constexpr int64_t kLine = 64;
  constexpr int64_t kMost = 16 * kLine;
  for (int64_t i = 0; i < std::min(size, kMost); i += kLine) __builtin_prefetch(memory + i);
#endif
}

Buffer gather_bits(const Selection& selection, int64_t buffer) {
  uint8_t* target = nullptr;
  Buffer bits = Buffer::allocate(bitmap_size(selection.length), &target);
  BitmapWriter writer(target);
  for (const RowRange& piece : selection.pieces) {
    const DeviceArray& source = selection.sources[piece.source];
    writer.append(source.buffer_as<uint8_t>(buffer), source.offset() + piece.rows.start,
                  piece.rows.length);
  }
  return bits;
}

/// No buffer when every row turns out to be valid.
Buffer gather_validity(const Selection& selection, int64_t* null_count) {
  const bool has_bitmap = std::any_of(
      selection.pieces.begin(), selection.pieces.end(),
      [&](const RowRange& piece) { return selection.sources[piece.source].validity() != nullptr; });
  if (!has_bitmap) return Buffer();
  uint8_t* target = nullptr;
  Buffer bits = Buffer::allocate(bitmap_size(selection.length), &target);
  BitmapWriter writer(target);
  for (const RowRange& piece : selection.pieces) {
    const DeviceArray& source = selection.sources[piece.source];
    if (source.validity() == nullptr) {
      writer.append_run(true, piece.rows.length);
    } else {
      writer.append(source.validity(), source.offset() + piece.rows.start, piece.rows.length);
    }
  }
  *null_count = selection.length - count_set_bits(target, 0, selection.length);
  return *null_count == 0 ? Buffer() : bits;
}

/// The bytes that one thread copies at a time.
constexpr int64_t kShare = int64_t{256} << 10;

/// Where a share begins: `skip` bytes into a piece.
struct ShareStart {
  std::size_t piece;
  int64_t skip;
};

std::vector<ShareStart> find_shares(const std::vector<RowRange>& pieces, int64_t width) {
  std::vector<ShareStart> starts;
  int64_t skip = 0;  // from where the piece begins to the next share
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const int64_t size = pieces[i].rows.length * width;
    for (; skip < size; skip += kShare) starts.push_back({i, skip});
    skip -= size;
  }
  return starts;
}

/// Copies the elements of `pieces`, of `width` bytes each and `size` together, to `target`.
/// `find(piece)` is where the first one of a piece lies.
template <typename Find>
void copy_values(const std::vector<RowRange>& pieces, int64_t width, uint8_t* target, int64_t size,
                 const Find& find) {
  const std::vector<ShareStart> starts = find_shares(pieces, width);
  parallel_for(static_cast<int64_t>(starts.size()), [&](int64_t share) noexcept {
    auto [i, skip] = starts[static_cast<std::size_t>(share)];
    uint8_t* to = target + share * kShare;
    const uint8_t* const end = target + std::min(size, (share + 1) * kShare);
    for (; to < end; ++i, skip = 0) {
      if (i + kAhead < pieces.size()) {
        fetch(find(pieces[i + kAhead]), pieces[i + kAhead].rows.length * width);
      }
      const int64_t n = std::min<int64_t>(end - to, pieces[i].rows.length * width - skip);
      std::memcpy(to, find(pieces[i]) + skip, static_cast<std::size_t>(n));
      to += n;
    }
  });
}

Buffer gather_bytes(const Selection& selection) {
  uint8_t* target = nullptr;
  Buffer bytes = Buffer::allocate(selection.length, &target);
  for (const RowRange& piece : selection.pieces) {
    const DeviceArray& source = selection.sources[piece.source];
    if (source.buffer_as<uint8_t>(2) == nullptr) {
      raise_value_error("malformed ", to_string(source.type()), " array: its data is NULL where ",
                        piece.rows.length, " bytes should be");
    }
  }
  copy_values(selection.pieces, 1, target, selection.length, [&](const RowRange& piece) noexcept {
    return selection.sources[piece.source].buffer_as<uint8_t>(2) + piece.rows.start;
  });
  return bytes;
}

template <typename Offset>
void gather_binary(const Selection& selection, ArrayParts* parts) {
  const std::vector<int64_t> limits(selection.sources.size(), kNoLimit);
  std::vector<RowRange> bytes;
  parts->buffers.push_back(gather_offsets<Offset>(selection, limits, &bytes));
  parts->buffers.push_back(gather_bytes({selection.sources, bytes, count_rows(bytes)}));
}

void gather_fixed_width(const Selection& selection, ArrayParts* parts) {
  if (selection.type().dictionary != nullptr) return gather_indices(selection, parts);
  parts->buffers.push_back(gather_elements(selection, 1, selection.type().byte_width));
}

void gather_fields(const Selection& selection, ArrayParts* parts) {
  const auto count = static_cast<int64_t>(selection.type().children.size());
  for (int64_t i = 0; i < count; ++i) {
    parts->children.push_back(gather_rows(select_child(selection.sources, i), selection.pieces));
  }
}

void gather_fixed_size_lists(const Selection& selection, ArrayParts* parts) {
  const int64_t size = selection.type().list_size;
  std::vector<RowRange> values;
  for (const RowRange& piece : selection.pieces) {
    append_range(&values, piece.source, Range{piece.rows.start * size, piece.rows.length * size});
  }
  parts->children.push_back(gather_rows(select_child(selection.sources, 0), values));
}

void gather_contents(const Selection& selection, ArrayParts* parts) {
  switch (selection.type().layout) {
    case Layout::kNull:
      parts->null_count = selection.length;
      return;
    case Layout::kBoolean:
      parts->buffers.push_back(gather_bits(selection, 1));
      return;
    case Layout::kFixedWidth:
      return gather_fixed_width(selection, parts);
    case Layout::kBinary:
      return gather_binary<int32_t>(selection, parts);
    case Layout::kLargeBinary:
      return gather_binary<int64_t>(selection, parts);
    case Layout::kBinaryView:
      return gather_binary_views(selection, parts);
    case Layout::kList:
    case Layout::kLargeList:
    case Layout::kListView:
    case Layout::kLargeListView:
      return gather_lists(selection, parts);
    case Layout::kFixedSizeList:
      return gather_fixed_size_lists(selection, parts);
    case Layout::kStruct:
      return gather_fields(selection, parts);
    case Layout::kSparseUnion:
    case Layout::kDenseUnion:
      return gather_unions(selection, parts);
    case Layout::kRunEndEncoded:
      return gather_runs(selection, parts);
  }
}

const char* advise_on_offsets(const Type& type) {
  switch (type.layout) {
    case Layout::kBinary:
      return type.is_utf8 ? "cast to large_string first" : "cast to large_binary first";
    case Layout::kList:
      return type.is_map ? "take fewer rows at a time" : "cast to large_list first";
    case Layout::kListView:
      return "cast to large_list_view first";
    default:
      return "take fewer rows at a time";
  }
}

}  // namespace

void append_range(std::vector<RowRange>* pieces, std::size_t source, Range rows) {
  if (rows.length == 0) return;
  if (!pieces->empty()) {
    RowRange& last = pieces->back();
    if (last.source == source && last.rows.end() == rows.start) {
      last.rows.length += rows.length;
      return;
    }
  }
  pieces->push_back(RowRange{source, rows});
}

int64_t add_rows(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!checked_add(a, b, &sum)) {
    raise_buffer_error(a, " and ", b, " rows are more than the 2^63 - 1 of an Arrow array");
  }
  return sum;
}

int64_t count_rows(const std::vector<RowRange>& pieces) {
  int64_t count = 0;
  for (const RowRange& piece : pieces) count = add_rows(count, piece.rows.length);
  return count;
}

std::vector<DeviceArray> select_child(const std::vector<DeviceArray>& sources, int64_t i) {
  std::vector<DeviceArray> children;
  children.reserve(sources.size());
  for (const DeviceArray& source : sources) children.push_back(source.child(i));
  return children;
}

Buffer gather_elements(const Selection& selection, int64_t buffer, int64_t width) {
  int64_t size = 0;
  if (!checked_multiply(selection.length, width, &size)) size = -1;  // which no memory has
  uint8_t* target = nullptr;
  Buffer elements = Buffer::allocate(size, &target);
  if (size == 0) return elements;
  copy_values(selection.pieces, width, target, size, [&](const RowRange& piece) noexcept {
    const DeviceArray& source = selection.sources[piece.source];
    return source.buffer_as<uint8_t>(buffer) + (source.offset() + piece.rows.start) * width;
  });
  return elements;
}

template <typename Offset>
void require_offset_fits(const Type& type, int64_t count) {
  if (count > std::numeric_limits<Offset>::max()) {
    raise_buffer_error("the rows hold ", count, " values together, more than the int",
                       sizeof(Offset) * 8, " offsets of ", to_string(type),
                       " can count: ", advise_on_offsets(type));
  }
}

template void require_offset_fits<int32_t>(const Type&, int64_t);
template void require_offset_fits<int64_t>(const Type&, int64_t);

template <typename Offset>
Buffer gather_offsets(const Selection& selection, const std::vector<int64_t>& limits,
                      std::vector<RowRange>* values) {
  Offset* target = nullptr;
  Buffer buffer = allocate_elements(add_rows(selection.length, 1), &target);
  int64_t end = 0;
  *target++ = 0;
  for (const RowRange& piece : selection.pieces) {
    const DeviceArray& source = selection.sources[piece.source];
    const Range range = read_offsets<Offset>(source, piece.rows, limits[piece.source]);
    append_range(values, piece.source, range);
    const int64_t shift = end - range.start;
    end = add_rows(end, range.length);
    require_offset_fits<Offset>(selection.type(), end);
    const ElementReader<Offset> offsets(source, 1);
    for (int64_t i = piece.rows.start + 1; i <= piece.rows.end(); ++i) {
      *target++ = static_cast<Offset>(offsets[i] + shift);
    }
  }
  return buffer;
}

template Buffer gather_offsets<int32_t>(const Selection&, const std::vector<int64_t>&,
                                        std::vector<RowRange>*);
template Buffer gather_offsets<int64_t>(const Selection&, const std::vector<int64_t>&,
                                        std::vector<RowRange>*);

OwnedArray gather_rows(const std::vector<DeviceArray>& sources,
                       const std::vector<RowRange>& pieces) {
  const Selection selection{sources, pieces, count_rows(pieces)};
  ArrayParts parts;
  parts.length = selection.length;
  if (selection.type().has_validity()) {
    parts.buffers.push_back(gather_validity(selection, &parts.null_count));
  }
  gather_contents(selection, &parts);
  return make_array(std::move(parts));
}

}  // namespace arrowdl
