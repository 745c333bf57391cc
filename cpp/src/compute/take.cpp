#include "compute/take.hpp"

#include <algorithm>
#include <cstring>

#include "arrowdl/error.hpp"
#include "compute/gather.hpp"
#include "util/bitmap_writer.hpp"
#include "util/reserve.hpp"

namespace arrowdl {
namespace {

using Sources = std::vector<DeviceArray>;

/// The bits of a source, all set where there is no bitmap.
struct SourceBits {
  const uint8_t* bits;
  int64_t offset;

  bool operator[](uint32_t row) const noexcept {
    return bits == nullptr || get_bit(bits, offset + row);
  }
};

Buffer take_bits(const std::vector<SourceBits>& sources, RowPlaces places) {
  uint8_t* target = nullptr;
  Buffer taken = Buffer::allocate(bitmap_size(places.count), &target);
  for (int64_t start = 0; start < places.count; start += 8) {
    const int64_t n = std::min<int64_t>(8, places.count - start);
    unsigned byte = 0;
    for (int64_t i = 0; i < n; ++i) {
      const RowPlace place = places.begin[start + i];
      byte |= static_cast<unsigned>(sources[place.source][place.row]) << i;
    }
    target[start / 8] = static_cast<uint8_t>(byte);
  }
  return taken;
}

/// No buffer when every row turns out to be valid.
Buffer take_validity(const Sources& sources, RowPlaces places, int64_t* null_count) {
  std::vector<SourceBits> validity;
  bool has_bitmap = false;
  for (const DeviceArray& source : sources) {
    validity.push_back({source.validity(), source.offset()});
    has_bitmap = has_bitmap || source.validity() != nullptr;
  }
  if (!has_bitmap) return Buffer();
  Buffer bits = take_bits(validity, places);
  *null_count = places.count - count_set_bits(bits.data(), 0, places.count);
  return *null_count == 0 ? Buffer() : bits;
}

Buffer take_booleans(const Sources& sources, RowPlaces places) {
  std::vector<SourceBits> bits;
  for (const DeviceArray& source : sources) {
    bits.push_back({source.buffer_as<uint8_t>(1), source.offset()});
  }
  return take_bits(bits, places);
}

template <std::size_t kWidth>
void take_elements(const uint8_t* const* from, RowPlaces places, uint8_t* target) {
  for (int64_t i = 0; i < places.count; ++i) {
    const RowPlace place = places.begin[i];
    std::memcpy(target + i * static_cast<int64_t>(kWidth), from[place.source] + place.row * kWidth,
                kWidth);
  }
}

void take_elements(const uint8_t* const* from, int64_t width, RowPlaces places, uint8_t* target) {
  switch (width) {
    case 1:
      return take_elements<1>(from, places, target);
    case 2:
      return take_elements<2>(from, places, target);
    case 4:
      return take_elements<4>(from, places, target);
    case 8:
      return take_elements<8>(from, places, target);
    case 16:
      return take_elements<16>(from, places, target);
    default:
      for (int64_t i = 0; i < places.count; ++i) {
        const RowPlace place = places.begin[i];
        std::memcpy(target + i * width, from[place.source] + place.row * width,
                    static_cast<std::size_t>(width));
      }
  }
}

Buffer take_fixed_width(const Sources& sources, RowPlaces places) {
  const int64_t width = sources.front().type().byte_width;
  int64_t size = 0;
  if (!checked_multiply(places.count, width, &size)) size = -1;  // which no memory has
  uint8_t* target = nullptr;
  Buffer taken = Buffer::allocate(size, &target);
  if (size == 0) return taken;
  std::vector<const uint8_t*> from;
  for (const DeviceArray& source : sources) {
    from.push_back(source.buffer_as<uint8_t>(1) + source.offset() * width);
  }
  take_elements(from.data(), width, places, target);
  return taken;
}

std::vector<RowRange> to_pieces(RowPlaces places) {
  std::vector<RowRange> pieces;
  reserve(&pieces, places.count);
  for (int64_t i = 0; i < places.count; ++i) {
    append_range(&pieces, places.begin[i].source, Range{places.begin[i].row, 1});
  }
  return pieces;
}

bool has_own_way(const Type& type) {
  return type.layout == Layout::kBoolean || type.layout == Layout::kStruct ||
         (type.layout == Layout::kFixedWidth && type.dictionary == nullptr);
}

}  // namespace

OwnedArray take_rows(const std::vector<DeviceArray>& sources, RowPlaces places) {
  const Type& type = sources.front().type();
  if (!has_own_way(type)) return gather_rows(sources, to_pieces(places));
  ArrayParts parts;
  parts.length = places.count;
  parts.buffers.push_back(take_validity(sources, places, &parts.null_count));
  if (type.layout == Layout::kBoolean) {
    parts.buffers.push_back(take_booleans(sources, places));
  } else if (type.layout == Layout::kFixedWidth) {
    parts.buffers.push_back(take_fixed_width(sources, places));
  } else {
    const auto count = static_cast<int64_t>(type.children.size());
    for (int64_t i = 0; i < count; ++i) {
      parts.children.push_back(take_rows(select_child(sources, i), places));
    }
  }
  return make_array(std::move(parts));
}

}  // namespace arrowdl
