// Converts arrays that the host cannot read.
#include <cmath>

#include "arrowdl/backends.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/make_tensor.hpp"
#include "convert/copy_elements_on_device.hpp"
#include "export/converter.hpp"
#include "export/exchange_api.hpp"
#include "support/device_streams.hpp"
#include "support/exchange_api.hpp"
#include "support/objects.hpp"

namespace arrowdl::python {

namespace py = pybind11;

namespace {
constexpr const char* kMisaligned =
    "its rows do not begin at an address that the framework can use on a device";
}  // namespace

/// Converts an array that the host cannot read: with arrowdl's kernels, or, without kernels for the
/// device, with the framework's operations.
py::object Converter::convert_on_device(const DeviceArray& array) const {
  if (find_kernels(array.device()) == nullptr) {
    const TensorParts parts = split_tensor(array, value_nulls(), parents_);
    if (is_masked() || !parts.values || replaces_nulls(parts))
      return build_from_parts(array, parts);
  }
  const Dtype& dtype = *describe_tensor(array.type(), array.length()).dtype;
  const Copy copy = options_.access == Access::kInPlace ? Copy::kNever : Copy::kIfNeeded;
  const bool moves_rows = is_misaligned(array);
  if (moves_rows) require_copy_allowed(array, kMisaligned);
  // The bytes of bools may have to be rewritten, which arrowdl's own copy does.
  const bool is_bool_copy = (options_.access == Access::kCopied || options_.is_new) &&
                            dtype.code == kDLBool && find_kernels(array.device()) != nullptr;
  const bool copies = moves_rows || is_bool_copy;
  py::object values = make_on_device(
      array, dtype, [array, copies, nulls = value_nulls(), copy](const Order& order) {
        ToDlpackOptions options;
        options.nulls = nulls;
        options.order = order;
        options.copy = copies ? Copy::kAlways : copy;
        return to_dlpack(array, options);
      });
  // The framework copies into its own memory, also on devices on which arrowdl cannot copy.
  if (options_.access == Access::kCopied && !copies && !gives_memory() &&
      is_shared(split_tensor(array, value_nulls(), parents_))) {
    values = call_framework(framework_.copy, values);
  }
  if (!is_masked()) return values;
  return py::make_tuple(std::move(values),
                        make_on_device(array, *find_dtype("bool"), [array](const Order& order) {
                          return to_mask(array, order);
                        }));
}

/// Makes a tensor from the parts of `array` on the device, with the framework's operations.
py::object Converter::build_from_parts(const DeviceArray& array, const TensorParts& parts) const {
  if (!is_shared(parts)) require_copy_allowed(array, "its bits or nulls have to be replaced");
  if (parts.values && parts.values->dtype->values != 1) {
    raise_buffer_error("the nulls of packed values of ", parts.values->dtype->name, " on ",
                       to_string(array.device()),
                       " need kernels, which that device has not: copy the array to the CPU first");
  }
  py::object valid = py::none();
  for (const BitParts& bits : parts.validity) {
    const py::object level = unpack_bits(bits);
    valid = valid.is_none() ? level : valid & level;
  }
  py::object values = parts.values ? share_view(array, *parts.values) : unpack_bits(*parts.bits);
  if (is_shared(parts) && options_.access == Access::kCopied && !gives_memory()) {
    values = call_framework(framework_.copy, values);
  }
  if (!valid.is_none() && !is_masked()) {
    const py::object item =
        options_.nulls == NullPolicy::kNan ? py::object(py::float_(NAN)) : py::object(py::int_(0));
    values = call_framework(framework_.fill, values, valid, item);
  }
  if (is_masked() && valid.is_none()) valid = call_framework(framework_.all_valid, values);
  const auto arrange = [&](const py::object& flat) {
    return call_framework(framework_.arrange, flat, to_list(parts.shape), to_list(parts.axes));
  };
  if (!is_masked()) return arrange(values);
  return py::make_tuple(arrange(values), arrange(valid));
}

py::object Converter::unpack_bits(const BitParts& bits) const {
  return call_framework(framework_.unpack_bits_on_device, share_view(bits.level, bits.bytes),
                        py::int_(bits.offset), py::int_(bits.length), py::int_(bits.repeat));
}

/// Exports `view`, a part of `array`.
py::object Converter::share_view(const DeviceArray& array, const TensorView& view) const {
  const bool moves_rows = must_move(array, view);
  return make_on_device(array, *view.dtype, [array, view, moves_rows](const Order& order) {
    if (moves_rows) return copy_view_on_device(array, view, order);
    order_consumer(array, order);
    return make_tensor(view, array.storage(), DLPACK_FLAG_BITMASK_READ_ONLY);
  });
}

py::object Converter::make_on_device(const DeviceArray& array, const Dtype& dtype,
                                     ReadTensor read) const {
  return make_on_device(framework_.from_dlpack, array, dtype, std::move(read));
}

/// The framework's current stream reads the tensor. Its exchange API names that stream; a framework
/// without one names it in its call of `__dlpack__`. A donated tensor must not be in memory of
/// arrowdl, which the framework would free or reuse: it copies the tensor into its own.
py::object Converter::make_on_device(PyObject* from_dlpack, const DeviceArray& array,
                                     const Dtype& dtype, ReadTensor read) const {
  const Device device = array.device();
  if (framework_.api != nullptr) {
    return to_object(*framework_.api, read_on(device, read, choose_order(device)));
  }
  const bool in_place = options_.access == Access::kInPlace;
  const py::object box = py::cast(Tensor(device, dtype, std::move(read), in_place));
  py::object made = checked(PyObject_CallOneArg(from_dlpack, box.ptr()));
  return gives_memory() ? call_framework(framework_.copy, made) : std::move(made);
}

/// The tensor that `read` makes of `array`, in memory of the host or of the device.
py::object Converter::make_of(const DeviceArray& array, const Dtype& dtype, ReadTensor read) const {
  if (is_host_readable(array.device())) return make(read(Order{}));
  return make_on_device(array, dtype, std::move(read));
}

/// Whether the framework can share the memory but not use it.
bool Converter::is_misaligned(const TensorView& view) const {
  return view.size() > 0 &&
         reinterpret_cast<uintptr_t>(view.data) % framework_.device_alignment != 0;
}

/// The same of the tensor that shares the memory of `array`.
bool Converter::is_misaligned(const DeviceArray& array) const {
  if (framework_.device_alignment <= 1) return false;
  const TensorParts parts = split_tensor(array, value_nulls(), parents_);
  return is_shared(parts) && is_misaligned(*parts.values);
}

/// Whether `view`, a part of `array`, has to be copied to be used. Raises if copies are refused.
bool Converter::must_move(const DeviceArray& array, const TensorView& view) const {
  if (!is_misaligned(view)) return false;
  require_copy_allowed(array, kMisaligned);
  return true;
}

bool Converter::replaces_nulls(const TensorParts& parts) const {
  return options_.nulls != NullPolicy::kRaise && !parts.validity.empty();
}

/// Whether the tensor of `parts` shares the array's memory.
bool Converter::is_shared(const TensorParts& parts) const {
  return parts.values && (is_masked() || !replaces_nulls(parts));
}

Order Converter::choose_order(const Device& device) const {
  if (find_stream_backend(device) == nullptr) return {};
  return {Order::kStream, current_stream(*framework_.api, device)};
}

}  // namespace arrowdl::python
