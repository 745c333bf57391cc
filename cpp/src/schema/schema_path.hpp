// Paths to the nodes of schemas and types, for errors.
#pragma once

#include <string>

#include "arrowdl/error.hpp"
#include "arrowdl/schema.hpp"
#include "nanoarrow/nanoarrow.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The path to a node of a schema.
struct SchemaPath {
  const SchemaPath* parent;
  const ArrowSchema* schema;
};

/// The path to a node of a parsed schema.
struct TypePath {
  const TypePath* parent;
  const Type* type;
};

/// `path`, whose last node is called `name`, as text: "table > item".
template <typename Path>
std::string write_path(const Path& path, const char* name) {
  std::string own = name == nullptr || *name == '\0' ? "(unnamed)" : name;
  return path.parent == nullptr ? own : concat(to_string(*path.parent), " > ", own);
}

inline std::string to_string(const SchemaPath& path) { return write_path(path, path.schema->name); }
inline std::string to_string(const TypePath& path) { return write_path(path, path.type->name()); }

template <typename... Parts>
[[noreturn]] void raise_schema_error(const SchemaPath& path, const Parts&... parts) {
  raise_value_error("malformed Arrow schema at ", to_string(path), ": ", parts...);
}

ARROWDL_END_NAMESPACE
