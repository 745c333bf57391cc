#include "take_rows.hpp"

#include <algorithm>
#include <cstring>

#include "arrowdl/error.hpp"
#include "bit_writer.hpp"
#include "gather_rows.hpp"

namespace arrowdl {
namespace {

Buffer take_bits(const uint8_t* bits, int64_t offset, const RowNumbers rows) {
  uint8_t* target = nullptr;
  Buffer taken = Buffer::allocate(bitmap_size(rows.count), &target);
  for (int64_t start = 0; start < rows.count; start += 8) {
    const int64_t n = std::min<int64_t>(8, rows.count - start);
    unsigned byte = 0;
    for (int64_t i = 0; i < n; ++i) {
      byte |= static_cast<unsigned>(get_bit(bits, offset + rows.begin[start + i])) << i;
    }
    target[start / 8] = static_cast<uint8_t>(byte);
  }
  return taken;
}

/// No buffer when every row turns out to be valid.
Buffer take_validity(const DeviceArray& source, const RowNumbers& rows, int64_t* null_count) {
  if (source.validity() == nullptr) return Buffer();
  Buffer bits = take_bits(source.validity(), source.offset(), rows);
  *null_count = rows.count - count_set_bits(bits.data(), 0, rows.count);
  return *null_count == 0 ? Buffer() : bits;
}

/// `rows` by value: the bytes that are written could be those of a reference.
template <std::size_t kWidth>
void take_elements(const uint8_t* from, const RowNumbers rows, uint8_t* target) {
  for (int64_t i = 0; i < rows.count; ++i) {
    std::memcpy(target + i * static_cast<int64_t>(kWidth),
                from + rows.begin[i] * static_cast<int64_t>(kWidth), kWidth);
  }
}

void take_elements(const uint8_t* from, int64_t width, const RowNumbers& rows, uint8_t* target) {
  switch (width) {
    case 1:
      return take_elements<1>(from, rows, target);
    case 2:
      return take_elements<2>(from, rows, target);
    case 4:
      return take_elements<4>(from, rows, target);
    case 8:
      return take_elements<8>(from, rows, target);
    case 16:
      return take_elements<16>(from, rows, target);
    default:
      for (int64_t i = 0; i < rows.count; ++i) {
        std::memcpy(target + i * width, from + rows.begin[i] * width,
                    static_cast<std::size_t>(width));
      }
  }
}

Buffer take_fixed_width(const DeviceArray& source, const RowNumbers& rows) {
  const int64_t width = source.type().byte_width;
  int64_t size = 0;
  if (!checked_multiply(rows.count, width, &size)) size = -1;  // which no memory has
  uint8_t* target = nullptr;
  Buffer taken = Buffer::allocate(size, &target);
  if (size > 0) {
    take_elements(source.buffer_as<uint8_t>(1) + source.offset() * width, width, rows, target);
  }
  return taken;
}

std::vector<Piece> to_pieces(const RowNumbers& rows) {
  std::vector<Piece> pieces;
  pieces.reserve(static_cast<std::size_t>(rows.count));
  for (int64_t i = 0; i < rows.count; ++i) {
    append_piece(&pieces, 0, Range{static_cast<int64_t>(rows.begin[i]), 1});
  }
  return pieces;
}

}  // namespace

OwnedArray take_rows(const DeviceArray& source, const RowNumbers& rows) {
  const Layout layout = source.type().layout;
  if (layout != Layout::kBoolean && layout != Layout::kFixedWidth && layout != Layout::kStruct) {
    return gather_rows({source}, to_pieces(rows));
  }
  ArrayParts parts;
  parts.length = rows.count;
  parts.buffers.push_back(take_validity(source, rows, &parts.null_count));
  if (layout == Layout::kBoolean) {
    parts.buffers.push_back(take_bits(source.buffer_as<uint8_t>(1), source.offset(), rows));
  } else if (layout == Layout::kFixedWidth) {
    parts.buffers.push_back(take_fixed_width(source, rows));
    if (source.type().dictionary != nullptr) parts.dictionary = share_array(source.dictionary());
  } else {
    const auto count = static_cast<int64_t>(source.type().children.size());
    for (int64_t i = 0; i < count; ++i) {
      parts.children.push_back(take_rows(source.child(i), rows));
    }
  }
  return make_array(std::move(parts));
}

}  // namespace arrowdl
