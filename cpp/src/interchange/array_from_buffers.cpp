// Makes an array of the dataframe interchange protocol's buffers.
#include "interchange/array_from_buffers.hpp"

#include "array/row_access.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "device/device_pointer.hpp"
#include "schema/layout.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The memory of a buffer of BufferParts.
Buffer share_bytes(const DeviceArray& bytes) {
  if (!bytes) return {};
  const int64_t width = bytes.type().byte_width;
  if (bytes.type().layout != Layout::kFixedWidth || bytes.validity() != nullptr) {
    raise_value_error("a buffer is an array of a fixed width without nulls, this is ",
                      to_string(bytes.type()));
  }
  const void* start = offset_pointer(bytes.device(), bytes.buffer(1), bytes.offset() * width);
  return Buffer(bytes.storage(), start, bytes.length() * width);
}

/// Bytes that buffer `i` must have for `end` rows; 0 for the data of strings.
int64_t required_bytes(const Type& type, int64_t i, int64_t end) {
  if (!type.children.empty() || layout_row(type.layout).is_variadic) {
    raise_type_error("an array of ", to_string(type),
                     " has children: only arrays of buffers alone are supported");
  }
  return buffer_size(type, i, end);
}

void check_sizes(const DeviceArray& array, const std::vector<Buffer>& buffers) {
  const Type& type = array.type();
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const int64_t required =
        required_bytes(type, static_cast<int64_t>(i), array.offset() + array.length());
    if (buffers[i].data() == nullptr || buffers[i].size() >= required) continue;
    raise_value_error("buffer ", i, " of an array of ", to_string(type), " has ", buffers[i].size(),
                      " bytes; ", array.length(), " rows from row ", array.offset(), " on need ",
                      required);
  }
  if (buffers.size() != 3 || array.length() == 0 || !is_host_readable(array.device())) return;
  array.synchronize();
  const Range rows{0, array.length()};
  if (!layout_row(type.layout).has_offsets()) return;
  visit_offset(type,
               [&](auto zero) { read_offsets<decltype(zero)>(array, rows, buffers[2].size()); });
}

Device find_common_device(const std::vector<DeviceArray>& parts) {
  const DeviceArray* first = nullptr;
  for (const DeviceArray& part : parts) {
    if (!part) continue;
    if (first == nullptr) first = &part;
    if (part.device() == first->device()) continue;
    raise_value_error("the buffers of one array are on ", to_string(first->device()), " and on ",
                      to_string(part.device()), ": an Arrow array is on one device");
  }
  return first == nullptr ? Device{} : first->device();
}

void add_dictionary(ArrowSchema* schema, const DeviceArray& dictionary, bool is_ordered) {
  if (ArrowSchemaAllocateDictionary(schema) != NANOARROW_OK) throw std::bad_alloc();
  dictionary.export_schema().move(schema->dictionary);
  if (is_ordered) schema->flags |= ARROW_FLAG_DICTIONARY_ORDERED;
}

}  // namespace

DeviceArray array_from_buffers(OwnedSchema schema, BufferParts parts, bool is_ordered) {
  std::vector<DeviceArray> sources = parts.buffers;
  if (parts.dictionary) {
    add_dictionary(schema.get(), parts.dictionary, is_ordered);
    sources.push_back(parts.dictionary);
  }
  const Device device = find_common_device(sources);
  std::vector<EventHandle> events;
  for (const DeviceArray& source : sources) {
    if (source) events.push_back(source.sync_event());
  }
  ArrayParts node;
  node.length = parts.length;
  node.offset = parts.offset;
  for (const DeviceArray& bytes : parts.buffers) node.buffers.push_back(share_bytes(bytes));
  const std::vector<Buffer> buffers = node.buffers;
  if (!buffers.empty() && buffers[0].data() != nullptr) node.null_count = -1;
  if (parts.dictionary) node.dictionary = share_array(parts.dictionary);
  DeviceArray array = DeviceArray::import(std::move(schema), make_array(std::move(node)), device,
                                          OwnedEvent::join(device, std::move(events)));
  check_sizes(array, buffers);
  return array;
}

ARROWDL_END_NAMESPACE
