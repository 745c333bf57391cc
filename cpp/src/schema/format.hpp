// Reads the format string of a schema.
#pragma once

#include <cstdint>

#include "arrowdl/schema.hpp"
#include "schema/schema_path.hpp"

ARROWDL_BEGIN_NAMESPACE

constexpr DLDataType kNoDtype{0, 0, 1};

/// One row of the table of Arrow types.
struct FormatRow {
  ArrowType type;
  char letter;  ///< the whole format string of a type that one letter names, else '\0'
  Layout layout;
  int64_t byte_width;
  DLDataType physical;  ///< what the elements are read as, or kNoDtype
};

/// The row of the format at `path`; with a dictionary, that of the indices. Raises ValueError for a
/// format that Arrow does not define.
const FormatRow& require_format(const SchemaPath& path);

/// The number after ':' in "w:16" and "+w:3". Raises ValueError.
int64_t parse_size(const SchemaPath& path);

/// The type ids of "+us:0,1" and "+ud:0,1", one per child, all different. Raises ValueError.
std::vector<int8_t> parse_type_ids(const SchemaPath& path);

ARROWDL_END_NAMESPACE
