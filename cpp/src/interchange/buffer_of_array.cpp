// Shares one buffer of an array as an array of its own.
#include "interchange/buffer_of_array.hpp"

#include <cstring>

#include "array/row_access.hpp"
#include "arrowdl/copy.hpp"
#include "arrowdl/copy_policy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "schema/layout.hpp"
#include "util/bit_util.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// Consumers expect a bool to be 0 or 1.
DeviceArray share_bools(const DeviceArray& array, int64_t end, Copy copy) {
  const Dtype& dtype = *array.type().dtype;
  if (!is_host_readable(array.device())) return array.buffer_array(1, dtype, end);
  array.synchronize();
  const auto* bytes = array.buffer_as<uint8_t>(1);
  if (has_only_canonical_bools(bytes, end)) return array.buffer_array(1, dtype, end);
  if (copy == Copy::kNever) {
    raise_buffer_error(
        "a bool8 array has bytes other than 0 and 1, which have to be copied: "
        "allow copies");
  }
  uint8_t* target;
  Buffer canonical = Buffer::allocate(end, &target);
  canonicalize_bools(bytes, end, target);
  return DeviceArray::make_primitive(dtype, end, std::move(canonical), {});
}

DeviceArray share_offsets(const DeviceArray& array, int64_t end) {
  const Dtype& dtype =
      *find_dtype(element_width(array.type(), 1) == sizeof(int32_t) ? "int32" : "int64");
  if (array.length() > 0) return array.buffer_array(1, dtype, end + 1);
  uint8_t* target;  // an array without rows may lack the one offset
  Buffer zero = Buffer::allocate(dtype.itemsize(), &target);
  std::memset(target, 0, static_cast<std::size_t>(dtype.itemsize()));
  return DeviceArray::make_primitive(dtype, 1, std::move(zero), {});
}

int64_t read_last_offset(const DeviceArray& offsets) {
  DeviceArray last = offsets.slice(offsets.length() - 1, 1);
  if (!is_host_readable(last.device())) last = copy_array(last, Device{});
  last.synchronize();
  return last.type().byte_width == 4 ? ElementReader<int32_t>(last, 1)[0]
                                     : ElementReader<int64_t>(last, 1)[0];
}

DeviceArray share_values(const DeviceArray& array, int64_t end) {
  const int64_t size = array.length() == 0 ? 0 : read_last_offset(share_offsets(array, end));
  if (size < 0 || (size > 0 && array.buffer(2) == nullptr)) {
    raise_value_error("malformed ", to_string(array.type()), " array: ", size,
                      " bytes end its last row");
  }
  return array.buffer_array(2, *find_dtype("uint8"), size);
}

}  // namespace

DeviceArray buffer_of_array(const DeviceArray& array, int64_t i, Copy copy) {
  const Type& type = array.type();
  // Without rows a buffer may be NULL or of any size, whatever the offset is.
  const int64_t end = array.length() == 0 ? 0 : array.offset() + array.length();
  const bool is_validity = i == 0;
  if (is_validity && array.validity() == nullptr) return {};
  if (i < 0 || i >= array.buffer_count()) {
    raise_index_error("buffer ", i, " of an array of ", to_string(type));
  }
  if (is_validity || type.layout == Layout::kBoolean) {
    return array.buffer_array(i, *find_dtype("uint8"), bitmap_size(end));
  }
  if (type.layout == Layout::kFixedWidth && type.dtype != nullptr) {
    if (type.dtype->code == kDLBool) return share_bools(array, end, copy);
    return array.buffer_array(i, *type.dtype, end);
  }
  if (layout_row(type.layout).has_offsets() && type.children.empty()) {
    return i == 1 ? share_offsets(array, end) : share_values(array, end);
  }
  raise_buffer_error("the buffers of an array of ", to_string(type),
                     " cannot be exported one by one");
}

ARROWDL_END_NAMESPACE
