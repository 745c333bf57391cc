// Makes list arrays over values and offsets.
#include "array/host_access.hpp"
#include "arrowdl/copy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/event.hpp"
#include "arrowdl/lists.hpp"
#include "arrowdl/owned.hpp"
#include "compute/list_offsets.hpp"

ARROWDL_BEGIN_NAMESPACE

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

ARROWDL_END_NAMESPACE
