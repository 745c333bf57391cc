// Casts binary and strings to other offsets and to views.
#include "cast/cast_binary.hpp"

#include <cstring>

#include "array/row_access.hpp"
#include "cast/value_offsets.hpp"
#include "compute/allocate_elements.hpp"
#include "schema/layout.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The rows of `array` as bytes and offsets.
template <typename Offset>
OffsetRows<Offset> read_bytes_rows(const DeviceArray& array, const Type& to) {
  if (!array.type().is_fixed_size_binary) return read_offset_rows<Offset>(array, to);
  const int64_t width = array.type().byte_width;
  const DeviceArray bytes =
      array.buffer_array(1, *find_dtype("uint8"), (array.offset() + array.length()) * width);
  return {bytes.slice(array.offset() * width, array.length() * width),
          make_even_offsets<Offset>(array.length(), width, to)};
}

Buffer share_bytes(const DeviceArray& values) {
  return Buffer(values.storage(), ElementReader<uint8_t>(values, 1).address(0), values.length());
}

/// The view of `size` bytes at `start` of the only data buffer.
ArrowBinaryView make_view(const uint8_t* bytes, int64_t start, int64_t size) {
  ArrowBinaryView view;
  std::memset(&view, 0, sizeof(view));
  view.inlined.size = static_cast<int32_t>(size);
  if (size <= NANOARROW_BINARY_VIEW_INLINE_SIZE) {
    if (size > 0) std::memcpy(view.inlined.data, bytes + start, static_cast<std::size_t>(size));
    return view;
  }
  std::memcpy(view.ref.prefix, bytes + start, sizeof(view.ref.prefix));
  view.ref.buffer_index = 0;
  view.ref.offset = static_cast<int32_t>(start);
  return view;
}

/// Views into one data buffer, all of which their int32 offsets must reach.
void append_views(const DeviceArray& array, const Type& to, ArrayParts* parts) {
  const OffsetRows<int64_t> rows = read_bytes_rows<int64_t>(array, to);
  require_offset<int32_t>(to, rows[array.length()]);
  const Buffer bytes = share_bytes(rows.values);
  ArrowBinaryView* views = nullptr;
  Buffer view_buffer = allocate_elements(array.length(), &views);
  for (int64_t i = 0; i < array.length(); ++i) {
    views[i] = make_view(bytes.data(), rows[i], rows.length_of(i));
  }
  int64_t* size = nullptr;
  Buffer sizes = allocate_elements(1, &size);
  *size = bytes.size();
  parts->buffers.insert(parts->buffers.end(), {std::move(view_buffer), bytes, std::move(sizes)});
}

}  // namespace

void cast_binary(const DeviceArray& array, const Type& to, ArrayParts* parts) {
  if (to.layout == Layout::kBinaryView) return append_views(array, to, parts);
  visit_offset(to, [&](auto zero) {
    OffsetRows<decltype(zero)> rows = read_bytes_rows<decltype(zero)>(array, to);
    parts->buffers.push_back(std::move(rows.offsets));
    parts->buffers.push_back(share_bytes(rows.values));
  });
}

ARROWDL_END_NAMESPACE
