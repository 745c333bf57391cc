// Converts Arrow arrays to tensors.
#include "arrowdl/to_dlpack.hpp"

#include <memory>

#include "array/host_access.hpp"
#include "arrowdl/backends.hpp"
#include "arrowdl/copy.hpp"
#include "arrowdl/copy_policy.hpp"
#include "arrowdl/decode_run_ends.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/order.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/to_arrow.hpp"
#include "cast/shape_lists.hpp"
#include "compute/plain_rows.hpp"
#include "convert/array_as_tensor.hpp"
#include "convert/copy_elements_on_device.hpp"
#include "util/bit_util.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// Whether the CPU may read the memory. Waits for it if so.
bool can_host_read(const DeviceArray& array) {
  if (!is_host_readable(array.device())) return false;
  array.synchronize();
  return true;
}

/// arrow.bool8 reads any byte other than 0 as true, DLPack consumers only 1: other bytes are
/// rewritten.
bool has_odd_bools(const ArrayAsTensor& reading) {
  const TensorView& view = reading.view;
  return view.dtype->code == kDLBool && !reading.is_bits && view.size() > 0 &&
         can_host_read(reading.levels.front()) && !has_only_canonical_bools(view.data, view.size());
}

void label_as_cpu(ArrayAsTensor& reading) {
  if (!is_host_readable(reading.view.device)) {
    raise_buffer_error("memory on ", to_string(reading.view.device),
                       " cannot be exported as CPU memory: copy it to the CPU first");
  }
  reading.view.device = Device{};
}

/// Why the array cannot be exported without a copy, or nullptr.
const char* why_copy(const ArrayAsTensor& reading, bool fills) {
  if (reading.is_bits) return "bit-packed booleans have to be unpacked";
  if (fills) return "its nulls have to be replaced";
  if (has_odd_bools(reading)) return "its booleans hold bytes other than 0 and 1";
  return nullptr;
}

/// A copy on the device itself, which the CPU has made of a copy on the host.
OwnedTensor copy_through_host(const DeviceArray& array, const Nulls& nulls, const Order& order) {
  ToDlpackOptions options;
  options.nulls = nulls;
  const DeviceArray made =
      copy_array(to_arrow(to_dlpack(copy_array(array, Device{}), options)), array.device());
  if (order.kind == Order::kNone) made.synchronize();  // the consumer knows another event
  order_consumer(made, order);
  return make_tensor(view_as_tensor(made).view, made.storage(), DLPACK_FLAG_BITMASK_IS_COPIED);
}

/// A copy on the device itself, for `reason`, or nullptr if the caller wants one.
OwnedTensor copy_on_device(const ArrayAsTensor& reading, const Nulls& nulls, const char* reason,
                           const Order& order) {
  const Device& device = reading.view.device;
  const bool unpacks = reason != nullptr && reading.view.size() > 0;
  if (unpacks && goes_through_host(device)) {
    return copy_through_host(reading.levels.front(), nulls, order);
  }
  if (is_host_readable(device) || (unpacks && find_kernels(device) == nullptr)) {
    raise_buffer_error("the array on ", to_string(device),
                       " would have to be copied to the CPU to become a tensor: allow that with "
                       "dl_device=(1, 0), or use to_torch() or to_jax(), which copy on the device");
  }
  return copy_elements_on_device(reading, nulls, order);
}

/// A tensor of the array's own memory, as a struct of the DLPack version that the pointer names.
OwnedTensor share_memory(const TensorView& view, const DeviceArray& array,
                         DLManagedTensorVersioned*) {
  return make_tensor(view, array.storage(), DLPACK_FLAG_BITMASK_READ_ONLY);
}
OwnedTensor share_memory(const TensorView& view, const DeviceArray& array, DLManagedTensor*) {
  return make_legacy_tensor(view, array.storage());
}

/// `copy` as a struct of that version.
OwnedTensor to_version(OwnedTensor copy, DLManagedTensorVersioned*) { return copy; }
OwnedTensor to_version(OwnedTensor copy, DLManagedTensor*) { return to_legacy(std::move(copy)); }

template <typename Managed>
OwnedTensor export_tensor(const DeviceArray& array, const ToDlpackOptions& options) {
  ArrayAsTensor reading = view_as_tensor(array);
  if (options.as_cpu) label_as_cpu(reading);
  const bool fills = replaces_nulls(reading, options.nulls);
  const char* reason = why_copy(reading, fills);
  if (reason != nullptr && options.copy == Copy::kNever) {
    raise_buffer_error("an array of ", to_string(array.type()),
                       " cannot become a tensor without a copy, since ", reason,
                       ": allow it with copy=None or copy=True");
  }
  if (reason == nullptr && options.copy != Copy::kAlways) {
    if (array.device().type != kDLCPU)
      order_consumer(array, options.as_cpu ? Order{} : options.order);
    return share_memory(reading.view, array, static_cast<Managed*>(nullptr));
  }
  const Nulls nulls = fills ? options.nulls : Nulls::kKeep;
  OwnedTensor copy = reading.view.device.type == kDLCPU
                         ? copy_elements(reading, nulls)
                         : copy_on_device(reading, nulls, reason, options.order);
  return to_version(std::move(copy), static_cast<Managed*>(nullptr));
}

/// Whether the elements are a CPU tensor as they are: the common case, found quickly.
bool is_plain(const DeviceArray& array) {
  return has_plain_rows(array.type()) && array.validity() == nullptr &&
         array.device().type == kDLCPU && array.length() > 0;
}

TensorView view_plain(const DeviceArray& array) {
  return view_vector(*array.type().dtype, array.length(),
                     array.buffer_as<uint8_t>(1) + array.offset() * array.type().byte_width);
}

template <typename Managed>
OwnedTensor decode_and_export(const DeviceArray& array, const ToDlpackOptions& options) {
  if (options.copy != Copy::kAlways && is_plain(array)) {
    return share_memory(view_plain(array), array, static_cast<Managed*>(nullptr));
  }
  if (has_plain_rows(array.type())) return export_tensor<Managed>(array, options);
  const bool is_run = array.type().layout == Layout::kRunEndEncoded;
  if ((is_run || has_inner_runs(array.type())) && options.copy == Copy::kNever) {
    raise_buffer_error("an array of ", to_string(array.type()),
                       " cannot become a tensor without "
                       "a copy, since its runs have to be decoded: allow it with copy=None");
  }
  const DeviceArray rows =
      plain_rows(is_run ? decode_run_ends(array) : shape_lists(array, options.copy));
  return export_tensor<Managed>(rows, options);
}

}  // namespace

OwnedTensor share_plain_field(const DeviceArray& array, int64_t i) {
  const uint8_t* data = array.find_plain_field(i);
  if (data == nullptr) return OwnedTensor();
  const Type& type = array.type().children[static_cast<std::size_t>(i)];
  return make_tensor(view_vector(*type.dtype, array.length(), data), array.storage(),
                     DLPACK_FLAG_BITMASK_READ_ONLY);
}

OwnedTensor to_dlpack(const DeviceArray& array, const ToDlpackOptions& options) {
  return decode_and_export<DLManagedTensorVersioned>(array, options);
}

OwnedTensor to_legacy_dlpack(const DeviceArray& array, const ToDlpackOptions& options) {
  return decode_and_export<DLManagedTensor>(array, options);
}

ARROWDL_END_NAMESPACE
