// Finds columns of a struct by their names, and selects those of a stream.
#include "stream/select_columns.hpp"

#include "arrowdl/error.hpp"
#include "arrowdl/stream.hpp"
#include "compute/select_fields.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

std::string list_names(const Type& type) {
  std::string names;
  for (const Type& child : type.children) {
    names += concat(names.empty() ? "\"" : ", \"", child.name(), "\"");
  }
  return names.empty() ? "none" : names;
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
    return select_fields(array, columns_, schema());
  }

 private:
  OwnedStream source_;
  std::vector<int64_t> columns_;
};

}  // namespace

void require_columns(const Type& type) {
  if (type.layout == Layout::kStruct) return;
  raise_type_error("columns are fields of a struct, the stream is of ", to_string(type));
}

int64_t find_column(const Type& type, const std::string& name) {
  int64_t found = -1;
  for (std::size_t i = 0; i < type.children.size(); ++i) {
    if (type.children[i].name() != name) continue;
    if (found >= 0) {
      raise_value_error("several columns are named \"", name, "\": rename them to tell them apart");
    }
    found = static_cast<int64_t>(i);
  }
  if (found < 0) raise_value_error("no column \"", name, "\": the columns are ", list_names(type));
  return found;
}

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
