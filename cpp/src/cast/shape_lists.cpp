// Makes tensors of lists whose extension says their one shape.
#include "cast/shape_lists.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "array/host_access.hpp"
#include "arrowdl/backends.hpp"
#include "arrowdl/cast_to_schema.hpp"
#include "arrowdl/error.hpp"
#include "schema/copy_schema.hpp"
#include "schema/layout_families.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

bool has_shaped_lists(const Type& type) {
  if (type.dictionary != nullptr) return false;
  if (type.extension == Extension::kShapedLists) return true;
  return type.layout == Layout::kStruct &&
         std::any_of(type.children.begin(), type.children.end(), has_shaped_lists);
}

/// Whether the lists are of all elements of a row, rather than one level for each dimension.
bool is_flat(const Type& type) {
  return type.tensor->shape.size() > 1 && type.children[0].dtype != nullptr;
}

OwnedSchema copy_items(const Type& type) {
  const Type* items = &type;
  while (items->dtype == nullptr && is_list(*items)) items = &items->children[0];
  return copy_schema(*items->schema);
}

OwnedSchema wrap(OwnedSchema items, int64_t size, const char* name) {
  std::vector<OwnedSchema> children;
  children.push_back(std::move(items));
  return make_nested_schema(concat("+w:", size).c_str(), std::move(children), name);
}

/// The type of shaped lists as FixedSizeLists; as a tensor where `has_shape`.
OwnedSchema make_fixed_schema(const Type& type, bool has_shape) {
  const std::vector<int64_t>& shape = type.tensor->shape;
  OwnedSchema schema = copy_items(type);
  if (!is_flat(type)) {
    for (std::size_t i = shape.size(); i > 0; --i) {
      schema = wrap(std::move(schema), shape[i - 1], i == 1 ? type.name() : "item");
    }
  } else if (has_shape) {
    schema = make_fixed_shape_tensor_schema(std::move(schema), *type.tensor, type.name());
  } else {
    int64_t size = 1;
    for (const int64_t extent : shape) size *= extent;
    schema = wrap(std::move(schema), size, type.name());
  }
  schema->flags = type.schema->flags;
  return schema;
}

/// The schema of `type` with its shaped lists as FixedSizeLists, or tensors where `has_shape`.
OwnedSchema make_shaped_schema(const Type& type, bool has_shape) {
  if (type.dictionary == nullptr && type.extension == Extension::kShapedLists) {
    return make_fixed_schema(type, has_shape);
  }
  OwnedSchema schema = copy_schema(*type.schema);
  if (!has_shaped_lists(type)) return schema;
  for (std::size_t i = 0; i < type.children.size(); ++i) {
    if (!has_shaped_lists(type.children[i])) continue;
    ArrowSchema* const child = schema->children[i];
    child->release(child);
    make_shaped_schema(type.children[i], has_shape).move(child);
  }
  return schema;
}

/// Raises ValueError if a cast has left lists as they are.
void check_shaped(const Type& lists, const Type& made) {
  if (lists.dictionary != nullptr) return;
  if (lists.extension == Extension::kShapedLists) {
    std::string shape;
    for (const int64_t extent : lists.tensor->shape) {
      shape += concat(shape.empty() ? "" : ", ", extent);
    }
    if (made.layout == Layout::kFixedSizeList) return;
    raise_value_error("a row of ", to_string(lists), " does not have the shape [", shape,
                      "] that the extension type says");
  }
  if (lists.layout != Layout::kStruct) return;
  for (std::size_t i = 0; i < lists.children.size(); ++i) {
    try {
      check_shaped(lists.children[i], made.children[i]);
    } catch (const Error& error) {
      throw Error(error.kind(), concat("field \"", lists.children[i].name(), "\": ", error.what()));
    }
  }
}

}  // namespace

DeviceArray shape_lists(const DeviceArray& array) {
  const Type& type = array.type();
  if (!has_shaped_lists(type)) return array;
  if (!is_host_readable(array.device())) {
    raise_buffer_error(to_string(type), " on ", to_string(array.device()),
                       " has lists whose shape the CPU has to check: copy it to the CPU first");
  }
  array.synchronize();
  const DeviceArray fixed =
      cast_to_schema(array, share_schema(make_shaped_schema(type, false)), CastTarget::kHost);
  check_shaped(type, fixed.type());
  OwnedDeviceArray shared;
  share_array(fixed).move(&shared->array);
  shared->device_type = fixed.device().type;
  shared->device_id = to_arrow_device_id(fixed.device());
  shared->sync_event = fixed.sync_event().get();
  return DeviceArray::import(share_schema(make_shaped_schema(type, true)), std::move(shared));
}

ARROWDL_END_NAMESPACE
