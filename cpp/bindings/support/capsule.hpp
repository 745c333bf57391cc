// Makes and reads the PyCapsules of the C structs. No other file knows their names.
#pragma once

#include <pybind11/cast.h>

#include <optional>
#include <string_view>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/stream.hpp"

namespace arrowdl::python {

// Export to Python. The capsule owns the struct and releases it unless a consumer took it.
// Sources: Arrow "PyCapsule Interface"; DLPack "Python Specification".
pybind11::object make_capsule(OwnedSchema schema);
pybind11::object make_capsule(OwnedArray array);
pybind11::object make_capsule(OwnedDeviceArray array);
pybind11::object make_capsule(OwnedArrayStream stream);
pybind11::object make_capsule(OwnedDeviceArrayStream stream);
/// "dltensor" or "dltensor_versioned", by the DLPack version of `tensor`.
pybind11::object make_capsule(OwnedTensor tensor);
/// "dlpack_exchange_api"; `api` must live as long as the process.
pybind11::object make_capsule(const DLPackExchangeAPI& api);

/// A capsule for arrowdl.testing around a struct that is owned elsewhere and outlives the capsule.
/// Calls its release callback or deleter when it is deleted, unless a consumer
/// took the struct. Unlike a destructor in Python, it keeps a pending exception.
pybind11::object make_borrowed_capsule(void* address, std::string_view name);

/// The device of the tensor in a DLPack capsule. Empty for a consumed capsule, for another object,
/// and for a DLPack version that arrowdl does not read.
std::optional<Device> peek_device(PyObject* capsule);

// Import from Python. Raises TypeError for other objects, ValueError for a consumed capsule; the
// capsule keeps its struct then.
OwnedTensor take_tensor(PyObject* capsule);
/// Takes the pair of `__arrow_c_array__` or `__arrow_c_device_array__`, both or neither.
DeviceArray take_array(PyObject* schema_capsule, PyObject* array_capsule);
/// Moves the schema out of an "arrow_schema" capsule and parses it.
std::shared_ptr<const ParsedSchema> take_schema(PyObject* capsule);

/// The schema that a consumer requests: a copy, so that the capsule can be passed again. nullptr
/// for None and for nullptr.
std::shared_ptr<const ParsedSchema> read_requested_schema(PyObject* capsule);

/// Moves the stream out of an "arrow_array_stream" or "arrow_device_array_stream" capsule.
OwnedStream open_stream(PyObject* capsule);

/// The newest exchange API in `capsule`, of any version; nullptr if it is another capsule.
const DLPackExchangeAPIHeader* find_exchange_api_header(PyObject* capsule) noexcept;

/// Whether `object` is a capsule of a DLPack tensor or an Arrow stream, consumed or not.
bool is_tensor_capsule(PyObject* object) noexcept;
bool is_stream_capsule(PyObject* object) noexcept;

/// The Releaser of arrays from Python. Takes the GIL, since some producers (pylibcudf) use Python
/// objects in their release callback without it. Without an interpreter it leaks the memory until
/// the process ends.
void release_with_gil(OwnedSchema* schema, OwnedDeviceArray* array) noexcept;
/// The same for streams.
void release_stream_with_gil(OwnedArrayStream* stream,
                             OwnedDeviceArrayStream* device_stream) noexcept;

}  // namespace arrowdl::python
