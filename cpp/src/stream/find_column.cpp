// Finds a column of a struct by its name.
#include "stream/find_column.hpp"

#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

std::string list_names(const Type& type) {
  std::string names;
  for (const Type& child : type.children) {
    names += concat(names.empty() ? "\"" : ", \"", child.name(), "\"");
  }
  return names.empty() ? "none" : names;
}

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

ARROWDL_END_NAMESPACE
