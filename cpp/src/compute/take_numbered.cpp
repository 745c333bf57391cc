// Takes rows of several arrays that are numbered through.
#include "compute/take_numbered.hpp"

#include <cstring>

#include "compute/allocate_elements.hpp"
#include "compute/elements.hpp"
#include "compute/selection.hpp"
#include "compute/take_bits.hpp"
#include "util/bit_util.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

using Sources = std::vector<DeviceArray>;

/// Rows to take, each of `run` elements.
struct Rows {
  const uint32_t* numbers;
  int64_t count;
  int64_t run;

  int64_t length() const noexcept { return count * run; }
};

Buffer take_bits_of(const Sources& sources, const Rows& rows, int64_t buffer) {
  std::vector<SourceBits> bits;
  std::vector<int64_t> lengths;
  bits.reserve(sources.size());
  lengths.reserve(sources.size());
  for (const DeviceArray& source : sources) {
    const uint8_t* from = buffer == 0 ? source.validity() : source.buffer_as<uint8_t>(buffer);
    bits.push_back({from, source.offset()});
    lengths.push_back(source.length());
  }
  return take_numbered_bits(bits, lengths, rows.numbers, rows.count);
}

Buffer take_elements_of(const Sources& sources, const Rows& rows) {
  const int64_t width = sources.front().type().byte_width;
  int64_t length = 0;
  for (const DeviceArray& source : sources) length += source.length();
  uint8_t* copy = nullptr;  // one column is in the cache, which the processor fetches ahead
  const Buffer memory = allocate_elements(length, width, &copy);
  uint8_t* to = copy;
  for (const DeviceArray& source : sources) {
    const int64_t size = source.length() * width;
    if (size > 0) {
      const uint8_t* from = source.buffer_as<uint8_t>(1) + source.offset() * width;
      std::memcpy(to, from, static_cast<std::size_t>(size));
    }
    to += size;
  }
  uint8_t* target = nullptr;
  Buffer taken = allocate_elements(rows.length(), width, &target);
  take_elements(copy, rows.numbers, rows.count, rows.run * width, target);
  return taken;
}

OwnedArray take_rows(const Sources& sources, const Rows& rows) {
  const Type& type = sources.front().type();
  ArrayParts parts;
  parts.length = rows.length();
  parts.buffers.emplace_back();
  if (has_bitmap(sources)) {
    Buffer bits = take_bits_of(sources, rows, 0);
    parts.null_count = parts.length - count_set_bits(bits.data(), 0, parts.length);
    if (parts.null_count > 0) parts.buffers.front() = std::move(bits);
  }
  if (type.layout == Layout::kBoolean) {
    parts.buffers.push_back(take_bits_of(sources, rows, 1));
  } else if (type.layout == Layout::kFixedWidth) {
    parts.buffers.push_back(take_elements_of(sources, rows));
    if (type.dictionary != nullptr) parts.dictionary = share_array(sources.front().dictionary());
  } else if (type.layout == Layout::kFixedSizeList) {
    const Rows items{rows.numbers, rows.count, rows.run * type.list_size};
    parts.children.push_back(take_rows(select_child(sources, 0), items));
  } else {
    for (std::size_t i = 0; i < type.children.size(); ++i) {
      parts.children.push_back(take_rows(select_child(sources, static_cast<int64_t>(i)), rows));
    }
  }
  return make_array(std::move(parts));
}

}  // namespace

bool can_take_numbered(const Sources& sources) {
  return has_fixed_rows(sources, kMostElementBytes, false);
}

OwnedArray take_numbered(const Sources& sources, const uint32_t* rows, int64_t count) {
  return take_rows(sources, {rows, count, 1});
}

ARROWDL_END_NAMESPACE
