// Checks and wraps the memory that an array interface describes.
#include "support/array_interface.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "arrowdl/backend.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/event.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/tensor_view.hpp"
#include "import/foreign_tensors.hpp"
#include "support/device_streams.hpp"
#include "support/gil.hpp"
#include "support/names.hpp"
#include "support/objects.hpp"
#include "support/python_hooks.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

py::object find_cuda_interface(PyObject* object) {
  return find_attribute(object, names::cuda_array_interface);
}

py::object find_sycl_interface(PyObject* object) {
  return find_attribute(object, names::sycl_usm_array_interface);
}

// ---------------------------------------------------------------- reading a dictionary

/// The dictionary in which a producer describes its memory.
class Interface {
 public:
  Interface(const char* name, PyObject* owner, py::object entries)
      : name_(name), owner_(owner), entries_(std::move(entries)) {
    if (PyDict_Check(entries_.ptr()) == 0) {
      raise_malformed("it is a ", Py_TYPE(entries_.ptr())->tp_name, ", expected a dict");
    }
  }

  const py::object& entries() const { return entries_; }

  template <typename... Parts>
  [[noreturn]] void raise_malformed(const Parts&... parts) const {
    raise_value_error("malformed ", name_, " of ", Py_TYPE(owner_)->tp_name, ": ", parts...);
  }
  template <typename... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    raise_buffer_error("the ", name_, " of ", Py_TYPE(owner_)->tp_name, " ", parts...);
  }

  /// The entry `key`; empty if it is missing or None.
  py::object find(const char* key) const {
    py::object entry = checked(PyObject_CallMethod(entries_.ptr(), "get", "s", key));
    return entry.is_none() ? py::object() : entry;
  }
  py::object require(const char* key) const {
    if (py::object entry = find(key)) return entry;
    raise_malformed("it has no '", key, "'");
  }

  int64_t read_integer(const char* key, const py::handle& value) const {
    const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
    int overflow = 0;
    const int64_t result = number ? PyLong_AsLongLongAndOverflow(number.ptr(), &overflow) : 0;
    if (number && overflow == 0) return result;
    PyErr_Clear();
    raise_malformed("'", key, "' has ", py::repr(value).cast<std::string>(),
                    number ? " in it, which does not fit int64" : " in it, expected an integer");
  }
  std::vector<int64_t> read_integers(const char* key, const py::object& value) const {
    if (PyTuple_Check(value.ptr()) == 0 && PyList_Check(value.ptr()) == 0) {
      raise_malformed("'", key, "' is ", py::repr(value).cast<std::string>(),
                      ", expected a tuple of integers");
    }
    const py::tuple items(value);
    std::vector<int64_t> integers;
    for (const py::handle item : items) integers.push_back(read_integer(key, item));
    return integers;
  }

 private:
  const char* name_;
  PyObject* owner_;
  py::object entries_;
};

const Dtype& read_dtype(const Interface& interface) {
  const py::object given = interface.require("typestr");
  if (PyUnicode_Check(given.ptr()) == 0) {
    interface.raise_malformed("'typestr' is ", py::repr(given).cast<std::string>(),
                              ", expected a str");
  }
  const auto text = given.cast<std::string>();
  if (const Dtype* dtype = find_dtype_of_typestr(text)) return *dtype;
  interface.refuse("has elements of '", text, "': ", kSupportedTypes, "; cast it first");
}

/// The strides in elements; empty for C order.
std::vector<int64_t> read_strides(const Interface& interface, StrideUnit unit, const Dtype& dtype,
                                  std::size_t ndim) {
  const py::object given = interface.find("strides");
  if (!given) return {};
  std::vector<int64_t> strides = interface.read_integers("strides", given);
  if (strides.size() != ndim) {
    interface.raise_malformed("'strides' has ", strides.size(), " entries, 'shape' ", ndim);
  }
  if (unit == StrideUnit::kElements) return strides;
  for (int64_t& stride : strides) {
    if (stride % dtype.itemsize() != 0) {
      interface.refuse("has a stride of ", stride, " bytes between elements of ", dtype.itemsize(),
                       ": copy it first");
    }
    stride /= dtype.itemsize();
  }
  return strides;
}

struct Address {
  void* memory = nullptr;
  bool is_read_only = false;
};

Address read_address(const Interface& interface) {
  const py::object data = interface.require("data");
  if (PyTuple_Check(data.ptr()) == 0 || PyTuple_GET_SIZE(data.ptr()) != 2) {
    interface.raise_malformed("'data' is ", py::repr(data).cast<std::string>(),
                              ", expected (address, read_only)");
  }
  const int64_t address = interface.read_integer("data", PyTuple_GET_ITEM(data.ptr(), 0));
  const int read_only = PyObject_IsTrue(PyTuple_GET_ITEM(data.ptr(), 1));
  if (read_only < 0) throw py::error_already_set();
  return {reinterpret_cast<void*>(static_cast<uintptr_t>(address)), read_only != 0};
}

/// The distance from the address to the first element, in bytes (dpctl's "offset").
uint64_t read_offset(const Interface& interface, const Dtype& dtype) {
  const py::object given = interface.find("offset");
  const int64_t offset = given ? interface.read_integer("offset", given) : 0;
  if (offset < 0 || offset > INT64_MAX / dtype.itemsize()) {
    interface.raise_malformed("'offset' is ", offset, " elements of ", dtype.itemsize(), " bytes");
  }
  return static_cast<uint64_t>(offset * dtype.itemsize());
}

/// The entries that both protocols have. The view's device is not known yet.
struct Description {
  TensorView view;
  uint64_t flags;
};

Description read_description(const Interface& interface, StrideUnit unit) {
  const Dtype& dtype = read_dtype(interface);
  std::vector<int64_t> shape = interface.read_integers("shape", interface.require("shape"));
  std::vector<int64_t> strides = read_strides(interface, unit, dtype, shape.size());
  const Address address = read_address(interface);
  DLTensor tensor{};
  tensor.data = address.memory;
  tensor.device = DLDevice{kDLCPU, 0};
  tensor.ndim = static_cast<int32_t>(shape.size());
  tensor.dtype = dtype.dl();
  tensor.shape = shape.data();
  tensor.strides = strides.empty() ? nullptr : strides.data();
  tensor.byte_offset = unit == StrideUnit::kElements ? read_offset(interface, dtype) : 0;
  return {view_tensor(tensor), address.is_read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0};
}

void check_version(const Interface& interface, int64_t lowest, int64_t highest, int64_t given) {
  if (given >= lowest && given <= highest) return;
  interface.refuse("has version ", given, ", supported are ", lowest, " to ", highest);
}

/// The tensor of `description`. Keeps the object and the dictionary, which may own memory that the
/// object does not, such as a contiguous copy.
OwnedTensor hold(PyObject* object, const Interface& interface, const Description& description) {
  const py::object both = checked(PyTuple_Pack(2, object, interface.entries().ptr()));
  return make_tensor(description.view, share_object(both.ptr()), description.flags);
}

// ---------------------------------------------------------------- CUDA's interface

/// The runtime of the memory that a `__cuda_array_interface__` describes: CUDA, or ROCm, for which
/// some libraries use it too.
struct CudaLike {
  int32_t type;
  Backend* backend;
};

CudaLike find_cuda_like(const Interface& interface) {
  std::optional<CudaLike> found;
  std::string why;
  for (const int32_t type : {kDLCUDA, kDLROCM}) {
    std::string why_not;
    Backend* backend = has_runtime(type) ? find_backend(type, &why_not) : nullptr;
    if (backend != nullptr && found) {
      interface.refuse(
          "does not name the runtime of its memory, and both CUDA and ROCm are loaded: use the "
          "object's __dlpack__, or its library's own from_dlpack first");
    }
    if (backend != nullptr) found = CudaLike{type, backend};
    if (!why_not.empty()) why += concat("; ", why_not);
  }
  if (found) return *found;
  interface.refuse(
      "does not name the device of its memory, and neither CUDA nor ROCm, which know it, can be "
      "used in this process: import the library that made it, or see arrowdl.doctor()",
      why);
}

/// Whether None as the stream of `object` means its default stream, on which work may be pending,
/// instead of memory that is ready. Numba and CUDASTF write "stream if stream != 0 else None".
/// Sources: DeviceNDArray.__cuda_array_interface__ of numba.cuda, logical_data of cuda.stf.
bool writes_none_for_default(PyObject* object) {
  static constexpr std::string_view kPackages[] = {"numba", "numba_cuda", "cuda"};
  const py::object module =
      find_attribute(reinterpret_cast<PyObject*>(Py_TYPE(object)), py::str("__module__").ptr());
  if (!module || PyUnicode_Check(module.ptr()) == 0) return false;
  const auto name = module.cast<std::string>();
  const std::string package = name.substr(0, name.find('.'));
  return std::find(std::begin(kPackages), std::end(kPackages), package) != std::end(kPackages);
}

/// The stream that writes the memory; empty if the memory is ready.
std::optional<StreamHandle> read_cuda_stream(const Interface& interface, PyObject* object,
                                             const Device& device, int64_t version) {
  const py::object given = interface.find("stream");
  // Before version 3 there was no entry, and consumers assumed the default stream.
  const bool is_default = version < 3 || writes_none_for_default(object);
  if (!given) return is_default ? std::optional(default_stream(device)) : std::nullopt;
  const int64_t handle = interface.read_integer("stream", given);
  if (handle <= 0) {
    interface.raise_malformed("'stream' is ", handle,
                              ", which the protocol disallows: 1 is the legacy default stream, 2 "
                              "the per-thread one, None means that the data is ready");
  }
  if (handle == 1) return default_stream(device);
  return StreamHandle(static_cast<uintptr_t>(handle));
}

TakenTensor take_cuda(PyObject* object, const Interface& interface, PyObject* stream) {
  const int64_t version = interface.read_integer("version", interface.require("version"));
  check_version(interface, 0, kCudaVersion, version);
  if (interface.find("mask")) {
    interface.refuse("has a mask, which a tensor cannot carry: pass its data, and mask= beside it");
  }
  Description description = read_description(interface, StrideUnit::kBytes);
  TensorView& view = description.view;
  const bool has_memory = view.size() > 0;
  const CudaLike runtime = find_cuda_like(interface);
  // Without elements the address is 0, and no work can be pending.
  view.device = has_memory ? runtime.backend->find_device(view.data) : Device{runtime.type, 0};
  const std::optional<StreamHandle> given = read_stream(view.device, stream);
  const std::optional<StreamHandle> named =
      read_cuda_stream(interface, object, view.device, version);
  OwnedTensor tensor = hold(object, interface, description);
  const std::optional<StreamHandle> work = given ? given : named;
  if (!has_memory || !work) return {std::move(tensor), {}};
  return {std::move(tensor), OwnedEvent::record(description.view.device, *work)};
}

// ---------------------------------------------------------------- SYCL's interface

TakenTensor take_sycl(PyObject* object, const Interface& interface, PyObject* stream) {
  const int64_t version = interface.read_integer("version", interface.require("version"));
  check_version(interface, kSyclVersion, kSyclVersion, version);
  Description description = read_description(interface, StrideUnit::kElements);
  Device& device = description.view.device;
  device = Device{kDLOneAPI, 0};
  if (description.view.data == nullptr) {  // dpctl finds no device for a null address
    read_stream(device, stream);           // raises if it is not a stream
    return {hold(object, interface, description), {}};
  }
  interface.require("syclobj");
  const py::tuple work = find_hook(Hook::kFindSyclWork)(interface.entries());
  device.id = work[1].cast<int64_t>();
  std::optional<StreamHandle> queue = read_stream(device, stream);
  if (!queue) queue = read_stream(device, py::object(work[0]).ptr());
  OwnedTensor tensor = hold(object, interface, description);
  return {std::move(tensor), OwnedEvent::record(device, *queue)};
}

}  // namespace

bool has_array_interface(PyObject* object) {
  return find_cuda_interface(object) || find_sycl_interface(object);
}

TakenTensor take_array_interface(PyObject* object, PyObject* stream) {
  if (py::object entries = find_cuda_interface(object)) {
    return take_cuda(object, Interface(kCuda, object, std::move(entries)), stream);
  }
  if (py::object entries = find_sycl_interface(object)) {
    return take_sycl(object, Interface(kSycl, object, std::move(entries)), stream);
  }
  raise_type_error(Py_TYPE(object)->tp_name, " has neither ", kCuda, " nor ", kSycl);
}

}  // namespace arrowdl::python
