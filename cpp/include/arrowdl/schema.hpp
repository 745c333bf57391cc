// Parses an ArrowSchema once, into checked types that converters read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arrowdl/dtype.hpp"
#include "arrowdl/owned.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The physical layouts of the Arrow columnar format. Logical types that share a layout (date32
/// and int32, string and binary, map and list) share its entry.
enum class Layout : uint8_t {
  kNull,
  kBoolean,     ///< bit-packed
  kFixedWidth,  ///< byte_width bytes per element: numbers, temporals, decimals, FixedSizeBinary
  kBinary,      ///< binary and string, int32 offsets
  kLargeBinary,
  kBinaryView,
  kList,  ///< list and map, int32 offsets
  kLargeList,
  kListView,
  kLargeListView,
  kFixedSizeList,
  kStruct,
  kSparseUnion,
  kDenseUnion,
  kRunEndEncoded,
};

/// Extension types that change how a tensor is read. Any other extension is read as its storage;
/// its name and metadata stay in the schema.
enum class Extension : uint8_t {
  kNone,
  kDtype,                ///< arrow.bool8 and arrowdl.*: storage bytes are elements of `dtype`
  kFixedShapeTensor,     ///< arrow.fixed_shape_tensor
  kVariableShapeTensor,  ///< arrow.variable_shape_tensor
  kShapedLists,          ///< lists of numbers of one shape, of Ray and of Hugging Face's datasets
  kRefused,              ///< has no tensor reading, whatever its storage
};

/// The keys of a schema's metadata that make it an extension type.
/// Source: Arrow "Columnar Format", Extension types.
constexpr const char* kExtensionNameKey = "ARROW:extension:name";
constexpr const char* kExtensionMetadataKey = "ARROW:extension:metadata";

/// The names of the canonical tensor types.
constexpr const char* kFixedShapeTensorName = "arrow.fixed_shape_tensor";
constexpr const char* kVariableShapeTensorName = "arrow.variable_shape_tensor";

/// The JSON metadata of the two tensor extension types.
/// Source: Arrow "Canonical Extension Types", Fixed shape tensor and Variable shape tensor.
struct TensorMetadata {
  std::vector<int64_t> shape;        ///< physical shape of one element (fixed shape only)
  std::vector<int64_t> permutation;  ///< logical dim i is physical dim permutation[i]; or empty
  std::vector<std::string> dim_names;
  std::vector<std::optional<int64_t>> uniform_shape;  ///< variable shape only; or empty
};

/// One node of a schema. Borrows the ArrowSchema it was parsed from.
struct Type {
  const ArrowSchema* schema = nullptr;
  Layout layout = Layout::kNull;
  Extension extension = Extension::kNone;
  bool is_utf8 = false;  ///< kBinary, kLargeBinary, kBinaryView: string rather than binary
  bool is_map = false;   ///< kList: a map
  /// The element type, where one element of this node is one tensor element: numbers, temporals as
  /// their physical integers, and Extension::kDtype (over a FixedSizeList for complex). nullptr for
  /// FixedSizeBinary, decimals, intervals of several parts, and nested layouts.
  const Dtype* dtype = nullptr;
  bool is_fixed_size_binary = false;  ///< kFixedWidth whose element is a row of byte_width uint8
  int64_t byte_width = 0;             ///< kFixedWidth: bytes per element
  int64_t list_size = 0;              ///< kFixedSizeList
  std::vector<int8_t> type_ids;       ///< unions: type id of each child
  std::unique_ptr<TensorMetadata> tensor;  ///< of the tensor extensions and of shaped lists
  std::vector<Type> children;
  std::unique_ptr<Type> dictionary;  ///< values, when this node holds dictionary indices

  const char* name() const noexcept { return schema->name == nullptr ? "" : schema->name; }
  bool is_nullable() const noexcept { return (schema->flags & ARROW_FLAG_NULLABLE) != 0; }
  /// Whether an array without nulls is a tensor of one dimension as it is: numbers of a fixed
  /// width, except the bytes of a row, and except bools, which may hold other bytes than 0 and 1.
  /// Codes are plain if no value of their dictionary is null.
  bool is_plain() const noexcept {
    return layout == Layout::kFixedWidth && dtype != nullptr && dtype->code != kDLBool &&
           !is_fixed_size_binary && extension != Extension::kRefused;
  }
  /// How many buffers an array of this type has; -1 for binary views, which have 3 or more.
  int64_t buffer_count() const noexcept;
  /// Whether buffer 0 is a validity bitmap (unions, null and run-end encoding have none).
  bool has_validity() const noexcept;
};

/// The deepest nesting of types: deeper than real data, and shallow enough for any thread's stack.
constexpr int kMaxDepth = 64;

/// The most nodes of a schema. Children that several nodes share count each time: a few structs may
/// otherwise stand for more nodes than can be visited.
constexpr int64_t kMaxNodes = int64_t{1} << 22;

/// Parses and checks `schema`, which must outlive the result. Raises ValueError for a released
/// struct, a bad format string or metadata, wrong children, too many levels or nodes, and storage
/// that contradicts the name of an extension.
Type parse_schema(const ArrowSchema& schema);

/// An ArrowSchema and its parsed form, shared by all arrays that have it.
struct ParsedSchema {
  ParsedSchema() noexcept = default;
  ParsedSchema(const ParsedSchema&) = delete;
  ParsedSchema& operator=(const ParsedSchema&) = delete;
  ~ParsedSchema() {
    if (releaser != nullptr) releaser(&schema, nullptr);
  }

  OwnedSchema schema;
  Type type;
  Releaser releaser = nullptr;
};

/// Takes over `schema` and parses it. Raises as parse_schema does, and then releases it.
std::shared_ptr<const ParsedSchema> share_schema(OwnedSchema schema, Releaser releaser = nullptr);

/// Reads the JSON of one of the two tensor extensions. Raises ValueError if it breaks the
/// specification. Ignores unknown keys.
TensorMetadata parse_tensor_metadata(std::string_view json, Extension extension);

/// Reads the shape in the JSON of shaped lists: `[2, 3]` of Ray, `[[2, 3], "float32"]` of Hugging
/// Face. Empty if it has none, or an extent that is not fixed.
std::vector<int64_t> parse_list_shape(std::string_view json);

/// The JSON of a fixed shape tensor, in the form that pyarrow writes.
std::string to_json(const TensorMetadata& metadata);

/// The value of `key` in a schema's metadata, if it has one.
std::optional<std::string_view> find_metadata(const ArrowSchema& schema, std::string_view key);

/// Calls `visit` with each key and value of a schema's metadata. Raises ValueError for a negative
/// size. Trusts other sizes, since the encoding has no total length.
void visit_metadata(const ArrowSchema& schema,
                    const std::function<void(std::string_view, std::string_view)>& visit);

/// The type as text: "fixed_size_list<float32>[768]", "timestamp[us, UTC]".
std::string to_string(const Type& type);

// Schemas that arrowdl makes: nullable fields, with an empty name unless `name` is given.

/// The Arrow type of one element of `dtype`, extension included.
OwnedSchema make_schema(const Dtype& dtype, const char* name = "");
/// arrow.fixed_shape_tensor of `item`, which it takes over. Raises BufferError where a row has more
/// elements than a FixedSizeList can have.
OwnedSchema make_fixed_shape_tensor_schema(OwnedSchema item, const TensorMetadata& metadata,
                                           const char* name = "");
/// A node with `format` and `children`, which it takes over.
OwnedSchema make_nested_schema(const char* format, std::vector<OwnedSchema> children,
                               const char* name = "");
/// A copy of `schema` with another name.
OwnedSchema rename_schema(OwnedSchema schema, const char* name);

ARROWDL_END_NAMESPACE
