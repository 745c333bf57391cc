// Exports a DeviceArray by the DLPack protocol.
#include <optional>

#include "arrowdl/copy.hpp"
#include "arrowdl/copy_policy.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "classes/device_array_methods.hpp"
#include "export/consumer.hpp"
#include "support/arguments.hpp"
#include "support/capsule.hpp"
#include "support/device_array_object.hpp"
#include "support/device_streams.hpp"
#include "support/errors.hpp"
#include "support/objects.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

/// There is one CPU, whatever its number: JAX counts as many as it is told to make.
constexpr int32_t kMaxCpus = 1 << 16;

/// The arguments of `__dlpack__`, as plain values.
struct DlpackRequest {
  PyObject* stream = nullptr;
  bool versioned = false;
  bool reads_padding = false;  ///< whether the consumer knows the flag of padded values
  std::optional<Device> device;
  Copy copy = Copy::kIfNeeded;
};

void read_max_version(PyObject* max_version, DlpackRequest* request) {
  if (PyTuple_Check(max_version) == 0 || PyTuple_GET_SIZE(max_version) != 2) {
    raise_type_error("max_version must be a tuple (major, minor), got ",
                     py::repr(max_version).cast<std::string>());
  }
  const int64_t major = read_int("max_version[0]", PyTuple_GET_ITEM(max_version, 0));
  const int64_t minor = read_int("max_version[1]", PyTuple_GET_ITEM(max_version, 1));
  request->versioned = major >= 1;
  request->reads_padding = major > 1 || (major == 1 && minor >= 1);
}

/// Raises BufferError for values that the consumer would take for packed ones: the flag is of
/// DLPack 1.1.
void check_padding(const OwnedTensor& tensor, const DlpackRequest& request) {
  if (request.reads_padding) return;
  if ((tensor.flags() & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) == 0) return;
  raise_buffer_error("values of ", view_tensor(tensor).dtype->name,
                     " have a byte each, which only DLPack 1.1 can say: pass max_version=(1, 1)");
}

Device read_dl_device(PyObject* dl_device) {
  if (PyTuple_Check(dl_device) == 0 || PyTuple_GET_SIZE(dl_device) != 2) {
    raise_type_error("dl_device must be a tuple (device_type, device_id), got ",
                     py::repr(dl_device).cast<std::string>());
  }
  PyObject* id = PyTuple_GET_ITEM(dl_device, 1);
  const int32_t type = read_int32("dl_device[0]", PyTuple_GET_ITEM(dl_device, 0));
  const int32_t number = id == Py_None ? 0 : read_int32("dl_device[1]", id);
  if (type < 1) {
    raise_buffer_error("dl_device=", py::repr(dl_device).cast<std::string>(), ": device type ",
                       type, " is unknown, DLPack counts from 1");
  }
  if (number < 0 || (type == kDLCPU && number >= kMaxCpus)) {
    raise_buffer_error("dl_device=", py::repr(dl_device).cast<std::string>(),
                       ": there is no such device, the CPU is (1, 0)");
  }
  return from_dl_device(DLDevice{static_cast<DLDeviceType>(type), number});
}

const Parameters<4> dlpack_parameters("__dlpack__", {"stream", "max_version", "dl_device", "copy"});

DlpackRequest read_dlpack_arguments(PyObject* const* args, Py_ssize_t n, PyObject* names) {
  const auto values = dlpack_parameters.read(args, n, names);
  const auto is_given = [&](std::size_t i) { return values[i] != nullptr && values[i] != Py_None; };
  DlpackRequest request;
  request.stream = values[0];
  if (is_given(1)) read_max_version(values[1], &request);
  if (is_given(2)) request.device = read_dl_device(values[2]);
  if (is_given(3)) request.copy = read_copy(values[3]);
  return request;
}

enum class Target { kOwn, kCpuLabel, kCpuCopy };

/// Which device the tensor is for: by DLPack `dl_device` is the array's own or the CPU. Host memory
/// becomes the CPU's without a copy.
Target find_target(const DeviceArray& array, const DlpackRequest& request) {
  if (!request.device || *request.device == array.device()) return Target::kOwn;
  if (find_device_type(request.device->type) == nullptr) {
    raise_buffer_error("dl_device asks for ", to_string(*request.device), ": device type ",
                       request.device->type, " is unknown, and the array is on ",
                       to_string(array.device()));
  }
  if (request.device->type != kDLCPU) {
    raise_buffer_error("the array is on ", to_string(array.device()), ", dl_device asks for ",
                       to_string(*request.device),
                       ": __dlpack__ copies to the CPU alone, use to() first");
  }
  if (is_host_readable(array.device())) return Target::kCpuLabel;
  if (request.copy != Copy::kNever) return Target::kCpuCopy;
  raise_buffer_error("the array is on ", to_string(array.device()),
                     ", which takes a copy to reach from the CPU: allow it with copy=None");
}

/// The tensor in new memory of the CPU, complete on return.
OwnedTensor copy_to_cpu(const DeviceArray& array) {
  DeviceArray copied;
  {
    const py::gil_scoped_release release;
    copied = copy_array(array, Device{});
  }
  auto shared = std::make_shared<OwnedTensor>(to_dlpack(copied));
  const TensorView view = view_tensor(*shared);
  return make_tensor(view, std::move(shared), DLPACK_FLAG_BITMASK_IS_COPIED);
}

/// `to_dlpack(array, options)`, copied if its consumer cannot use it at its address.
OwnedTensor export_for_consumer(const DeviceArray& array, ToDlpackOptions options) {
  OwnedTensor tensor = to_dlpack(array, options);
  if (!must_align_for(view_tensor(tensor), array.device(), options.order)) return tensor;
  if (options.copy == Copy::kNever) {
    raise_buffer_error(
        "copy=False: the rows begin at an address that JAX cannot use on a GPU, where it needs "
        "multiples of 16: allow a copy with copy=None");
  }
  options.copy = Copy::kAlways;
  return to_dlpack(array, options);
}

}  // namespace

PyObject* dlpack(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) noexcept {
  return guarded([&] {
    const DlpackRequest request = read_dlpack_arguments(args, n, names);
    // Reading a stream runs Python code, and waits and long copies let other threads run: the array
    // may be released meanwhile.
    const DeviceArray array = get_array(self);
    ToDlpackOptions options;
    options.copy = request.copy;
    const Target target = find_target(array, request);
    options.as_cpu = target == Target::kCpuLabel;
    options.order = read_order(array.device(), request.stream);
    if (target == Target::kCpuCopy) {
      OwnedTensor copy = copy_to_cpu(array);
      check_padding(copy, request);
      if (!request.versioned) copy = to_legacy(std::move(copy));
      return make_capsule(std::move(copy)).release().ptr();
    }
    if (options.order.is_borrowed) {
      OwnedTensor tensor =
          hold_for_consumer(export_for_consumer(array, options), array.device(), options.order);
      check_padding(tensor, request);
      if (!request.versioned) tensor = to_legacy(std::move(tensor));
      return make_capsule(std::move(tensor)).release().ptr();
    }
    OwnedTensor tensor =
        request.versioned ? to_dlpack(array, options) : to_legacy_dlpack(array, options);
    check_padding(tensor, request);
    return make_capsule(std::move(tensor)).release().ptr();
  });
}

PyObject* dlpack_device(PyObject* self, PyObject*) noexcept {
  return guarded([&] {
    const DLDevice device = to_dl_device(borrow_array(self).device());
    py::object pair = checked(PyTuple_New(2));
    PyTuple_SET_ITEM(pair.ptr(), 0, checked(PyLong_FromLong(device.device_type)).release().ptr());
    PyTuple_SET_ITEM(pair.ptr(), 1, checked(PyLong_FromLong(device.device_id)).release().ptr());
    return pair.release().ptr();
  });
}

}  // namespace arrowdl::python
