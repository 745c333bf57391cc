// Reads format strings: the table of Arrow types, and the numbers in some formats.
#include "schema/format.hpp"

#include <charconv>
#include <cstring>
#include <iterator>

ARROWDL_BEGIN_NAMESPACE
namespace {

constexpr DLDataType kInt8{kDLInt, 8, 1};
constexpr DLDataType kInt16{kDLInt, 16, 1};
constexpr DLDataType kInt32{kDLInt, 32, 1};
constexpr DLDataType kInt64{kDLInt, 64, 1};
constexpr DLDataType kUint8{kDLUInt, 8, 1};
constexpr DLDataType kUint16{kDLUInt, 16, 1};
constexpr DLDataType kUint32{kDLUInt, 32, 1};
constexpr DLDataType kUint64{kDLUInt, 64, 1};
constexpr DLDataType kFloat16{kDLFloat, 16, 1};
constexpr DLDataType kFloat32{kDLFloat, 32, 1};
constexpr DLDataType kFloat64{kDLFloat, 64, 1};

// One row per Arrow type. Temporals read as the integers that they are stored as.
// Source: Arrow "C Data Interface", data type description.
constexpr FormatRow kFormats[] = {
    {NANOARROW_TYPE_NA, 'n', Layout::kNull, 0, kNoDtype},
    {NANOARROW_TYPE_BOOL, 'b', Layout::kBoolean, 0, kNoDtype},
    {NANOARROW_TYPE_INT8, 'c', Layout::kFixedWidth, 1, kInt8},
    {NANOARROW_TYPE_UINT8, 'C', Layout::kFixedWidth, 1, kUint8},
    {NANOARROW_TYPE_INT16, 's', Layout::kFixedWidth, 2, kInt16},
    {NANOARROW_TYPE_UINT16, 'S', Layout::kFixedWidth, 2, kUint16},
    {NANOARROW_TYPE_INT32, 'i', Layout::kFixedWidth, 4, kInt32},
    {NANOARROW_TYPE_UINT32, 'I', Layout::kFixedWidth, 4, kUint32},
    {NANOARROW_TYPE_INT64, 'l', Layout::kFixedWidth, 8, kInt64},
    {NANOARROW_TYPE_UINT64, 'L', Layout::kFixedWidth, 8, kUint64},
    {NANOARROW_TYPE_HALF_FLOAT, 'e', Layout::kFixedWidth, 2, kFloat16},
    {NANOARROW_TYPE_FLOAT, 'f', Layout::kFixedWidth, 4, kFloat32},
    {NANOARROW_TYPE_DOUBLE, 'g', Layout::kFixedWidth, 8, kFloat64},
    {NANOARROW_TYPE_DATE32, '\0', Layout::kFixedWidth, 4, kInt32},
    {NANOARROW_TYPE_DATE64, '\0', Layout::kFixedWidth, 8, kInt64},
    {NANOARROW_TYPE_TIME32, '\0', Layout::kFixedWidth, 4, kInt32},
    {NANOARROW_TYPE_TIME64, '\0', Layout::kFixedWidth, 8, kInt64},
    {NANOARROW_TYPE_TIMESTAMP, '\0', Layout::kFixedWidth, 8, kInt64},
    {NANOARROW_TYPE_DURATION, '\0', Layout::kFixedWidth, 8, kInt64},
    {NANOARROW_TYPE_INTERVAL_MONTHS, '\0', Layout::kFixedWidth, 4, kInt32},
    {NANOARROW_TYPE_INTERVAL_DAY_TIME, '\0', Layout::kFixedWidth, 8, kNoDtype},
    {NANOARROW_TYPE_INTERVAL_MONTH_DAY_NANO, '\0', Layout::kFixedWidth, 16, kNoDtype},
    {NANOARROW_TYPE_DECIMAL32, '\0', Layout::kFixedWidth, 4, kNoDtype},
    {NANOARROW_TYPE_DECIMAL64, '\0', Layout::kFixedWidth, 8, kNoDtype},
    {NANOARROW_TYPE_DECIMAL128, '\0', Layout::kFixedWidth, 16, kNoDtype},
    {NANOARROW_TYPE_DECIMAL256, '\0', Layout::kFixedWidth, 32, kNoDtype},
    {NANOARROW_TYPE_FIXED_SIZE_BINARY, '\0', Layout::kFixedWidth, 0, kNoDtype},
    {NANOARROW_TYPE_STRING, 'u', Layout::kBinary, 0, kNoDtype},
    {NANOARROW_TYPE_BINARY, 'z', Layout::kBinary, 0, kNoDtype},
    {NANOARROW_TYPE_LARGE_STRING, 'U', Layout::kLargeBinary, 0, kNoDtype},
    {NANOARROW_TYPE_LARGE_BINARY, 'Z', Layout::kLargeBinary, 0, kNoDtype},
    {NANOARROW_TYPE_STRING_VIEW, '\0', Layout::kBinaryView, 0, kNoDtype},
    {NANOARROW_TYPE_BINARY_VIEW, '\0', Layout::kBinaryView, 0, kNoDtype},
    {NANOARROW_TYPE_LIST, '\0', Layout::kList, 0, kNoDtype},
    {NANOARROW_TYPE_MAP, '\0', Layout::kList, 0, kNoDtype},
    {NANOARROW_TYPE_LARGE_LIST, '\0', Layout::kLargeList, 0, kNoDtype},
    {NANOARROW_TYPE_LIST_VIEW, '\0', Layout::kListView, 0, kNoDtype},
    {NANOARROW_TYPE_LARGE_LIST_VIEW, '\0', Layout::kLargeListView, 0, kNoDtype},
    {NANOARROW_TYPE_FIXED_SIZE_LIST, '\0', Layout::kFixedSizeList, 0, kNoDtype},
    {NANOARROW_TYPE_STRUCT, '\0', Layout::kStruct, 0, kNoDtype},
    {NANOARROW_TYPE_SPARSE_UNION, '\0', Layout::kSparseUnion, 0, kNoDtype},
    {NANOARROW_TYPE_DENSE_UNION, '\0', Layout::kDenseUnion, 0, kNoDtype},
    {NANOARROW_TYPE_RUN_END_ENCODED, '\0', Layout::kRunEndEncoded, 0, kNoDtype},
};

/// Formats that a library writes for types which Arrow lacks.
struct PrivateFormat {
  std::string_view format;
  const char* type;
};

constexpr PrivateFormat kPrivateFormats[] = {
    {"_pli128", "polars' Int128"},
    {"_plu128", "polars' UInt128"},
};

constexpr const FormatRow* find_row(ArrowType type) noexcept {
  for (const FormatRow& row : kFormats) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

/// The rows of the formats that one letter names, by that letter.
struct LetterIndex {
  constexpr LetterIndex() {
    for (const FormatRow& row : kFormats) {
      if (row.letter != '\0') rows[static_cast<unsigned char>(row.letter)] = &row;
    }
  }

  const FormatRow* rows[128] = {};
};

constexpr LetterIndex kByLetter;

/// Whether codes of a dictionary may be of the type, which one letter names.
constexpr bool is_integer(const FormatRow& row) noexcept {
  return row.letter != '\0' && row.physical.bits != 0 && row.physical.code <= kDLUInt;
}

/// The row of a format that most columns have and that needs no parser, else nullptr.
const FormatRow* find_common(const char* format) noexcept {
  constexpr const FormatRow* kStruct = find_row(NANOARROW_TYPE_STRUCT);
  constexpr const FormatRow* kFixedSizeBinary = find_row(NANOARROW_TYPE_FIXED_SIZE_BINARY);
  constexpr const FormatRow* kFixedSizeList = find_row(NANOARROW_TYPE_FIXED_SIZE_LIST);
  const auto letter = static_cast<unsigned char>(format[0]);
  if (letter != '\0' && format[1] == '\0') {
    return letter < std::size(kByLetter.rows) ? kByLetter.rows[letter] : nullptr;
  }
  if (std::strcmp(format, "+s") == 0) return kStruct;
  if (std::strcmp(format, "w:0") == 0) return kFixedSizeBinary;  // which nanoarrow does not know
  return std::strncmp(format, "+w:", 3) == 0 ? kFixedSizeList : nullptr;
}

/// Checks the entries of a map, which nanoarrow reads two levels below a node without a check.
void check_entries(const SchemaPath& path) {
  const ArrowSchema& map = *path.schema;
  if (map.n_children != 1) return;  // nanoarrow says so
  const ArrowSchema& entries = *map.children[0];
  if (entries.format == nullptr) raise_schema_error(path, "the format of its entries is NULL");
  if (entries.n_children != 2) return;
  if (entries.children == nullptr || entries.children[0] == nullptr) {
    raise_schema_error(path, "the children of its entries are NULL");
  }
}

}  // namespace

const FormatRow& require_format(const SchemaPath& path) {
  const ArrowSchema& schema = *path.schema;
  const FormatRow* common = find_common(schema.format);
  if (common != nullptr && (schema.dictionary == nullptr || is_integer(*common))) return *common;
  if (std::strcmp(schema.format, "+m") == 0) check_entries(path);
  for (const auto& [format, type] : kPrivateFormats) {
    if (format != schema.format) continue;
    raise_value_error(type, " at ", to_string(path), " (format \"", format,
                      "\") is not one of Arrow's types: cast the column, as to Int64 or "
                      "Decimal(38, 0), or leave it out");
  }
  ArrowSchemaView view;
  ArrowError error;
  if (ArrowSchemaViewInit(&view, &schema, &error) != NANOARROW_OK) {
    raise_schema_error(path, ArrowErrorMessage(&error));
  }
  const FormatRow* row =
      find_row(view.type == NANOARROW_TYPE_DICTIONARY ? view.storage_type : view.type);
  if (row == nullptr) raise_schema_error(path, "format \"", schema.format, "\" is unknown");
  return *row;
}

int64_t parse_size(const SchemaPath& path) {
  const std::string_view format = path.schema->format;
  const std::size_t colon = format.find(':');
  int64_t size = -1;
  if (colon != std::string_view::npos) {
    const auto [end, error] =
        std::from_chars(format.data() + colon + 1, format.data() + format.size(), size);
    if (error != std::errc() || end != format.data() + format.size()) size = -1;
  }
  if (size < 0 || size > INT32_MAX) {
    raise_schema_error(path, "format \"", format, "\" has no size between 0 and 2147483647");
  }
  return size;
}

std::vector<int8_t> parse_type_ids(const SchemaPath& path) {
  const std::string_view format = path.schema->format;
  std::vector<int8_t> ids;
  const char* at = format.data() + 4;
  const char* const end = format.data() + format.size();
  bool seen[128] = {};
  while (at < end) {
    int id = -1;
    const auto [next, error] = std::from_chars(at, end, id);
    const bool separated = next == end || *next == ',';
    if (error != std::errc() || id < 0 || id > 127 || !separated || seen[id]) {
      raise_schema_error(path, "format \"", format, "\" has a bad or repeated type id");
    }
    seen[id] = true;
    ids.push_back(static_cast<int8_t>(id));
    at = next == end ? end : next + 1;
  }
  if (static_cast<int64_t>(ids.size()) != path.schema->n_children) {
    raise_schema_error(path, "format \"", format, "\" names ", ids.size(), " types for ",
                       path.schema->n_children, " children");
  }
  return ids;
}

ARROWDL_END_NAMESPACE
