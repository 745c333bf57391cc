// Makes tensors of lists whose extension says their one shape.
#include "cast/shape_lists.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "array/host_access.hpp"
#include "arrowdl/backends.hpp"
#include "arrowdl/cast_to_schema.hpp"
#include "arrowdl/error.hpp"
#include "cast/misfit.hpp"
#include "cast/nulls.hpp"
#include "schema/layout.hpp"
#include "schema/make_schema.hpp"
#include "util/explained_error.hpp"
#include "util/overflow.hpp"

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
  const Type& item = type.children[0];
  return type.tensor->shape.size() > 1 && (item.dtype != nullptr || !is_list(item));
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

std::string describe_shape(const Type& type) {
  std::string shape;
  for (const int64_t extent : type.tensor->shape) {
    shape += concat(shape.empty() ? "" : ", ", extent);
  }
  return concat("[", shape, "]");
}

/// The values of lists of any depth.
DeviceArray find_values(const DeviceArray& lists) {
  DeviceArray values = lists;
  while (is_list(values.type())) values = values.child(0);
  return values;
}

/// Whether `made` has the memory of `lists`, or needs none.
bool is_shared(const DeviceArray& lists, const DeviceArray& made) {
  const DeviceArray values = find_values(made);
  return values.length() == 0 || values.buffer(1) == find_values(lists).buffer(1);
}

/// `array` with the schema `schema`, in memory that the host reads.
DeviceArray relabel(const DeviceArray& array, OwnedSchema schema) {
  return array.derive(std::move(schema), share_array(array));
}

/// Raises ValueError for a shape of more values than a FixedSizeList counts.
void check_size(const Type& type) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  int64_t size = 1;
  for (const int64_t extent : type.tensor->shape) {
    if (extent <= kMost && checked_multiply(size, extent, &size) && size <= kMost) continue;
    raise_value_error(to_string(type), " with the shape ", describe_shape(type),
                      " of its extension type has more than ", kMost,
                      " values in a row, the most of a FixedSizeList: take the column's storage");
  }
}

/// Shaped lists as FixedSizeLists. Raises ValueError for a row of another shape.
DeviceArray fix_sizes(const DeviceArray& lists) {
  const Type& type = lists.type();
  try {
    const auto schema = share_schema(make_fixed_schema(type, false));
    const DeviceArray fixed = cast_to_schema(lists, schema, CastTarget::kHost);
    if (fixed.type().layout == Layout::kFixedSizeList) return fixed;
  } catch (const Misfit&) {  // its message is about a request
  }
  raise_value_error("a row of ", to_string(type), " does not have the shape ", describe_shape(type),
                    " that the extension type says");
}

DeviceArray shape_list(const DeviceArray& lists, Copy copy) {
  const Type& type = lists.type();
  check_size(type);
  const DeviceArray fixed = fix_sizes(lists);
  if (copy == Copy::kNever && !is_shared(lists, fixed)) {
    raise_buffer_error("an array of ", to_string(type),
                       " cannot become a tensor without a copy, since the values of its rows have "
                       "to be gathered: allow it with copy=None or copy=True");
  }
  return relabel(fixed, make_fixed_schema(type, true));
}

DeviceArray shape_rows(const DeviceArray& array, Copy copy);

/// A struct with its nulls in the fields that are shaped lists, too: a list under a null struct has
/// any length.
DeviceArray shape_fields(const DeviceArray& array, Copy copy) {
  OwnedSchema schema = copy_schema(*array.type().schema);
  ArrayParts parts;
  parts.length = array.length();
  parts.buffers.push_back(copy_validity(array, &parts.null_count));
  for (std::size_t i = 0; i < array.type().children.size(); ++i) {
    DeviceArray child = array.child(static_cast<int64_t>(i));
    if (has_shaped_lists(child.type())) {
      try {
        child = shape_rows(child.with_nulls_of(array), copy);
      } catch (const Error& error) {
        throw name_field(error, child.type().name());
      }
      ArrowSchema* const field = schema->children[i];
      field->release(field);
      child.export_schema().move(field);
    }
    parts.children.push_back(share_array(child));
  }
  return DeviceArray::import(std::move(schema), make_array(std::move(parts)));
}

DeviceArray shape_rows(const DeviceArray& array, Copy copy) {
  if (!has_shaped_lists(array.type())) return array;
  const bool is_list = array.type().extension == Extension::kShapedLists;
  return is_list ? shape_list(array, copy) : shape_fields(array, copy);
}

}  // namespace

DeviceArray shape_lists(const DeviceArray& array, Copy copy) {
  const Type& type = array.type();
  if (!has_shaped_lists(type)) return array;
  if (!is_host_readable(array.device())) {
    raise_buffer_error(to_string(type), " on ", to_string(array.device()),
                       " has lists whose shape the CPU has to check: copy it to the CPU first");
  }
  array.synchronize();
  return shape_rows(array, copy);
}

ARROWDL_END_NAMESPACE
