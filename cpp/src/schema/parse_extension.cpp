// Reads extension types, and checks them against their storage.
#include "schema/parse_extension.hpp"

#include <memory>
#include <optional>

#include "schema/extensions.hpp"
#include "schema/layout_families.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

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

}  // namespace

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

ARROWDL_END_NAMESPACE
