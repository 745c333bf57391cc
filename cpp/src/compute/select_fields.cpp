// Selects fields of a struct.
#include "compute/select_fields.hpp"

#include <new>
#include <utility>

#include "schema/copy_schema.hpp"
#include "schema/find_columns.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// Copies the metadata of a schema, without that of pandas.
void copy_metadata(const ArrowSchema& from, ArrowSchema* to) {
  if (from.metadata == nullptr) return;
  nanoarrow::UniqueBuffer metadata;
  if (ArrowMetadataBuilderInit(metadata.get(), from.metadata) != NANOARROW_OK ||
      ArrowMetadataBuilderRemove(metadata.get(), ArrowCharView(kPandasKey)) != NANOARROW_OK ||
      ArrowSchemaSetMetadata(to, reinterpret_cast<const char*>(metadata->data)) != NANOARROW_OK) {
    throw std::bad_alloc();
  }
}

}  // namespace

std::shared_ptr<const ParsedSchema> select_schema(const Type& type,
                                                  const std::vector<int64_t>& columns) {
  std::vector<OwnedSchema> children;
  children.reserve(columns.size());
  for (const int64_t i : columns) {
    children.push_back(copy_schema(*type.children[static_cast<std::size_t>(i)].schema));
  }
  OwnedSchema schema = make_nested_schema("+s", std::move(children), type.name());
  schema->flags = type.schema->flags;
  copy_metadata(*type.schema, schema.get());
  return share_schema(std::move(schema));
}

DeviceArray select_fields(const DeviceArray& array, const std::vector<int64_t>& columns,
                          const std::shared_ptr<const ParsedSchema>& schema) {
  // A bitmap starts at a byte, so the fields start at the row of its first bit.
  const int64_t lead = array.validity() == nullptr ? 0 : array.offset();
  const DeviceArray whole = array.widened(lead);
  ArrayParts parts;
  parts.length = array.length();
  parts.offset = lead;
  parts.null_count = array.known_null_count();
  parts.buffers.push_back(Buffer(array.storage(), array.validity(), 0));
  for (const int64_t i : columns) parts.children.push_back(share_array(whole.child(i)));
  OwnedDeviceArray selected;
  make_array(std::move(parts)).move(&selected->array);
  selected->device_type = array.device().type;
  selected->device_id = to_arrow_device_id(array.device());
  selected->sync_event = array.sync_event().get();
  return DeviceArray::import(schema, std::move(selected));
}

ARROWDL_END_NAMESPACE
