// Makes bool tensors of the validity of arrays.
#include <cstring>

#include "array/host_access.hpp"
#include "arrowdl/backends.hpp"
#include "arrowdl/decode_run_ends.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/order.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "convert/array_as_tensor.hpp"
#include "convert/copy_elements_on_device.hpp"
#include "convert/host_tensor.hpp"
#include "util/bit_util.hpp"
#include "util/explained_error.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// Raises unless each value has a validity of its own.
void require_unpacked(const Dtype& dtype) {
  if (dtype.values == 1) return;
  raise_nulls_error("nulls=\"fill\"", "nulls=\"mask\" has no mask for values of ", dtype.name,
                    ", of which ", int{dtype.values}, " share an element and its validity");
}

/// Whether the device makes the mask.
bool is_made_on_device(const DeviceArray& array) {
  return !is_host_readable(array.device()) && find_kernels(array.device()) != nullptr;
}

}  // namespace

OwnedTensor to_mask(const DeviceArray& array, const Order& order) {
  const ArrayAsTensor reading = view_as_tensor(array);
  require_unpacked(*reading.view.dtype);
  if (is_made_on_device(array)) return unpack_validity_on_device(reading, order);
  TensorView view = reading.view;
  view.dtype = find_dtype("bool");
  return make_host_tensor(view, [&](uint8_t* target) { unpack_validity(reading, target); });
}

OwnedTensor to_row_mask(const DeviceArray& array, const Order& order) {
  // Run ends have no bitmap: a row is null where the value of its run is.
  if (array.type().layout == Layout::kRunEndEncoded) {
    return to_row_mask(decode_run_ends(array), order);
  }
  TensorView view;
  view.dtype = find_dtype("bool");
  view.push_dim(array.length());
  view.set_contiguous_strides();
  if (array.type().layout != Layout::kNull && is_made_on_device(array)) {
    return unpack_row_validity_on_device(array, view, order);
  }
  return make_host_tensor(view, [&](uint8_t* target) {
    if (array.validity() != nullptr) {
      require_host_readable(array, "read the nulls of an array");
      unpack_bits(array.validity(), array.offset(), array.length(), target);
    } else {
      std::memset(target, array.type().layout == Layout::kNull ? 0 : 1,
                  static_cast<std::size_t>(array.length()));
    }
  });
}

ARROWDL_END_NAMESPACE
