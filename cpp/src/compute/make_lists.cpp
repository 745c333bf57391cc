// Makes lists of values and offsets, checks the offsets, and splits lists again.
#include "compute/make_lists.hpp"

#include <cstring>

#include "array/host_access.hpp"
#include "array/row_access.hpp"
#include "arrowdl/copy.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/event.hpp"
#include "arrowdl/lists.hpp"
#include "arrowdl/owned.hpp"
#include "compute/allocate_elements.hpp"
#include "compute/gather.hpp"
#include "compute/gather_on_device.hpp"
#include "compute/offsets.hpp"
#include "compute/through_host.hpp"
#include "schema/layout.hpp"
#include "schema/make_schema.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

bool is_offset(const Type& type) {
  return type.dictionary == nullptr && type.dtype != nullptr &&
         (type.dtype == find_dtype("int32") || type.dtype == find_dtype("int64"));
}

template <typename Offset>
void check_ascending(const DeviceArray& offsets, int64_t value_count) {
  const ElementReader<Offset> elements(offsets, 1);
  Offset previous = 0;
  for (int64_t i = 0; i < offsets.length(); ++i) {
    const Offset offset = elements[i];
    if (offset < previous || offset > value_count) {
      raise_value_error("offset ", i, " is ", offset, " after ", previous,
                        ": list offsets must ascend from 0 on within the ", value_count, " values");
    }
    previous = offset;
  }
}

template <typename Offset>
DeviceArray make_offsets(Buffer offsets, int64_t row_count, const Device& device = {}) {
  return DeviceArray::make_primitive(*find_dtype(sizeof(Offset) == 4 ? "int32" : "int64"),
                                     row_count + 1, std::move(offsets), device);
}

/// The first `size` bytes of the data of a binary array.
DeviceArray share_bytes(const DeviceArray& array, int64_t size) {
  const void* data = array.buffer(2);
  if (data == nullptr && size > 0) {
    raise_value_error("malformed ", to_string(array.type()), " array: its data is NULL where ",
                      size, " bytes should be");
  }
  return DeviceArray::make_primitive(*find_dtype("uint8"), size,
                                     Buffer(array.storage(), data, size), array.device());
}

/// New offsets for rows whose values are `find_row(i)` of `items`. Copies the values unless the
/// rows follow one another without gaps or overlaps.
template <typename Offset, typename FindRow>
ListParts split_rows(const DeviceArray& array, const DeviceArray& items, const FindRow& find_row) {
  Offset* target = nullptr;
  Buffer offsets = allocate_elements(add_rows(array.length(), 1), &target);
  std::vector<RowRange> ranges;
  int64_t end = 0;
  *target++ = 0;
  for (int64_t i = 0; i < array.length(); ++i) {
    const Range row = find_row(i);
    append_range(&ranges, 0, row);
    end = add_rows(end, row.length);
    require_offset_fits<Offset>(array.type(), end);
    *target++ = static_cast<Offset>(end);
  }
  const Range only = ranges.empty() ? Range{} : ranges.front().rows;
  DeviceArray values = ranges.size() <= 1 ? items.slice(only.start, only.length)
                                          : DeviceArray::import(copy_schema(*items.type().schema),
                                                                gather({items}, ranges));
  return {std::move(values), make_offsets<Offset>(std::move(offsets), array.length())};
}

template <typename Offset>
Buffer shift_offsets(const DeviceArray& array, int64_t shift) {
  Offset* target = nullptr;
  Buffer offsets = allocate_elements(add_rows(array.length(), 1), &target);
  const ElementReader<Offset> old(array, 1);
  for (int64_t i = 0; i <= array.length(); ++i) {
    target[i] = static_cast<Offset>(old[i] - shift);
  }
  return offsets;
}

template <typename Offset>
ListParts split_offsets(const DeviceArray& array, bool empty_nulls) {
  const bool is_list = !array.type().children.empty();
  const Range rows{0, array.length()};
  Range used;  // a zero-length array may leave its offsets NULL
  if (rows.length > 0) {
    used = read_offsets<Offset>(array, rows, is_list ? array.child(0).length() : kNoLimit);
  }
  const DeviceArray items = is_list ? array.child(0) : share_bytes(array, used.end());
  const ElementReader<Offset> offsets(array, 1);
  const RowValidity is_valid(array);
  if (rows.length == 0 || (empty_nulls && array.validity() != nullptr)) {
    return split_rows<Offset>(array, items, [&](int64_t i) {
      return is_valid[i] ? Range{offsets[i], offsets[i + 1] - offsets[i]} : Range{};
    });
  }
  DeviceArray values = items.slice(used.start, used.length);
  if (used.start != 0) {
    return {std::move(values),
            make_offsets<Offset>(shift_offsets<Offset>(array, used.start), rows.length)};
  }
  const auto size = static_cast<int64_t>(sizeof(Offset)) * (rows.length + 1);
  Buffer shared(array.storage(), offsets.address(0), size);
  return {std::move(values), make_offsets<Offset>(std::move(shared), rows.length, array.device())};
}

template <typename Offset>
ListParts split_list_views(const DeviceArray& array) {
  const DeviceArray items = array.child(0);
  return split_rows<Offset>(array, items,
                            [&](int64_t i) { return read_list(array, i, items.length()); });
}

ListParts split_binary_views(const DeviceArray& array) {
  int64_t* offsets = nullptr;
  Buffer offset_buffer = allocate_elements(add_rows(array.length(), 1), &offsets);
  offsets[0] = 0;
  for (int64_t i = 0; i < array.length(); ++i) {
    offsets[i + 1] = add_rows(offsets[i], read_view(array, i).size);
  }
  const int64_t size = offsets[array.length()];
  uint8_t* target = nullptr;
  Buffer bytes = Buffer::allocate(size, &target);
  for (int64_t i = 0; i < array.length(); ++i) {
    const std::string_view row = read_bytes(array, i);
    std::memcpy(target + offsets[i], row.data(), row.size());
  }
  return {DeviceArray::make_primitive(*find_dtype("uint8"), size, std::move(bytes), Device{}),
          make_offsets<int64_t>(std::move(offset_buffer), array.length())};
}

/// Whether `type` is of lists, list views, maps, binary or strings, but not of binary views.
bool has_offsets_or_sizes(const Type& type) {
  return layout_row(type.layout).has_offsets() || type.layout == Layout::kListView ||
         type.layout == Layout::kLargeListView;
}

}  // namespace

void check_list_offsets(const DeviceArray& offsets, int64_t value_count) {
  if (!is_offset(offsets.type())) {
    raise_type_error("list offsets must be int32 or int64, not ", to_string(offsets.type()));
  }
  if (offsets.length() == 0) {
    raise_value_error("list offsets are empty: n lists have n + 1 offsets");
  }
  require_host_readable(offsets, "read list offsets");
  if (offsets.has_nulls()) raise_value_error("list offsets must not be null");
  visit_list_offsets(offsets,
                     [&](auto zero) { check_ascending<decltype(zero)>(offsets, value_count); });
}

DeviceArray make_list(const DeviceArray& values, const DeviceArray& offsets) {
  const bool is_copied = is_read_as_copy(offsets.device());
  check_list_offsets(is_copied ? copy_array(offsets, Device{}) : offsets, values.length());
  if (values.device() != offsets.device()) {
    raise_value_error("the values are on ", to_string(values.device()), " and the offsets on ",
                      to_string(offsets.device()), ": copy them to one device first");
  }
  const int64_t width = offsets.type().byte_width;
  const auto* first = offsets.buffer_as<uint8_t>(1) + offsets.offset() * width;
  ArrayParts parts;
  parts.length = offsets.length() - 1;
  parts.buffers = {Buffer(), Buffer(offsets.storage(), first, offsets.length() * width)};
  parts.children.push_back(share_array(values));
  std::vector<OwnedSchema> items;
  items.push_back(rename_schema(values.export_schema(), "item"));
  OwnedSchema schema = make_nested_schema(width == 8 ? "+L" : "+l", std::move(items));
  return DeviceArray::import(std::move(schema), make_array(std::move(parts)), values.device(),
                             OwnedEvent::join(values.device(), {values.sync_event()}));
}

ListParts split_list(const DeviceArray& array, bool empty_nulls) {
  const Type& type = array.type();
  const Device device = array.device();
  if (goes_through_host(device)) {
    const ListParts parts = split_list(copy_array(array, Device{}), empty_nulls);
    return {copy_array(parts.values, device), copy_array(parts.offsets, device)};
  }
  if (is_read_by_kernels(device, "split lists")) {
    if (has_offsets_or_sizes(type)) return split_list_on_device(array, empty_nulls);
    require_host_readable(device, "split such lists");
  }
  array.synchronize();
  switch (type.layout) {
    case Layout::kBinary:
    case Layout::kLargeBinary:
    case Layout::kList:
    case Layout::kLargeList:
      return visit_offset(
          type, [&](auto zero) { return split_offsets<decltype(zero)>(array, empty_nulls); });
    case Layout::kListView:
    case Layout::kLargeListView:
      return visit_offset(type, [&](auto zero) { return split_list_views<decltype(zero)>(array); });
    case Layout::kBinaryView:
      return split_binary_views(array);
    default:
      raise_type_error("values and offsets need a list, map, list view, binary or string array ",
                       "(or a view of those), got ", to_string(type));
  }
}

ARROWDL_END_NAMESPACE
