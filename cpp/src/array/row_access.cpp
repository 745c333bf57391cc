// Reads and checks the offsets, sizes and views of single rows.
#include "array/row_access.hpp"

#include "arrowdl/error.hpp"
#include "util/visit_width.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

constexpr int64_t kFixedViewBuffers = 3;  // validity, views, and the variadic buffers' sizes

template <typename... Parts>
[[noreturn]] void raise_row_error(const DeviceArray& array, int64_t i, const Parts&... parts) {
  raise_value_error("malformed ", to_string(array.type()), " array: row ", array.offset() + i, " ",
                    parts...);
}

template <typename Offset>
Range read_offset_pair(const DeviceArray& array, int64_t i, int64_t limit) {
  const ElementReader<Offset> offsets(array, 1);
  const Offset start = offsets[i];
  const Offset end = offsets[i + 1];
  if (start < 0 || end < start || end > limit) {
    raise_row_error(array, i, "has the offsets ", start, " and ", end,
                    "; offsets must ascend from 0 on",
                    limit == kNoLimit ? "" : concat(" within the ", limit, " values"));
  }
  return Range{start, end - start};
}

template <typename Offset>
Range read_list_view(const DeviceArray& array, int64_t i, int64_t child_length) {
  if (!RowValidity(array)[i]) return Range{};
  const Offset start = ElementReader<Offset>(array, 1)[i];
  const Offset size = ElementReader<Offset>(array, 2)[i];
  if (start < 0 || size < 0 || start > child_length || size > child_length - start) {
    raise_row_error(array, i, "has offset ", start, " and size ", size,
                    "; both must lie within the ", child_length, " values");
  }
  return Range{start, size};
}

template <typename Offset>
std::string_view read_binary(const DeviceArray& array, int64_t i) {
  const Range bytes = read_offset_pair<Offset>(array, i, kNoLimit);
  if (bytes.length == 0) return {};
  if (array.buffer(2) == nullptr) {
    raise_value_error("malformed ", to_string(array.type()), " array: its data is NULL and row ", i,
                      " has ", bytes.length, " bytes");
  }
  return {array.buffer_as<char>(2) + bytes.start, static_cast<std::size_t>(bytes.length)};
}

std::string_view read_view_bytes(const DeviceArray& array, int64_t i) {
  const ArrowBinaryViewRef view = read_view(array, i);
  const auto size = static_cast<std::size_t>(view.size);
  if (is_inline(view)) {
    const uint8_t* address = ElementReader<ArrowBinaryViewRef>(array, 1).address(i);
    return {reinterpret_cast<const char*>(address) + sizeof(view.size), size};
  }
  return {array.buffer_as<char>(2 + view.buffer_index) + view.offset, size};
}

}  // namespace

template <typename Offset>
Range read_offsets(const DeviceArray& array, Range rows, int64_t limit) {
  const ElementReader<Offset> offsets(array, 1);
  bool ascending = true;  // a flag instead of a branch: the loop vectorises
  for (int64_t i = rows.start; i < rows.end(); ++i) ascending &= offsets[i] <= offsets[i + 1];
  const Offset first = offsets[rows.start];
  const Offset last = offsets[rows.end()];
  if (!ascending || first < 0 || last > limit) {
    for (int64_t i = rows.start; i < rows.end(); ++i) read_offset_pair<Offset>(array, i, limit);
  }
  return Range{first, last - first};
}

template Range read_offsets<int32_t>(const DeviceArray&, Range, int64_t);
template Range read_offsets<int64_t>(const DeviceArray&, Range, int64_t);

Range read_list(const DeviceArray& array, int64_t i, int64_t child_length) {
  switch (array.type().layout) {
    case Layout::kList:
      return read_offset_pair<int32_t>(array, i, child_length);
    case Layout::kLargeList:
      return read_offset_pair<int64_t>(array, i, child_length);
    case Layout::kListView:
      return read_list_view<int32_t>(array, i, child_length);
    case Layout::kLargeListView:
      return read_list_view<int64_t>(array, i, child_length);
    case Layout::kFixedSizeList:
      return Range{i * array.type().list_size, array.type().list_size};
    default:
      raise_type_error("rows of ", to_string(array.type()), " are not read as lists");
  }
}

int64_t read_data_size(const DeviceArray& array, int64_t i) {
  const auto* sizes = array.buffer_as<uint8_t>(array.buffer_count() - 1);
  int64_t size = 0;
  if (sizes != nullptr) std::memcpy(&size, sizes + i * 8, sizeof(size));
  if (size >= 0) return size;
  raise_value_error("malformed ", to_string(array.type()), " array: data buffer ", i,
                    " has the size ", size);
}

ArrowBinaryViewRef read_view(const DeviceArray& array, int64_t i) {
  if (!RowValidity(array)[i]) return ArrowBinaryViewRef{};
  const ArrowBinaryViewRef view = ElementReader<ArrowBinaryViewRef>(array, 1)[i];
  if (view.size < 0) raise_row_error(array, i, "has the size ", view.size);
  if (is_inline(view)) return view;
  const int64_t count = array.buffer_count() - kFixedViewBuffers;
  if (view.buffer_index < 0 || view.buffer_index >= count) {
    raise_row_error(array, i, "points into data buffer ", view.buffer_index, " of ", count);
  }
  const int64_t size = read_data_size(array, view.buffer_index);
  if (view.offset < 0 || size < view.size || view.offset > size - view.size ||
      array.buffer(2 + view.buffer_index) == nullptr) {
    raise_row_error(array, i, "points at ", view.size, " bytes from byte ", view.offset,
                    " of data buffer ", view.buffer_index, ", which has ", size);
  }
  return view;
}

std::string_view read_bytes(const DeviceArray& array, int64_t i) {
  const Type& type = array.type();
  switch (type.layout) {
    case Layout::kBinary:
      return read_binary<int32_t>(array, i);
    case Layout::kLargeBinary:
      return read_binary<int64_t>(array, i);
    case Layout::kBinaryView:
      return read_view_bytes(array, i);
    case Layout::kFixedWidth:
      return {array.buffer_as<char>(1) + (array.offset() + i) * type.byte_width,
              static_cast<std::size_t>(type.byte_width)};
    default:
      raise_type_error("rows of ", to_string(type), " are not read as bytes");
  }
}

int64_t read_union_child(const DeviceArray& array, int64_t i) {
  const int8_t id = ElementReader<int8_t>(array, 0)[i];
  const std::vector<int8_t>& ids = array.type().type_ids;
  for (std::size_t child = 0; child < ids.size(); ++child) {
    if (ids[child] == id) return static_cast<int64_t>(child);
  }
  raise_row_error(array, i, "has the type id ", int{id}, ", which the type does not name");
}

int64_t read_union_row(const DeviceArray& array, int64_t i, int64_t child_length) {
  const int32_t row = ElementReader<int32_t>(array, 1)[i];
  if (row < 0 || row >= child_length) {
    raise_row_error(array, i, "points at row ", row, " of a child of ", child_length);
  }
  return row;
}

int64_t read_index(const DeviceArray& array, int64_t i, int64_t dictionary_length) {
  return visit_integer(array.type().schema->format, [&](auto zero) {
    const auto index = ElementReader<decltype(zero)>(array, 1)[i];
    if (index < zero || static_cast<uint64_t>(index) >= static_cast<uint64_t>(dictionary_length)) {
      raise_row_error(array, i, "has the index ", +index, " into a dictionary of ",
                      dictionary_length);
    }
    return static_cast<int64_t>(index);
  });
}

ARROWDL_END_NAMESPACE
