// Reads and writes the JSON metadata of tensor extension types.
#include <algorithm>

#include "arrowdl/error.hpp"
#include "arrowdl/schema.hpp"
#include "util/json.hpp"
#include "util/overflow.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

template <typename... Parts>
[[noreturn]] void raise_metadata_error(const Parts&... parts) {
  raise_value_error("malformed tensor metadata: ", parts...);
}

/// The items of the array `key`, read by `read`; none when it is absent, null or empty, which
/// writers use interchangeably.
template <typename Read>
auto read_array(const JsonValue& object, const char* key, Read read) {
  std::vector<decltype(read(object))> values;
  const JsonValue* array = object.find(key);
  if (array == nullptr || array->kind == JsonValue::Kind::kNull) return values;
  if (array->kind != JsonValue::Kind::kArray) {
    raise_metadata_error("\"", key, "\" is ", to_string(array->kind), ", not an array");
  }
  values.reserve(array->items.size());
  for (const JsonValue& item : array->items) {
    try {
      values.push_back(read(item));
    } catch (const Error& error) {
      raise_metadata_error("\"", key, "\"[", values.size(), "]: ", error.what());
    }
  }
  return values;
}

int64_t read_extent(const JsonValue& value) {
  const int64_t extent = value.as_int64();
  if (extent < 0) raise_value_error("expected an extent of 0 or more, not ", extent);
  return extent;
}

std::optional<int64_t> read_uniform_extent(const JsonValue& value) {
  if (value.kind == JsonValue::Kind::kNull) return std::nullopt;
  return read_extent(value);
}

std::string read_name(const JsonValue& value) {
  if (value.kind != JsonValue::Kind::kString) {
    raise_value_error("expected a string, not ", to_string(value.kind));
  }
  return value.text;
}

void check_product(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (const int64_t extent : shape) {
    if (!checked_multiply(product, std::max<int64_t>(extent, 1), &product)) {
      raise_metadata_error("the product of \"shape\" overflows int64");
    }
  }
}

void check_permutation(const std::vector<int64_t>& permutation) {
  std::vector<bool> seen(permutation.size());
  for (const int64_t physical : permutation) {
    const auto i = static_cast<std::size_t>(physical);
    if (physical < 0 || i >= seen.size() || seen[i]) {
      raise_metadata_error("\"permutation\" must hold each of 0 to ", seen.size() - 1,
                           " once: ", physical, " is out of range or repeated");
    }
    seen[i] = true;
  }
}

/// Checks the length of the array `key`. `*ndim` is -1 until the first array sets it.
void check_dimensions(const char* key, std::size_t length, int64_t* ndim) {
  if (length == 0) return;
  if (*ndim < 0) *ndim = static_cast<int64_t>(length);
  if (static_cast<int64_t>(length) != *ndim) {
    raise_metadata_error("\"", key, "\" has ", length, " items for a tensor of ", *ndim,
                         " dimensions");
  }
}

template <typename Range, typename Write>
void append_array(const char* key, const Range& values, Write write, std::string* out) {
  if (out->size() > 1) *out += ',';
  *out += concat('"', key, "\":[");
  const char* separator = "";
  for (const auto& value : values) {
    *out += concat(separator, write(value));
    separator = ",";
  }
  *out += ']';
}

}  // namespace

TensorMetadata parse_tensor_metadata(std::string_view json, Extension extension) {
  const JsonValue object = parse_json(json);
  if (object.kind != JsonValue::Kind::kObject) {
    raise_metadata_error("it is ", to_string(object.kind), ", not an object");
  }
  TensorMetadata metadata;
  int64_t ndim = -1;
  if (extension == Extension::kFixedShapeTensor) {
    const JsonValue* shape = object.find("shape");
    if (shape == nullptr || shape->kind == JsonValue::Kind::kNull) {
      raise_metadata_error("it has no \"shape\"");
    }
    metadata.shape = read_array(object, "shape", read_extent);
    check_product(metadata.shape);
    ndim = static_cast<int64_t>(metadata.shape.size());
  } else {
    metadata.uniform_shape = read_array(object, "uniform_shape", read_uniform_extent);
  }
  metadata.permutation =
      read_array(object, "permutation", [](const JsonValue& value) { return value.as_int64(); });
  metadata.dim_names = read_array(object, "dim_names", read_name);
  check_dimensions("uniform_shape", metadata.uniform_shape.size(), &ndim);
  check_dimensions("permutation", metadata.permutation.size(), &ndim);
  check_dimensions("dim_names", metadata.dim_names.size(), &ndim);
  check_permutation(metadata.permutation);
  return metadata;
}

std::vector<int64_t> parse_list_shape(std::string_view json) {
  try {
    const JsonValue whole = parse_json(json);
    const bool is_first = !whole.items.empty() && whole.items[0].kind == JsonValue::Kind::kArray;
    const JsonValue& extents = is_first ? whole.items[0] : whole;
    std::vector<int64_t> shape;
    if (extents.kind != JsonValue::Kind::kArray) return shape;
    for (const JsonValue& extent : extents.items) shape.push_back(read_extent(extent));
    check_product(shape);
    return shape;
  } catch (const Error&) {
    return {};
  }
}

std::string to_json(const TensorMetadata& metadata) {
  const auto as_it_is = [](int64_t value) { return value; };
  std::string out = "{";
  append_array("shape", metadata.shape, as_it_is, &out);
  if (!metadata.permutation.empty()) {
    append_array("permutation", metadata.permutation, as_it_is, &out);
  }
  if (!metadata.dim_names.empty()) append_array("dim_names", metadata.dim_names, quote_json, &out);
  return out + "}";
}

ARROWDL_END_NAMESPACE
