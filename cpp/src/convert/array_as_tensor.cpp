// Views Arrow arrays as tensors.
#include "convert/array_as_tensor.hpp"

#include "array/null_rows.hpp"
#include "array/row_access.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "device/device_pointer.hpp"
#include "schema/extensions.hpp"
#include "util/explained_error.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The dimensions that one level of nesting adds, outermost first.
struct Dims {
  int32_t begin;
  int32_t end;
  const std::vector<int64_t>* permutation;  ///< nullptr: C order
};

bool is_leaf(const Type& type) {
  return type.dtype != nullptr || type.layout == Layout::kBoolean || type.is_fixed_size_binary;
}

const Dtype* leaf_dtype(const Type& type) {
  if (type.dtype != nullptr) return type.dtype;
  return find_dtype(type.layout == Layout::kBoolean ? "bool" : "uint8");
}

Dims push_level(const Type& type, TensorView& view) {
  Dims dims{view.ndim, 0, nullptr};
  if (type.extension == Extension::kFixedShapeTensor) {
    const TensorMetadata& tensor = *type.tensor;
    if (!tensor.permutation.empty()) dims.permutation = &tensor.permutation;
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      const auto from =
          dims.permutation == nullptr ? i : static_cast<std::size_t>((*dims.permutation)[i]);
      view.push_dim(tensor.shape[from]);
    }
  } else {
    view.push_dim(type.is_fixed_size_binary ? type.byte_width : type.list_size);
  }
  dims.end = view.ndim;
  return dims;
}

/// Sets the strides of the dimensions of one level, whose elements have `inner` elements each.
/// Returns the elements of the whole level.
int64_t set_strides(const Dims& dims, int64_t inner, TensorView& view) {
  const int32_t n = dims.end - dims.begin;
  if (dims.permutation == nullptr) {
    for (int32_t i = dims.end - 1; i >= dims.begin; --i) {
      view.strides[i] = inner;
      inner *= view.shape[i];
    }
    return inner;
  }
  int32_t logical[kMaxDims];  // the inverse: the logical dimension at each physical position
  for (int32_t i = 0; i < n; ++i) {
    logical[(*dims.permutation)[static_cast<std::size_t>(i)]] = dims.begin + i;
  }
  for (int32_t physical = n - 1; physical >= 0; --physical) {
    view.strides[logical[physical]] = inner;
    inner *= view.shape[logical[physical]];
  }
  return inner;
}

const Type& find_leaf(const Type& type) {
  const Type* node = &type;
  while (!is_leaf(*node)) node = &node->children[0];
  return *node;
}

Hint find_cast_hint(const Type& type) {
  if (type.schema->format[0] != 'd') {
    return {"", "", "cast it to an integer or floating point type"};
  }
  return {"dtype", "use to_torch(), to_jax() or to_numpy() with ",
          "dtype=\"float64\", which rounds, or \"int64\""};
}

std::string why_no_dtype(const Type& type) { return to_string(type) + " has no DLPack type"; }

/// Fills `view` except for its data. Returns the node that holds the elements.
const Type& describe(const Type& type, int64_t length, TensorView& view) {
  if (type.dtype != nullptr && type.extension != Extension::kRefused) {  // the common case
    view.dtype = type.dtype;
    view.ndim = 1;
    view.shape[0] = length;
    view.strides[0] = 1;
    return type;
  }
  if (const std::string reason = why_not_tensor(type); !reason.empty()) {
    if (type.extension == Extension::kRefused || type.layout != Layout::kFixedWidth) {
      raise_buffer_error(reason);
    }
    throw ExplainedError(ErrorKind::kBuffer, why_no_dtype(type), find_cast_hint(type));
  }
  const Type& leaf = find_leaf(type);
  view.dtype = leaf_dtype(leaf);
  view.ndim = 0;
  view.push_dim(length);
  Dims levels[kMaxDims + 1];
  int32_t n_levels = 0;
  for (const Type* node = &type; node != &leaf; node = &node->children[0]) {
    levels[n_levels++] = push_level(*node, view);
  }
  if (leaf.is_fixed_size_binary) levels[n_levels++] = push_level(leaf, view);
  if (!view.is_countable()) {
    raise_buffer_error(to_string(type), " has more elements in a row than int64 can count");
  }
  int64_t inner = 1;
  while (n_levels > 0) inner = set_strides(levels[--n_levels], inner, view);
  view.strides[0] = inner;
  return leaf;
}

/// The first element of the window of a node whose buffer 1 holds the elements.
const uint8_t* first_of_buffer(const DeviceArray& node) {
  return offset_pointer(node.device(), node.buffer(1), node.offset() * node.type().byte_width);
}

/// Whether a valid complex number has a null part. Parquet and polars write null parts for a null
/// number, which are never read.
bool has_null_parts(const DeviceArray& numbers, const DeviceArray& parts) {
  if (!parts.has_nulls()) return false;
  if (!is_host_readable(parts.device())) return true;
  const RowValidity is_number(numbers);
  const RowValidity is_part(parts);
  for (int64_t i = 0; i < parts.length(); ++i) {
    if (!is_part[i] && is_number[i / 2]) return true;
  }
  return false;
}

const uint8_t* first_element(const DeviceArray& leaf) {
  if (leaf.type().layout != Layout::kFixedSizeList) return first_of_buffer(leaf);
  const DeviceArray parts = leaf.child(0);  // of complex numbers
  if (has_null_parts(leaf, parts)) {
    raise_buffer_error("a null inside a complex number of ", to_string(leaf.type()),
                       ": null whole numbers instead of their parts");
  }
  return first_of_buffer(parts);
}

std::string why_refused(const Type& type) {
  const auto name = find_metadata(*type.schema, kExtensionNameKey);
  const ExtensionRow* row = name ? find_extension(*name) : nullptr;
  return concat(to_string(type), " has no tensor reading: ", row == nullptr ? "" : row->note);
}

std::string why_not_leaf(const Type& type) {
  const std::string name = to_string(type);
  switch (type.layout) {
    case Layout::kNull:
      return name + " has no values: cast it to a type that has";
    case Layout::kFixedWidth: {
      const Hint hint = find_cast_hint(type);
      return concat(why_no_dtype(type), ": ", hint.verb, hint.text);
    }
    case Layout::kBinary:
    case Layout::kLargeBinary:
    case Layout::kBinaryView:
      return name +
             " is not one tensor: to_torch() gives its bytes as a jagged tensor, to_numpy() "
             "and to_jax() as (values, offsets); dictionary-encode it for codes";
    case Layout::kList:
    case Layout::kLargeList:
    case Layout::kListView:
    case Layout::kLargeListView:
      return name +
             " is not one tensor: to_torch() gives a jagged tensor, to_numpy() and "
             "to_jax() (values, offsets), and ragged=\"padded\" a padded one with lengths";
    case Layout::kStruct:
      return type.extension == Extension::kVariableShapeTensor
                 ? name + " is not one tensor: to_torch() gives a nested one"
                 : name +
                       " is not one tensor: take a field, or use to_torch(), to_jax() or "
                       "to_numpy() for a dict of tensors (stack=True for one matrix)";
    case Layout::kSparseUnion:
    case Layout::kDenseUnion:
      return name + " has no tensor reading: cast it to the type of one of its members";
    case Layout::kRunEndEncoded:
      return name + " inside another type has no tensor reading: decode it first";
    default:
      return name + " has no tensor reading";
  }
}

std::string why_not_inside(const Type& type, const Type& node) {
  const bool is_fixed_width = node.layout == Layout::kNull || node.layout == Layout::kFixedWidth;
  return concat(to_string(type), " has no tensor reading, since its elements of ", to_string(node),
                is_fixed_width ? " have none: cast them" : " have none: read its `values` instead");
}

}  // namespace

std::string why_not_tensor(const Type& type) {
  const Type* node = &type;
  int32_t dims = 1;
  while (!is_leaf(*node) && node->extension != Extension::kRefused &&
         node->layout == Layout::kFixedSizeList) {
    dims += node->tensor == nullptr ? 1 : static_cast<int32_t>(node->tensor->shape.size());
    node = &node->children[0];
  }
  if (node->extension == Extension::kRefused) return why_refused(*node);
  if (!is_leaf(*node)) return node == &type ? why_not_leaf(*node) : why_not_inside(type, *node);
  if (node->is_fixed_size_binary) ++dims;
  if (dims > kMaxDims) return concat(to_string(type), " has more than ", kMaxDims, " dimensions");
  return {};
}

TensorView describe_tensor(const Type& type, int64_t length) {
  TensorView view;
  describe(type, length, view);
  return view;
}

ArrayAsTensor view_as_tensor(const DeviceArray& array) {
  ArrayAsTensor reading(array);
  const Type& leaf = describe(array.type(), array.length(), reading.view);
  while (&reading.leaf().type() != &leaf) reading.levels.push_back(reading.leaf().child(0));
  check_dictionary(reading.leaf());
  reading.is_bits = leaf.layout == Layout::kBoolean;
  reading.view.device = array.device();
  if (!reading.is_bits && reading.view.size() > 0) {
    reading.view.data = first_element(reading.leaf());
  }
  return reading;
}

bool may_have_nulls(const ArrayAsTensor& reading) {
  if (is_host_readable(reading.levels.front().device())) return has_nulls(reading);
  for (const DeviceArray& level : reading.levels) {
    if (level.known_null_count() != 0) return true;
  }
  return false;
}

bool has_nulls(const ArrayAsTensor& reading) {
  for (const DeviceArray& level : reading.levels) {
    if (level.has_nulls()) return true;
  }
  return false;
}

bool replaces_nulls(const ArrayAsTensor& reading, const Nulls& nulls) {
  if (nulls == Nulls::kKeep || !may_have_nulls(reading)) return false;
  const Type& type = reading.levels.front().type();
  if (nulls == Nulls::kRaise) {
    if (!has_nulls(reading)) return false;
    throw ExplainedError(
        ErrorKind::kBuffer,
        concat("the array of ", to_string(type), " has nulls, and a tensor has no place for them"),
        {"nulls", "use to_torch(), to_jax() or to_numpy() with ",
         "nulls=\"fill\", \"nan\" or \"mask\", or drop them first"});
  }
  if (nulls == Nulls::kNan && !reading.view.dtype->is_floating()) {
    if (!has_nulls(reading)) return false;
    raise_nulls_error("nulls=\"fill\" or \"mask\", or cast it first",
                      "nulls=\"nan\" needs a floating point type, this is ", to_string(type));
  }
  return true;
}

ARROWDL_END_NAMESPACE
