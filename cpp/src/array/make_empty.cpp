// Makes arrays without rows.
#include <cstring>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "schema/layout.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// A zero, for the one offset of an array without rows. NULL on other devices, where the host
/// cannot write it: without rows the format allows that.
Buffer make_empty_buffer(const Device& device) {
  if (device.type != kDLCPU) return Buffer();
  constexpr int64_t kSize = sizeof(int64_t);
  uint8_t* bytes = nullptr;
  Buffer buffer = Buffer::allocate(kSize, &bytes);
  std::memset(bytes, 0, kSize);
  return buffer;
}

OwnedArray make_empty_array(const Type& type, const Device& device) {
  const LayoutRow& row = layout_row(type.layout);
  ArrayParts parts;
  for (int64_t i = 0; i < row.buffer_count; ++i) {
    const bool is_validity = i == 0 && row.has_validity();
    parts.buffers.push_back(is_validity ? Buffer() : make_empty_buffer(device));
  }
  for (const Type& child : type.children) {
    parts.children.push_back(make_empty_array(child, device));
  }
  if (type.dictionary != nullptr) parts.dictionary = make_empty_array(*type.dictionary, device);
  return make_array(std::move(parts));
}

}  // namespace

DeviceArray make_empty(std::shared_ptr<const ParsedSchema> schema, Device device) {
  OwnedDeviceArray array;
  make_empty_array(schema->type, device).move(&array->array);
  array->device_type = device.type;
  array->device_id = to_arrow_device_id(device);
  return DeviceArray::import(std::move(schema), std::move(array));
}

ARROWDL_END_NAMESPACE
