// Fills the DLPack C exchange API of DeviceArray.
#include "export/exchange_api.hpp"

#include <memory>

#include "arrowdl/backend.hpp"
#include "arrowdl/backends.hpp"
#include "arrowdl/copy.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/event.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/to_arrow.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "support/capsule.hpp"
#include "support/device_array_object.hpp"
#include "support/device_streams.hpp"
#include "support/errors.hpp"
#include "support/exchange_api.hpp"
#include "support/gil.hpp"
#include "support/python_hooks.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

// ---- our own exchange API: C callbacks, which fail with a Python error and -1 ----

int allocate(DLTensor* prototype, DLManagedTensorVersioned** out, void* error_ctx,
             void (*set_error)(void*, const char*, const char*)) noexcept {
  try {
    DLTensor wanted = *prototype;
    wanted.data = &wanted;  // never read: any address passes the checks of view_tensor
    wanted.strides = nullptr;
    wanted.byte_offset = 0;
    TensorView view = view_tensor(wanted);
    if (view.device.type != kDLCPU) {
      raise_buffer_error("arrowdl allocates tensors only on the CPU, not on ",
                         to_string(view.device));
    }
    uint8_t* data;
    const Buffer buffer = Buffer::allocate(view.nbytes(), &data);
    view.data = data;
    *out = make_tensor(view, buffer.owner(), 0).take_versioned();
    return 0;
  } catch (const std::exception& error) {
    set_error(error_ctx, "BufferError", error.what());
    return -1;
  }
}

int from_py_object(void* object, DLManagedTensorVersioned** out) noexcept {
  return guarded(
      [&] {
        const DeviceArray array = find_array(static_cast<PyObject*>(object));
        if (!array) raise_type_error("expected a DeviceArray");
        ToDlpackOptions options;
        Backend* backend = find_stream_backend(array.device());
        if (backend != nullptr && backend->memory() != nullptr) {
          options.order = {Order::kStream, backend->memory()->work_stream(array.device())};
        }
        *out = to_dlpack(array, options).take_versioned();
        return 0;
      },
      -1);
}

/// A tensor for code that takes ownership. The caller keeps it until `commit`.
class UncommittedTensor {
 public:
  explicit UncommittedTensor(DLManagedTensorVersioned* tensor) : state_(std::make_shared<State>()) {
    state_->tensor = tensor;
  }

  /// An owner whose release releases the tensor only after `commit`.
  OwnedTensor make_owner() {
    auto shell = std::make_unique<Shell>();
    shell->state = state_;
    shell->managed = *state_->tensor;
    shell->managed.manager_ctx = shell.get();
    shell->managed.deleter = [](DLManagedTensorVersioned* self) noexcept {
      auto* holder = static_cast<Shell*>(self->manager_ctx);
      holder->state->is_released = true;
      if (holder->state->is_committed) OwnedTensor(holder->state->tensor);
      delete holder;
    };
    return OwnedTensor(&shell.release()->managed);
  }

  void commit() noexcept {
    state_->is_committed = true;
    if (state_->is_released) OwnedTensor(state_->tensor);
  }

 private:
  struct State {
    DLManagedTensorVersioned* tensor = nullptr;
    bool is_committed = false;
    bool is_released = false;
  };
  struct Shell {
    std::shared_ptr<State> state;
    DLManagedTensorVersioned managed;
  };
  std::shared_ptr<State> state_;
};

int to_py_object(DLManagedTensorVersioned* tensor, void** out) noexcept {
  return guarded(
      [&] {
        if (tensor->version.major != DLPACK_MAJOR_VERSION) {
          raise_buffer_error("the tensor has DLPack version ", tensor->version.major, ".",
                             tensor->version.minor, ", and arrowdl reads version ",
                             DLPACK_MAJOR_VERSION);
        }
        const Device device = from_dl_device(tensor->dl_tensor.device);
        OwnedEvent event;
        if (find_stream_backend(device) != nullptr) {
          MemoryOps& memory = require_memory(device, "name a stream");
          event = OwnedEvent::record(device, memory.work_stream(device));
        }
        UncommittedTensor uncommitted(tensor);
        *out = wrap(to_arrow(uncommitted.make_owner(), {}, std::move(event))).release().ptr();
        uncommitted.commit();
        return 0;
      },
      -1);
}

int current_work_stream(DLDeviceType type, int32_t id, void** out) noexcept {
  try {
    const Device device = from_dl_device(DLDevice{type, id});
    const bool has_streams = device.type != kDLCPU;
    *out =
        has_streams ? require_memory(device, "name a stream").work_stream(device).get() : nullptr;
    return 0;
  } catch (...) {
    if (holds_gil()) set_python_error();  // consumers may call this function without the GIL
    return -1;
  }
}

}  // namespace

namespace {

/// `tensor` with a dtype that torch has: its element of float4 is a pair, float4_e2m1fn_x2.
OwnedTensor pair_values(OwnedTensor tensor) {
  if (tensor->dtype.bits >= 8 || tensor->dtype.lanes != 1) return tensor;
  TensorView view = view_tensor(tensor);
  const Dtype& own = *view.dtype;
  if (own.values > 1) view.dtype = find_dtype(DLDataType{own.dl().code, own.bits, own.values});
  if (own.values == 1 || view.dtype == nullptr) {
    raise_buffer_error(
        "torch has no ", own.name,
        " in DLPack: read its bytes, as in to_torch(pyarrow.array(array)): pass the "
        "`values` of lists and the fields of structs, and copy with .to(\"cpu\") from "
        "a device");
  }
  return make_tensor(view, std::move(tensor));
}

/// Why torch cannot allocate on `device`: its first sentence, unless its build or the machine has
/// no such device. Clears the Python error.
std::string explain_refusal(const Device& device, const std::string& reason) {
  std::string text = reason.substr(0, reason.find_first_of('\n'));
  with_gil([&] {
    PyErr_Clear();
    try {
      const py::object why =
          find_hook(Hook::kExplainDevice)(device_type_name(device.type), device.id);
      if (PyObject_IsTrue(why.ptr()) == 1) text = why.cast<std::string>();
    } catch (const py::error_already_set&) {  // torch's text, then
    }
  });
  return text;
}

}  // namespace

OwnedTensor allocate_by(const DLPackExchangeAPI& api, const Dtype& dtype, int64_t size,
                        const Device& device) {
  DLTensor wanted{nullptr, to_dl_device(device), 1, dtype.dl(), &size, nullptr, 0};
  DLManagedTensorVersioned* managed = nullptr;
  std::string reason;
  const auto keep_reason = [](void* kept, const char*, const char* message) {
    *static_cast<std::string*>(kept) = message;
  };
  if (api.managed_tensor_allocator(&wanted, &managed, &reason, keep_reason) != 0) {
    const std::string why = explain_refusal(device, reason);
    const bool is_memory = reason.find("out of memory") != std::string::npos;
    throw Error(is_memory ? ErrorKind::kMemory : ErrorKind::kBuffer,
                concat("the framework cannot allocate ", size, " elements of ", dtype.name, " on ",
                       to_string(device), ": ", why));
  }
  return OwnedTensor(managed);
}

py::object to_object(const DLPackExchangeAPI& api, OwnedTensor tensor) {
  void* object = nullptr;
  tensor = pair_values(std::move(tensor));
  auto* managed = const_cast<DLManagedTensorVersioned*>(tensor.versioned());
  if (api.managed_tensor_to_py_object_no_sync(managed, &object) != 0) {
    throw py::error_already_set();  // the framework did not take ownership: `tensor` releases it
  }
  tensor.take_versioned();
  return py::reinterpret_steal<py::object>(static_cast<PyObject*>(object));
}

OwnedTensor copy_by(const DLPackExchangeAPI& api, OwnedTensor tensor, const Device& device) {
  TensorView view = view_tensor(tensor);
  // A framework may not have the type, and its prototype has no flag for padded values.
  const bool has_bytes = view.dtype->bits >= 8;
  const Dtype& dtype = has_bytes ? *view.dtype : *find_dtype("uint8");
  OwnedTensor memory = allocate_by(api, dtype, has_bytes ? view.size() : view.nbytes(), device);
  if (view.size() > 0) {
    const StreamHandle stream = current_stream(api, device);
    const py::gil_scoped_release release;  // copy_tensor reads the bytes
    copy_tensor(std::move(tensor), *memory, stream);
  }
  view.data = view_tensor(memory).data;
  view.device = device;
  return make_tensor(view, std::move(memory));
}

py::object make_exchange_api() {
  static const DLPackExchangeAPI api{
      {{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, nullptr},
      allocate,
      from_py_object,
      to_py_object,
      nullptr,  // borrowing is optional, and a borrowed shape would need an owner
      current_work_stream};
  return make_capsule(api);
}

}  // namespace arrowdl::python
