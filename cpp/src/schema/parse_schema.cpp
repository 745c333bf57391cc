#include <charconv>
#include <cstring>
#include <iterator>

#include "arrowdl/error.hpp"
#include "arrowdl/schema.hpp"

namespace arrowdl {
namespace {

constexpr std::string_view kExtensionName = "ARROW:extension:name";
constexpr std::string_view kExtensionMetadata = "ARROW:extension:metadata";

/// Where in the schema an error lies: "field 'a' > child 'item'".
struct Path {
  const Path* parent;
  const ArrowSchema* schema;
};

std::string to_string(const Path& path) {
  const char* name = path.schema->name;
  std::string own = name == nullptr || *name == '\0' ? "(unnamed)" : name;
  return path.parent == nullptr ? own : concat(to_string(*path.parent), " > ", own);
}

template <typename... Parts>
[[noreturn]] void raise_schema_error(const Path& path, const Parts&... parts) {
  raise_value_error("malformed Arrow schema at ", to_string(path), ": ", parts...);
}

/// Calls visit(key, value) for each pair until it returns true.
/// Source: Arrow "C Data Interface", ArrowSchema.metadata.
template <typename Visit>
void visit_pairs(const char* metadata, const Visit& visit) {
  if (metadata == nullptr) return;
  const auto read_size = [&metadata] {
    int32_t size;
    std::memcpy(&size, metadata, sizeof(size));
    if (size < 0) raise_value_error("malformed Arrow schema: negative size in its metadata");
    metadata += sizeof(size);
    return static_cast<std::size_t>(size);
  };
  const auto read_string = [&metadata, &read_size] {
    const std::size_t size = read_size();
    const std::string_view text(metadata, size);
    metadata += size;
    return text;
  };
  for (std::size_t remaining = read_size(); remaining > 0; --remaining) {
    const std::string_view key = read_string();
    const std::string_view value = read_string();
    if (visit(key, value)) return;
  }
}

/// The number after ':' in "w:16" and "+w:3".
int64_t parse_size(const Path& path) {
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

/// The type ids of "+us:0,1" and "+ud:0,1", one per child and none twice.
std::vector<int8_t> parse_type_ids(const Path& path) {
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

struct LayoutRow {
  ArrowType type;
  char letter;  ///< the whole format string of a type that one letter names, else '\0'
  Layout layout;
  int64_t byte_width;
  DLDataType physical;  ///< what the elements are read as, or kNoDtype
};

constexpr DLDataType kNoDtype{0, 0, 1};
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
constexpr LayoutRow kLayouts[] = {
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

constexpr const LayoutRow* find_layout(ArrowType type) noexcept {
  for (const LayoutRow& row : kLayouts) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

/// The rows of the formats that one letter names, by that letter.
struct LetterIndex {
  constexpr LetterIndex() {
    for (const LayoutRow& row : kLayouts) {
      if (row.letter != '\0') rows[static_cast<unsigned char>(row.letter)] = &row;
    }
  }

  const LayoutRow* rows[128] = {};
};

constexpr LetterIndex kByLetter;

/// Whether codes of a dictionary may be of the type, which one letter names.
constexpr bool is_integer(const LayoutRow& row) noexcept {
  return row.letter != '\0' && row.physical.bits != 0 && row.physical.code <= kDLUInt;
}

/// The row of the formats that most columns have and that take no parser, else nullptr.
const LayoutRow* find_common_layout(const char* format) noexcept {
  constexpr const LayoutRow* kStruct = find_layout(NANOARROW_TYPE_STRUCT);
  constexpr const LayoutRow* kFixedSizeBinary = find_layout(NANOARROW_TYPE_FIXED_SIZE_BINARY);
  constexpr const LayoutRow* kFixedSizeList = find_layout(NANOARROW_TYPE_FIXED_SIZE_LIST);
  const auto letter = static_cast<unsigned char>(format[0]);
  if (letter != '\0' && format[1] == '\0') {
    return letter < std::size(kByLetter.rows) ? kByLetter.rows[letter] : nullptr;
  }
  if (std::strcmp(format, "+s") == 0) return kStruct;
  if (std::strcmp(format, "w:0") == 0) return kFixedSizeBinary;  // which nanoarrow does not know
  return std::strncmp(format, "+w:", 3) == 0 ? kFixedSizeList : nullptr;
}

int64_t expected_children(const Type& type, const ArrowSchema& schema) {
  switch (type.layout) {
    case Layout::kList:
    case Layout::kLargeList:
    case Layout::kListView:
    case Layout::kLargeListView:
    case Layout::kFixedSizeList:
      return 1;
    case Layout::kRunEndEncoded:
      return 2;
    case Layout::kStruct:
    case Layout::kSparseUnion:
    case Layout::kDenseUnion:
      return schema.n_children;
    default:
      return 0;
  }
}

/// The node's pointers and counts, before nanoarrow or we follow any of them.
void check_node(const Path& path, int depth) {
  const ArrowSchema& schema = *path.schema;
  if (schema.release == nullptr) raise_schema_error(path, "it has been released");
  if (schema.format == nullptr) raise_schema_error(path, "its format is NULL");
  if (depth >= kMaxDepth) raise_schema_error(path, "nested more than ", kMaxDepth, " levels deep");
  if (schema.n_children < 0) raise_schema_error(path, schema.n_children, " children");
  if (schema.n_children > 0 && schema.children == nullptr) {
    raise_schema_error(path, "its children are NULL");
  }
  for (int64_t i = 0; i < schema.n_children; ++i) {
    if (schema.children[i] == nullptr) raise_schema_error(path, "child ", i, " is NULL");
    if (schema.children[i]->release == nullptr) {
      raise_schema_error(path, "child ", i, " has been released");
    }
  }
  visit_pairs(schema.metadata, [](std::string_view, std::string_view) { return false; });
}

void parse_fixed_shape(Type& type, const Path& path, std::string_view json) {
  if (type.layout != Layout::kFixedSizeList) {
    raise_schema_error(path, "arrow.fixed_shape_tensor over the storage \"", path.schema->format,
                       "\": it needs a FixedSizeList");
  }
  type.tensor =
      std::make_unique<TensorMetadata>(parse_tensor_metadata(json, Extension::kFixedShapeTensor));
  int64_t size = 1;  // parse_tensor_metadata has seen that the product fits
  for (const int64_t extent : type.tensor->shape) size *= extent;
  if (size != type.list_size) {
    raise_schema_error(path, "arrow.fixed_shape_tensor of ", size, " elements over lists of ",
                       type.list_size);
  }
}

void parse_variable_shape(Type& type, const Path& path, std::string_view json) {
  const bool is_struct_of_two = type.layout == Layout::kStruct && type.children.size() == 2;
  const Type* data = is_struct_of_two ? &type.children[0] : nullptr;
  const Type* shape = is_struct_of_two ? &type.children[1] : nullptr;
  const bool fits =
      is_struct_of_two && (data->layout == Layout::kList || data->layout == Layout::kLargeList) &&
      shape->layout == Layout::kFixedSizeList && shape->children[0].dtype != nullptr &&
      std::string_view(shape->children[0].schema->format) == "i";
  if (!fits) {
    raise_schema_error(path,
                       "arrow.variable_shape_tensor needs Struct{data: List<T>, shape: "
                       "FixedSizeList<int32>[ndim]} as its storage");
  }
  type.tensor = std::make_unique<TensorMetadata>(
      json.empty() ? TensorMetadata{}
                   : parse_tensor_metadata(json, Extension::kVariableShapeTensor));
  const auto matches = [&](std::size_t n) {
    return n == 0 || n == static_cast<std::size_t>(shape->list_size);
  };
  if (!matches(type.tensor->permutation.size()) || !matches(type.tensor->dim_names.size()) ||
      !matches(type.tensor->uniform_shape.size())) {
    raise_schema_error(path, "arrow.variable_shape_tensor metadata is not for ", shape->list_size,
                       " dimensions");
  }
}

void parse_dtype_extension(Type& type, const Path& path, const Dtype& row) {
  const std::string_view format = path.schema->format;
  bool fits = format == row.format && type.dictionary == nullptr;
  if (fits && row.code == kDLComplex) {  // storage: FixedSizeList of the two parts
    const Dtype* part = type.children[0].dtype;
    fits = part != nullptr && part->extension == nullptr && part->code == kDLFloat &&
           part->bits * 2 == row.bits;
  }
  if (!fits) {
    const bool is_complex = row.code == kDLComplex;
    const bool has_items = !type.children.empty();
    raise_schema_error(path, row.extension, " over the storage \"", format, "\"",
                       has_items ? concat(" of \"", type.children[0].schema->format, "\"") : "",
                       ": it needs \"", row.format, "\"",
                       !is_complex      ? ""
                       : row.bits == 64 ? " of \"f\""
                                        : " of \"g\"");
  }
  type.extension = Extension::kDtype;
  type.dtype = &row;
  type.is_fixed_size_binary = false;
}

void parse_extension(Type& type, const Path& path) {
  const std::optional<std::string_view> name = find_metadata(*path.schema, kExtensionName);
  if (!name) return;
  const std::string_view json =
      find_metadata(*path.schema, kExtensionMetadata).value_or(std::string_view());
  if (*name == "arrow.fixed_shape_tensor") {
    parse_fixed_shape(type, path, json);
    type.extension = Extension::kFixedShapeTensor;
  } else if (*name == "arrow.variable_shape_tensor") {
    parse_variable_shape(type, path, json);
    type.extension = Extension::kVariableShapeTensor;
  } else if (const Dtype* row = find_dtype_of_extension(*name); row != nullptr) {
    parse_dtype_extension(type, path, *row);
  }
}

const LayoutRow& require_layout(const Path& path) {
  const ArrowSchema& schema = *path.schema;
  const LayoutRow* common = find_common_layout(schema.format);
  if (common != nullptr && (schema.dictionary == nullptr || is_integer(*common))) return *common;
  ArrowSchemaView view;
  ArrowError error;
  if (ArrowSchemaViewInit(&view, &schema, &error) != NANOARROW_OK) {
    raise_schema_error(path, ArrowErrorMessage(&error));
  }
  const LayoutRow* row =
      find_layout(view.type == NANOARROW_TYPE_DICTIONARY ? view.storage_type : view.type);
  if (row == nullptr) raise_schema_error(path, "format \"", schema.format, "\" is unknown");
  return *row;
}

void parse_layout(Type& type, const Path& path) {
  const LayoutRow& row = require_layout(path);
  type.layout = row.layout;
  type.byte_width = row.byte_width;
  if (row.physical.bits != 0) type.dtype = find_dtype(row.physical);
  type.is_utf8 = row.type == NANOARROW_TYPE_STRING || row.type == NANOARROW_TYPE_LARGE_STRING ||
                 row.type == NANOARROW_TYPE_STRING_VIEW;
  type.is_map = row.type == NANOARROW_TYPE_MAP;
  if (row.type == NANOARROW_TYPE_FIXED_SIZE_BINARY) {
    type.is_fixed_size_binary = true;
    type.byte_width = parse_size(path);
  } else if (row.layout == Layout::kFixedSizeList) {
    type.list_size = parse_size(path);
  } else if (row.layout == Layout::kSparseUnion || row.layout == Layout::kDenseUnion) {
    type.type_ids = parse_type_ids(path);
  }
}

Type parse_node(const Path& path, int depth) {
  check_node(path, depth);
  const ArrowSchema& schema = *path.schema;
  Type type;
  type.schema = &schema;
  parse_layout(type, path);
  if (schema.n_children != expected_children(type, schema)) {
    raise_schema_error(path, "format \"", schema.format, "\" with ", schema.n_children,
                       " children");
  }
  type.children.reserve(static_cast<std::size_t>(schema.n_children));
  for (int64_t i = 0; i < schema.n_children; ++i) {
    type.children.push_back(parse_node(Path{&path, schema.children[i]}, depth + 1));
  }
  if (schema.dictionary != nullptr) {
    type.dictionary = std::make_unique<Type>(parse_node(Path{&path, schema.dictionary}, depth + 1));
  }
  if (schema.metadata != nullptr) parse_extension(type, path);
  return type;
}

}  // namespace

Type parse_schema(const ArrowSchema& schema) { return parse_node(Path{nullptr, &schema}, 0); }

std::shared_ptr<const ParsedSchema> share_schema(OwnedSchema schema, Releaser releaser) {
  auto shared = std::make_shared<ParsedSchema>();
  shared->releaser = releaser;
  shared->schema = std::move(schema);
  shared->type = parse_schema(*shared->schema.get());
  return shared;
}

std::optional<std::string_view> find_metadata(const ArrowSchema& schema, std::string_view key) {
  std::optional<std::string_view> found;
  visit_pairs(schema.metadata, [&](std::string_view name, std::string_view value) {
    if (name != key) return false;
    found = value;
    return true;
  });
  return found;
}

void visit_metadata(const ArrowSchema& schema,
                    const std::function<void(std::string_view, std::string_view)>& visit) {
  visit_pairs(schema.metadata, [&](std::string_view key, std::string_view value) {
    visit(key, value);
    return false;
  });
}

int64_t Type::buffer_count() const noexcept {
  switch (layout) {
    case Layout::kNull:
    case Layout::kRunEndEncoded:
      return 0;
    case Layout::kFixedSizeList:
    case Layout::kStruct:
    case Layout::kSparseUnion:
      return 1;
    case Layout::kBoolean:
    case Layout::kFixedWidth:
    case Layout::kList:
    case Layout::kLargeList:
    case Layout::kDenseUnion:
      return 2;
    case Layout::kBinary:
    case Layout::kLargeBinary:
    case Layout::kListView:
    case Layout::kLargeListView:
      return 3;
    case Layout::kBinaryView:
      break;
  }
  return -1;
}

bool Type::has_validity() const noexcept {
  return layout != Layout::kNull && layout != Layout::kSparseUnion &&
         layout != Layout::kDenseUnion && layout != Layout::kRunEndEncoded;
}

}  // namespace arrowdl
