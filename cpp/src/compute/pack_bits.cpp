// Packs bytes and elements into bits, and makes sentinel values null.
#include "compute/pack_bits.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "array/host_access.hpp"
#include "array/row_access.hpp"
#include "array/validity.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "compute/through_host.hpp"
#include "device/device_pointer.hpp"
#include "util/bit_util.hpp"
#include "util/visit_width.hpp"

ARROWDL_BEGIN_NAMESPACE

Buffer pack_bools(const uint8_t* bools, int64_t count) {
  uint8_t* target = nullptr;
  Buffer bits = Buffer::allocate(bitmap_size(count), &target);
  if (count > 0) pack_bits(bools, count, target);
  return bits;
}

void pack_on_device(KernelOps& kernels, const Device& device, uint8_t* bits,
                    const uint8_t* elements, int64_t count, int64_t itemsize, const BitRule& rule,
                    StreamHandle stream) {
  BitRule given = rule;
  constexpr int64_t kBits = 32;  // that a thread packs, as in elements.cu
  int64_t size = (count + kBits - 1) / kBits;
  int64_t source = to_address(elements);
  void* arguments[] = {&bits,       &size,       &count,       &source,      &itemsize,
                       &given.flip, &given.mask, &given.limit, &given.invert};
  if (size > 0) kernels.launch(device, Kernel::kPackBits, size, arguments, stream);
}

Buffer pack_on_device(KernelWork& work, const uint8_t* elements, int64_t count, int64_t itemsize,
                      const BitRule& rule) {
  const int64_t size = bitmap_size(count);
  const std::shared_ptr<DeviceMemory> bits = work.allocate(size);
  pack_on_device(work.kernels(), work.device(), bits->address(), elements, count, itemsize, rule,
                 work.stream());
  return to_buffer(bits, size);
}

DeviceArray null_unless(const DeviceArray& rows, const DeviceArray& elements, const BitRule& rule) {
  require_validity(rows.type());
  if (rows.length() == 0) return rows;
  const Device device = rows.device();
  const int64_t width = elements.type().byte_width;
  KernelWork work(device, "make nulls");
  work.use(elements.storage(), elements.sync_event());
  const uint8_t* first = offset_pointer(device, elements.buffer(1), elements.offset() * width);
  ArrayParts parts;
  parts.length = rows.length();
  parts.null_count = -1;
  parts.buffers.push_back(pack_on_device(work, first, parts.length, width, rule));
  parts.buffers.push_back(parts.buffers.front());
  return rows.with_nulls_of(DeviceArray::import(
      make_nested_schema("b", {}, ""), make_array(std::move(parts)), device, work.record()));
}

namespace {

/// `array`, null also where `is_null(element)`. Elements are read as Item.
template <typename Item, typename IsNull>
DeviceArray null_where(const DeviceArray& array, const IsNull& is_null) {
  const ElementReader<Item> elements(array, 1);
  const int64_t length = array.length();
  uint8_t* target;
  const Buffer bits = Buffer::allocate(bitmap_size(length), &target);
  int64_t null_count = 0;
  for (int64_t start = 0; start < length; start += 8) {
    unsigned byte = 0;
    for (int64_t i = start; i < std::min(start + 8, length); ++i) {
      const bool valid = !is_null(elements[i]);
      byte |= static_cast<unsigned>(valid) << (i - start);
      null_count += valid ? 0 : 1;
    }
    target[start / 8] = static_cast<uint8_t>(byte);
  }
  if (null_count == 0) return array;
  return array.with_validity(bits, null_count).with_nulls_of(array);
}

template <typename Item>
DeviceArray null_where_item(const DeviceArray& array, std::string_view item) {
  Item null;
  std::memcpy(&null, item.data(), sizeof(Item));
  return null_where<Item>(array, [null](Item element) { return element == null; });
}

/// Whether the bits are a NaN: without the sign, more than infinity. Source: IEEE 754.
template <typename Bits>
DeviceArray null_where_above(const DeviceArray& array, Bits infinity) {
  constexpr auto kMagnitude = static_cast<Bits>(static_cast<Bits>(~Bits{0}) >> 1);
  if (!is_host_readable(array.device())) {
    return null_unless(array, array, BitRule{0, kMagnitude, infinity, 1});
  }
  return null_where<Bits>(array, [infinity](Bits element) {
    return static_cast<Bits>(element & kMagnitude) > infinity;
  });
}

DeviceArray null_item_on_device(const DeviceArray& array, std::string_view item) {
  BitRule rule;  // an element that differs has a bit that is not flipped back
  std::memcpy(&rule.flip, item.data(), item.size());
  return null_unless(array, array, rule);
}

[[noreturn]] DeviceArray raise_no_item(const Type& type) {
  raise_value_error("no value stands for null among elements of ", to_string(type));
}

}  // namespace

DeviceArray nan_to_null(const DeviceArray& array) {
  const Dtype* dtype = array.type().dtype;
  if (dtype == nullptr || dtype->code != kDLFloat || array.type().layout != Layout::kFixedWidth) {
    raise_buffer_error("NaN stands for null in float16, float32 and float64 alone, this is ",
                       to_string(array.type()));
  }
  if (goes_through_host(array.device())) {
    return with_nulls_of_host(array, nan_to_null(copy_array(array, Device{})));
  }
  if (!is_read_by_kernels(array.device(), "look for NaN")) array.synchronize();
  switch (dtype->bits) {
    case 16:
      return null_where_above<uint16_t>(array, 0x7C00);
    case 32:
      return null_where_above<uint32_t>(array, 0x7F800000);
    default:
      return null_where_above<uint64_t>(array, 0x7FF0000000000000);
  }
}

DeviceArray values_to_null(const DeviceArray& array, std::string_view item) {
  const Type& type = array.type();
  if (type.layout != Layout::kFixedWidth || static_cast<int64_t>(item.size()) != type.byte_width) {
    raise_value_error("a null of ", item.size(), " bytes for elements of ", to_string(type));
  }
  if (goes_through_host(array.device())) {
    return with_nulls_of_host(array, values_to_null(copy_array(array, Device{}), item));
  }
  DeviceArray result;
  if (is_read_by_kernels(array.device(), "look for the value that stands for null")) {
    if (item.size() <= sizeof(uint64_t)) result = null_item_on_device(array, item);
    return result ? result : raise_no_item(type);
  }
  array.synchronize();
  visit_width(item.size() > sizeof(uint64_t) ? 0 : type.byte_width,
              [&](auto width) { result = null_where_item<Element<width()>>(array, item); });
  return result ? result : raise_no_item(type);
}

ARROWDL_END_NAMESPACE
