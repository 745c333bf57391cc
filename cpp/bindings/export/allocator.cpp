// Calls allocators of Python libraries for device memory.
#include "export/allocator.hpp"

#include <pybind11/pybind11.h>

#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "arrowdl/backends.hpp"
#include "arrowdl/dtype.hpp"
#include "arrowdl/error.hpp"
#include "export/exchange_api.hpp"
#include "export/torch_allocator.hpp"
#include "support/exchange_api.hpp"
#include "support/gil.hpp"
#include "support/python_hooks.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

/// The error of a library's allocator, for any thread: its Python object stays here.
Error to_error(const py::error_already_set& error, const Device& device, int64_t size) {
  const auto name = py::str(error.type().attr("__name__")).cast<std::string>();
  const bool is_memory = error.matches(PyExc_MemoryError) ||
                         name.find("OutOfMemory") != std::string::npos ||
                         name.find("out_of_memory") != std::string::npos;
  return {is_memory ? ErrorKind::kMemory : ErrorKind::kBuffer,
          concat("the allocator cannot allocate ", size, " bytes on ", to_string(device), ": ",
                 error.what())};
}

/// KeyboardInterrupt, SystemExit and others that do not mean that the call failed, for any thread;
/// otherwise nullptr.
std::exception_ptr find_exit(const py::error_already_set& error) {
  if (error.matches(PyExc_Exception)) return nullptr;
  return std::make_exception_ptr(PassingError(error));
}

/// Runs `allocate` with the GIL, on any thread. Memory of arrowdl's pool if the interpreter has
/// ended.
template <typename Allocate>
AllocatedMemory allocate_with_gil(const Device& device, int64_t size, const Allocate& allocate) {
  AllocatedMemory made;
  std::optional<Error> failure;
  std::exception_ptr exit;
  with_gil([&] {
    try {
      made = allocate();
    } catch (const py::error_already_set& error) {
      exit = find_exit(error);
      if (exit == nullptr) failure = to_error(error, device, size);
    } catch (const Error& error) {
      failure = error;
    }
  });
  if (exit != nullptr) std::rethrow_exception(exit);
  if (failure) throw Error(*failure);
  return made;
}

/// Calls `function(device type, id, bytes, stream)`. The stream, one of arrowdl's for each device,
/// is only a name for memory that nothing else uses: arrowdl frees memory when no work uses it. It
/// is not `work_stream`, which producers order their work before.
AllocatedMemory call_allocator(py::handle function, const Device& device, int64_t size) {
  MemoryOps& memory = require_memory(device, "allocate");
  const uintptr_t stream = find_allocation_stream(memory, device).value();
  py::object made;
  memory.call_on(device, [&] {  // a thread that copies ahead has not set the current device
    made = function(device_type_name(device.type), device.id, size, stream);
  });
  if (made.is_none()) return {};
  const auto parts = made.cast<py::tuple>();
  AllocatedMemory result;
  result.address = reinterpret_cast<void*>(parts[0].cast<uintptr_t>());
  result.owner = share_object(py::object(parts[1]).ptr());
  const py::object used = parts[2];
  if (!used.is_none()) result.stream = StreamHandle(used.cast<uintptr_t>());
  if (result.address == nullptr) raise_buffer_error("the allocator returned no address");
  return result;
}

/// By torch, which `hook` calls in Python until the functions of C are found.
template <Hook hook>
AllocatedMemory allocate_by_torch(const Device& device, int64_t size) {
  if (const auto* const torch = TorchAllocator::get(device)) return torch->allocate(device, size);
  return allocate_with_gil(device, size, [&] {
    AllocatedMemory made = call_allocator(find_hook(hook), device, size);
    if (made.address != nullptr) TorchAllocator::find(device);
    return made;
  });
}

constexpr auto allocate_auto = allocate_by_torch<Hook::kAllocateAuto>;

/// Memory of a framework's DLPack exchange API, which is ready after the framework's current
/// stream.
Allocator allocate_from(const DLPackExchangeAPI& api) {
  return [&api](const Device& device, int64_t size) {
    return allocate_with_gil(device, size, [&] {
      AllocatedMemory made;
      auto owner =
          std::make_shared<OwnedTensor>(allocate_by(api, *find_dtype("uint8"), size, device));
      made.address = static_cast<uint8_t*>((*owner)->data) + (*owner)->byte_offset;
      made.owner = std::move(owner);
      made.stream = current_stream(api, device);
      return made;
    });
  };
}

void free_caches_of_libraries(const Device& device) {
  std::exception_ptr exit;
  with_gil([&] {
    try {
      find_hook(Hook::kFreeCaches)(device_type_name(device.type));
    } catch (py::error_already_set& error) {
      exit = find_exit(error);
      if (exit == nullptr) {
        error.discard_as_unraisable("arrowdl: freeing the caches of other libraries");
      }
    }
  });
  if (exit != nullptr) std::rethrow_exception(exit);
}

}  // namespace

Allocator read_allocator(PyObject* object) {
  if (object == nullptr || object == Py_None) return {};
  const auto given = py::reinterpret_borrow<py::object>(object);
  if (py::isinstance<py::str>(given)) {
    const auto name = given.cast<std::string>();
    if (name == "auto") return allocate_auto;
    if (name == "pool") return [](const Device&, int64_t) { return AllocatedMemory{}; };
    raise_value_error("allocator=\"", name,
                      "\" is not one of \"auto\", \"pool\": pass another as an object, such as "
                      "torch.Tensor or a memory resource of RMM");
  }
  const py::object function = find_hook(Hook::kFindAllocator)(given);
  if (function.is(find_hook(Hook::kAllocateByTorch))) {
    return allocate_by_torch<Hook::kAllocateByTorch>;
  }
  if (!function.is_none()) {
    const std::shared_ptr<const void> owner = share_object(function.ptr());
    return [owner, called = function.ptr()](const Device& device, int64_t size) {
      return allocate_with_gil(device, size, [&] { return call_allocator(called, device, size); });
    };
  }
  if (PyType_Check(object)) {
    const DLPackExchangeAPI* api = find_exchange_api(reinterpret_cast<PyTypeObject*>(object));
    if (api != nullptr) return allocate_from(*api);
  }
  raise_type_error("allocator= takes \"auto\", \"pool\", a tensor class with the DLPack exchange ",
                   "API (torch.Tensor), a memory resource of RMM, or a function of the number of ",
                   "bytes such as cupy.cuda.alloc, got ", py::repr(given).cast<std::string>());
}

void register_allocators(py::module_& m) {
  set_default_allocator(allocate_auto);
  set_free_caches(free_caches_of_libraries);
  m.def(
      "set_allocator",
      [](const py::object& allocator) { set_default_allocator(read_allocator(allocator.ptr())); },
      py::arg("allocator"));
}

}  // namespace arrowdl::python
