// Concatenates arrays.
#include "arrowdl/concatenate.hpp"

#include <cstring>

#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "compute/gather.hpp"
#include "compute/gather_on_device.hpp"
#include "compute/through_host.hpp"
#include "schema/make_schema.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

constexpr int64_t kPromisedFlags = ARROW_FLAG_DICTIONARY_ORDERED | ARROW_FLAG_MAP_KEYS_SORTED;

/// A type of array `index` that has to match, and the path to it: "a.b", empty for the array
/// itself.
struct TypePath {
  std::size_t index;
  std::string path;

  TypePath child(const char* name) const {
    return {index, path.empty() ? name : concat(path, ".", name)};
  }
};

template <typename... Parts>
[[noreturn]] void raise_mismatch(const TypePath& at, const Parts&... parts) {
  raise_value_error("cannot concatenate: array ", at.index, " and array 0 differ in ",
                    at.path.empty() ? "their type" : concat("field '", at.path, "'"), ": ",
                    parts..., "; cast them to one type first");
}

void require_same_metadata(const Type& first, const Type& other, const char* key,
                           const TypePath& at) {
  const auto ours = find_metadata(*first.schema, key);
  const auto theirs = find_metadata(*other.schema, key);
  if (ours != theirs) {
    raise_mismatch(at, key, " is ", theirs.value_or("absent"), " and ", ours.value_or("absent"));
  }
}

void require_same_node(const Type& first, const Type& other, const TypePath& at) {
  if (std::strcmp(first.schema->format, other.schema->format) != 0 ||
      first.children.size() != other.children.size() ||
      (first.dictionary == nullptr) != (other.dictionary == nullptr)) {
    raise_mismatch(at, to_string(other), " and ", to_string(first));
  }
  require_same_metadata(first, other, kExtensionNameKey, at);
  require_same_metadata(first, other, kExtensionMetadataKey, at);
}

/// Whether children are found by their names. The names of list items mean nothing.
bool has_named_children(const Type& type) {
  return type.layout == Layout::kStruct || type.layout == Layout::kSparseUnion ||
         type.layout == Layout::kDenseUnion;
}

/// Raises ValueError unless `other` is the same type as `first`. Makes `merged` nullable where
/// `other` is, and clears the flags that `other` does not promise.
void merge_types(const Type& first, const Type& other, const TypePath& at, ArrowSchema* merged) {
  require_same_node(first, other, at);
  const int64_t flags = other.schema->flags;
  merged->flags |= flags & ARROW_FLAG_NULLABLE;
  merged->flags &= ~kPromisedFlags | flags;
  for (std::size_t i = 0; i < first.children.size(); ++i) {
    const Type& child = first.children[i];
    const Type& other_child = other.children[i];
    if (has_named_children(first) && std::strcmp(child.name(), other_child.name()) != 0) {
      raise_mismatch(at, "child ", i, " is named '", other_child.name(), "' and '", child.name(),
                     "'");
    }
    merge_types(child, other_child, at.child(child.name()), merged->children[i]);
  }
  if (first.dictionary != nullptr) {
    merge_types(*first.dictionary, *other.dictionary, at.child("dictionary"), merged->dictionary);
  }
}

bool have_same_flags(const ArrowSchema& a, const ArrowSchema& b) {
  if (a.flags != b.flags) return false;
  for (int64_t i = 0; i < a.n_children; ++i) {
    if (!have_same_flags(*a.children[i], *b.children[i])) return false;
  }
  return a.dictionary == nullptr || have_same_flags(*a.dictionary, *b.dictionary);
}

/// The schema of the result: that of the first array, widened to hold all others.
OwnedSchema merge_schemas(const std::vector<DeviceArray>& arrays) {
  const DeviceArray& first = arrays.front();
  OwnedSchema merged = copy_schema(*first.type().schema);
  for (std::size_t i = 1; i < arrays.size(); ++i) {
    if (arrays[i].device() != first.device()) {
      raise_value_error("cannot concatenate: array ", i, " is on ", to_string(arrays[i].device()),
                        " and array 0 on ", to_string(first.device()),
                        "; copy them to one device first");
    }
    merge_types(first.type(), arrays[i].type(), TypePath{i, ""}, merged.get());
  }
  return merged;
}

}  // namespace

DeviceArray concatenate(const std::vector<DeviceArray>& arrays) {
  if (arrays.empty()) raise_value_error("cannot concatenate no arrays: pass at least one");
  if (arrays.size() == 1) return arrays.front();
  OwnedSchema schema = merge_schemas(arrays);
  std::vector<RowRange> ranges;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    append_range(&ranges, i, Range{0, arrays[i].length()});
  }
  if (ranges.size() == 1) {
    const DeviceArray& only = arrays[ranges.front().source];
    if (have_same_flags(*schema.get(), *only.type().schema)) return only;
  }
  std::vector<DeviceArray> readable = arrays;
  Device home;
  if (make_readable(&readable, &home, "concatenate arrays")) {
    return concatenate_on_device(std::move(schema), readable);
  }
  return copy_array(DeviceArray::import(std::move(schema), gather(readable, ranges)), home);
}

ARROWDL_END_NAMESPACE
