// Splits arrays into the memory that their tensors are made of.
#include "convert/split_tensor.hpp"

#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/tensor_view.hpp"
#include "convert/array_as_tensor.hpp"
#include "convert/fill_value.hpp"
#include "util/bit_util.hpp"
#include "util/explained_error.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

TensorView view_flat(const Dtype* dtype, int64_t size, const uint8_t* data, const Device& device) {
  TensorView view;
  view.dtype = dtype;
  view.device = device;
  view.data = data;
  view.push_dim(size);
  view.set_contiguous_strides();
  return view;
}

/// The bits of the rows of `level`, which have `size` elements together.
BitParts view_bits(const DeviceArray& level, const uint8_t* bits, int64_t size) {
  const int64_t offset = level.offset() % 8;
  const int64_t n_bytes = bitmap_size(offset + level.length());
  return {level, view_flat(find_dtype("uint8"), n_bytes, bits + level.offset() / 8, level.device()),
          offset, level.length(), size / level.length()};
}

void set_shape(const TensorView& view, TensorParts* parts) {
  const std::vector<int32_t> order = dense_row_order(view);
  parts->axes.resize(order.size());
  for (std::size_t physical = 0; physical < order.size(); ++physical) {
    parts->shape.push_back(view.shape[order[physical]]);
    parts->axes[static_cast<std::size_t>(order[physical])] = static_cast<int64_t>(physical);
  }
}

/// The nodes that may have nulls, the parents first. Raises BufferError for nulls that
/// `nulls` refuses.
std::vector<DeviceArray> find_nullable(const ArrayAsTensor& reading, const Nulls& nulls,
                                       const std::vector<DeviceArray>& parents) {
  bool replaces = replaces_nulls(reading, nulls);
  const bool reads_levels = replaces || nulls == Nulls::kKeep;  // else they have none
  std::vector<DeviceArray> nullable;
  for (const DeviceArray& parent : parents) {
    if (parent.known_null_count() == 0) continue;
    if (nulls == Nulls::kRaise && parent.has_nulls()) {
      raise_nulls_error("nulls=\"fill\", \"nan\" or \"mask\"",
                        "a struct that contains the array of ",
                        to_string(reading.levels.front().type()), " has nulls");
    }
    replaces = replaces || nulls != Nulls::kKeep;
    nullable.push_back(parent);
  }
  if (replaces) make_fill_value(*reading.view.dtype, nulls);  // raises
  for (const DeviceArray& level : reading.levels) {
    if (reads_levels && level.known_null_count() != 0) nullable.push_back(level);
  }
  return nullable;
}

}  // namespace

TensorParts split_tensor(const DeviceArray& array, const Nulls& nulls,
                         const std::vector<DeviceArray>& parents) {
  const ArrayAsTensor reading = view_as_tensor(array);
  const TensorView& view = reading.view;
  const std::vector<DeviceArray> nullable = find_nullable(reading, nulls, parents);
  TensorParts parts;
  set_shape(view, &parts);
  const int64_t size = view.size();
  if (reading.is_bits && size > 0) {
    parts.bits = view_bits(reading.leaf(), reading.leaf().buffer_as<uint8_t>(1), size);
  } else {
    parts.values = view_flat(view.dtype, size, view.data, array.device());
  }
  for (const DeviceArray& level : nullable) {
    if (size > 0) parts.validity.push_back(view_bits(level, level.validity(), size));
  }
  return parts;
}

ARROWDL_END_NAMESPACE
