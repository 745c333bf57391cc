// Checks the structs of an array against its type, without reading other buffers than the sizes of
// buffers.
#include <cstring>
#include <limits>

#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "device/device_pointer.hpp"
#include "schema/layout.hpp"
#include "schema/schema_path.hpp"
#include "util/overflow.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

template <typename... Parts>
[[noreturn]] void raise_array_error(const TypePath& path, const Parts&... parts) {
  raise_value_error("malformed Arrow array at ", to_string(path), " of type ",
                    to_string(*path.type), ": ", parts...);
}

int64_t multiply(const TypePath& path, int64_t a, int64_t b) {
  int64_t product;
  if (!checked_multiply(a, b, &product)) raise_array_error(path, "its size overflows");
  return product;
}

/// One past the last row that the node's buffers must hold.
int64_t checked_end(const TypePath& path, const ArrowArray& array) {
  if (array.length < 0) raise_array_error(path, "length ", array.length);
  if (array.offset < 0) raise_array_error(path, "offset ", array.offset);
  int64_t end;
  if (!checked_add(array.offset, array.length, &end)) {
    raise_array_error(path, "offset ", array.offset, " plus length ", array.length, " overflows");
  }
  return end;
}

void check_null_count(const TypePath& path, const ArrowArray& array) {
  if (array.null_count < -1 || array.null_count > array.length) {
    raise_array_error(path, "null_count ", array.null_count, " for length ", array.length);
  }
  if (path.type->has_validity() && array.null_count > 0 && array.buffers[0] == nullptr) {
    raise_array_error(path, "null_count ", array.null_count, " but no validity bitmap");
  }
}

/// What the nodes of an array may do together.
struct Limits {
  bool reads_sizes;
  int64_t bytes_left = std::numeric_limits<int64_t>::max();  ///< sums of sizes fit int64_t
};

/// Raises for `bytes` of buffer `i` that no memory can have.
void check_memory(const TypePath& path, const ArrowArray& array, int64_t i, int64_t bytes,
                  Limits* limits) {
  if (is_addressable(array.buffers[i], bytes) && bytes <= limits->bytes_left) {
    limits->bytes_left -= bytes;
    return;
  }
  raise_array_error(path, "buffer ", i, " has ", bytes, " bytes from address ", array.buffers[i],
                    " on, beyond the end of the address space");
}

/// Checks that buffer `i`, unless it is NULL, can have the bytes of `end` rows.
void check_buffer(const TypePath& path, const ArrowArray& array, int64_t i, int64_t end,
                  Limits* limits) {
  int64_t size = 0;
  if (!checked_buffer_size(*path.type, i, end, &size)) {
    raise_array_error(path, "its size overflows");
  }
  const bool may_be_null = buffer_row(*path.type, i).kind == BufferKind::kValidity;
  if (array.buffers[i] != nullptr) {
    check_memory(path, array, i, size, limits);
  } else if (size > 0 && !may_be_null) {
    raise_array_error(path, "buffer ", i, " is NULL with ", array.length, " rows");
  }
}

/// Checks the sizes of the data buffers of binary views, which the last buffer holds.
void check_data_sizes(const TypePath& path, const ArrowArray& array, Limits* limits) {
  const int64_t last = array.n_buffers - 1;
  const auto* sizes = static_cast<const uint8_t*>(array.buffers[last]);
  for (int64_t i = 2; i < last; ++i) {
    int64_t size = 0;
    if (sizes != nullptr) std::memcpy(&size, sizes + (i - 2) * 8, sizeof(size));
    if (size < 0) raise_array_error(path, "data buffer ", i - 2, " has the size ", size);
    if (size > 0 && array.buffers[i] == nullptr) {
      raise_array_error(path, "data buffer ", i - 2, " is NULL with ", size, " bytes");
    }
    check_memory(path, array, i, size, limits);
  }
}

void check_buffer_count(const TypePath& path, const ArrowArray& array) {
  const int64_t expected = path.type->buffer_count();
  // polars gives the null type a validity buffer, which is never read.
  const bool is_odd_null = path.type->layout == Layout::kNull && array.n_buffers == 1;
  // A view has an int32 for the index of its data buffer.
  constexpr int64_t kMost = int64_t{3} + std::numeric_limits<int32_t>::max();
  const bool fits =
      is_odd_null || (expected >= 0 ? array.n_buffers == expected
                                    : array.n_buffers >= 3 && array.n_buffers <= kMost);
  if (!fits) {
    raise_array_error(path, array.n_buffers, " buffers, expected ",
                      expected >= 0 ? concat(expected) : concat("3 or more, at most ", kMost));
  }
  if (array.n_buffers > 0 && array.buffers == nullptr) {
    raise_array_error(path, "its buffers are NULL");
  }
}

void check_buffers(const TypePath& path, const ArrowArray& array, int64_t end, Limits* limits) {
  check_buffer_count(path, array);
  check_null_count(path, array);
  const LayoutRow& row = layout_row(path.type->layout);
  if (limits->reads_sizes && row.is_variadic) check_data_sizes(path, array, limits);
  if (array.length == 0) return;  // a zero-length array may leave its buffers NULL
  for (int64_t i = 0; i < row.buffer_count; ++i) check_buffer(path, array, i, end, limits);
}

void check_child_lengths(const TypePath& path, const ArrowArray& array, int64_t end) {
  const Type& type = *path.type;
  const auto require = [&](int64_t i, int64_t rows) {
    if (array.children[i]->length < rows) {
      raise_array_error(path, "child ", i, " has ", array.children[i]->length, " rows, needs ",
                        rows);
    }
  };
  if (type.layout == Layout::kFixedSizeList) {
    require(0, multiply(path, end, type.list_size));
  } else if (type.layout == Layout::kStruct || type.layout == Layout::kSparseUnion) {
    for (int64_t i = 0; i < array.n_children; ++i) require(i, end);
  } else if (type.layout == Layout::kRunEndEncoded) {
    const std::string_view ends = type.children[0].schema->format;
    if (ends != "s" && ends != "i" && ends != "l") {
      raise_array_error(path, "run ends of type ", to_string(type.children[0]),
                        ", expected int16, int32 or int64");
    }
    require(1, array.children[0]->length);
    if (array.length > 0 && array.children[0]->length == 0) {
      raise_array_error(path, "no runs for ", array.length, " rows");
    }
  }
}

void validate_node(const TypePath& path, const ArrowArray& array, Limits* limits) {
  const Type& type = *path.type;
  if (array.release == nullptr) raise_array_error(path, "it has been released");
  const int64_t end = checked_end(path, array);
  check_buffers(path, array, end, limits);
  if (array.n_children != static_cast<int64_t>(type.children.size())) {
    raise_array_error(path, array.n_children, " children, the schema has ", type.children.size());
  }
  if (array.n_children > 0 && array.children == nullptr) {
    raise_array_error(path, "its children are NULL");
  }
  for (int64_t i = 0; i < array.n_children; ++i) {
    if (array.children[i] == nullptr) raise_array_error(path, "child ", i, " is NULL");
    validate_node(TypePath{&path, &type.children[static_cast<std::size_t>(i)]}, *array.children[i],
                  limits);
  }
  check_child_lengths(path, array, end);
  if ((array.dictionary != nullptr) != (type.dictionary != nullptr)) {
    raise_array_error(path, "only one of array and schema has a dictionary");
  }
  if (array.dictionary != nullptr) {
    validate_node(TypePath{&path, type.dictionary.get()}, *array.dictionary, limits);
  }
}

}  // namespace

void validate_array(const Type& type, const ArrowArray& array, bool reads_sizes) {
  Limits limits{reads_sizes};
  validate_node(TypePath{nullptr, &type}, array, &limits);
}

ARROWDL_END_NAMESPACE
