// Imports tensors from Python objects, ordered by an event.
#include "import/tensor.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <iterator>
#include <memory>
#include <string_view>

#include "arrowdl/error.hpp"
#include "arrowdl/event.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/tensor_view.hpp"
#include "import/arrow.hpp"
#include "import/foreign_tensors.hpp"
#include "support/arguments.hpp"
#include "support/capsule.hpp"
#include "support/device_streams.hpp"
#include "support/errors.hpp"
#include "support/exchange_api.hpp"
#include "support/names.hpp"
#include "support/objects.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

bool is_true(PyObject* object) {
  const int truth = PyObject_IsTrue(object);
  if (truth < 0) throw py::error_already_set();
  return truth != 0;
}

/// `object.name()`, or false without such a method.
bool call_predicate(PyObject* object, PyObject* name) {
  const py::object answer = call_if_present(object, name);
  return answer && is_true(answer.ptr());
}

/// A framework's exchange API skips the checks of its `__dlpack__`. These are torch's.
/// Source: torch.Tensor.__dlpack__.
void check_exportable(PyObject* object, const DLTensor& tensor) {
  const py::object grad = find_attribute(object, names::requires_grad);
  if (grad && is_true(grad.ptr())) {
    raise_buffer_error(
        "the tensor requires grad, and Arrow data has no gradient: pass "
        "tensor.detach()");
  }
  if (tensor.dtype.code == kDLComplex && call_predicate(object, names::is_conj)) {
    raise_buffer_error(
        "the tensor's conjugate bit is set, so its memory holds other values: pass "
        "tensor.resolve_conj()");
  }
  if (call_predicate(object, names::is_neg)) {
    raise_buffer_error(
        "the tensor's negative bit is set, so its memory holds other values: pass "
        "tensor.resolve_neg()");
  }
}

/// Whether `name` is an integer type of 1 to 7 bits, such as "torch.uint4".
bool names_sub_byte_integer(std::string_view name) {
  name.remove_prefix(name.rfind('.') == std::string_view::npos ? 0 : name.rfind('.') + 1);
  if (!name.empty() && name.front() == 'u') name.remove_prefix(1);
  return name.size() == 4 && name.substr(0, 3) == "int" && name[3] >= '1' && name[3] <= '7';
}

/// torch exports its int1 to int7 and uint1 to uint7 as int8 and uint8.
void check_whole_bytes(PyObject* object, const DLTensor& tensor) {
  static std::atomic<PyObject*> known[2];  // the dtype objects of int8 and uint8, never released
  if (tensor.dtype.bits != 8 || tensor.dtype.code > kDLUInt) return;
  const py::object dtype = find_attribute(object, names::dtype);
  if (!dtype || dtype.ptr() == known[tensor.dtype.code].load(std::memory_order_relaxed)) return;
  const auto text = py::str(dtype).cast<std::string>();
  if (names_sub_byte_integer(text)) {
    raise_buffer_error("a tensor of ", text,
                       " has no Arrow type: its elements are less than a byte; cast it, or view "
                       "its bytes as uint8");
  }
  PyObject* first = nullptr;
  if (known[tensor.dtype.code].compare_exchange_strong(first, dtype.ptr())) dtype.inc_ref();
}

void check_memory(PyObject* object, const DLTensor& tensor) {
  if (tensor.data != nullptr || tensor.shape == nullptr) return;
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    if (tensor.shape[i] == 0) return;
  }
  raise_buffer_error("the ", Py_TYPE(object)->tp_name,
                     " has no memory to exchange (a fake tensor or a wrapper around others): pass "
                     "a tensor with data");
}

/// The device that the producer names. paddle returns None as the id.
Device ask_device(PyObject* object) {
  const py::object method = find_attribute(object, names::dlpack_device);
  if (!method) return Device{};
  const py::object pair = checked(PyObject_CallNoArgs(method.ptr()));
  if (PyTuple_Check(pair.ptr()) == 0 || PyTuple_GET_SIZE(pair.ptr()) != 2) {
    raise_type_error("__dlpack_device__() of ", Py_TYPE(object)->tp_name, " returned ",
                     py::repr(pair).cast<std::string>(), ", expected (device_type, device_id)");
  }
  PyObject* id = PyTuple_GET_ITEM(pair.ptr(), 1);
  const int32_t type = read_int32("the device type", PyTuple_GET_ITEM(pair.ptr(), 0));
  return from_dl_device(DLDevice{static_cast<DLDeviceType>(type),
                                 id == Py_None ? 0 : read_int32("the device id", id)});
}

struct DlpackResult {
  py::object capsule;
  bool took_stream;
};

/// Calls `__dlpack__` with the keywords that the producer's DLPack version has: with all, then with
/// one fewer after each TypeError, as torch does. Other errors are raised.
DlpackResult call_dlpack(const py::object& method, Copy copy, const py::object& stream) {
  py::dict keywords;
  keywords["max_version"] = py::make_tuple(DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
  if (copy == Copy::kNever) keywords["copy"] = false;
  if (!stream.is_none()) keywords["stream"] = stream;
  for (const char* dropped : {"max_version", "copy", "stream"}) {
    if (!keywords.contains(dropped)) continue;
    PyObject* capsule = PyObject_VectorcallDict(method.ptr(), nullptr, 0, keywords.ptr());
    if (capsule != nullptr) {
      return {py::reinterpret_steal<py::object>(capsule), keywords.contains("stream")};
    }
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw py::error_already_set();
    PyErr_Clear();
    keywords.attr("pop")(dropped);
  }
  return {checked(PyObject_CallNoArgs(method.ptr())), false};
}

/// An event for the work on `stream`, or on the default stream if `stream` is None.
OwnedEvent record_work(const Device& device, PyObject* stream) {
  const std::optional<StreamHandle> given = read_stream(device, stream);
  if (find_stream_backend(device) == nullptr) return {};
  return OwnedEvent::record(device, given ? *given : default_stream(device));
}

/// Records the event first: if that fails, the capsule keeps its tensor.
TakenTensor take_from_capsule(PyObject* capsule, PyObject* stream) {
  OwnedEvent event;
  if (const std::optional<Device> device = peek_device(capsule)) {
    event = record_work(*device, stream);
  }
  return {take_tensor(capsule), std::move(event)};
}

/// numpy exports a masked array without its mask: nulls would turn into values.
void check_unmasked(PyObject* object) {
  if (!find_attribute(object, names::mask)) return;
  raise_buffer_error("the ", Py_TYPE(object)->tp_name,
                     " has a mask, which DLPack cannot carry: pass its data, and "
                     "mask=~numpy.ma.getmaskarray(array) beside it");
}

/// The stream of the producer's work: the caller's `stream`, or the queue of `object`.
std::optional<StreamHandle> find_producer_stream(PyObject* object, const Device& device,
                                                 PyObject* stream) {
  if (const std::optional<StreamHandle> given = read_stream(device, stream)) return given;
  return device.type == kDLOneAPI ? find_queue(object) : std::nullopt;
}

/// Passes the producer a stream of ours to order its work before, unless the stream of that work is
/// known.
TakenTensor take_ordered(PyObject* object, const py::object& method, Copy copy,
                         const Device& device, PyObject* stream) {
  if (const std::optional<StreamHandle> known = find_producer_stream(object, device, stream)) {
    // dpctl orders its own queue.
    const py::object told = has_queues(device) ? py::object(py::none()) : to_dlpack_stream(*known);
    OwnedTensor tensor = take_tensor(call_dlpack(method, copy, told).capsule.ptr());
    return {std::move(tensor), OwnedEvent::record(device, *known)};
  }
  if (has_queues(device)) default_stream(device);  // raises: the queue is not known
  const BorrowedStream ours(require_memory(device, "order a producer"), device);
  const DlpackResult result = call_dlpack(method, copy, to_dlpack_stream(ours.get()));
  OwnedTensor tensor = take_tensor(result.capsule.ptr());
  const StreamHandle ordered = result.took_stream ? ours.get() : default_stream(device);
  return {std::move(tensor), OwnedEvent::record(device, ordered)};
}

/// The device in the capsule decides: torch's pinned tensors say cuda_host and export CPU memory.
TakenTensor check_device(TakenTensor taken, PyObject* object, const Device& told) {
  const Device actual = from_dl_device(taken.tensor->device);
  if (actual == told) return taken;
  if (actual.type == kDLCPU && is_host_readable(told)) {
    synchronize_event(told, taken.event.handle());
    return {std::move(taken.tensor), {}};
  }
  raise_buffer_error("the ", Py_TYPE(object)->tp_name, " says it is on ", to_string(told),
                     " and exports memory on ", to_string(actual));
}

/// Raises a clear error if `object` is a deleted jax array: jax raises that None has no length.
void check_not_deleted(PyObject* object) {
  bool is_deleted = false;
  {
    const PendingError cause;
    try {
      is_deleted = call_predicate(object, names::is_deleted);
    } catch (py::error_already_set&) {  // the first error is the useful one
    }
  }
  if (!is_deleted) return;
  raise_buffer_error("the ", Py_TYPE(object)->tp_name,
                     " was deleted, or donated to a computation, and has no memory: convert it "
                     "before that, or pass a copy");
}

TakenTensor take_ready(PyObject* object, const py::object& method, Copy copy, PyObject* stream) {
  const Device device = ask_device(object);
  if (find_stream_backend(device) != nullptr) {
    return check_device(take_ordered(object, method, copy, device, stream), object, device);
  }
  read_stream(device, stream);  // raises if it is not a stream
  OwnedTensor tensor = take_tensor(call_dlpack(method, copy, py::none()).capsule.ptr());
  return check_device({std::move(tensor), {}}, object, device);
}

/// The dtype of `object` if a byte has several of its values and it can view bytes, else nullptr.
const Dtype* find_packed_dtype(PyObject* object) {
  const py::object found = find_attribute(object, names::dtype);
  const bool is_viewable = found && find_attribute(object, names::view);
  const Dtype* dtype = is_viewable ? find_dtype(py::str(found).cast<std::string>()) : nullptr;
  return dtype != nullptr && dtype->values > 1 ? dtype : nullptr;
}

/// The packed bytes of a jax array. jax.Array.view has the first value in the lowest bits.
py::object view_bytes(PyObject* object, const Dtype& dtype) {
  try {
    return py::handle(object).attr("view")("uint8");
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_ValueError)) throw;
    raise_buffer_error("the ", Py_TYPE(object)->tp_name, " of ", dtype.name,
                       " has rows that do not end with a byte, and Arrow's elements are whole "
                       "bytes: make its last dimension a multiple of ",
                       int{dtype.values}, " values, or cast it");
  }
}

/// Takes a copy of the bytes of a tensor that its library cannot export: jax 0.10 has no DLPack
/// type for integers of less than a byte.
TakenTensor take_packed(PyObject* object, const Dtype& dtype, Copy copy, PyObject* stream) {
  if (copy == Copy::kNever) {
    raise_buffer_error("the ", Py_TYPE(object)->tp_name, " of ", dtype.name,
                       " cannot be read without a copy, since its library does not export it by "
                       "DLPack: allow it with copy=None");
  }
  const py::object bytes = view_bytes(object, dtype);
  TakenTensor taken = take_ready(bytes.ptr(), bytes.attr(names::dlpack), copy, stream);
  TensorView view = view_tensor(taken.tensor);
  if (view.size() * dtype.values != read_int("size", py::handle(object).attr("size").ptr())) {
    raise_buffer_error("the ", Py_TYPE(object)->tp_name, " of ", dtype.name,
                       " has a view of its bytes that is not packed: cast it");
  }
  view.dtype = &dtype;
  taken.tensor = make_tensor(view, std::move(taken.tensor));
  return taken;
}

/// The dtypes of numbers that were asked for by `__dlpack__` before. Their objects are never
/// released, so that a pointer stays what it was.
class KnownDtypes {
 public:
  bool has(PyObject* dtype) const noexcept {
    return std::any_of(known_.begin(), known_.end(), [dtype](const auto& row) {
      return row.load(std::memory_order_relaxed) == dtype;
    });
  }
  void add(const py::object& dtype) {
    for (auto& row : known_) {
      PyObject* empty = nullptr;
      if (row.compare_exchange_strong(empty, dtype.ptr())) {
        dtype.inc_ref();
        return;
      }
      if (empty == dtype.ptr()) return;
    }
  }

 private:
  std::array<std::atomic<PyObject*>, 24> known_{};
};

KnownDtypes known_dtypes;

/// Whether the name of a dtype, such as "<dtype: 'string'>", says that its elements are not
/// numbers.
bool names_no_numbers(std::string_view name) {
  static constexpr std::string_view kNoNumbers[] = {
      "string",      "str",       "bytes",       "unicode",   "utf8",       "object",
      "resource",    "variant",   "pstring",     "pyobject",  "string_ref", "resource_ref",
      "variant_ref", "dt_string", "dt_resource", "dt_variant"};
  const auto is_in_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  while (!name.empty()) {
    const auto start = std::find_if(name.begin(), name.end(), is_in_word);
    const auto end = std::find_if_not(start, name.end(), is_in_word);
    std::string word(start, end);
    std::transform(word.begin(), word.end(), word.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    name.remove_prefix(static_cast<std::size_t>(end - name.begin()));
    // "<lib.DType object at 0x...>" is Python's text of an object without one of its own.
    const bool is_of_python = word == "object" && name.substr(0, 4) == " at ";
    if (!is_of_python &&
        std::find(std::begin(kNoNumbers), std::end(kNoNumbers), word) != std::end(kNoNumbers)) {
      return true;
    }
  }
  return false;
}

/// Raises for a tensor without numbers before its library is asked: TensorFlow 2.21 ends the
/// process then.
void check_numbers(PyObject* object, const py::object& dtype) {
  const bool is_method = dtype && PyCallable_Check(dtype.ptr()) && !PyType_Check(dtype.ptr());
  if (!dtype || is_method) return;
  const auto name = py::str(dtype).cast<std::string>();
  if (!names_no_numbers(name)) return;
  raise_buffer_error("the ", Py_TYPE(object)->tp_name, " of ", name,
                     " has no numbers, and a tensor of DLPack has nothing else: pass strings as "
                     "Arrow data, as pyarrow.array() of them");
}

/// `array` by a view of its elements as integers.
TakenTensor take_view(ElementView view, Copy copy, PyObject* stream, Elements elements) {
  if (elements == Elements::kDlpacks) {
    raise_buffer_error("a NumPy array of ", view.time_format.empty() ? view.dtype->name : "times",
                       " cannot become a DLPack tensor: pass array.view(\"uint",
                       view.dtype->itemsize() * 8, "\")");
  }
  TakenTensor taken =
      take_ready(view.integers.ptr(), view.integers.attr(names::dlpack), copy, stream);
  TensorView retyped = view_tensor(taken.tensor);
  retyped.dtype = view.dtype;
  taken.tensor = make_tensor(retyped, std::move(taken.tensor));
  taken.time_format = std::move(view.time_format);
  return taken;
}

TakenTensor take_by_method(PyObject* object, const py::object& method, Copy copy, PyObject* stream,
                           Elements elements) {
  check_unmasked(object);
  const py::object dtype = find_attribute(object, names::dtype);
  if (dtype && !known_dtypes.has(dtype.ptr())) {
    const bool is_numpys = is_numpy_array(object);
    if (!is_numpys) {
      check_numbers(object, dtype);
    } else if (std::optional<ElementView> view = view_numpy(object, dtype)) {
      return take_view(std::move(*view), copy, stream, elements);
    }
    // One that is made for each call would fill the list.
    if (is_numpys || (!is_shared_dtype(dtype) && Py_REFCNT(dtype.ptr()) > 1)) {
      known_dtypes.add(dtype);
    }
  }
  try {
    return take_ready(object, method, copy, stream);
  } catch (const py::error_already_set& error) {
    check_not_deleted(object);
    const Dtype* packed = error.matches(PyExc_RuntimeError) ? find_packed_dtype(object) : nullptr;
    if (packed == nullptr) throw;
    return take_packed(object, *packed, copy, stream);
  }
}

/// The capsule of `__dlpack__`. A RuntimeError becomes a BufferError: torch's tensors inside of
/// vmap, grad and jvp raise one with a C++ stack trace.
py::object call_after_refusal(PyObject* object, const py::object& method, Copy copy) {
  try {
    return call_dlpack(method, copy, py::none()).capsule;
  } catch (py::error_already_set& refusal) {
    if (!refusal.matches(PyExc_RuntimeError)) throw;
    const auto text = py::str(refusal.value()).cast<std::string>();
    raise_buffer_error("the ", Py_TYPE(object)->tp_name, " has no memory to exchange (",
                       text.substr(0, text.find('\n')),
                       "): inside of vmap, grad and jvp a tensor is a wrapper around others; pass "
                       "it before or after the transform");
  }
}

/// The exchange API refused `object`, with a Python error or without. `__dlpack__` refuses it too,
/// with a clearer message: torch's API reports a layout as a storage error with a C++ stack trace.
/// Does not call `__dlpack_device__` first: torch's fails for those layouts.
TakenTensor take_refused(const DLPackExchangeAPI& api, PyObject* object, Copy copy,
                         PyObject* stream) {
  py::object method;
  {
    const PendingError refusal;
    method = find_attribute(object, names::dlpack);
  }
  if (method) {
    PyErr_Clear();
    check_numbers(object, find_attribute(object, names::dtype));
    OwnedTensor tensor = take_tensor(call_after_refusal(object, method, copy).ptr());
    const Device device = from_dl_device(tensor->device);
    const std::optional<StreamHandle> given = read_stream(device, stream);
    if (find_stream_backend(device) == nullptr) return {std::move(tensor), {}};
    const StreamHandle work = given ? *given : current_stream(api, device);
    return {std::move(tensor), OwnedEvent::record(device, work)};
  }
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  raise_buffer_error(Py_TYPE(object)->tp_name, " refused its DLPack exchange API without a reason");
}

TakenTensor take_by_exchange(const DLPackExchangeAPI& api, PyObject* object, Copy copy,
                             PyObject* stream, Elements elements) {
  DLManagedTensorVersioned* managed = nullptr;
  if (api.managed_tensor_from_py_object_no_sync(object, &managed) != 0) {
    return take_refused(api, object, copy, stream);
  }
  OwnedTensor tensor(managed);
  check_exportable(object, *tensor);
  check_whole_bytes(object, *tensor);
  check_memory(object, *tensor);
  const Device device = from_dl_device(tensor->device);
  const std::optional<StreamHandle> given = read_stream(device, stream);
  if (device.type == kDLCPU) return {std::move(tensor), {}};
  if (find_stream_backend(device) == nullptr) {
    const py::object method = find_attribute(object, names::dlpack);
    if (method) return take_by_method(object, method, copy, stream, elements);
    raise_buffer_error("the ", Py_TYPE(object)->tp_name, " on ", to_string(device),
                       " may have pending work, and arrowdl has no runtime for that device to wait "
                       "with: copy it to the CPU with its framework first");
  }
  const StreamHandle work = given ? *given : current_stream(api, device);
  return {std::move(tensor), OwnedEvent::record(device, work)};
}

}  // namespace

bool is_tensor(PyObject* object) {
  if (is_tensor_capsule(object) || find_exchange_api(Py_TYPE(object)) != nullptr) return true;
  if (PyType_Check(object) != 0) return false;
  return PyObject_CheckBuffer(object) != 0 || find_attribute(object, names::dlpack) ||
         has_array_interface(object);
}

TakenTensor take_tensor_of(PyObject* object, Copy copy, PyObject* stream) {
  return take_tensor_of(object, find_exchange_api(Py_TYPE(object)), copy, stream);
}

TakenTensor take_tensor_of(PyObject* object, const DLPackExchangeAPI* api, Copy copy,
                           PyObject* stream, Elements elements) {
  if (api != nullptr) return take_by_exchange(*api, object, copy, stream, elements);
  if (PyCapsule_CheckExact(object) != 0) return take_from_capsule(object, stream);
  const py::object method = find_attribute(object, names::dlpack);
  if (!method) {
    // Before the buffer protocol, by which dpctl exports memory that may have pending work.
    if (has_array_interface(object)) return take_array_interface(object, stream);
    if (PyObject_CheckBuffer(object) != 0) {
      // Its buffer has the bytes of times, and none of the types of ml_dtypes.
      if (const py::object array = find_numpy_scalar(object)) {
        return take_by_method(array.ptr(), array.attr(names::dlpack), copy, stream, elements);
      }
      read_stream(Device{}, stream);  // raises unless None: CPU memory has no streams
      return {take_buffer(object), {}};
    }
    raise_unread("to_arrow_device", object);
  }
  return take_by_method(object, method, copy, stream, elements);
}

}  // namespace arrowdl::python
