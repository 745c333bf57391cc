#include "export/array_interface.hpp"

#include <charconv>
#include <memory>
#include <vector>

#include "arrowdl/error.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "support/device_streams.hpp"
#include "support/gil.hpp"
#include "support/objects.hpp"
#include "support/python_hooks.hpp"

// Sources: "CUDA Array Interface (Version 3)" of Numba's documentation and
// "__sycl_usm_array_interface__" of dpctl's; for typestr numpy's array interface.

namespace arrowdl::python {
namespace {

namespace py = pybind11;

constexpr const char* kCuda = "__cuda_array_interface__";
constexpr const char* kSycl = "__sycl_usm_array_interface__";
constexpr int64_t kCudaVersion = 3;
constexpr int64_t kSyclVersion = 1;

py::object find_cuda_interface(PyObject* object) {
  static PyObject* const name = interned(kCuda);
  return find_attribute(object, name);
}

py::object find_sycl_interface(PyObject* object) {
  static PyObject* const name = interned(kSycl);
  return find_attribute(object, name);
}

// ---------------------------------------------------------------- element types

struct ElementKind {
  char letter;
  DLDataTypeCode code;
};

constexpr ElementKind kElementKinds[] = {
    {'b', kDLBool}, {'i', kDLInt}, {'u', kDLUInt}, {'f', kDLFloat}, {'c', kDLComplex}};

constexpr const char* kSupportedTypes =
    "supported are |b1, <i and <u of 1 to 8 bytes, <f of 2 to 8 and <c of 8 and 16";

/// The type that is written like "<f4", or nullptr. The order of the bytes may be left open, as
/// dpctl does: native is what it can only be.
const Dtype* find_dtype_of_typestr(std::string_view text) {
  if (text.size() < 3 || std::string_view("<|=").find(text[0]) == std::string_view::npos) {
    return nullptr;
  }
  int size = 0;
  const char* end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data() + 2, end, size);
  if (error != std::errc() || parsed != end || size < 1 || size > 16) return nullptr;
  for (const ElementKind& kind : kElementKinds) {
    if (kind.letter == text[1]) {
      return find_dtype(
          DLDataType{static_cast<uint8_t>(kind.code), static_cast<uint8_t>(size * 8), 1});
    }
  }
  return nullptr;
}

std::string to_typestr(const Dtype& dtype) {
  for (const ElementKind& kind : kElementKinds) {
    if (kind.code != dtype.code) continue;
    return concat(dtype.itemsize() == 1 ? '|' : '<', kind.letter, dtype.itemsize());
  }
  raise_buffer_error("there is no typestr for ", dtype.name, ": ", kSupportedTypes,
                     "; use __dlpack__, which has this type");
}

// ---------------------------------------------------------------- reading a dictionary

/// What a producer says of its memory.
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

  /// The entry `key`, empty where there is none or None.
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
                    number ? " in it, which is no int64" : " in it, expected an integer");
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

enum class StrideUnit { kBytes, kElements };

/// The strides in elements; nothing where the layout is C's.
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

/// dpctl's distance from the address to the first element.
uint64_t read_offset(const Interface& interface, const Dtype& dtype) {
  const py::object given = interface.find("offset");
  const int64_t offset = given ? interface.read_integer("offset", given) : 0;
  if (offset < 0 || offset > INT64_MAX / dtype.itemsize()) {
    interface.raise_malformed("'offset' is ", offset, " elements of ", dtype.itemsize(), " bytes");
  }
  return static_cast<uint64_t>(offset * dtype.itemsize());
}

/// What both protocols say alike, checked as every tensor is; the device is not known yet.
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
  interface.refuse("is of version ", given, ", supported are ", lowest, " to ", highest);
}

/// The tensor of `description`. The dictionary is kept as well as its object: it may hold what the
/// object does not, such as the contiguous copy that it describes.
OwnedTensor hold(PyObject* object, const Interface& interface, const Description& description) {
  const py::object both = checked(PyTuple_Pack(2, object, interface.entries().ptr()));
  return make_tensor(description.view, share_object(both.ptr()), description.flags);
}

// ---------------------------------------------------------------- taking CUDA's

/// The runtime whose memory a `__cuda_array_interface__` describes: CUDA's, or ROCm's, where some
/// libraries speak it as well.
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
          "does not say whose memory it is, and both CUDA and ROCm are loaded: use the "
          "object's __dlpack__, or its library's own from_dlpack first");
    }
    if (backend != nullptr) found = CudaLike{type, backend};
    if (!why_not.empty()) why += concat("; ", why_not);
  }
  if (found) return *found;
  interface.refuse(
      "needs CUDA or ROCm to tell where its memory lies, and neither can be used in this process: "
      "import the library that made it, or see arrowdl.doctor()",
      why);
}

/// The stream on which the memory is written; empty where it is there.
std::optional<StreamHandle> read_cuda_stream(const Interface& interface, const Device& device,
                                             int64_t version) {
  const py::object given = interface.find("stream");
  // Before version 3 there was none to name, and consumers assumed the default stream.
  if (!given) return version < 3 ? std::optional(default_stream(device)) : std::nullopt;
  const int64_t handle = interface.read_integer("stream", given);
  if (handle <= 0) {
    interface.raise_malformed("'stream' is ", handle,
                              ", which the protocol disallows: 1 is the legacy default stream, 2 "
                              "the per-thread one, None says that the data is there");
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
  const std::optional<StreamHandle> named = read_cuda_stream(interface, view.device, version);
  OwnedTensor tensor = hold(object, interface, description);
  const std::optional<StreamHandle> work = given ? given : named;
  if (!has_memory || !work) return {std::move(tensor), {}};
  return {std::move(tensor), OwnedEvent::record(description.view.device, *work)};
}

// ---------------------------------------------------------------- taking SYCL's

TakenTensor take_sycl(PyObject* object, const Interface& interface, PyObject* stream) {
  const int64_t version = interface.read_integer("version", interface.require("version"));
  check_version(interface, kSyclVersion, kSyclVersion, version);
  Description description = read_description(interface, StrideUnit::kElements);
  Device& device = description.view.device;
  device = Device{kDLOneAPI, 0};
  if (description.view.data == nullptr) {  // dpctl knows no device of no memory
    read_stream(device, stream);           // raises for what is none
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

// ---------------------------------------------------------------- giving

/// What `make` returns. A reason why not, which is a BufferError elsewhere, is an AttributeError.
template <typename Make>
py::object or_attribute_error(const Make& make) {
  try {
    return make();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kBuffer) throw;
    PyErr_SetString(PyExc_AttributeError, error.what());
  } catch (const py::error_already_set& error) {
    if (!error.matches(PyExc_BufferError)) throw;
    PyErr_SetObject(PyExc_AttributeError, py::str(error.value()).ptr());
  }
  throw py::error_already_set();
}

py::tuple to_tuple(const int64_t* values, int32_t count, int64_t factor) {
  py::tuple tuple(static_cast<std::size_t>(count));
  for (int32_t i = 0; i < count; ++i) {
    tuple[static_cast<std::size_t>(i)] = py::int_(values[i] * factor);
  }
  return tuple;
}

/// The address in the array's memory where no elements would lie. A DLPack tensor does not say it,
/// and dpctl takes the device of an array from it.
const void* find_memory(DeviceArray array) {
  while (array.type().layout == Layout::kFixedSizeList) array = array.child(0);
  const void* memory = array.buffer_count() > 1 ? array.buffer(1) : nullptr;
  if (memory == nullptr && array.length() == 0) {
    raise_buffer_error("an array without rows that never had memory has no ", kSycl,
                       ", which tells the device by it: use __dlpack__");
  }
  return memory;
}

/// The entries that both protocols have.
py::dict describe(const DeviceArray& array, StrideUnit unit, const void* memory_of_none) {
  ToDlpackOptions options;
  options.copy = Copy::kNever;
  options.order.kind = Order::kNone;
  const OwnedTensor tensor = to_dlpack(array, options);
  const TensorView view = view_tensor(*tensor);
  const int64_t factor = unit == StrideUnit::kBytes ? view.dtype->itemsize() : 1;
  const void* memory = view.data == nullptr ? memory_of_none : view.data;
  py::dict entries;
  entries["shape"] = to_tuple(view.shape, view.ndim, 1);
  entries["typestr"] = to_typestr(*view.dtype);
  entries["data"] = py::make_tuple(reinterpret_cast<uintptr_t>(memory), true);
  entries["strides"] = view.is_contiguous() ? py::object(py::none())
                                            : py::object(to_tuple(view.strides, view.ndim, factor));
  return entries;
}

void check_device(const DeviceArray& array, const char* name, const char* devices, bool is_one) {
  if (is_one) return;
  raise_buffer_error("a DeviceArray on ", to_string(array.device()), " has no ", name,
                     ", which is for memory on ", devices, ": use __dlpack__");
}

/// The stream that a consumer has to come after: ours, made to wait for the array, or None where
/// the data is there.
py::object order_cuda(const DeviceArray& array) {
  // A consumer's streams are not known to the protocol. The default stream, which comes after the
  // work of most of them, stands for those.
  record_assumed_stream(array);
  if (array.is_ready()) return py::none();
  const Device device = array.device();
  const StreamHandle stream = require_memory(device, "order a consumer").work_stream(device);
  array.wait(stream);
  return to_dlpack_stream(stream);
}

/// dpctl's own queue of the device, the one of its arrays by default. The protocol names it for its
/// context and has no word on order: consumers read at once, so the host waits, as dpctl's does.
py::object order_sycl(const DeviceArray& array) {
  const Device device = array.device();
  require_backend(device, "order a consumer");
  py::object queue = find_hook(Hook::kFindSyclQueue)(device.id);
  array.synchronize();
  array.record_stream(*read_stream(device, queue.ptr()));
  return queue;
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

py::object make_cuda_array_interface(const DeviceArray& array) {
  return or_attribute_error([&] {
    const int32_t type = array.device().type;
    check_device(array, kCuda, "cuda and cuda_managed", type == kDLCUDA || type == kDLCUDAManaged);
    py::dict entries = describe(array, StrideUnit::kBytes, nullptr);
    entries["version"] = kCudaVersion;
    entries["stream"] = order_cuda(array);
    return py::object(std::move(entries));
  });
}

py::object make_sycl_usm_array_interface(const DeviceArray& array) {
  return or_attribute_error([&] {
    check_device(array, kSycl, "oneapi", array.device().type == kDLOneAPI);
    py::dict entries = describe(array, StrideUnit::kElements, find_memory(array));
    entries["offset"] = 0;
    entries["version"] = kSyclVersion;
    entries["syclobj"] = order_sycl(array);
    return py::object(std::move(entries));
  });
}

}  // namespace arrowdl::python
