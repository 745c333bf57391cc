// Errors about a node of a schema, which say where it is.
#pragma once

#include <string>

#include "arrowdl/error.hpp"
#include "nanoarrow/nanoarrow.hpp"

namespace arrowdl {

/// The node of a schema at which an error is, and those above it: "table > item".
struct SchemaPath {
  const SchemaPath* parent;
  const ArrowSchema* schema;
};

inline std::string to_string(const SchemaPath& path) {
  const char* name = path.schema->name;
  std::string own = name == nullptr || *name == '\0' ? "(unnamed)" : name;
  return path.parent == nullptr ? own : concat(to_string(*path.parent), " > ", own);
}

template <typename... Parts>
[[noreturn]] void raise_schema_error(const SchemaPath& path, const Parts&... parts) {
  raise_value_error("malformed Arrow schema at ", to_string(path), ": ", parts...);
}

}  // namespace arrowdl
