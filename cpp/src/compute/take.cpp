// Takes rows of several arrays, in any order, into a new array.
#include "compute/take.hpp"

#include <algorithm>
#include <cstring>

#include "compute/allocate_elements.hpp"
#include "compute/gather.hpp"
#include "compute/selection.hpp"
#include "util/bitmap_writer.hpp"
#include "util/reserve.hpp"
#include "util/visit_width.hpp"

namespace arrowdl {
namespace {

using Sources = std::vector<DeviceArray>;

/// The bits of a source; all set without a bitmap.
struct SourceBits {
  const uint8_t* bits;
  int64_t offset;

  bool operator[](uint32_t row) const noexcept {
    return bits == nullptr || get_bit(bits, offset + row);
  }
};

Buffer take_bits(const std::vector<SourceBits>& sources, RowIndices indices) {
  uint8_t* target = nullptr;
  Buffer taken = Buffer::allocate(bitmap_size(indices.count), &target);
  for (int64_t start = 0; start < indices.count; start += 8) {
    const int64_t n = std::min<int64_t>(8, indices.count - start);
    unsigned byte = 0;
    for (int64_t i = 0; i < n; ++i) {
      const RowIndex index = indices.begin[start + i];
      byte |= static_cast<unsigned>(sources[index.source][index.row]) << i;
    }
    target[start / 8] = static_cast<uint8_t>(byte);
  }
  return taken;
}

/// The validity bitmap; no buffer if every row is valid.
Buffer take_validity(const Sources& sources, RowIndices indices, int64_t* null_count) {
  std::vector<SourceBits> validity;
  bool has_bitmap = false;
  for (const DeviceArray& source : sources) {
    validity.push_back({source.validity(), source.offset()});
    has_bitmap = has_bitmap || source.validity() != nullptr;
  }
  if (!has_bitmap) return Buffer();
  Buffer bits = take_bits(validity, indices);
  *null_count = indices.count - count_set_bits(bits.data(), 0, indices.count);
  return *null_count == 0 ? Buffer() : bits;
}

Buffer take_booleans(const Sources& sources, RowIndices indices) {
  std::vector<SourceBits> bits;
  for (const DeviceArray& source : sources) {
    bits.push_back({source.buffer_as<uint8_t>(1), source.offset()});
  }
  return take_bits(bits, indices);
}

template <std::size_t kWidth>
void take_elements(const uint8_t* const* from, RowIndices indices, uint8_t* target) {
  for (int64_t i = 0; i < indices.count; ++i) {
    const RowIndex index = indices.begin[i];
    std::memcpy(target + i * static_cast<int64_t>(kWidth), from[index.source] + index.row * kWidth,
                kWidth);
  }
}

/// The same for elements of any width.
void take_elements(const uint8_t* const* from, int64_t width, RowIndices indices, uint8_t* target) {
  for (int64_t i = 0; i < indices.count; ++i) {
    const RowIndex index = indices.begin[i];
    std::memcpy(target + i * width, from[index.source] + index.row * width,
                static_cast<std::size_t>(width));
  }
}

Buffer take_fixed_width(const Sources& sources, RowIndices indices) {
  const int64_t width = sources.front().type().byte_width;
  uint8_t* target = nullptr;
  Buffer taken = allocate_elements(indices.count, width, &target);
  if (taken.size() == 0) return taken;
  std::vector<const uint8_t*> from;
  for (const DeviceArray& source : sources) {
    from.push_back(source.buffer_as<uint8_t>(1) + source.offset() * width);
  }
  const bool is_common = visit_width(
      width, [&](auto known_width) { take_elements<known_width()>(from.data(), indices, target); });
  if (!is_common) take_elements(from.data(), width, indices, target);
  return taken;
}

std::vector<RowRange> to_ranges(RowIndices indices) {
  std::vector<RowRange> ranges;
  reserve(&ranges, indices.count);
  for (int64_t i = 0; i < indices.count; ++i) {
    append_range(&ranges, indices.begin[i].source, Range{indices.begin[i].row, 1});
  }
  return ranges;
}

/// Whether rows of `type` are taken one by one; those of other types go through ranges.
bool has_element_loop(const Type& type) {
  return type.layout == Layout::kBoolean || type.layout == Layout::kStruct ||
         (type.layout == Layout::kFixedWidth && type.dictionary == nullptr);
}

}  // namespace

OwnedArray take(const std::vector<DeviceArray>& sources, RowIndices indices) {
  const Type& type = sources.front().type();
  if (!has_element_loop(type)) return gather(sources, to_ranges(indices));
  ArrayParts parts;
  parts.length = indices.count;
  parts.buffers.push_back(take_validity(sources, indices, &parts.null_count));
  if (type.layout == Layout::kBoolean) {
    parts.buffers.push_back(take_booleans(sources, indices));
  } else if (type.layout == Layout::kFixedWidth) {
    parts.buffers.push_back(take_fixed_width(sources, indices));
  } else {
    const auto count = static_cast<int64_t>(type.children.size());
    for (int64_t i = 0; i < count; ++i) {
      parts.children.push_back(take(select_child(sources, i), indices));
    }
  }
  return make_array(std::move(parts));
}

}  // namespace arrowdl
