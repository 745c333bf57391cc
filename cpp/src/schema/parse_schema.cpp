// Reads a schema into a Type, and checks every node.
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "arrowdl/error.hpp"
#include "arrowdl/schema.hpp"
#include "schema/extensions.hpp"
#include "schema/format.hpp"
#include "schema/layout.hpp"
#include "schema/schema_path.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// Calls visit(key, value) for each pair of an ArrowSchema's metadata until it returns true. Raises
/// ValueError for a negative size.
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

void parse_fixed_shape(Type& type, const SchemaPath& path, std::string_view json) {
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

void parse_variable_shape(Type& type, const SchemaPath& path, std::string_view json) {
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

/// The levels of lists above numbers or bools, of any kind; 0 for other values.
std::size_t count_levels(const Type& type) {
  std::size_t levels = 0;
  const Type* node = &type;
  for (; node->dtype == nullptr && is_list(*node) && !node->is_map; node = &node->children[0]) {
    ++levels;
  }
  return node->dtype != nullptr || node->layout == Layout::kBoolean ? levels : 0;
}

/// Lists of another depth than their shape are read as lists.
void parse_shaped_lists(Type& type, std::string_view json) {
  std::vector<int64_t> shape = parse_list_shape(json);
  const std::size_t levels = count_levels(type);
  if (shape.empty() || type.dictionary != nullptr || (levels != 1 && levels != shape.size())) {
    return;
  }
  type.tensor = std::make_unique<TensorMetadata>();
  type.tensor->shape = std::move(shape);
  type.extension = Extension::kShapedLists;
}

void parse_dtype_extension(Type& type, const SchemaPath& path, std::string_view name,
                           const Dtype& row) {
  const std::string_view format = path.schema->format;
  bool fits = format == row.format && type.dictionary == nullptr;
  if (fits && row.code == kDLComplex) {  // storage: FixedSizeList of the two parts
    const Dtype* part = type.children[0].dtype;
    fits = part != nullptr && part->extension == nullptr && part->code == kDLFloat &&
           part->bits * 2 == row.bits;
  }
  if (!fits) {
    const DLDataType part{kDLFloat, static_cast<uint8_t>(row.bits / 2), 1};
    const bool has_items = !type.children.empty();
    raise_schema_error(
        path, name, " over the storage \"", format, "\"",
        has_items ? concat(" of \"", type.children[0].schema->format, "\"") : "", ": it needs \"",
        row.format, "\"",
        row.code == kDLComplex ? concat(" of \"", find_dtype(part)->format, "\"") : "");
  }
  type.extension = Extension::kDtype;
  type.dtype = &row;
  type.is_fixed_size_binary = false;
}

void parse_row(Type& type, const SchemaPath& path, const ExtensionRow& row, std::string_view json) {
  switch (row.reading) {
    case Reading::kDtype:
      return parse_dtype_extension(type, path, row.name, *find_dtype(row.note));
    case Reading::kShapedLists:
      return parse_shaped_lists(type, json);
    case Reading::kNoBytes:
      if (!is_binary(type)) return;
      [[fallthrough]];
    case Reading::kRefused:
      type.extension = Extension::kRefused;
      return;
    case Reading::kStorage:
    case Reading::kTensor:
      return;
  }
}

/// Reads the extension name and metadata of the node at `path` into `type`, which has its layout,
/// children and dictionary. Raises ValueError for storage that contradicts the name.
void parse_extension(Type& type, const SchemaPath& path) {
  const std::optional<std::string_view> name = find_metadata(*path.schema, kExtensionNameKey);
  if (!name) return;
  const std::string_view json =
      find_metadata(*path.schema, kExtensionMetadataKey).value_or(std::string_view());
  if (*name == kFixedShapeTensorName) {
    parse_fixed_shape(type, path, json);
    type.extension = Extension::kFixedShapeTensor;
  } else if (*name == kVariableShapeTensorName) {
    parse_variable_shape(type, path, json);
    type.extension = Extension::kVariableShapeTensor;
  } else if (const Dtype* dtype = find_dtype_of_extension(*name); dtype != nullptr) {
    parse_dtype_extension(type, path, *name, *dtype);
  } else if (const ExtensionRow* row = find_extension(*name); row != nullptr) {
    parse_row(type, path, *row, json);
  }
}

/// Checks the pointers and counts of a node before anything follows them. Takes its children from
/// `*nodes_left`, the nodes that the schema may still have.
void check_node(const SchemaPath& path, int depth, int64_t* nodes_left) {
  const ArrowSchema& schema = *path.schema;
  if (schema.release == nullptr) raise_schema_error(path, "it has been released");
  if (schema.format == nullptr) raise_schema_error(path, "its format is NULL");
  if (depth >= kMaxDepth) raise_schema_error(path, "nested more than ", kMaxDepth, " levels deep");
  if (schema.n_children < 0) raise_schema_error(path, schema.n_children, " children");
  const int64_t nodes = schema.dictionary == nullptr ? 0 : 1;
  if (schema.n_children > *nodes_left - nodes) {
    raise_schema_error(path, "the schema has more than ", kMaxNodes, " nodes with its ",
                       schema.n_children, " children");
  }
  *nodes_left -= schema.n_children + nodes;
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

void parse_layout(Type& type, const SchemaPath& path) {
  const FormatRow& row = require_format(path);
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

Type parse_node(const SchemaPath& path, int depth, int64_t* nodes_left) {
  check_node(path, depth, nodes_left);
  const ArrowSchema& schema = *path.schema;
  Type type;
  type.schema = &schema;
  parse_layout(type, path);
  const int8_t n_children = layout_row(type.layout).children;
  if (n_children != kAnyChildren && schema.n_children != n_children) {
    raise_schema_error(path, "format \"", schema.format, "\" with ", schema.n_children,
                       " children");
  }
  type.children.reserve(static_cast<std::size_t>(schema.n_children));
  for (int64_t i = 0; i < schema.n_children; ++i) {
    type.children.push_back(
        parse_node(SchemaPath{&path, schema.children[i]}, depth + 1, nodes_left));
  }
  if (schema.dictionary != nullptr) {
    type.dictionary = std::make_unique<Type>(
        parse_node(SchemaPath{&path, schema.dictionary}, depth + 1, nodes_left));
  }
  if (schema.metadata != nullptr) parse_extension(type, path);
  return type;
}

}  // namespace

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

Type parse_schema(const ArrowSchema& schema) {
  int64_t nodes_left = kMaxNodes - 1;
  return parse_node(SchemaPath{nullptr, &schema}, 0, &nodes_left);
}

std::shared_ptr<const ParsedSchema> share_schema(OwnedSchema schema, Releaser releaser) {
  auto shared = std::make_shared<ParsedSchema>();
  shared->releaser = releaser;
  shared->schema = std::move(schema);
  shared->type = parse_schema(*shared->schema.get());
  return shared;
}

ARROWDL_END_NAMESPACE
