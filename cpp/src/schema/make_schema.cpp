// Makes and copies schemas.
#include "schema/make_schema.hpp"

#include <cerrno>
#include <new>

#include "arrowdl/error.hpp"
#include "arrowdl/schema.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// Raises the error of a builder of nanoarrow: a lack of memory, since the arguments are ours.
void check(ArrowErrorCode code) {
  if (code == NANOARROW_OK) return;
  if (code == ENOMEM) throw std::bad_alloc();
  raise_value_error("cannot build an Arrow schema: nanoarrow error ", code);
}

ArrowStringView view_string(std::string_view text) {
  return ArrowStringView{text.data(), static_cast<int64_t>(text.size())};
}

void set_extension(OwnedSchema& schema, std::string_view name, std::string_view metadata) {
  nanoarrow::UniqueBuffer buffer;
  check(ArrowMetadataBuilderInit(buffer.get(), nullptr));
  check(ArrowMetadataBuilderAppend(buffer.get(), ArrowCharView(kExtensionNameKey),
                                   view_string(name)));
  check(ArrowMetadataBuilderAppend(buffer.get(), ArrowCharView(kExtensionMetadataKey),
                                   view_string(metadata)));
  check(ArrowSchemaSetMetadata(schema.get(), reinterpret_cast<const char*>(buffer->data)));
}

}  // namespace

OwnedSchema copy_schema(const ArrowSchema& schema) {
  OwnedSchema copy;
  const int code = ArrowSchemaDeepCopy(&schema, copy.get());
  if (code == ENOMEM) throw std::bad_alloc();
  if (code != NANOARROW_OK) raise_value_error("cannot copy an Arrow schema: error ", code);
  return copy;
}

void replace_child(OwnedSchema& schema, OwnedSchema child) {
  ArrowSchema* place = schema->children[0];
  OwnedSchema named = copy_schema(*child.get());
  const int code = ArrowSchemaSetName(named.get(), place->name == nullptr ? "" : place->name);
  if (code != NANOARROW_OK) throw std::bad_alloc();
  named->flags = place->flags;
  place->release(place);
  named.move(place);
}

OwnedSchema make_nested_schema(const char* format, std::vector<OwnedSchema> children,
                               const char* name) {
  OwnedSchema schema;
  ArrowSchemaInit(schema.get());
  check(ArrowSchemaSetFormat(schema.get(), format));
  check(ArrowSchemaSetName(schema.get(), name));
  check(ArrowSchemaAllocateChildren(schema.get(), static_cast<int64_t>(children.size())));
  for (std::size_t i = 0; i < children.size(); ++i) children[i].move(schema->children[i]);
  return schema;
}

OwnedSchema make_schema(const Dtype& dtype, const char* name) {
  std::vector<OwnedSchema> children;
  if (dtype.code == kDLComplex) {
    const DLDataType part{kDLFloat, static_cast<uint8_t>(dtype.bits / 2), 1};
    children.push_back(make_schema(*find_dtype(part), "item"));
  }
  OwnedSchema schema = make_nested_schema(dtype.format, std::move(children), name);
  if (dtype.extension != nullptr) set_extension(schema, dtype.extension, "");
  return schema;
}

OwnedSchema make_fixed_shape_tensor_schema(OwnedSchema item, const TensorMetadata& metadata,
                                           const char* name) {
  int64_t size = 1;
  for (const int64_t extent : metadata.shape) size *= extent;
  if (size > INT32_MAX) {
    raise_buffer_error("one row of the tensor has ", size,
                       " elements; an Arrow FixedSizeList holds at most 2147483647: reshape it");
  }
  std::vector<OwnedSchema> children;
  children.push_back(std::move(item));
  OwnedSchema schema = make_nested_schema(concat("+w:", size).c_str(), std::move(children), name);
  set_extension(schema, kFixedShapeTensorName, to_json(metadata));
  return schema;
}

OwnedSchema rename_schema(OwnedSchema schema, const char* name) {
  OwnedSchema renamed = copy_schema(*schema.get());
  check(ArrowSchemaSetName(renamed.get(), name));
  return renamed;
}

ARROWDL_END_NAMESPACE
