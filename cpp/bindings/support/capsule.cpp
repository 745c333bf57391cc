// Makes and reads the PyCapsules of the C structs.
#include "support/capsule.hpp"

#include <cstddef>
#include <cstring>
#include <memory>

#include "arrowdl/error.hpp"
#include "schema/make_schema.hpp"
#include "support/errors.hpp"
#include "support/gil.hpp"
#include "support/objects.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

constexpr const char* kSchema = "arrow_schema";
constexpr const char* kArray = "arrow_array";
constexpr const char* kDeviceArray = "arrow_device_array";
constexpr const char* kStream = "arrow_array_stream";
constexpr const char* kDeviceStream = "arrow_device_array_stream";
constexpr const char* kExchangeApi = "dlpack_exchange_api";

// Aligned to pages: the C library compares strings slowly near the end of a page, and consumers
// compare these names several times per tensor.
alignas(4096) constexpr char kTensor[] = "dltensor";
alignas(4096) constexpr char kVersionedTensor[] = "dltensor_versioned";

template <typename Managed>
struct TensorCapsule;
template <>
struct TensorCapsule<DLManagedTensor> {
  static constexpr const char* kName = kTensor;
  static constexpr const char* kUsed = "used_dltensor";
};
template <>
struct TensorCapsule<DLManagedTensorVersioned> {
  static constexpr const char* kName = kVersionedTensor;
  static constexpr const char* kUsed = "used_dltensor_versioned";
};

/// A consumer moves the struct out by copying its bytes. The capsule frees `shell`, which releases
/// a struct that no consumer took.
template <typename Owned>
py::object make_arrow_capsule(Owned owned, const char* name) {
  auto shell = std::make_unique<Owned>(std::move(owned));
  py::object capsule = checked(PyCapsule_New(shell->get(), name, [](PyObject* self) noexcept {
    const PendingError pending;
    delete static_cast<Owned*>(PyCapsule_GetContext(self));
  }));
  if (PyCapsule_SetContext(capsule.ptr(), shell.get()) != 0) throw py::error_already_set();
  shell.release();
  return capsule;
}

template <typename Managed>
void destroy_tensor_capsule(PyObject* self) noexcept {
  if (!PyCapsule_IsValid(self, TensorCapsule<Managed>::kName)) return;  // consumed
  const PendingError pending;
  OwnedTensor(static_cast<Managed*>(PyCapsule_GetPointer(self, TensorCapsule<Managed>::kName)));
}

/// Destructor of a capsule whose struct is owned elsewhere: releases it unless a consumer took it.
template <typename Struct>
void release_borrowed(PyObject* self) noexcept {
  const PendingError pending;
  auto* borrowed = static_cast<Struct*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self)));
  if (borrowed->release != nullptr) borrowed->release(borrowed);
}

struct BorrowedRow {
  const char* name;
  PyCapsule_Destructor destroy;
};

// A device array begins with the array that has its release callback.
constexpr BorrowedRow kBorrowed[] = {
    {kTensor, destroy_tensor_capsule<DLManagedTensor>},
    {kVersionedTensor, destroy_tensor_capsule<DLManagedTensorVersioned>},
    {kSchema, release_borrowed<ArrowSchema>},
    {kArray, release_borrowed<ArrowArray>},
    {kDeviceArray, release_borrowed<ArrowArray>},
    {kStream, release_borrowed<ArrowArrayStream>},
    {kDeviceStream, release_borrowed<ArrowDeviceArrayStream>},
};
static_assert(offsetof(ArrowDeviceArray, array) == 0);

template <typename Managed>
py::object make_tensor_capsule(Managed* managed) {
  OwnedTensor owned(managed);
  py::object capsule = checked(
      PyCapsule_New(managed, TensorCapsule<Managed>::kName, destroy_tensor_capsule<Managed>));
  if constexpr (std::is_same_v<Managed, DLManagedTensor>) {
    owned.take_legacy();
  } else {
    owned.take_versioned();
  }
  return capsule;
}

std::string describe(PyObject* object) {
  if (PyCapsule_CheckExact(object) == 0) return Py_TYPE(object)->tp_name;
  const char* name = PyCapsule_GetName(object);
  return concat("a capsule named \"", name == nullptr ? "" : name, "\"");
}

/// The struct in an Arrow capsule, which still owns it.
template <typename Struct>
Struct* find_struct(PyObject* capsule, const char* name) {
  void* pointer = PyCapsule_GetPointer(capsule, name);
  if (pointer == nullptr) {
    PyErr_Clear();
    raise_type_error("expected a capsule named \"", name, "\", got ", describe(capsule));
  }
  return static_cast<Struct*>(pointer);
}

[[noreturn]] void raise_consumed(const char* name) {
  raise_value_error("the capsule \"", name,
                    "\" has been consumed already: request a new one from its producer");
}

template <typename Managed>
OwnedTensor take_managed(PyObject* capsule) {
  const CriticalSection section(capsule);
  if (!PyCapsule_IsValid(capsule, TensorCapsule<Managed>::kName)) {
    raise_consumed(TensorCapsule<Managed>::kName);  // by another thread since the caller's check
  }
  auto* managed =
      static_cast<Managed*>(PyCapsule_GetPointer(capsule, TensorCapsule<Managed>::kName));
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
    if (managed->version.major != DLPACK_MAJOR_VERSION) {
      raise_buffer_error("the tensor has DLPack version ", managed->version.major, ".",
                         managed->version.minor, ", and arrowdl reads version ",
                         DLPACK_MAJOR_VERSION, ": request it with max_version=(",
                         DLPACK_MAJOR_VERSION, ", ", DLPACK_MINOR_VERSION, ")");
    }
  }
  if (PyCapsule_SetName(capsule, TensorCapsule<Managed>::kUsed) != 0) {
    throw py::error_already_set();
  }
  return OwnedTensor(managed);
}

/// Moves the array out of a capsule of either interface.
OwnedDeviceArray move_array(PyObject* capsule) {
  OwnedDeviceArray owned;
  if (PyCapsule_IsValid(capsule, kDeviceArray)) {
    auto* array = find_struct<ArrowDeviceArray>(capsule, kDeviceArray);
    if (array->array.release == nullptr) raise_consumed(kDeviceArray);
    owned.reset(array);
    return owned;
  }
  auto* array = find_struct<ArrowArray>(capsule, kArray);
  if (array->release == nullptr) raise_consumed(kArray);
  ArrowArrayMove(array, &owned->array);
  owned->device_type = ARROW_DEVICE_CPU;
  owned->device_id = -1;
  return owned;
}

/// Moves the struct out of an Arrow capsule.
template <typename Owned, typename Struct>
Owned take_struct(PyObject* capsule, const char* name) {
  auto* given = find_struct<Struct>(capsule, name);
  const CriticalSection section(capsule);
  if (given->release == nullptr) raise_consumed(name);
  return Owned(given);
}

/// Releases the GIL: a producer's stream may run any code, for any time.
template <typename Owned, typename Struct>
OwnedStream open_struct(PyObject* capsule, const char* name) {
  auto owned = take_struct<Owned, Struct>(capsule, name);
  const py::gil_scoped_release release;
  return import_stream(std::move(owned), {release_with_gil, release_stream_with_gil});
}

}  // namespace

py::object make_capsule(OwnedSchema schema) {
  return make_arrow_capsule(std::move(schema), kSchema);
}

py::object make_capsule(OwnedArray array) { return make_arrow_capsule(std::move(array), kArray); }

py::object make_capsule(OwnedDeviceArray array) {
  return make_arrow_capsule(std::move(array), kDeviceArray);
}

py::object make_capsule(OwnedArrayStream stream) {
  return make_arrow_capsule(std::move(stream), kStream);
}

py::object make_capsule(OwnedDeviceArrayStream stream) {
  return make_arrow_capsule(std::move(stream), kDeviceStream);
}

py::object make_capsule(OwnedTensor tensor) {
  if (DLManagedTensorVersioned* versioned = tensor.take_versioned(); versioned != nullptr) {
    return make_tensor_capsule(versioned);
  }
  return make_tensor_capsule(tensor.take_legacy());
}

py::object make_borrowed_capsule(void* address, std::string_view name) {
  for (const BorrowedRow& row : kBorrowed) {
    if (name == row.name) return checked(PyCapsule_New(address, row.name, row.destroy));
  }
  raise_value_error("no struct of Arrow or DLPack is in capsules named \"", name, "\"");
}

std::optional<Device> peek_device(PyObject* capsule) {
  const CriticalSection section(capsule);
  if (PyCapsule_IsValid(capsule, kVersionedTensor)) {
    const auto* managed = static_cast<const DLManagedTensorVersioned*>(
        PyCapsule_GetPointer(capsule, kVersionedTensor));
    if (managed->version.major != DLPACK_MAJOR_VERSION) return {};
    return from_dl_device(managed->dl_tensor.device);
  }
  if (!PyCapsule_IsValid(capsule, kTensor)) return {};
  const auto* managed = static_cast<const DLManagedTensor*>(PyCapsule_GetPointer(capsule, kTensor));
  return from_dl_device(managed->dl_tensor.device);
}

OwnedTensor take_tensor(PyObject* capsule) {
  using Legacy = TensorCapsule<DLManagedTensor>;
  using Versioned = TensorCapsule<DLManagedTensorVersioned>;
  if (PyCapsule_IsValid(capsule, Versioned::kName)) {
    return take_managed<DLManagedTensorVersioned>(capsule);
  }
  if (PyCapsule_IsValid(capsule, Legacy::kName)) return take_managed<DLManagedTensor>(capsule);
  if (PyCapsule_IsValid(capsule, Versioned::kUsed)) raise_consumed(Versioned::kName);
  if (PyCapsule_IsValid(capsule, Legacy::kUsed)) raise_consumed(Legacy::kName);
  raise_type_error("expected a DLPack capsule (\"", Legacy::kName, "\" or \"", Versioned::kName,
                   "\"), got ", describe(capsule));
}

DeviceArray take_array(PyObject* schema_capsule, PyObject* array_capsule) {
  auto* schema = find_struct<ArrowSchema>(schema_capsule, kSchema);
  OwnedSchema owned_schema;
  OwnedDeviceArray owned;
  {
    const CriticalSection schema_section(schema_capsule);
    const CriticalSection array_section(array_capsule);
    if (schema->release == nullptr) raise_consumed(kSchema);
    owned = move_array(array_capsule);
    owned_schema.reset(schema);
  }
  return DeviceArray::import(std::move(owned_schema), std::move(owned), release_with_gil);
}

std::shared_ptr<const ParsedSchema> take_schema(PyObject* capsule) {
  return share_schema(take_struct<OwnedSchema, ArrowSchema>(capsule, kSchema), release_with_gil);
}

std::shared_ptr<const ParsedSchema> read_requested_schema(PyObject* capsule) {
  if (capsule == nullptr || capsule == Py_None) return nullptr;
  const auto* schema = find_struct<ArrowSchema>(capsule, kSchema);
  OwnedSchema copy;
  {
    const CriticalSection section(capsule);
    if (schema->release == nullptr) raise_consumed(kSchema);
    parse_schema(*schema);  // validates the pointers, which nanoarrow's copy does not
    copy = copy_schema(*schema);
  }
  return share_schema(std::move(copy));
}

OwnedStream open_stream(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kDeviceStream)) {
    return open_struct<OwnedDeviceArrayStream, ArrowDeviceArrayStream>(capsule, kDeviceStream);
  }
  return open_struct<OwnedArrayStream, ArrowArrayStream>(capsule, kStream);
}

py::object make_capsule(const DLPackExchangeAPI& api) {
  return checked(PyCapsule_New(const_cast<DLPackExchangeAPI*>(&api), kExchangeApi, nullptr));
}

const DLPackExchangeAPIHeader* find_exchange_api_header(PyObject* capsule) noexcept {
  if (PyCapsule_IsValid(capsule, kExchangeApi) == 0) return nullptr;
  return static_cast<const DLPackExchangeAPIHeader*>(PyCapsule_GetPointer(capsule, kExchangeApi));
}

bool is_tensor_capsule(PyObject* object) noexcept {
  if (PyCapsule_CheckExact(object) == 0) return false;
  const char* name = PyCapsule_GetName(object);
  return name != nullptr && std::strstr(name, "dltensor") != nullptr;
}

bool is_stream_capsule(PyObject* object) noexcept {
  return PyCapsule_IsValid(object, kStream) || PyCapsule_IsValid(object, kDeviceStream);
}

void release_with_gil(OwnedSchema* schema, OwnedDeviceArray* array) noexcept {
  const bool is_done = with_gil([&] {
    if (array != nullptr) array->reset();
    if (schema != nullptr) schema->reset();
  });
  if (is_done) return;
  // Leaked: no interpreter can run the producer's release.
  if (array != nullptr) (*array)->array.release = nullptr;
  if (schema != nullptr) (*schema)->release = nullptr;
}

void release_stream_with_gil(OwnedArrayStream* stream,
                             OwnedDeviceArrayStream* device_stream) noexcept {
  const bool is_done = with_gil([&] {
    if (stream != nullptr) stream->reset();
    if (device_stream != nullptr) device_stream->reset();
  });
  if (is_done) return;
  if (stream != nullptr) (*stream)->release = nullptr;
  if (device_stream != nullptr) (*device_stream)->release = nullptr;
}

}  // namespace arrowdl::python
