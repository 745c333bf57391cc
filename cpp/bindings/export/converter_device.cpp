// Makes tensors of memory that the host cannot read.
#include <cmath>

#include "arrowdl/backends.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/to_dlpack.hpp"
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

/// The number that a policy has for nulls.
py::object find_substitute(const Nulls& nulls) {
  if (nulls.kind == Nulls::kNan) return py::float_(NAN);
  if (const auto* real = std::get_if<double>(&nulls.value)) return py::float_(*real);
  if (const auto* large = std::get_if<uint64_t>(&nulls.value)) return py::int_(*large);
  const auto* integer = std::get_if<int64_t>(&nulls.value);
  return py::int_(integer == nullptr ? 0 : *integer);
}
}  // namespace

/// With arrowdl's kernels, or, without kernels for the device, with the framework's operations.
py::object DeviceConverter::convert(const DeviceArray& array) const {
  if (find_kernels(array.device()) == nullptr) {
    const TensorParts parts = split_tensor(array, conversion_.options.nulls, conversion_.parents);
    if (conversion_.is_masked() || !parts.values || replaces_nulls(parts))
      return build_from_parts(array, parts);
  }
  const Dtype& dtype = *describe_tensor(array.type(), array.length()).dtype;
  const Copy copy = conversion_.options.access == Access::kInPlace ? Copy::kNever : Copy::kIfNeeded;
  const bool moves_rows = is_misaligned(array);
  if (moves_rows) conversion_.require_copy_allowed(array, kMisaligned);
  // The bytes of bools may have to be rewritten, which arrowdl's own copy does.
  const bool is_bool_copy =
      (conversion_.options.access == Access::kCopied || conversion_.options.is_new) &&
      dtype.code == kDLBool && find_kernels(array.device()) != nullptr;
  const bool copies = moves_rows || is_bool_copy;
  py::object values = make(
      array, dtype, [array, copies, nulls = conversion_.options.nulls, copy](const Order& order) {
        ToDlpackOptions options;
        options.nulls = nulls;
        options.order = order;
        options.copy = copies ? Copy::kAlways : copy;
        return to_dlpack(array, options);
      });
  // The framework copies into its own memory, also on devices on which arrowdl cannot copy.
  if (conversion_.options.access == Access::kCopied && !copies && !gives_memory() &&
      is_shared(split_tensor(array, conversion_.options.nulls, conversion_.parents))) {
    values = call_framework(conversion_.framework.copy, values);
  }
  if (!conversion_.is_masked()) return values;
  return py::make_tuple(std::move(values),
                        make(array, *find_dtype("bool"),
                             [array](const Order& order) { return to_mask(array, order); }));
}

/// Makes a tensor from the parts of `array` on the device, with the framework's operations.
py::object DeviceConverter::build_from_parts(const DeviceArray& array,
                                             const TensorParts& parts) const {
  if (!is_shared(parts))
    conversion_.require_copy_allowed(array, "its bits or nulls have to be replaced");
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
  if (is_shared(parts) && conversion_.options.access == Access::kCopied && !gives_memory()) {
    values = call_framework(conversion_.framework.copy, values);
  }
  if (!valid.is_none() && !conversion_.is_masked()) {
    values = call_framework(conversion_.framework.fill, values, valid,
                            find_substitute(conversion_.options.nulls));
  }
  if (conversion_.is_masked() && valid.is_none())
    valid = call_framework(conversion_.framework.all_valid, values);
  const auto arrange = [&](const py::object& flat) {
    return call_framework(conversion_.framework.arrange, flat, to_list(parts.shape),
                          to_list(parts.axes));
  };
  if (!conversion_.is_masked()) return arrange(values);
  return py::make_tuple(arrange(values), arrange(valid));
}

py::object DeviceConverter::unpack_bits(const BitParts& bits) const {
  return call_framework(conversion_.framework.unpack_bits_on_device,
                        share_view(bits.level, bits.bytes), py::int_(bits.offset),
                        py::int_(bits.length), py::int_(bits.repeat));
}

py::object DeviceConverter::share_view(const DeviceArray& array, const TensorView& view) const {
  const bool moves_rows = must_move(array, view);
  return make(array, *view.dtype, [array, view, moves_rows](const Order& order) {
    if (moves_rows) return copy_view_on_device(array, view, order);
    order_consumer(array, order);
    return make_tensor(view, array.storage(), DLPACK_FLAG_BITMASK_READ_ONLY);
  });
}

py::object DeviceConverter::make(const DeviceArray& array, const Dtype& dtype,
                                 ReadTensor read) const {
  return make_by(conversion_.framework.from_dlpack, array, dtype, std::move(read));
}

py::object DeviceConverter::make_offsets(const DeviceArray& array, const Dtype& dtype,
                                         ReadTensor read) const {
  return make_by(conversion_.framework.from_offsets, array, dtype, std::move(read));
}

/// The framework's current stream reads the tensor. Its exchange API names that stream; a framework
/// without one names it in its call of `__dlpack__`. A donated tensor must not be in memory of
/// arrowdl, which the framework would free or reuse: it copies the tensor into its own.
py::object DeviceConverter::make_by(PyObject* from_dlpack, const DeviceArray& array,
                                    const Dtype& dtype, ReadTensor read) const {
  const Device device = array.device();
  if (conversion_.framework.api != nullptr) {
    return to_object(*conversion_.framework.api, read_on(device, read, choose_order(device)));
  }
  const bool in_place = conversion_.options.access == Access::kInPlace;
  const py::object box = py::cast(Tensor(device, dtype, std::move(read), in_place));
  py::object made = checked(PyObject_CallOneArg(from_dlpack, box.ptr()));
  return gives_memory() ? call_framework(conversion_.framework.copy, made) : std::move(made);
}

/// Whether the tensors are in memory that the framework may free or reuse.
bool DeviceConverter::gives_memory() const {
  return conversion_.framework.donates && conversion_.options.is_copy;
}

/// Whether the framework can share the memory but not use it.
bool DeviceConverter::is_misaligned(const TensorView& view) const {
  return view.size() > 0 &&
         reinterpret_cast<uintptr_t>(view.data) % conversion_.framework.device_alignment != 0;
}

/// The same of the tensor that shares the memory of `array`.
bool DeviceConverter::is_misaligned(const DeviceArray& array) const {
  if (conversion_.framework.device_alignment <= 1) return false;
  const TensorParts parts = split_tensor(array, conversion_.options.nulls, conversion_.parents);
  return is_shared(parts) && is_misaligned(*parts.values);
}

bool DeviceConverter::must_move(const DeviceArray& array, const TensorView& view) const {
  if (!is_misaligned(view)) return false;
  conversion_.require_copy_allowed(array, kMisaligned);
  return true;
}

bool DeviceConverter::replaces_nulls(const TensorParts& parts) const {
  return conversion_.options.nulls != Nulls::kRaise && !parts.validity.empty();
}

/// Whether the tensor of `parts` shares the array's memory.
bool DeviceConverter::is_shared(const TensorParts& parts) const {
  return parts.values && (conversion_.is_masked() || !replaces_nulls(parts));
}

Order DeviceConverter::choose_order(const Device& device) const {
  if (find_stream_backend(device) == nullptr) return {};
  return {Order::kStream, current_stream(*conversion_.framework.api, device)};
}

}  // namespace arrowdl::python
