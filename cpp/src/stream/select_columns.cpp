// Selects columns of a stream of structs.
#include <new>

#include "arrowdl/error.hpp"
#include "arrowdl/stream.hpp"
#include "schema/copy_schema.hpp"
#include "stream/find_column.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

std::shared_ptr<const ParsedSchema> select_schema(const Type& type,
                                                  const std::vector<int64_t>& columns) {
  std::vector<OwnedSchema> children;
  children.reserve(columns.size());
  for (const int64_t i : columns) {
    children.push_back(copy_schema(*type.children[static_cast<std::size_t>(i)].schema));
  }
  OwnedSchema schema = make_nested_schema("+s", std::move(children), type.name());
  schema->flags = type.schema->flags;
  if (ArrowSchemaSetMetadata(schema.get(), type.schema->metadata) != NANOARROW_OK) {
    throw std::bad_alloc();
  }
  return share_schema(std::move(schema));
}

class Select final : public ArrayStream {
 public:
  Select(OwnedStream source, std::vector<int64_t> columns)
      : ArrayStream(select_schema(source->schema()->type, columns), source->device_type()),
        source_(std::move(source)),
        columns_(std::move(columns)) {}

  DeviceArray next(int64_t max_rows) override {
    const DeviceArray array = source_->next(max_rows);
    if (!array) return {};
    // A bitmap starts at a byte, so the fields start at the row of its first bit.
    const int64_t lead = array.validity() == nullptr ? 0 : array.offset();
    const DeviceArray whole = array.widened(lead);
    ArrayParts parts;
    parts.length = array.length();
    parts.offset = lead;
    parts.null_count = array.known_null_count();
    parts.buffers.push_back(Buffer(array.storage(), array.validity(), 0));
    for (const int64_t i : columns_) parts.children.push_back(share_array(whole.child(i)));
    OwnedDeviceArray selected;
    make_array(std::move(parts)).move(&selected->array);
    selected->device_type = array.device().type;
    selected->device_id = to_arrow_device_id(array.device());
    selected->sync_event = array.sync_event().get();
    return DeviceArray::import(schema(), std::move(selected));
  }

 private:
  OwnedStream source_;
  std::vector<int64_t> columns_;
};

}  // namespace

OwnedStream select_columns(OwnedStream&& stream, const std::vector<std::string>& names) {
  const Type& type = stream->schema()->type;
  require_columns(type);
  std::vector<int64_t> columns;
  for (const std::string& name : names) {
    const int64_t column = find_column(type, name);
    for (const int64_t other : columns) {
      if (other == column) raise_value_error("the column \"", name, "\" is selected twice");
    }
    columns.push_back(column);
  }
  return std::make_unique<Select>(std::move(stream), std::move(columns));
}

ARROWDL_END_NAMESPACE
