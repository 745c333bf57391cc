// Makes tensors of memory that the host can read.
#include "arrowdl/backend.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "export/converter.hpp"
#include "export/exchange_api.hpp"
#include "export/tensor.hpp"
#include "support/objects.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

OwnedTensor allow_writes(OwnedTensor tensor) {
  DLManagedTensorVersioned* managed = tensor.take_versioned();
  managed->flags &= ~uint64_t{DLPACK_FLAG_BITMASK_READ_ONLY};
  return OwnedTensor(managed);
}

/// Whether a tensor is of bools, numbers of 8 to 64 bits or complex numbers on the CPU.
bool is_plain(const DLTensor& tensor) {
  const DLDataType dtype = tensor.dtype;
  const bool is_number = dtype.code == kDLInt || dtype.code == kDLUInt || dtype.code == kDLFloat ||
                         dtype.code == kDLBool;
  return tensor.device.device_type == kDLCPU && dtype.lanes == 1 && dtype.bits >= 8 &&
         ((is_number && dtype.bits <= 64) || dtype.code == kDLComplex);
}

}  // namespace

/// Whether the tensors are copied from `from` to another device.
bool HostConverter::moves(const Device& from) const {
  return conversion_.options.device &&
         *conversion_.options.device != (is_host_readable(from) ? Device{} : from);
}

Copy HostConverter::choose_copy(const DeviceArray& array) const {
  switch (conversion_.options.access) {
    case Access::kInPlace:
      return Copy::kNever;
    case Access::kCopied:
      return moves(array.device()) ? Copy::kIfNeeded : Copy::kAlways;
    case Access::kOwn:
      // pyarrow's arrays of nothing but nulls share one buffer for all fields, bitmaps included.
      return conversion_.is_masked() && array.known_null_count() != 0 ? Copy::kAlways
                                                                      : Copy::kIfNeeded;
    case Access::kShared:
      break;
  }
  return Copy::kIfNeeded;
}

/// Exports host-readable memory as CPU memory: torch and jax take no other.
OwnedTensor HostConverter::export_elements(const DeviceArray& array,
                                           ToDlpackOptions options) const {
  options.as_cpu = array.device().type != kDLCPU;
  options.copy = choose_copy(array);
  OwnedTensor tensor = to_dlpack(array, options);
  const bool is_own = conversion_.options.access == Access::kOwn;
  return is_own ? allow_writes(std::move(tensor)) : std::move(tensor);
}

py::object HostConverter::convert(const DeviceArray& array) const {
  ToDlpackOptions options;
  options.nulls = conversion_.options.nulls;
  py::object values = make(export_elements(array, options));
  if (!conversion_.is_masked()) return values;
  return py::make_tuple(std::move(values), make(to_mask(array)));
}

py::object HostConverter::share_field(const DeviceArray& array, int64_t i) const {
  const ConvertOptions& options = conversion_.options;
  const bool may_share = options.access == Access::kShared || options.access == Access::kOwn;
  if (!may_share || conversion_.framework.api == nullptr || options.dtype != nullptr ||
      options.device || conversion_.is_masked() || !conversion_.parents.empty()) {
    return {};
  }
  OwnedTensor tensor = share_plain_field(array, i);
  if (!tensor) return {};
  if (options.access == Access::kOwn) tensor = allow_writes(std::move(tensor));
  return to_object(*conversion_.framework.api, std::move(tensor));
}

py::object HostConverter::make(OwnedTensor tensor) const {
  return make_by(conversion_.framework.from_dlpack, std::move(tensor));
}

py::object HostConverter::make_offsets(OwnedTensor tensor) const {
  return make_by(conversion_.framework.from_offsets, std::move(tensor));
}

py::object HostConverter::make_by(PyObject* from_dlpack, OwnedTensor tensor) const {
  const bool is_moved = moves(from_dl_device(tensor->device));
  if (is_moved && conversion_.options.access == Access::kInPlace) {
    raise_buffer_error("copy=False: the array is on another device than ",
                       to_string(*conversion_.options.device),
                       ": allow a copy with copy=None or copy=True");
  }
  if (conversion_.framework.api != nullptr) {
    if (is_moved)
      tensor = copy_by(*conversion_.framework.api, std::move(tensor), *conversion_.options.device);
    return to_object(*conversion_.framework.api, std::move(tensor));
  }
  if (from_dlpack == conversion_.framework.from_dlpack &&
      conversion_.framework.from_plain != Py_None && is_plain(*tensor)) {
    from_dlpack = conversion_.framework.from_plain;
  }
  if (conversion_.framework.alignment > 1) tensor = align_large(std::move(tensor));
  const bool in_place = conversion_.options.access == Access::kInPlace;
  const py::object box = py::cast(Tensor(std::move(tensor), in_place));
  py::object made = checked(PyObject_CallOneArg(from_dlpack, box.ptr()));
  if (!is_moved) return made;
  return call_framework(conversion_.framework.put, made,
                        py::str(device_type_name(conversion_.options.device->type)),
                        py::int_(conversion_.options.device->id));
}

/// Aligns large tensors. The framework would copy an unaligned tensor itself, several times slower;
/// small ones as fast.
OwnedTensor HostConverter::align_large(OwnedTensor tensor) const {
  TensorView view = view_tensor(tensor);
  if (view.nbytes() < kLargeSize || view.device.type != kDLCPU ||
      reinterpret_cast<uintptr_t>(view.data) % conversion_.framework.alignment == 0) {
    return tensor;
  }
  const py::gil_scoped_release release;
  uint8_t* target = nullptr;
  const Buffer copy = Buffer::allocate(view.nbytes(), &target);
  copy_contiguous(view, target);
  view.data = target;
  view.set_contiguous_strides();
  tensor = make_tensor(view, copy.owner(), DLPACK_FLAG_BITMASK_IS_COPIED);
  return tensor;
}

}  // namespace arrowdl::python
