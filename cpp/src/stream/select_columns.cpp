// Selects columns of a stream of structs.
#include "arrowdl/error.hpp"
#include "arrowdl/stream.hpp"
#include "compute/select_fields.hpp"
#include "stream/find_column.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

class Select final : public ArrayStream {
 public:
  Select(OwnedStream source, std::vector<int64_t> columns)
      : ArrayStream(select_schema(source->schema()->type, columns), source->device_type()),
        source_(std::move(source)),
        columns_(std::move(columns)) {}

  DeviceArray next(int64_t max_rows) override {
    const DeviceArray array = source_->next(max_rows);
    if (!array) return {};
    return select_fields(array, columns_, schema());
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
