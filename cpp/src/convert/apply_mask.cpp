// Makes rows of an array null by a mask.
#include <string>

#include "array/host_access.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/to_arrow.hpp"
#include "compute/pack_bits.hpp"
#include "compute/through_host.hpp"
#include "convert/copy_tensor.hpp"
#include "util/bit_util.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

Buffer pack_inverted(const TensorView& bools) {
  uint8_t* target;
  const int64_t count = bools.size();
  const Buffer inverted = Buffer::allocate(count, &target);
  for (int64_t i = 0; i < count; ++i) target[i] = bools.data[i] == 0 ? 1 : 0;
  return pack_bools(target, count);
}

void check_mask(const TensorView& mask, const DeviceArray& array) {
  if (mask.dtype->code != kDLBool) {
    raise_value_error("mask is of ", mask.dtype->name, ", expected bool");
  }
  if (mask.ndim != 1 || mask.shape[0] != array.length()) {
    std::string shape;
    for (int32_t i = 0; i < mask.ndim; ++i) shape += concat(i == 0 ? "" : ", ", mask.shape[i]);
    raise_value_error("mask has shape (", shape, mask.ndim == 1 ? ",)" : ")", ", expected (",
                      array.length(), ",): one bool per row");
  }
  if (mask.device != array.device()) {
    raise_value_error("mask is on ", to_string(mask.device), ", the tensor on ",
                      to_string(array.device()), ": move one of them");
  }
}

}  // namespace

DeviceArray apply_mask(const DeviceArray& array, OwnedTensor mask, bool valid, OwnedEvent event) {
  TensorView view = view_tensor(mask);
  check_mask(view, array);
  if (!goes_through_host(view.device) && is_read_by_kernels(view.device, "read a mask")) {
    const DeviceArray bytes = to_arrow(std::move(mask), {}, std::move(event));
    BitRule rule;
    rule.invert = valid ? 0 : 1;
    return null_unless(array, bytes, rule);
  }
  const bool through_host = goes_through_host(view.device);
  const Buffer bytes = copy_to_host(view, std::move(mask), std::move(event));
  const Buffer bits = valid ? pack_bools(view.data, view.size()) : pack_inverted(view);
  const int64_t nulls = array.length() - count_set_bits(bits.data(), 0, array.length());
  if (nulls == 0) return array;
  if (through_host) return with_nulls_of_host(array, bits, 0, nulls);
  return array.with_validity(bits, nulls).with_nulls_of(array);
}

ARROWDL_END_NAMESPACE
