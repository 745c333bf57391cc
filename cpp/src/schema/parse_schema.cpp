// Reads a schema into a Type, and checks every node.
#include "arrowdl/error.hpp"
#include "arrowdl/schema.hpp"
#include "schema/format.hpp"
#include "schema/layout.hpp"
#include "schema/metadata.hpp"
#include "schema/parse_extension.hpp"
#include "schema/schema_path.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

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
